"""Rotations in space: `spatial.transform`."""
from lavax.scipy.spatial import transform

__all__ = ["transform"]
