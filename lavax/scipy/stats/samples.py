"""Statistics of samples: ranks, the commonest value, the error of a mean."""
from __future__ import annotations

import math
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.transforms.vmap import vmap
from lavax.tracer.values.value import Value


class ModeResult(NamedTuple):
    """The result of `mode`."""

    mode: Value
    count: Value  # type: ignore[assignment]  # SciPy's name, which tuples have as a method


def _refuse(function: str, nan_policy: str) -> None:
    if nan_policy != "propagate":
        raise ValueError(f"{function}: nan_policy must be 'propagate', got {nan_policy!r}")


def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The commonest values along `axis`, the least of several, and their numbers; `axis` None: of all elements.

    NaN counts as equal to nothing. Raises ValueError for another `nan_policy`.
    """
    _refuse("mode", nan_policy)
    value = as_value(a)
    whole = lnp.ravel(value) if axis is None else lnp.moveaxis(value, axis, -1)
    ordered = lnp.sort(whole, axis=-1)
    counts = lnp.sum(ordered[..., :, None] == ordered[..., None, :], axis=-1)
    place = lnp.argmax(counts, axis=-1, keepdims=True)
    found = [lnp.take_along_axis(each, place, axis=-1) for each in (ordered, counts)]
    if not keepdims:
        return ModeResult(*(each[..., 0] for each in found))
    if axis is None:
        return ModeResult(*(lnp.reshape(each, (1,) * value.ndim) for each in found))
    return ModeResult(*(lnp.moveaxis(each, -1, axis) for each in found))


def _ranks(x: Value, method: str) -> Value:
    size = x.shape[0]
    order = lnp.argsort(x)
    places = lnp.argsort(order)
    if method == "ordinal":
        return places + 1
    ordered = x[order]
    starts = lnp.concatenate([lnp.ones(1, "int32"), lnp.astype(ordered[1:] != ordered[:-1], "int32")])
    dense = lnp.cumsum(starts)[places]
    if method == "dense":
        return dense
    lowest = lnp.searchsorted(ordered, x, side="left") + 1
    highest = lnp.searchsorted(ordered, x, side="right")
    del size
    if method == "average":
        return (lnp.astype(lowest, float) + lnp.astype(highest, float)) / 2
    return lowest if method == "min" else highest


def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Value:
    """The ranks of the elements along `axis`, or of all, from 1: a float for "average", else int32.

    Equal elements get by `method` the "average", "min" or "max" of their places, "dense" ranks without gaps, or
    "ordinal" ones in their order. Raises ValueError for another method or `nan_policy`.
    """
    _refuse("rankdata", nan_policy)
    methods = ("average", "min", "max", "dense", "ordinal")
    if method not in methods:
        raise ValueError(f"rankdata: method must be one of {', '.join(methods)}, got {method!r}")
    value = as_value(a)
    whole = lnp.ravel(value) if axis is None else lnp.moveaxis(value, axis, -1)
    if not whole.size:
        return lnp.zeros(value.shape if axis is not None else 0)
    rows = lnp.reshape(whole, (-1, whole.shape[-1]))
    ranks = lnp.reshape(vmap(lambda row: _ranks(row, method))(rows), whole.shape)
    if value.type.dtype.is_float:
        dirty = lnp.any(lnp.isnan(whole), axis=-1, keepdims=True)
        ranks = lnp.where(dirty, math.nan, ranks) if method == "average" else ranks
    found: Value = ranks if axis is None else lnp.moveaxis(ranks, -1, axis)
    return found


def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Value:
    """The standard error of the mean along `axis`, or of all elements: the standard deviation over √n.

    With `nan_policy` "omit" NaNs are left out. Raises ValueError for another one than "propagate" and "omit".
    """
    value: Any = as_floating(a)
    if nan_policy == "omit":
        count = lnp.sum(lnp.logical_not(lnp.isnan(value)), axis=axis, keepdims=keepdims)
        return lnp.nanstd(value, axis=axis, ddof=ddof, keepdims=keepdims) / lnp.sqrt(count)
    _refuse("sem", nan_policy)
    size = value.size if axis is None else value.shape[axis]
    return lnp.std(value, axis=axis, ddof=ddof, keepdims=keepdims) / math.sqrt(size)
