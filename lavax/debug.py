"""Debugging of compiled functions: `print`, `callback`, `nans` (finds the first NaN) and `key_reuse`."""
from lavax.random.reuse import key_reuse
from lavax.tracer.transforms.debugging import callback, nans, print

__all__ = ["callback", "key_reuse", "nans", "print"]
