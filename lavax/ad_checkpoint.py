"""Values that gradients compute again, under the names of jax.ad_checkpoint."""
from lavax.tracer.transforms.checkpoint import checkpoint
from lavax.tracer.transforms.checkpoint_policies import checkpoint_name, checkpoint_policies

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies"]
