"""Decompositions and systems of equations, by the names, arguments and orders of results of jax.lax.linalg.

Matrices are the last two axes; those before them are a batch. `lavax.linalg` and `lavax.scipy.linalg` do the work, and
their docstrings say where it is done: on the device, or by LAPACK on the host.
"""
from lavax.lax.linalg.choices import EighImplementation, EigImplementation, SvdAlgorithm
from lavax.lax.linalg.factors import cholesky, cholesky_update, lu, lu_pivots_to_permutation, qr, symmetric_product
from lavax.lax.linalg.reflections import hessenberg, householder_product, ormqr, tridiagonal
from lavax.lax.linalg.spectra import eig, eigh, qdwh, schur, svd
from lavax.lax.linalg.systems import triangular_solve, tridiagonal_solve

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_update",
    "eig",
    "eigh",
    "hessenberg",
    "householder_product",
    "lu",
    "lu_pivots_to_permutation",
    "ormqr",
    "qdwh",
    "qr",
    "schur",
    "svd",
    "symmetric_product",
    "triangular_solve",
    "tridiagonal",
    "tridiagonal_solve",
]
