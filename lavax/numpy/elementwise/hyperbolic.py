"""Hyperbolic functions and their inverses."""
from __future__ import annotations

from lavax.numpy._core.application import real_function

__all__ = ["acosh", "asinh", "atanh", "cosh", "sinh", "tanh"]

tanh = real_function("tanh", "The hyperbolic tangent")
sinh = real_function("sinh", "The hyperbolic sine")
cosh = real_function("cosh", "The hyperbolic cosine")
asinh = real_function("asinh", "The inverse of the hyperbolic sine")
acosh = real_function("acosh", "The inverse of the hyperbolic cosine, not negative; NaN below 1")
atanh = real_function("atanh", "The inverse of the hyperbolic tangent; infinite at -1 and 1, NaN beyond")
