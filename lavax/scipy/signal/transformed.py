"""Convolutions by Fourier transforms."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.nn.sound.segments import cut_segments, overlap_add
from lavax.numpy._core.axes import normal_axes
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike
from lavax.passes.complex_parts.fourier import smooth_length
from lavax.scipy.signal.arguments import MODES, Mode, kept_range, pair, require
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

Axes = int | Sequence[int] | None


def by_transforms(name: str, first: Value, second: Value, mode: str, axes: Sequence[int]) -> Value:
    """The convolution along `axes`; the others broadcast. Real lines take real transforms."""
    if mode == "valid":
        first, second = _larger_first(name, first, second, axes)
    if not axes:
        return lnp.multiply(first, second)
    lengths = [first.shape[axis] + second.shape[axis] - 1 for axis in axes]
    padded = [smooth_length(length) for length in lengths]
    if first.type.dtype.is_complex:
        spectra = (lnp.fft.fftn(each, padded, axes) for each in (first, second))
        whole = lnp.fft.ifftn(lnp.multiply(*spectra), padded, axes)
    else:
        spectra = (lnp.fft.rfftn(each, padded, axes) for each in (first, second))
        whole = lnp.fft.irfftn(lnp.multiply(*spectra), padded, axes)
    kept = [slice(None)] * first.ndim
    for axis in axes:
        start, length = kept_range(first.shape[axis], second.shape[axis], mode, False)
        kept[axis] = slice(start, start + length)
    return whole[tuple(kept)]


def _larger_first(name: str, first: Value, second: Value, axes: Sequence[int]) -> tuple[Value, Value]:
    if all(first.shape[axis] >= second.shape[axis] for axis in axes):
        return first, second
    if all(first.shape[axis] <= second.shape[axis] for axis in axes):
        return second, first
    types = f"{first.type}, {second.type}"
    raise shape_error(f"scipy.signal.{name}: in mode 'valid' one must lie within the other: {types}")


def _operands(name: str, in1: ArrayLike, in2: ArrayLike, mode: str, axes: Axes) -> tuple[Value, Value, list[int]]:
    require(name, "mode", mode, MODES)
    first, second = pair(name, in1, in2)
    along = sorted(normal_axes(name, axes, first.type))
    for axis, (one, other) in enumerate(zip(first.shape, second.shape, strict=True)):
        if axis not in along and one != other and 1 not in (one, other):
            raise shape_error(f"scipy.signal.{name}: {first.type} and {second.type} do not broadcast along axis {axis}")
    # Axes of one element need no transform: they broadcast.
    return first, second, [axis for axis in along if first.shape[axis] > 1 and second.shape[axis] > 1]


@one_program("mode", "axes")
def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: Mode = "full", axes: Axes = None) -> Value:
    """`convolve` by Fourier transforms along `axes`, by default all of them; other axes broadcast.

    Integers are computed in float32. Raises ShapeError for arrays of different ranks, without elements or that do not
    broadcast, or where neither lies within the other in mode "valid", ValueError for another mode.
    """
    first, second, along = _operands("fftconvolve", in1, in2, mode, axes)
    return _centred(by_transforms("fftconvolve", first, second, mode, along), first, mode)


@one_program("mode", "axes")
def oaconvolve(in1: ArrayLike, in2: ArrayLike, mode: Mode = "full", axes: Axes = None) -> Value:
    """`fftconvolve` where one line is much longer than the other: in blocks of it, whose results overlap and add up.

    The axis whose lengths differ most is cut into blocks. Arguments and errors as of `fftconvolve`.
    """
    first, second, along = _operands("oaconvolve", in1, in2, mode, axes)
    return _centred(in_blocks("oaconvolve", first, second, along, mode), first, mode)


def _centred(found: Value, first: Value, mode: str) -> Value:
    """In mode "same" the middle, of the extents of `first`, also along axes in which that is broadcast."""
    if mode != "same" or found.shape == first.shape:
        return found
    starts = [(extent - kept) // 2 for extent, kept in zip(found.shape, first.shape, strict=True)]
    return found[tuple(slice(start, start + kept) for start, kept in zip(starts, first.shape, strict=True))]


def in_blocks(name: str, first: Value, second: Value, along: Sequence[int], mode: str) -> Value:
    """`by_transforms` in blocks of the axis whose lengths differ most, if they differ much."""
    if mode == "valid":
        first, second = _larger_first(name, first, second, along)
    if not along:
        return lnp.multiply(first, second)
    axis = max(along, key=lambda axis: _ratio(first, second, axis))
    if not has_blocks(first, second, axis):
        return by_transforms(name, first, second, mode, along)
    kept = [slice(None)] * first.ndim
    for each in along:
        start, length = kept_range(first.shape[each], second.shape[each], mode, False)
        kept[each] = slice(start, start + length)
    longer, shorter = (first, second) if first.shape[axis] >= second.shape[axis] else (second, first)
    return _in_blocks(longer, shorter, axis, along)[tuple(kept)]


def has_blocks(first: Value, second: Value, axis: int) -> bool:
    """Whether one of both is so much longer along the axis that it is cut into blocks."""
    return _ratio(first, second, axis) >= _LEAST_BLOCKS


def _ratio(first: Value, second: Value, axis: int) -> float:
    sizes = first.shape[axis], second.shape[axis]
    return max(sizes) / min(sizes)


_LEAST_BLOCKS = 8  # of the length of the shorter line
_BLOCK = 4  # lengths of the shorter line in a block


def _in_blocks(longer: Value, shorter: Value, axis: int, along: Sequence[int]) -> Value:
    """The whole convolution, `longer` in blocks along `axis`."""
    width, extent = shorter.shape[axis], longer.shape[axis]
    points = smooth_length(_BLOCK * width)
    block = points - width + 1
    count = -(-extent // block)
    moved = lnp.moveaxis(longer, axis, -1)
    padded = lnp.pad(moved, [(0, 0)] * (moved.ndim - 1) + [(0, count * block - extent)])
    blocks = cut_segments(padded, block, block)
    kernel = lnp.moveaxis(shorter, axis, -1)[..., None, :]
    inner = [each - (each > axis) for each in along if each != axis]
    found: Any = by_transforms("oaconvolve", blocks, kernel, "full", [*inner, blocks.ndim - 1])
    return lnp.moveaxis(overlap_add(found, block)[..., : extent + width - 1], -1, axis)
