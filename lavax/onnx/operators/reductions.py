"""Operators that reduce axes, and cumulative ones."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lavax import nn
from lavax.onnx.operators.operator import Call, Operator, converted, is_float

Reduction = Callable[[Call, Any, tuple[int, ...], bool], Any]


def _reduce(name: str, function: Reduction) -> Operator:
    """A reduction whose axes are an input or, before they became one, an attribute. No axes are all or none."""

    def evaluate(call: Call, x: Any, axes: Any = None) -> Any:
        given = call.axes if axes is None else call.integers(axes, "axes")
        if given:
            along = tuple(axis % x.ndim for axis in given)
        else:
            along = () if call.noop_with_empty_axes else tuple(range(x.ndim))
        return function(call, x, along, bool(call.keepdims))

    attributes = {"axes": None, "keepdims": 1, "noop_with_empty_axes": 0}
    return Operator(name, evaluate, attributes, known=(1,), folds=True)


def _plain(name: str) -> Reduction:
    def reduce(call: Call, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        return converted(getattr(call.np, name)(x, axis=axes, keepdims=keepdims), x.dtype) if axes else x

    return reduce


def _extremum(name: str) -> Reduction:
    def reduce(call: Call, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        if not axes:
            return x
        if 0 in (x.shape[axis] for axis in axes):  # the identity: the last number at the other end
            kept = [1 if axis in axes else extent for axis, extent in enumerate(x.shape)]
            shape = kept if keepdims else [extent for axis, extent in enumerate(x.shape) if axis not in axes]
            if is_float(x):
                fill: Any = -np.inf if name == "max" else np.inf
            elif x.dtype == bool:
                fill = name == "min"
            else:
                fill = np.iinfo(x.dtype).min if name == "max" else np.iinfo(x.dtype).max
            return call.np.full(shape, fill, x.dtype)
        return getattr(call.np, name)(x, axis=axes, keepdims=keepdims)

    return reduce


_sum = _plain("sum")


def _l1(call: Call, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return _sum(call, call.np.abs(x), axes, keepdims)


def _l2(call: Call, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return converted(call.np.sqrt(_sum(call, x * x, axes, keepdims)), x.dtype)


def _sum_square(call: Call, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return _sum(call, x * x, axes, keepdims)


def _log_sum(call: Call, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return converted(call.np.log(_sum(call, x, axes, keepdims)), x.dtype)


def _log_sum_exp(call: Call, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if not axes:
        return x
    if call.is_known:
        reduce: Any = np.logaddexp.reduce
        return converted(reduce(x, axis=axes, keepdims=keepdims), x.dtype)
    return converted(nn.logsumexp(x, axis=axes, keepdims=keepdims), x.dtype)


def _arg(name: str) -> Callable[..., Any]:
    def evaluate(call: Call, x: Any) -> Any:
        axis = call.axis % max(x.ndim, 1)
        if call.select_last_index:
            last = x.shape[axis] - 1
            found = last - getattr(call.np, name)(call.np.flip(x, axis), axis=axis, keepdims=bool(call.keepdims))
        else:
            found = getattr(call.np, name)(x, axis=axis, keepdims=bool(call.keepdims))
        return converted(found, "int64")

    return evaluate


def _cumulative(name: str) -> Callable[..., Any]:
    def evaluate(call: Call, x: Any, axis: Any) -> Any:
        along = call.integers(axis, "axis")[0] % x.ndim
        turned = call.np.flip(x, along) if call.reverse else x
        if call.exclusive:
            first = [1 if k == along else extent for k, extent in enumerate(x.shape)]
            start = call.np.full(first, int(name == "cumprod"), x.dtype)
            cut = tuple(slice(0, -1) if k == along else slice(None) for k in range(x.ndim))
            turned = call.np.concatenate([start, turned[cut]], axis=along)
        found = converted(getattr(call.np, name)(turned, axis=along), x.dtype)
        return call.np.flip(found, along) if call.reverse else found

    return evaluate


_ARG = {"axis": 0, "keepdims": 1, "select_last_index": 0}
_CUMULATIVE = {"exclusive": 0, "reverse": 0}


def _top_k(call: Call, x: Any, k: Any) -> Any:
    count, axis = call.integers(k, "k")[0], call.axis % x.ndim
    if not 0 <= count <= x.shape[axis]:
        raise call.error(f"k is {count}, the axis has {x.shape[axis]} elements")
    order = call.np.argsort(call.np.flip(x, axis) if call.largest else x, axis=axis, stable=True)
    if call.largest:  # the first of equal ones comes first: sorted backwards, from the end
        order = x.shape[axis] - 1 - call.np.flip(order, axis)
    cut = tuple(slice(0, count) if j == axis else slice(None) for j in range(x.ndim))
    places = order[cut]
    return call.np.take_along_axis(x, places, axis=axis), converted(places, "int64")


OPERATORS = (
    Operator("ArgMax", _arg("argmax"), _ARG, folds=True),
    Operator("ArgMin", _arg("argmin"), _ARG, folds=True),
    Operator("CumProd", _cumulative("cumprod"), _CUMULATIVE, known=(1,), folds=True),
    Operator("CumSum", _cumulative("cumsum"), _CUMULATIVE, known=(1,), folds=True),
    _reduce("ReduceL1", _l1),
    _reduce("ReduceL2", _l2),
    _reduce("ReduceLogSum", _log_sum),
    _reduce("ReduceLogSumExp", _log_sum_exp),
    _reduce("ReduceMax", _extremum("max")),
    _reduce("ReduceMean", _plain("mean")),
    _reduce("ReduceMin", _extremum("min")),
    _reduce("ReduceProd", _plain("prod")),
    _reduce("ReduceSum", _sum),
    _reduce("ReduceSumSquare", _sum_square),
    Operator(
        "TopK", _top_k, {"axis": -1, "largest": 1, "sorted": 1}, known=(1,), folds=True, since=10
    ),
)
