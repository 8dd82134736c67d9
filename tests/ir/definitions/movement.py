"""Movement: where the element of the result comes from."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lavax.ir import TensorType
from tests.ir.definitions.definition import Place


def reshape(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    flat = 0
    for at, extent in zip(place, type.shape, strict=True):
        flat = flat * extent + at
    source: list[int] = []
    for extent in reversed(arrays[0].shape):
        flat, at = divmod(flat, extent)
        source.insert(0, at)
    return arrays[0][tuple(source)]


def transpose(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    return arrays[0][tuple(place[attrs["axes"].index(axis)] for axis in range(arrays[0].ndim))]


def broadcast(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    return arrays[0][tuple(0 if n == 1 else place[a] for a, n in zip(attrs["axes"], arrays[0].shape, strict=True))]


def slice_(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    return arrays[0][tuple(a + k * s for a, k, s in zip(attrs["start"], place, attrs["stride"], strict=True))]


def pad(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    source = []
    for at, low, between, extent in zip(place, attrs["low"], attrs["interior"], arrays[0].shape, strict=True):
        number, beside = divmod(at - low, between + 1)
        if beside or not 0 <= number < extent:
            return attrs["value"]
        source.append(number)
    return arrays[0][tuple(source)]


def concatenate(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    axis, at = attrs["axis"], place[attrs["axis"]]
    for array in arrays:
        if at < array.shape[axis]:
            return array[(*place[:axis], at, *place[axis + 1 :])]
        at -= array.shape[axis]
    raise AssertionError("the place is outside all parts")


def flip(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    turned = [extent - 1 - at for at, extent in zip(place, type.shape, strict=True)]
    return arrays[0][tuple(turned[axis] if axis in attrs["axes"] else at for axis, at in enumerate(place))]
