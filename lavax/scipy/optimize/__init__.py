"""Minimisation of functions of vectors."""
from lavax.scipy.optimize.bfgs import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]
