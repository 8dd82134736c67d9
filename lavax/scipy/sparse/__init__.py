"""Iterative solvers of systems of equations: `sparse.linalg`."""
from lavax.scipy.sparse import linalg

__all__ = ["linalg"]
