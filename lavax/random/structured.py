"""Random vectors and matrices with structure."""
from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import lavax.numpy as lnp
from lavax.numpy.application import as_floating
from lavax.numpy.broadcasting import broadcast_shapes
from lavax.numpy.errors import shape_error
from lavax.numpy.operands import ArrayLike, cast
from lavax.random.continuous import standard_normal
from lavax.random.keys import result_shape
from lavax.random.parameters import floating_dtype
from lavax.tracer.value import Value


def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: int | Sequence[int] | None = None,
    dtype: Any = "float32",
) -> Value:
    """Normal vectors of the mean `mean` [..., n] and the covariance `cov` [..., n, n], by its Cholesky factor.

    `shape` is that of the result without the axis of the vectors; it is the common one of the batch axes if not given.
    Raises ShapeError where the shapes do not fit. A `cov` that is not positive definite gives NaN.
    """
    held = floating_dtype("multivariate_normal", dtype)
    centre, spread = as_floating(mean), as_floating(cov)
    if not centre.ndim or spread.shape[-2:] != (centre.shape[-1],) * 2:
        raise shape_error(
            f"multivariate_normal: mean must be [..., n] and cov [..., n, n], got {centre.type} and {spread.type}"
        )
    batch = broadcast_shapes(centre.shape[:-1], spread.shape[:-2])
    extents = batch if shape is None else result_shape("multivariate_normal", shape)
    if shape is not None and broadcast_shapes(extents, batch) != extents:
        raise shape_error(f"multivariate_normal: batch axes {batch} do not broadcast to the shape {extents}")
    factor = _linear_algebra("multivariate_normal").cholesky(spread)
    drawn = standard_normal("multivariate_normal", key, (*extents, centre.shape[-1]))
    return cast(lnp.add(centre, lnp.einsum("...ij,...j->...i", factor, drawn)), held)


def orthogonal(
    key: ArrayLike, n: int, shape: int | Sequence[int] = (), dtype: Any = "float32", m: int | None = None
) -> Value:
    """Matrices [*shape, n, m], m = n if not given, with orthonormal columns (rows where n < m), evenly spread.

    The orthogonal factor of a matrix of normal numbers, its columns signed as the triangular factor's diagonal is
    (Mezzadri 2007).
    """
    held = floating_dtype("orthogonal", dtype)
    batch = result_shape("orthogonal", shape)
    rows, columns = result_shape("orthogonal", (n, n if m is None else m))
    drawn = standard_normal("orthogonal", key, (*batch, max(rows, columns), min(rows, columns)))
    factor, triangle = _linear_algebra("orthogonal").qr(drawn)
    signs = lnp.sign(lnp.einsum("...ii->...i", triangle))
    columns_signed = lnp.multiply(factor, lnp.expand_dims(signs, -2))
    return cast(columns_signed if rows >= columns else lnp.matrix_transpose(columns_signed), held)


def _linear_algebra(name: str) -> Any:
    """The module `lavax.linalg`, found late: the rest of lavax.random does without it."""
    try:
        return import_module("lavax.linalg")
    except ModuleNotFoundError:
        raise NotImplementedError(f"{name} needs lavax.linalg, which is not there") from None
