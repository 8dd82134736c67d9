"""Operators on quantised integers: a number is (integer - zero point) · scale."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax import nn
from lavax.ir.types import dtype_of_data
from lavax.onnx.operators.convolution import CONV_ATTRIBUTES, conv
from lavax.onnx.operators.elementwise import unsupported_type
from lavax.onnx.operators.operator import NARROW, Call, Operator, converted, device_dtype
from lavax.onnx.reading.graph import Node
from lavax.onnx.reading.tensors import numpy_dtype

_LIMITS = {"int2": (-2, 1), "uint2": (0, 3), "int4": (-8, 7), "uint4": (0, 15)}


def limits_of(dtype: Any) -> tuple[int, int]:
    """The least and the greatest integer of a dtype."""
    name = np.dtype(dtype).name
    if name in _LIMITS:
        return _LIMITS[name]
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def spread(parameter: Any, x: Any, axis: int, block: int = 0) -> Any:
    """A scale or zero point for the whole array, for each element of an axis, or for each block of an axis."""
    if parameter.ndim == 0 or (prod(parameter.shape) == 1 and parameter.ndim <= 1):
        return parameter.reshape(())
    if block and parameter.ndim == x.ndim:
        axis %= x.ndim
        cut = tuple(slice(0, x.shape[k]) if k == axis else slice(None) for k in range(x.ndim))
        return lnp.repeat(lnp.asarray(parameter), block, axis=axis)[cut]
    return parameter.reshape([-1 if k == axis % x.ndim else 1 for k in range(x.ndim)])


def quantized(call: Call, x: Any, scale: Any, zero: Any, dtype: np.dtype) -> Any:
    """Floats as the nearest integers of `dtype`, where halves go to the even one."""
    low, high = limits_of(dtype)
    rounded = lnp.round(x / scale)
    shifted = rounded if zero is None else rounded + converted(zero, rounded.dtype)
    return converted(converted(lnp.clip(shifted, low, high), "int32"), NARROW.get(dtype.name, dtype))


def dequantized(x: Any, scale: Any, zero: Any) -> Any:
    """Integers as floats of the dtype of `scale`."""
    whole = converted(x, "int32")
    centred = whole if zero is None else whole - converted(zero, "int32")
    return converted(centred, scale.dtype) * scale


def _quantize(call: Call, x: Any, scale: Any, zero: Any = None) -> Any:
    held = _zero_dtype(call, zero)
    block = call.block_size
    wide = converted(x, scale.dtype if not call.precision else device_dtype(_of_number(call.precision)))
    step = spread(converted(scale, wide.dtype), x, call.axis, block)
    offset = None if zero is None else spread(_whole(zero), x, call.axis, block)
    return quantized(call, wide, step, offset, held)


def _whole(zero: Any) -> Any:
    return converted(zero.astype(np.int32) if isinstance(zero, np.ndarray) else zero, "int32")


def _zero_dtype(call: Call, zero: Any) -> np.dtype:
    if call.attributes.get("output_dtype"):
        return _of_number(call.output_dtype)
    return np.dtype(np.uint8) if zero is None else call.dtype_of(2, zero)


def _of_number(element_type: int) -> np.dtype:
    found = numpy_dtype(element_type)
    assert found is not None, "refused while loading"
    return found


def _dequantize(call: Call, x: Any, scale: Any, zero: Any = None) -> Any:
    block = call.block_size
    step = spread(scale, x, call.axis, block)
    if isinstance(x, np.ndarray):
        x = x.astype(np.float32) if dtype_of_data(x.dtype) is None and x.dtype.name.startswith("float") else x
    if zero is not None:
        zero = spread(_whole(zero), x, call.axis, block)
    if isinstance(x, np.ndarray):
        x = x.astype(np.int32) if x.dtype.kind != "f" else x
    made = dequantized(x, step, zero) if x.dtype.kind != "f" else x * step
    return made if not call.output_dtype else converted(made, device_dtype(_of_number(call.output_dtype)))


def _refuse_output(node: Node) -> str | None:
    wanted = node.attributes.get("output_dtype") or node.attributes.get("to")
    if not wanted:
        return None
    found = numpy_dtype(wanted)
    if node.operator == "QuantizeLinear" and (found is None or found.kind == "f" or found.name.startswith("float")):
        return "quantising to float8 and float4 is not supported"
    return unsupported_type(wanted)


def _dynamic_quantize(call: Call, x: Any) -> Any:
    low, high = lnp.minimum(lnp.min(x), 0), lnp.maximum(lnp.max(x), 0)
    scale = (high - low) / 255
    zero = lnp.round(lnp.clip(-low / scale, 0, 255))
    made = lnp.clip(lnp.round(x / scale) + zero, 0, 255)
    return converted(made, "uint8"), scale, converted(zero, "uint8")


def centred(x: Any, zero: Any, axis: int = 0) -> Any:
    """Integers less their zero point, in 32 bits."""
    whole = converted(x, "int32")
    if zero is None:
        return whole
    offset = converted(zero, "int32")
    if offset.ndim == 1 and offset.shape[0] > 1:
        offset = offset.reshape([-1 if k == axis % x.ndim else 1 for k in range(x.ndim)])
    return whole - (offset.reshape(()) if prod(offset.shape) == 1 else offset)


def _matmul_integer(call: Call, a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    return lnp.matmul(centred(a, a_zero, -2), centred(b, b_zero, -1))


def _conv_integer(call: Call, x: Any, w: Any, x_zero: Any = None, w_zero: Any = None) -> Any:
    return conv(call, centred(x, x_zero), centred(w, w_zero, 0))


def _qlinear_matmul(
    call: Call, a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, y_scale: Any, y_zero: Any
) -> Any:
    total = lnp.matmul(centred(a, a_zero, -2), centred(b, b_zero, -1))
    return _requantized(call, total, _scalar(a_scale) * _scalar(b_scale) / _scalar(y_scale), y_zero)


def _scalar(x: Any) -> Any:
    return converted(x.reshape(()) if prod(x.shape) == 1 else x, "float32")


def _requantized(call: Call, total: Any, factor: Any, zero: Any) -> Any:
    made = lnp.round(converted(total, "float32") * factor) + converted(zero.reshape(()), "float32")
    low, high = limits_of(zero.dtype)
    return converted(converted(lnp.clip(made, low, high), "int32"), zero.dtype)


def _qlinear_conv(
    call: Call, x: Any, x_scale: Any, x_zero: Any, w: Any, w_scale: Any, w_zero: Any, y_scale: Any, y_zero: Any,
    b: Any = None,
) -> Any:  # fmt: skip
    total = conv(call, centred(x, x_zero), centred(w, w_zero, 0))
    if b is not None:
        total = total + b.reshape(-1, *([1] * (x.ndim - 2)))
    factor = _scalar(x_scale) * _scalar(w_scale) / _scalar(y_scale)
    if factor.ndim:
        factor = factor.reshape(-1, *([1] * (x.ndim - 2)))
    return _requantized(call, total, factor, y_zero)


def _qlinear_binary(name: str) -> Any:
    def evaluate(
        call: Call, a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, c_scale: Any,
        c_zero: Any = None,
    ) -> Any:  # fmt: skip
        made = getattr(lnp, name)(
            dequantized(a, a_scale.reshape(()), a_zero), dequantized(b, b_scale.reshape(()), b_zero)
        )
        return quantized(call, made, c_scale.reshape(()), c_zero, np.dtype(a.dtype))

    return evaluate


def _qlinear_unary(function: Any) -> Any:
    def evaluate(call: Call, x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None) -> Any:
        made = function(call, dequantized(x, x_scale.reshape(()), x_zero))
        return quantized(call, made, y_scale.reshape(()), y_zero, np.dtype(x.dtype))

    return evaluate


def _matmul_to_float(
    call: Call, a: Any, b: Any, a_scale: Any, b_scale: Any, a_zero: Any = None, b_zero: Any = None, bias: Any = None
) -> Any:
    total = lnp.matmul(centred(a, a_zero, -2), centred(b, b_zero, -1))
    made = converted(total, a_scale.dtype) * (_scalar(a_scale) * _scalar(b_scale))
    return made if bias is None else made + bias


MICROSOFT = "com.microsoft"
_LINEAR = {"axis": 1, "block_size": 0, "output_dtype": 0}

OPERATORS = (
    Operator("ConvInteger", _conv_integer, CONV_ATTRIBUTES),
    Operator("DequantizeLinear", _dequantize, _LINEAR, refuse=_refuse_output),
    Operator("DynamicQuantizeLinear", _dynamic_quantize),
    Operator("MatMulInteger", _matmul_integer),
    Operator("QLinearConv", _qlinear_conv, CONV_ATTRIBUTES),
    Operator("QLinearMatMul", _qlinear_matmul),
    Operator(
        "QuantizeLinear", _quantize, {**_LINEAR, "precision": 0, "saturate": 1}, keeps=(2,), refuse=_refuse_output,
        lacking="float8 and float4",
    ),
    Operator("DequantizeLinear", _dequantize, _LINEAR, domain=MICROSOFT),
    Operator("MatMulIntegerToFloat", _matmul_to_float, domain=MICROSOFT),
    Operator("QLinearAdd", _qlinear_binary("add"), domain=MICROSOFT),
    Operator(
        "QLinearLeakyRelu", _qlinear_unary(lambda call, x: nn.leaky_relu(x, call.alpha)), {"alpha": 0.01},
        domain=MICROSOFT,
    ),
    Operator("QLinearMul", _qlinear_binary("multiply"), domain=MICROSOFT),
    Operator("QLinearSigmoid", _qlinear_unary(lambda call, x: nn.sigmoid(x)), domain=MICROSOFT),
    Operator("QuantizeLinear", _quantize, {**_LINEAR, "precision": 0, "saturate": 1}, keeps=(2,), domain=MICROSOFT),
)  # fmt: skip
