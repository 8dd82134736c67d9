"""Vector quantisation."""
from __future__ import annotations

import lavax.numpy as lnp
from lavax.numpy._core.broadcasting import common_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value

__all__ = ["vq"]


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Value, Value]:
    """For each observation [n, d], or [n] of numbers, the nearest of the codes [k, d] or [k]: numbers [n], distances
    [n].

    `check_finite` changes nothing. Raises ShapeError if the shapes do not fit.
    """
    points, codes = common_dtype([obs, code_book])
    if points.ndim != codes.ndim or points.ndim not in (1, 2) or points.shape[1:] != codes.shape[1:]:
        given = f"{points.type} and {codes.type}"
        raise shape_error(f"vq takes observations [n, d] and codes [k, d], or [n] and [k], got {given}")
    if points.ndim == 1:
        points, codes = points[:, None], codes[:, None]
    gaps = points[:, None, :] - codes[None, :, :]
    squares = lnp.sum(gaps * gaps, axis=-1)
    chosen = lnp.argmin(squares, axis=-1)
    return chosen, lnp.sqrt(lnp.min(squares, axis=-1))
