"""The operators and methods of arrays and traced values, by name."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lavax.ir.types import int32
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.arrays import creation, manipulation
from lavax.numpy.arrays.manipulation import Order
from lavax.numpy.elementwise import arithmetic, bitwise, comparison, extrema, powers, rounding
from lavax.numpy.indexing.indexing import index
from lavax.numpy.products.linear_algebra import dot, matmul
from lavax.numpy.reductions import reductions
from lavax.tracer.values.value import Value

ACCEPTED = (Value, np.ndarray, np.generic, bool, int, float, complex, list, tuple)
_Binary = Callable[[ArrayLike, ArrayLike], Any]

_UNARY: dict[str, Callable[[ArrayLike], Value]] = {
    "__neg__": arithmetic.negative,
    "__pos__": arithmetic.positive,
    "__abs__": arithmetic.abs,
    "__invert__": bitwise.bitwise_invert,
}
_COMPARISONS: dict[str, _Binary] = {
    "__eq__": comparison.equal,
    "__ne__": comparison.not_equal,
    "__lt__": comparison.less,
    "__le__": comparison.less_equal,
    "__gt__": comparison.greater,
    "__ge__": comparison.greater_equal,
}
ARITHMETIC: dict[str, _Binary] = {
    "add": arithmetic.add,
    "sub": arithmetic.subtract,
    "mul": arithmetic.multiply,
    "truediv": arithmetic.divide,
    "floordiv": rounding.floor_divide,
    "mod": rounding.remainder,
    "divmod": rounding.divmod,
    "pow": powers.power,
    "matmul": matmul,
    "and": bitwise.bitwise_and,
    "or": bitwise.bitwise_or,
    "xor": bitwise.bitwise_xor,
    "lshift": bitwise.bitwise_left_shift,
    "rshift": bitwise.bitwise_right_shift,
}


def _operator(function: _Binary) -> Callable[[Value, Any], Any]:
    def method(self: Value, other: Any) -> Any:
        return function(self, other) if isinstance(other, ACCEPTED) else NotImplemented

    return method


def _reflected(function: _Binary) -> Callable[[Value, Any], Any]:
    def method(self: Value, other: Any) -> Any:
        return function(other, self) if isinstance(other, ACCEPTED) else NotImplemented

    return method


def _reshape(self: Value, *shape: Any, order: Order = "C") -> Value:
    """As lavax.numpy.reshape; the extents may be given one by one."""
    return manipulation.reshape(self, shape[0] if len(shape) == 1 else shape, order)


def _transpose(self: Value, *axes: Any) -> Value:
    """As lavax.numpy.transpose; the axes may be given one by one."""
    if not axes or axes == (None,):
        return manipulation.transpose(self)
    order: Sequence[int] = axes if isinstance(axes[0], int) else axes[0]
    return manipulation.transpose(self, order)


def _round(self: Value, places: int | None = None) -> Value:
    """Python's `round`: without `places`, the nearest whole number as an integer."""
    if places is not None or not self.type.dtype.is_float:
        return rounding.round(self, places or 0)
    return creation.astype(rounding.round(self), int32)


def _reduction(function: Callable[..., Value]) -> Callable[..., Value]:
    """The method for `function`. NumPy's functions pass an `out`, which must be None."""

    def method(self: Value, *arguments: Any, out: None = None, **options: Any) -> Value:
        if out is not None:
            raise TypeError(f"{function.__name__}: the result is a new array, so out must be None")
        return function(self, *arguments, **options)

    method.__doc__ = function.__doc__
    return method


_REDUCTIONS: dict[str, Callable[..., Value]] = {
    "all": reductions.all,
    "any": reductions.any,
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
    "max": reductions.max,
    "mean": reductions.mean,
    "min": reductions.min,
    "prod": reductions.prod,
    "std": reductions.std,
    "sum": reductions.sum,
    "var": reductions.var,
}
_METHODS: dict[str, Callable[..., Any] | property] = {
    "__getitem__": index,
    "__round__": _round,
    "T": property(manipulation.transpose, doc="The array with its axes reversed."),
    "mT": property(manipulation.matrix_transpose, doc="The array with its last two axes exchanged."),
    "astype": creation.astype,
    "clip": extrema.clip,
    "dot": dot,
    "flatten": manipulation.ravel,
    "ravel": manipulation.ravel,
    "reshape": _reshape,
    "round": rounding.round,
    "squeeze": manipulation.squeeze,
    "swapaxes": manipulation.swapaxes,
    "transpose": _transpose,
}

# By name; an operator returns NotImplemented for operands that are not arrays.
OPERATORS: dict[str, Callable[..., Any] | property] = {
    **_UNARY,
    **{name: _operator(function) for name, function in _COMPARISONS.items()},
    **{f"__{name}__": _operator(function) for name, function in ARITHMETIC.items()},
    **{f"__r{name}__": _reflected(function) for name, function in ARITHMETIC.items()},
    **{name: _reduction(function) for name, function in _REDUCTIONS.items()},
    **_METHODS,
}
