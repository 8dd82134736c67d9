"""Models that people use, built from configurations and loaded from their published checkpoints."""
from lavax.models.load import load

__all__ = ["load"]
