"""Pytrees as vectors, under JAX's name."""
from lavax.optim.tree.raveling import ravel_pytree

__all__ = ["ravel_pytree"]
