"""Looking into compiled functions: `print`, `callback`, and `nans`, which finds the first NaN."""
from lavax.tracer.debugging import callback, nans, print

__all__ = ["callback", "nans", "print"]
