"""Convolutions of each channel by itself, with channels last, summed in parts."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.ops.window import windows_along
from lavax.ir.types import TensorType


def _infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    x, weights = operands
    if x.dtype != weights.dtype or x.dtype.kind == "bool" or x.dtype.is_complex:
        raise DtypeError(f"depthwise_conv is not defined for {x} and {weights}")
    if x.rank < 4 or weights.rank != x.rank - 1 or (x.shape[1], x.shape[-1]) != (weights.shape[0], weights.shape[-1]):
        raise ShapeError(f"depthwise_conv: weights {weights} are no [summed,window…,channels] of {x}")
    steps, spreads = attrs["stride"], attrs["dilation"]
    if len(steps) != x.rank - 3 or len(spreads) != x.rank - 3 or min(*steps, *spreads, attrs["run"]) < 1:
        raise ShapeError(f"depthwise_conv: stride, dilation and run must be at least 1, one of {x.rank - 3} axes")
    spatial = zip(x.shape[2:-1], weights.shape[1:-1], steps, spreads, strict=True)
    found = [windows_along(*extents) for extents in spatial]
    return x.with_shape((parts_of(weights.shape, attrs["run"]), x.shape[0], *found, x.shape[-1]))


def parts_of(weights: Sequence[int], run: int) -> int:
    """How many parts the sums have, of so many terms each."""
    return -(-prod(weights[:-1]) // run)


def _evaluate(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    x, weights = arrays
    result = np.zeros(type.shape, dtype)
    steps, spreads = attrs["stride"], attrs["dilation"]
    for term, (summed, *element) in enumerate(np.ndindex(*weights.shape[:-1])):
        spatial = zip(element, spreads, steps, type.shape[2:-1], strict=True)
        read = [slice(k * spread, k * spread + (count - 1) * step + 1, step) for k, spread, step, count in spatial]
        result[term // attrs["run"]] += x[(slice(None), summed, *read)] * weights[(summed, *element)]
    return result


# depthwise_conv(x[f,r,s…,c], w[r,k…,c]): [p,f,o…,c], whose element [p,f,o…,c] is the sum over r and k… of
# x[f, r, o·stride + k·dilation…, c] · w[r,k…,c]. The terms of a sum, in row-major order of r and k…, are parts of `run`
# terms each; the last one may have fewer.
define(Operation("depthwise_conv", "lowered", _infer, _evaluate, ("stride", "dilation", "run")))
