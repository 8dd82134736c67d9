"""Functions that say themselves how they are mapped, under the names of jax.custom_batching."""
from lavax.tracer.transforms.custom_vmap import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
