"""Convolutions and correlations of arrays of any rank, as sums of products or by transforms."""
from __future__ import annotations

import math
from typing import Any, Literal

import lavax.numpy as lnp
from lavax.ir.types import bool_
from lavax.nn.convolution import conv
from lavax.numpy._core.operands import ArrayLike
from lavax.scipy.signal.arguments import MODES, Mode, kept_range, pair, require
from lavax.scipy.signal.transformed import has_blocks, in_blocks
from lavax.tracer.values.value import Value

Method = Literal["auto", "direct", "fft"]
_METHODS = ("auto", "direct", "fft")
# Products per element of a sum from which on transforms are faster. On lavapipe 20,000 and 200,000 elements take 2.6
# and 22 ms with 1,024 products, 9.8 and 92 with 4,096; by transforms 5.5 and 29. Of a long line in blocks they are soon
# faster: 2²⁰ numbers take 80 ms with 33 products, 110 with 65, and 10 and 11 in blocks; on an H200 29 and 50 µs, 40 and
# 37 in blocks.
_SUMMED, _SUMMED_IN_BLOCKS = 2048, 48
_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def _convolved(first: Value, second: Value, mode: str, late: bool = False) -> Value:
    if not first.ndim:
        return lnp.multiply(first, second)
    if first.type.dtype == bool_:
        return lnp.astype(_convolved(lnp.astype(first, "int32"), lnp.astype(second, "int32"), mode, late), bool)
    kept = [kept_range(extent, width, mode, late) for extent, width in zip(first.shape, second.shape, strict=True)]
    padding = []
    for extent, width, (start, length) in zip(first.shape, second.shape, kept, strict=True):
        before = width - 1 - start
        padding.append((before, length + width - 1 - extent - before))
    found = conv(first[None, None], lnp.flip(second)[None, None], padding=padding)
    return found[0, 0]


def convolve(
    in1: ArrayLike, in2: ArrayLike, mode: Mode = "full", method: Method = "auto", precision: Any = None
) -> Value:
    """The convolution of two arrays of one rank: Σ in1[i]·in2[k - i].

    `mode` "full": wherever they overlap; "same": of the extents of `in1`, from the middle; "valid": where the smaller
    lies within the other. `method` "direct": a sum; "fft": by transforms, whose error is relative to the greatest
    results and may be spoilt by one infinity or NaN, and which are rounded for integers; "auto": a sum for integers and
    where it takes less, else transforms.
    `precision` changes nothing. Raises ShapeError for arrays of different ranks or without elements, or where neither
    lies within the other in mode "valid", ValueError for another mode or method.
    """
    return _by_method("convolve", *pair("convolve", in1, in2), mode, method)


def correlate(
    in1: ArrayLike, in2: ArrayLike, mode: Mode = "full", method: Method = "auto", precision: Any = None
) -> Value:
    """The correlation of two arrays of one rank: Σ in1[i + k]·conj(in2[i]); arguments and errors as of `convolve`."""
    first, second = pair("correlate", in1, in2)
    return _by_method("correlate", first, lnp.conj(lnp.flip(second)), mode, method)


def _by_method(name: str, first: Value, second: Value, mode: str, method: str) -> Value:
    require(name, "mode", mode, MODES)
    require(name, "method", method, _METHODS)
    kind = first.type.dtype
    counted = kind.is_integer or kind == bool_
    if not first.ndim or method == "direct" or (method == "auto" and (counted or not _transforms_pay(first, second))):
        return _convolved(first, second, mode)
    found = in_blocks(name, first, second, range(first.ndim), mode)
    return lnp.astype(lnp.round(found), kind) if counted else found


def _transforms_pay(first: Value, second: Value) -> bool:
    """Whether a sum takes more multiplications than three transforms do."""
    products = math.prod(min(sizes) for sizes in zip(first.shape, second.shape, strict=True))
    is_line = first.ndim == 1 and has_blocks(first, second, 0)
    return products >= (_SUMMED_IN_BLOCKS if is_line else _SUMMED)


def _at_boundary(
    name: str, first: Value, second: Value, mode: str, boundary: str, fillvalue: ArrayLike, late: bool = False
) -> Value:
    require(name, "mode", mode, MODES)
    require(name, "boundary", boundary, tuple(_BOUNDARIES))
    if mode == "valid" and any(a < b for a, b in zip(first.shape, second.shape, strict=True)):
        first, second = second, first
    if mode == "valid" or (boundary == "fill" and isinstance(fillvalue, (int, float)) and fillvalue == 0):
        return _convolved(first, second, mode, late)
    widths = [(width - 1, width - 1) for width in second.shape]
    options: dict[str, Any] = {"constant_values": fillvalue} if boundary == "fill" else {}
    how: Any = _BOUNDARIES[boundary]
    whole = _convolved(lnp.pad(first, widths, how, **options), second, "valid")
    kept = [kept_range(extent, width, mode, late) for extent, width in zip(first.shape, second.shape, strict=True)]
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
    first, second = pair("convolve2d", in1, in2, 2)
    return _at_boundary("convolve2d", first, second, mode, boundary, fillvalue)


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: Mode = "full",
    boundary: str = "fill",
    fillvalue: ArrayLike = 0,
    precision: Any = None,
) -> Value:
    """`correlate` of two matrices; arguments and errors as of `convolve2d`.

    In mode "valid", if `in2` is the larger one, the result is the conjugate of that, as in SciPy and JAX.
    """
    first, second = pair("correlate2d", in1, in2, 2)
    found = _at_boundary("correlate2d", first, lnp.conj(lnp.flip(second)), mode, boundary, fillvalue, late=True)
    changes_places = mode == "valid" and any(a < b for a, b in zip(first.shape, second.shape, strict=True))
    return lnp.conj(found) if changes_places and found.type.dtype.is_complex else found
