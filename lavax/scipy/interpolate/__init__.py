"""Interpolation of values on grids."""
from lavax.scipy.interpolate.grids import RegularGridInterpolator

__all__ = ["RegularGridInterpolator"]
