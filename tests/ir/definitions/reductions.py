"""Reductions and positions of extrema."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from lavax.ir import TensorType
from tests.ir.definitions.definition import Definition, Place
from tests.ir.definitions.elementwise import extremum, greatest, least


def folded(function: Callable[..., Any]) -> Definition:
    def element(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
        (x,) = arrays
        given = iter(place)
        ranges = [range(n) if axis in attrs["axes"] else [next(given)] for axis, n in enumerate(x.shape)]
        return function(*(x[at].item() for at in product(*ranges)))

    return element


def position(better: Callable[[Any, Any], bool]) -> Definition:
    def element(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
        axis = attrs["axis"]
        row = [arrays[0][(*place[:axis], k, *place[axis:])].item() for k in range(arrays[0].shape[axis])]
        best = extremum(better)(*row)
        return next(k for k, value in enumerate(row) if value == best or (math.isnan(best) and math.isnan(value)))

    return element


FOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda held, update: held + update,
    "multiply": lambda held, update: held * update,
    "minimum": least,
    "maximum": greatest,
}
