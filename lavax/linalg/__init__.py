"""Linear algebra with the names and meanings of the array API standard's extension, NumPy and JAX.

Matrices are the last two axes; those before them are a batch. Functions of whole matrices take float32 and float64
(others raise DtypeError: cast first) and run on the device, inside and outside `compile`, under `grad` and `vmap`;
`eig` and `eigvals` run on the host.
Matrices that are singular, or not positive definite, give NaN or infinities, not an error.
"""

from lavax.linalg.decompositions import (
    EighResult,
    QRResult,
    SVDResult,
    cholesky,
    eigh,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from lavax.linalg.determinants import det
from lavax.linalg.eigenvalues import EigResult, eig, eigvals
from lavax.linalg.inverses import lstsq, matrix_power, matrix_rank, pinv
from lavax.linalg.norms import cond, matrix_norm, norm, vector_norm
from lavax.linalg.products import (
    cross,
    diagonal,
    matmul,
    matrix_transpose,
    outer,
    tensordot,
    trace,
    vecdot,
)
from lavax.linalg.solving import SlogdetResult, inv, slogdet, solve, solve_triangular
from lavax.linalg.tensors import multi_dot, tensorinv, tensorsolve

__all__ = [
    "EigResult",
    "EighResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]
