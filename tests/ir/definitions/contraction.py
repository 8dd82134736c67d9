"""Contractions, convolutions and windows."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lavax.ir import TensorType
from tests.ir.definitions.definition import Place, places
from tests.ir.definitions.indexing import inserted

SHEARED = ("axes", "along", "stride", "dilation")


def dot(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    (left_batch, right_batch), (left_sum, right_sum) = attrs["batch"], attrs["contract"]
    left, right = arrays
    batch, free = place[: len(left_batch)], place[len(left_batch) :]
    count = left.ndim - len(left_batch) - len(left_sum)
    total = 0
    for inner in places([left.shape[axis] for axis in left_sum]):
        x = left[inserted(free[:count], (*left_batch, *left_sum), (*batch, *inner))].item()
        y = right[inserted(free[count:], (*right_batch, *right_sum), (*batch, *inner))].item()
        total += x * y
    return total


def conv(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    left, right = arrays
    (left_batch, right_batch), (left_sum, right_sum), (of_left, of_right) = (
        attrs[name] for name in ("batch", "contract", "window")
    )
    kept = [axis for axis in range(left.ndim) if axis not in (*left_batch, *left_sum)]
    free = [axis for axis in range(right.ndim) if axis not in (*right_batch, *right_sum, *of_right)]
    at = dict(zip([*left_batch, *kept], place, strict=False))
    lists = [attrs[name] for name in ("stride", "dilation", "low", "interior")]
    total = 0
    for inner in places([left.shape[axis] for axis in left_sum]):
        for element in places([right.shape[axis] for axis in of_right]):
            x_place, inside = dict(at) | dict(zip(left_sum, inner, strict=True)), True
            for axis, k, stride, dilation, low, interior in zip(of_left, element, *lists, strict=True):
                x_place[axis], between = divmod(at[axis] * stride + k * dilation - low, interior + 1)
                inside = inside and not between and 0 <= x_place[axis] < left.shape[axis]
            met = (*place[: len(left_batch)], *inner, *element)
            y_place = dict(zip((*right_batch, *right_sum, *of_right), met, strict=True))
            y_place |= dict(zip(free, place[len(left_batch) + len(kept) :], strict=True))
            if inside:
                x = left[tuple(x_place[axis] for axis in range(left.ndim))].item()
                total += x * right[tuple(y_place[axis] for axis in range(right.ndim))].item()
    return total


def shear(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    source = list(place)
    for axis, along, stride, dilation in zip(*(attrs[name] for name in SHEARED), strict=True):
        source[axis] = place[axis] * stride + place[along] * dilation
    return arrays[0][tuple(source)]


def unshear(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    source = list(place)
    for axis, along, stride, dilation in zip(*(attrs[name] for name in SHEARED), strict=True):
        source[axis], between = divmod(place[axis] - place[along] * dilation, stride)
        if between or not 0 <= source[axis] < arrays[0].shape[axis]:
            return 0
    return arrays[0][tuple(source)]
