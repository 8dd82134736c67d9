"""Arrays sampled between their elements."""
from lavax.scipy.ndimage.interpolation import map_coordinates

__all__ = ["map_coordinates"]
