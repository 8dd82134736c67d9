"""Convolutions and correlations of arrays of any rank, as sums of products."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import lavax.numpy as lnp
from lavax.nn.convolution import conv
from lavax.numpy._core.axes import normal_axes
from lavax.numpy._core.broadcasting import common_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.transforms.vmap import vmap
from lavax.tracer.values.value import Value

Mode = Literal["full", "same", "valid"]
_MODES = ("full", "same", "valid")
_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def _require(name: str, what: str, given: Any, known: Sequence[str]) -> None:
    if given not in known:
        raise ValueError(f"scipy.signal.{name}: {what} must be one of {', '.join(known)}, got {given!r}")


def _pair(name: str, in1: ArrayLike, in2: ArrayLike, rank: int | None = None) -> tuple[Value, Value]:
    first, second = common_dtype([in1, in2])
    if first.ndim != second.ndim or (rank is not None and first.ndim != rank) or not first.size or not second.size:
        wanted = "of one rank" if rank is None else f"with {rank} axes"
        raise shape_error(f"scipy.signal.{name} takes two arrays {wanted}, with elements: {first.type}, {second.type}")
    return first, second


def _kept(extent: int, width: int, mode: str, late: bool) -> tuple[int, int]:
    """The start and the length of what a mode keeps of extent + width - 1 sums; `late`: of two middles the second."""
    longer, shorter = max(extent, width), min(extent, width)
    return {
        "full": (0, extent + width - 1),
        "same": (width // 2 if late else (width - 1) // 2, extent),
        "valid": (shorter - 1, longer - shorter + 1),
    }[mode]


def _convolved(first: Value, second: Value, mode: str, late: bool = False) -> Value:
    if not first.ndim:
        return lnp.multiply(first, second)
    kept = [_kept(extent, width, mode, late) for extent, width in zip(first.shape, second.shape, strict=True)]
    padding = []
    for extent, width, (start, length) in zip(first.shape, second.shape, kept, strict=True):
        before = width - 1 - start
        padding.append((before, length + width - 1 - extent - before))
    found = conv(first[None, None], lnp.flip(second)[None, None], padding=padding)
    return found[0, 0]


def convolve(
    in1: ArrayLike, in2: ArrayLike, mode: Mode = "full", method: str = "auto", precision: Any = None
) -> Value:
    """The convolution of two arrays of one rank: Σ in1[i]·in2[k - i].

    `mode` "full": wherever they overlap; "same": of the extents of `in1`, from the middle; "valid": where the smaller
    lies within the other. It is always computed as a sum: `method` changes nothing, nor does `precision`. Raises
    ShapeError for arrays of different ranks or without elements, ValueError for another mode.
    """
    _require("convolve", "mode", mode, _MODES)
    return _convolved(*_pair("convolve", in1, in2), mode)


def correlate(
    in1: ArrayLike, in2: ArrayLike, mode: Mode = "full", method: str = "auto", precision: Any = None
) -> Value:
    """The correlation of two arrays of one rank: Σ in1[i + k]·in2[i]; arguments and errors as of `convolve`."""
    _require("correlate", "mode", mode, _MODES)
    first, second = _pair("correlate", in1, in2)
    return _convolved(first, lnp.flip(second), mode)


def _at_boundary(
    name: str, first: Value, second: Value, mode: str, boundary: str, fillvalue: ArrayLike, late: bool = False
) -> Value:
    _require(name, "mode", mode, _MODES)
    _require(name, "boundary", boundary, tuple(_BOUNDARIES))
    if mode == "valid" and any(a < b for a, b in zip(first.shape, second.shape, strict=True)):
        first, second = second, first
    if mode == "valid" or (boundary == "fill" and isinstance(fillvalue, (int, float)) and fillvalue == 0):
        return _convolved(first, second, mode, late)
    widths = [(width - 1, width - 1) for width in second.shape]
    options: dict[str, Any] = {"constant_values": fillvalue} if boundary == "fill" else {}
    how: Any = _BOUNDARIES[boundary]
    whole = _convolved(lnp.pad(first, widths, how, **options), second, "valid")
    kept = [_kept(extent, width, mode, late) for extent, width in zip(first.shape, second.shape, strict=True)]
    return whole[tuple(slice(start, start + length) for start, length in kept)]


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: Mode = "full",
    boundary: str = "fill",
    fillvalue: ArrayLike = 0,
    precision: Any = None,
) -> Value:
    """`convolve` of two matrices; `in1` goes on beyond its edges as `boundary` says.

    "fill": with `fillvalue`; "wrap": from the other side; "symm": mirrored. Raises ShapeError for other ranks,
    ValueError for another mode or boundary.
    """
    first, second = _pair("convolve2d", in1, in2, 2)
    return _at_boundary("convolve2d", first, second, mode, boundary, fillvalue)


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: Mode = "full",
    boundary: str = "fill",
    fillvalue: ArrayLike = 0,
    precision: Any = None,
) -> Value:
    """`correlate` of two matrices; arguments and errors as of `convolve2d`."""
    first, second = _pair("correlate2d", in1, in2, 2)
    return _at_boundary("correlate2d", first, lnp.flip(second), mode, boundary, fillvalue, late=True)


def fftconvolve(
    in1: ArrayLike, in2: ArrayLike, mode: Mode = "full", axes: int | Sequence[int] | None = None
) -> Value:
    """`convolve` along `axes`, by default all of them; other axes broadcast. Computed as a sum, not by transforms."""
    _require("fftconvolve", "mode", mode, _MODES)
    first, second = _pair("fftconvolve", in1, in2)
    if axes is None:
        return _convolved(first, second, mode)
    along = normal_axes("fftconvolve", (axes,) if isinstance(axes, int) else tuple(axes), first.type)
    others = [axis for axis in range(first.ndim) if axis not in along]
    stack = lnp.broadcast_shapes(*(tuple(each.shape[axis] for axis in others) for each in (first, second)))
    rows = []
    for each in (first, second):
        moved = lnp.transpose(each, (*others, *along))
        whole = lnp.broadcast_to(moved, (*stack, *moved.shape[len(others) :]))
        rows.append(lnp.reshape(whole, (math.prod(stack), *moved.shape[len(others) :])))
    found = vmap(lambda one, other: _convolved(one, other, mode))(*rows)
    back = sorted(range(first.ndim), key=(*others, *along).__getitem__)
    return lnp.transpose(lnp.reshape(found, (*stack, *found.shape[1:])), back)
