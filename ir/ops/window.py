"""Convolution, and the movement that forms windows."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.ops.contraction import DEFAULTS, check_precision, free_axes, rounded_operands
from lavax.ir.types import TensorType

# Convolution: a dot with additional pairs of window axes. With p the left operand after padding,
#   result[…o…] = Σ over k of p[…o·stride + k·dilation…] · right[…k…].
# `low`, `high` and `interior` widen the left operand's window axes as `pad` does, with zeros; negative widths cut.
# The result's axes: batch, the left operand's other axes with window axes among them, the right operand's free axes.


def _padded_extent(extent: int, low: int, high: int, interior: int) -> int:
    return low + extent + max(extent - 1, 0) * interior + high


def windows_along(extent: int, window: int, stride: int, dilation: int) -> int:
    """The number of windows that fit into an extent."""
    return max((extent - (window - 1) * dilation - 1) // stride + 1, 0) if window else 0


def _check_window(left: TensorType, right: TensorType, attrs: Attributes) -> None:
    of_left, of_right = attrs["window"]
    lists = [attrs[name] for name in ("stride", "low", "high", "interior", "dilation")]
    if any(len(entries) != len(of_left) for entries in (of_right, *lists)):
        raise ShapeError(f"conv: window, stride, low, high, interior and dilation must be of {len(of_left)} axes")
    if min((*attrs["stride"], *attrs["dilation"], 1)) < 1 or min((*attrs["interior"], 0)) < 0:
        raise ShapeError("conv: stride and dilation must be at least 1, interior at least 0")
    for operand, side in ((left, 0), (right, 1)):
        axes = [axis for name in ("batch", "contract", "window") for axis in attrs[name][side]]
        if len(set(axes)) != len(axes) or any(not 0 <= axis < operand.rank for axis in axes):
            raise ShapeError(f"conv: batch, contract and window must be distinct axes of {operand}, got {axes}")
    if any(right.shape[axis] == 0 for axis in of_right):
        raise ShapeError(f"conv: a window of no elements: {right} along axes {list(of_right)}")


def _infer_conv(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    left, right = operands
    if left.dtype != right.dtype:
        raise DtypeError(f"conv: operands must have one dtype, got {left} and {right}")
    if left.dtype.kind == "bool":
        raise DtypeError(f"conv is not defined for {left}")
    check_precision("conv", left, attrs)
    _check_window(left, right, attrs)
    for what in ("batch", "contract"):
        of_left, of_right = attrs[what]
        if [left.shape[axis] for axis in of_left] != [right.shape[axis] for axis in of_right]:
            raise ShapeError(
                f"conv: {left} and {right} do not agree on the axes to {what}: {list(of_left)} and {list(of_right)}"
            )
    extents = dict(enumerate(left.shape))
    lists = [attrs[name] for name in ("low", "high", "interior", "stride", "dilation")]
    for axis, of_right, *numbers in zip(*attrs["window"], *lists, strict=True):
        low, high, interior, stride, dilation = numbers
        padded = _padded_extent(left.shape[axis], low, high, interior)
        extents[axis] = windows_along(padded, right.shape[of_right], stride, dilation)
    (left_batch, right_batch), (left_sum, right_sum) = attrs["batch"], attrs["contract"]
    free = free_axes(right, (*right_batch, *attrs["window"][1]), right_sum)
    return left.with_shape(
        tuple(left.shape[axis] for axis in left_batch)
        + tuple(extents[axis] for axis in free_axes(left, left_batch, left_sum))
        + tuple(right.shape[axis] for axis in free)
    )


def _evaluate_conv(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    left, right = rounded_operands(arrays, attrs)
    of_left, of_right = attrs["window"]
    padded = _widened(left.astype(dtype, copy=False), attrs)
    lengths = [right.shape[axis] for axis in of_right]
    spans = [(length - 1) * step + 1 for length, step in zip(lengths, attrs["dilation"], strict=True)]
    if any(padded.shape[axis] < span for axis, span in zip(of_left, spans, strict=True)):
        return np.zeros(type.shape, dtype)
    windows = np.lib.stride_tricks.sliding_window_view(padded, spans, of_left)
    taken: list[slice] = [slice(None)] * left.ndim
    for axis, stride in zip(of_left, attrs["stride"], strict=True):
        taken[axis] = slice(None, None, stride)
    windows = windows[(*taken, *(slice(None, None, step) for step in attrs["dilation"]))]
    (left_batch, right_batch), (left_sum, right_sum) = attrs["batch"], attrs["contract"]
    windows_label, right_label = list(range(windows.ndim)), [windows.ndim + axis for axis in range(right.ndim)]
    window_axes = range(left.ndim, windows.ndim)
    met = zip((*left_batch, *left_sum, *window_axes), (*right_batch, *right_sum, *of_right), strict=True)
    for label, axis in met:
        right_label[axis] = label
    result = [*left_batch, *(axis for axis in range(left.ndim) if axis not in (*left_batch, *left_sum))]
    result += [label for label in right_label if label >= windows.ndim]
    product = np.einsum(windows, windows_label, right, right_label, result, optimize=True)
    return np.asarray(product).astype(dtype, copy=False)


def _widened(array: np.ndarray, attrs: Attributes) -> np.ndarray:
    """Adds zeros between elements and at the ends, or cuts elements off the ends."""
    lists = [attrs[name] for name in ("low", "high", "interior")]
    for axis, low, high, interior in zip(attrs["window"][0], *lists, strict=True):
        moved = np.moveaxis(array, axis, 0)
        spread = np.zeros((_padded_extent(len(moved), 0, 0, interior), *moved.shape[1:]), array.dtype)
        spread[:: interior + 1] = moved
        ends = np.zeros((max(_padded_extent(len(spread), low, high, 0), 0), *moved.shape[1:]), array.dtype)
        first, last = max(-low, 0), len(spread) - max(-high, 0)
        if first < last:
            ends[max(low, 0) : max(low, 0) + last - first] = spread[first:last]
        array = np.moveaxis(ends, 0, axis)
    return array


# Shearing: the positions read along the axes `axes` depend on the position along the axes `along`. Both operations only
# move elements, and each is the other's transpose.
#   shear:    result[…o…k…] = x[…o·stride + k·dilation…k…]
#   unshear:  result[…i…k…] = x[…(i - k·dilation)/stride…k…] if that is an element, else zero


def _sheared_extents(type: TensorType, attrs: Attributes) -> list[tuple[int, int, int, int]]:
    """(axis, extent of the other axis, stride, dilation) per sheared axis."""
    axes, along, stride, dilation = (attrs[name] for name in ("axes", "along", "stride", "dilation"))
    both = (*axes, *along)
    if len(set(both)) != len(both) or any(not 0 <= axis < type.rank for axis in both):
        raise ShapeError(f"shear: axes {list(axes)} and along {list(along)} must be distinct axes of {type}")
    if not len(axes) == len(along) == len(stride) == len(dilation) or min((*stride, *dilation, 1)) < 1:
        raise ShapeError(f"shear: {len(axes)} axes need as many along, and as many strides and dilations of at least 1")
    return [(a, type.shape[k], s, d) for a, k, s, d in zip(axes, along, stride, dilation, strict=True)]


def _check_sheared(name: str, operand: TensorType, attrs: Attributes, declared: TensorType | None) -> TensorType:
    if declared is None or declared.dtype != operand.dtype or declared.rank != operand.rank:
        raise ShapeError(f"{name}: {operand} does not become {declared}")
    others = [axis for axis in range(operand.rank) if axis not in attrs["axes"]]
    if any(declared.shape[axis] != operand.shape[axis] for axis in others):
        raise ShapeError(f"{name}: {operand} and {declared} must agree in all axes but {list(attrs['axes'])}")
    narrow, wide = (declared, operand) if name == "shear" else (operand, declared)
    for axis, length, stride, dilation in _sheared_extents(operand, attrs):
        windows = narrow.shape[axis]
        reach = (windows - 1) * stride + (length - 1) * dilation
        if (windows and reach >= wide.shape[axis]) or (name == "unshear" and not windows):
            raise ShapeError(f"{name}: axis {axis} of {wide} does not hold the windows of {narrow}")
    return declared


def _infer_shear(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    return _check_sheared("shear", operands[0], attrs, declared)


def _infer_unshear(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    return _check_sheared("unshear", operands[0], attrs, declared)


def _sheared_indices(narrow: Sequence[int], attrs: Attributes) -> tuple[np.ndarray, ...]:
    """The position in the wide array of each element of the narrow one."""
    places = list(np.indices(narrow, sparse=True))
    numbers = zip(*(attrs[name] for name in ("axes", "along", "stride", "dilation")), strict=True)
    for axis, along, stride, dilation in numbers:
        places[axis] = places[axis] * stride + np.indices(narrow, sparse=True)[along] * dilation
    return tuple(places)


def _evaluate_shear(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    return np.broadcast_to(arrays[0][_sheared_indices(type.shape, attrs)], type.shape)


def _evaluate_unshear(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    result = np.zeros(type.shape, dtype)
    result[_sheared_indices(arrays[0].shape, attrs)] = arrays[0]
    return result


_CONV = ("window", "stride", "low", "high", "interior", "dilation", "contract", "batch", "precision", "backward")
_SHEAR = ("axes", "along", "stride", "dilation")

define(Operation("conv", "contraction", _infer_conv, _evaluate_conv, _CONV, defaults=DEFAULTS))
define(Operation("shear", "movement", _infer_shear, _evaluate_shear, _SHEAR, typed=True))
define(Operation("unshear", "movement", _infer_unshear, _evaluate_unshear, _SHEAR, typed=True))
