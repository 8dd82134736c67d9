"""Operators that act on each element by itself."""
from __future__ import annotations

import functools
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax import lax
from lavax.ir.types import dtype_of_data
from lavax.onnx.operators.operator import (
    NARROW,
    REQUIRED,
    Call,
    Evaluation,
    Operator,
    converted,
    device_dtype,
    is_float,
)
from lavax.onnx.reading.tensors import numpy_dtype


def same(name: str) -> Evaluation:
    """The function of NumPy and lavax.numpy with that name."""
    return lambda call, *inputs: getattr(call.np, name)(*inputs)


def folded(name: str) -> Evaluation:
    """A function of two arrays, for any number of them."""
    return lambda call, *inputs: functools.reduce(getattr(call.np, name), inputs)


def _divide(call: Call, x: Any, y: Any) -> Any:
    if is_float(x):
        return call.np.divide(x, y)
    if not call.is_known:
        return lax.div(*lnp.broadcast_arrays(x, y))
    with np.errstate(divide="ignore"):
        return np.where((x % y != 0) & ((x < 0) != (y < 0)), x // y + 1, x // y).astype(x.dtype)  # towards zero


def _mod(call: Call, x: Any, y: Any) -> Any:
    return call.np.fmod(x, y) if call.fmod else call.np.mod(x, y)


def _power(call: Call, x: Any, y: Any) -> Any:
    if x.dtype == y.dtype:
        return call.np.power(x, y)
    if is_float(x):
        return call.np.power(x, converted(y, x.dtype))
    if is_float(y):
        return converted(call.np.power(converted(x, y.dtype), y), x.dtype)
    return call.np.power(x, converted(y, x.dtype))


def _mean(call: Call, *inputs: Any) -> Any:
    return functools.reduce(call.np.add, inputs) / np.asarray(len(inputs), inputs[0].dtype)


def _clip(call: Call, x: Any, low: Any = None, high: Any = None) -> Any:
    raised = x if low is None else call.np.maximum(x, low)
    return raised if high is None else call.np.minimum(raised, high)


def _shift(call: Call, x: Any, y: Any) -> Any:
    return call.np.left_shift(x, y) if call.direction == "LEFT" else call.np.right_shift(x, y)


def _is_infinite(call: Call, x: Any) -> Any:
    found = call.np.isinf(x)
    if not call.detect_positive:
        found = found & (x < 0)
    return found if call.detect_negative else found & (x > 0)


def _cast(call: Call, x: Any) -> Any:
    return cast_to(call, x, _target(call.to))


def _cast_like(call: Call, x: Any, like: Any) -> Any:
    return cast_to(call, x, call.dtype_of(1, like))


def cast_to(call: Call, x: Any, dtype: np.dtype) -> Any:
    """Numbers in another dtype: floats lose their fraction, integers their high bits."""
    if why := unsupported_dtype(dtype):
        raise call.error(why)
    if isinstance(x, np.ndarray):
        with np.errstate(invalid="ignore", over="ignore"):
            return x.astype(dtype)
    if dtype.name not in NARROW:
        return converted(x, device_dtype(dtype))
    shift = 8 - int(dtype.name.lstrip("uint"))
    held = converted(converted(x, "int32"), NARROW[dtype.name])
    return lnp.right_shift(lnp.left_shift(held, shift), shift)


def _target(element_type: int) -> np.dtype:
    found = numpy_dtype(element_type)
    assert found is not None, "refused while loading"
    return found


def unsupported_type(element_type: int) -> str | None:
    """Why no device holds an element type, if none does."""
    dtype = numpy_dtype(element_type)
    return f"the element type {element_type} is not supported" if dtype is None else unsupported_dtype(dtype)


def unsupported_dtype(dtype: np.dtype) -> str | None:
    """Why no device holds a dtype, if none does."""
    if dtype.name in NARROW or dtype_of_data(dtype) is not None:
        return None
    return f"the element type {'string' if dtype.kind in 'OUS' else dtype.name} is not supported"


def _bit_cast(call: Call, x: Any) -> Any:
    dtype = _target(call.to)
    if isinstance(x, np.ndarray):
        return x.view(dtype)
    whole = converted(x, "uint8") if x.dtype == bool else x
    return whole.astype(bool) if dtype.kind == "b" else lax.bitcast_convert_type(whole, dtype)


def _not(call: Call, x: Any) -> Any:
    return call.np.logical_not(x)


def _where(call: Call, condition: Any, x: Any, y: Any) -> Any:
    return call.np.where(condition, x, y)


_UNARY = {
    "Abs": "abs", "Acos": "arccos", "Acosh": "arccosh", "Asin": "arcsin", "Asinh": "arcsinh", "Atan": "arctan",
    "Atanh": "arctanh", "BitwiseNot": "invert", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Exp": "exp",
    "Floor": "floor", "IsNaN": "isnan", "Log": "log", "Neg": "negative", "Reciprocal": "reciprocal", "Round": "round",
    "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip

_BINARY = {
    "Add": "add", "And": "logical_and", "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor", "Equal": "equal", "Greater": "greater", "GreaterOrEqual": "greater_equal",
    "Less": "less", "LessOrEqual": "less_equal", "Mul": "multiply", "Or": "logical_or", "Sub": "subtract",
    "Xor": "logical_xor",
}  # fmt: skip

OPERATORS = (
    *(Operator(name, same(function), folds=True) for name, function in (_UNARY | _BINARY).items()),
    *(Operator(n, folded(f), folds=True) for n, f in {"Max": "maximum", "Min": "minimum", "Sum": "add"}.items()),
    Operator(
        "BitCast", _bit_cast, {"to": REQUIRED}, folds=True, refuse=lambda node: unsupported_type(node.attributes["to"]),
    ),
    Operator("BitShift", _shift, {"direction": "LEFT"}, folds=True),
    Operator(
        "Cast", _cast, {"to": REQUIRED, "saturate": 1, "round_mode": "up"}, folds=True,
        refuse=lambda node: unsupported_type(node.attributes["to"]), lacking="float8, float4 and strings",
    ),
    Operator("CastLike", _cast_like, {"saturate": 1, "round_mode": "up"}, folds=True, keeps=(1,)),
    Operator("Clip", _clip, folds=True, since=11),
    Operator("Div", _divide, folds=True),
    Operator("Erf", lambda call, x: lax.erf(x)),
    Operator("IsInf", _is_infinite, {"detect_negative": 1, "detect_positive": 1}, folds=True),
    Operator("Mean", _mean, folds=True),
    Operator("Mod", _mod, {"fmod": 0}, folds=True),
    Operator("Not", _not, folds=True),
    Operator("Pow", _power, folds=True),
    Operator("Where", _where, folds=True),
)  # fmt: skip
