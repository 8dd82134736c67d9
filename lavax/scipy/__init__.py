"""Functions with the names and meanings they have in SciPy."""
from lavax.scipy import special

__all__ = ["special"]
