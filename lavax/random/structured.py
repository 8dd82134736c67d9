"""Random vectors and matrices with structure."""
from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import lavax.numpy as lnp
from lavax.numpy._core.application import real_numbers
from lavax.numpy._core.broadcasting import broadcast_shapes
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, cast
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.numpy.arrays.manipulation import expand_dims
from lavax.numpy.elementwise.extrema import maximum
from lavax.numpy.elementwise.powers import sqrt
from lavax.random.continuous import normal, standard_normal
from lavax.random.parameters import at_least_float32, floating_dtype
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value


@one_program("shape", "dtype", "method")
def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: int | Sequence[int] | None = None,
    dtype: Any = None,
    method: str = "cholesky",
    *,
    out_sharding: Any = None,
) -> Value:
    """Normal vectors of the mean `mean` [..., n] and the covariance `cov` [..., n, n], by its Cholesky factor.

    With `method` "eigh" or "svd" they are computed by the roots of the eigenvalues or the singular values, which a
    singular covariance has too.

    `shape` is that of the result without the axis of the vectors, by default the common one of the batch axes.
    Raises ShapeError if the shapes do not fit, DtypeError for complex numbers, ValueError for another `method`. A `cov`
    that is not positive definite gives NaN by "cholesky".
    """
    held = floating_dtype("multivariate_normal", dtype)
    centre, spread = real_numbers("multivariate_normal: mean", mean), real_numbers("multivariate_normal: cov", cov)
    if not centre.ndim or spread.shape[-2:] != (centre.shape[-1],) * 2:
        raise shape_error(
            f"multivariate_normal: mean must be [..., n] and cov [..., n, n], got {centre.type} and {spread.type}"
        )
    batch = broadcast_shapes(centre.shape[:-1], spread.shape[:-2])
    extents = batch if shape is None else checked_shape("multivariate_normal", shape)
    if shape is not None and broadcast_shapes(extents, batch) != extents:
        raise shape_error(f"multivariate_normal: batch axes {batch} do not broadcast to the shape {extents}")
    if method not in ("cholesky", "eigh", "svd"):
        raise ValueError(f"multivariate_normal: method must be 'cholesky', 'eigh' or 'svd', got {method!r}")
    linear_algebra = _linear_algebra("multivariate_normal")
    if method == "cholesky":
        factor = linear_algebra.cholesky(spread)
    elif method == "svd":
        vectors, values, _ = linear_algebra.svd(spread)
        factor = vectors * expand_dims(sqrt(values), -2)
    else:
        values, vectors = linear_algebra.eigh(spread)
        factor = vectors * expand_dims(sqrt(maximum(values, 0.0)), -2)
    drawn = standard_normal("multivariate_normal", key, (*extents, centre.shape[-1]), at_least_float32(held))
    return cast(lnp.add(centre, lnp.einsum("...ij,...j->...i", factor, drawn)), held)


@one_program("n", "shape", "dtype", "m")
def orthogonal(
    key: ArrayLike,
    n: int,
    shape: int | Sequence[int] = (),
    dtype: Any = None,
    m: int | None = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """Matrices [*shape, n, m], m = n by default, with orthonormal columns (rows if n < m), uniformly distributed.

    The orthogonal factor of a matrix of normal numbers, with columns of the signs of the triangular factor's diagonal
    (Mezzadri 2007). Of a complex `dtype` they are unitary.
    """
    is_complex = dtype is not None and canonical_dtype(dtype).is_complex
    held = canonical_dtype(dtype) if is_complex else floating_dtype("orthogonal", dtype)
    batch = checked_shape("orthogonal", shape)
    rows, columns = checked_shape("orthogonal", (n, n if m is None else m))
    tall = (*batch, max(rows, columns), min(rows, columns))
    wide = at_least_float32(held)
    drawn = normal(key, tall, held) if held.is_complex else standard_normal("orthogonal", key, tall, wide)
    factor, triangle = _linear_algebra("orthogonal").qr(drawn)
    signs = lnp.sign(lnp.einsum("...ii->...i", triangle))
    columns_signed = lnp.multiply(factor, lnp.expand_dims(signs, -2))
    return cast(columns_signed if rows >= columns else lnp.matrix_transpose(columns_signed), held)


def _linear_algebra(name: str) -> Any:
    """The module `lavax.linalg`, imported late: the rest of lavax.random does not need it."""
    try:
        return import_module("lavax.linalg")
    except ModuleNotFoundError:
        raise NotImplementedError(f"{name} needs lavax.linalg, which is not there") from None
