"""Operations of NNEF, most of them by the entry of ONNX with that meaning.

Shapes are aligned at their first axis, not at the last as in ONNX: [1, C] meets [N, C, H, W].
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax import nn
from lavax.base.quick_dataclasses import dataclass
from lavax.onnx.operators.operator import REQUIRED, Call, Operator
from lavax.onnx.table import TABLE

DOMAIN = "nnef"


@dataclass(frozen=True)
class Operation:
    """An operation: the names of its tensors, its attributes with defaults in order, and the entry that runs it."""

    tensors: tuple[str, ...]
    attributes: Mapping[str, Any]
    entry: Operator


def by_onnx(call: Call, operator: str, *inputs: Any, **attributes: Any) -> Any:
    """What an operator of ONNX gives, in its newest version."""
    entry = TABLE["", operator][-1]
    given = {**entry.attributes, **attributes}
    return entry.evaluate(dataclasses.replace(call, attributes=given), *inputs)


def _aligned(*values: Any) -> list[Any]:
    """Values of one rank: axes of extent 1 are put behind the last."""
    rank = max(value.ndim for value in values)
    return [value.reshape((*value.shape, *(1,) * (rank - value.ndim))) for value in values]


def _elementwise(operator: str) -> Callable[..., Any]:
    return lambda call, *inputs: by_onnx(call, operator, *_aligned(*inputs))


def _function(make: Callable[..., Any]) -> Callable[..., Any]:
    return lambda call, *inputs: make(*_aligned(*map(lnp.asarray, inputs)))


def _reduction(operator: str) -> Callable[..., Any]:
    return lambda call, x: by_onnx(call, operator, x, axes=tuple(call.axes), keepdims=1)


def _sum_reduce(call: Call, x: Any) -> Any:
    return by_onnx(call, "ReduceMean" if call.normalize else "ReduceSum", x, axes=tuple(call.axes), keepdims=1)


def _position(operator: str) -> Callable[..., Any]:
    return lambda call, x: by_onnx(call, operator, x, axis=call.axes[0], keepdims=1)


def _windows(padding: Any, stride: Any, dilation: Any, rank: int) -> dict[str, Any]:
    """The attributes of windows over `rank` axes; no padding in the file is as much as gives ceil(extent / stride)."""
    given: dict[str, Any] = {"strides": tuple(stride) or (1,) * rank, "dilations": tuple(dilation) or (1,) * rank}
    if not padding:
        return {**given, "auto_pad": "SAME_UPPER"}
    before, after = zip(*padding, strict=True)
    return {**given, "auto_pad": "NOTSET", "pads": (*before, *after)}


def _conv(call: Call, x: Any, w: Any, b: Any) -> Any:
    _need(call, call.border == "constant", f"the border {call.border!r} is not supported")
    moves = _windows(call.padding, call.stride, call.dilation, x.ndim - 2)
    bias = b.reshape(-1) if b.size > 1 else lnp.broadcast_to(b.reshape(-1), (w.shape[0],))
    return by_onnx(call, "Conv", x, w, bias, group=call.groups or x.shape[1], **moves)


def _deconv(call: Call, x: Any, w: Any, b: Any) -> Any:
    _need(call, call.border == "constant" and not call.output_shape, "only the border 'constant' is supported")
    moves = _windows(call.padding, call.stride, call.dilation, x.ndim - 2)
    group = call.groups or x.shape[1]
    bias = b.reshape(-1) if b.size > 1 else lnp.broadcast_to(b.reshape(-1), (w.shape[1] * group,))
    return by_onnx(call, "ConvTranspose", x, w, bias, group=group, **moves)


def _pool(operator: str) -> Callable[..., Any]:
    def evaluate(call: Call, x: Any) -> Any:
        _need(call, tuple(call.size[:2]) == (1, 1), "windows over the first two axes are not supported")
        padding, stride, dilation = (tuple(given)[2:] for given in (call.padding, call.stride, call.dilation))
        moves = {**_windows(padding, stride, dilation, x.ndim - 2), "kernel_shape": tuple(call.size[2:])}
        is_padded = not padding or any(map(any, padding))
        if operator == "MaxPool":
            _need(call, call.border == "ignore" or not is_padded, f"the border {call.border!r} is not supported")
            return by_onnx(call, operator, x, **moves)
        is_mean = call.attributes.get("normalize", True)
        counts_padding = int(not is_mean or call.border == "constant")
        made = by_onnx(call, "AveragePool", x, count_include_pad=counts_padding, **moves)
        return made if is_mean else made * float(prod(call.size))

    return evaluate


def _matmul(call: Call, a: Any, b: Any) -> Any:
    left = lnp.swapaxes(a, -1, -2) if call.transposeA else a
    return lnp.matmul(left, lnp.swapaxes(b, -1, -2) if call.transposeB else b)


def _linear(call: Call, x: Any, w: Any, b: Any) -> Any:
    return lnp.matmul(x, lnp.swapaxes(w, -1, -2)) + b


def _softmax(call: Call, x: Any) -> Any:
    return nn.softmax(x, axis=tuple(call.axes))


def _batch_norm(call: Call, x: Any, mean: Any, variance: Any, offset: Any, scale: Any) -> Any:
    x, mean, variance, offset, scale = _aligned(x, mean, variance, offset, scale)
    return offset + scale * (x - mean) / lnp.sqrt(variance + call.epsilon)


def _local_response(call: Call, x: Any) -> Any:
    _need(call, [k for k, n in enumerate(call.size) if n > 1] in ([1], []), "only windows of channels are supported")
    return by_onnx(call, "LRN", x, size=call.size[1], alpha=call.alpha, beta=call.beta, bias=call.bias)


def _l2_normal(call: Call, x: Any) -> Any:
    length = lnp.sqrt(lnp.sum(x * x, axis=tuple(call.axes), keepdims=True))
    return x / lnp.maximum(length + call.bias, call.epsilon)


def _reshape(call: Call, x: Any) -> Any:
    start = call.axis_start
    end = x.ndim if call.axis_count == -1 else start + call.axis_count
    middle = [x.shape[start + k] if extent == 0 else extent for k, extent in enumerate(call.shape)]
    return x.reshape((*x.shape[:start], *middle, *x.shape[end:]))


def _transpose(call: Call, x: Any) -> Any:
    return call.np.transpose(x, (*call.axes, *range(len(call.axes), x.ndim)))


def _split(call: Call, x: Any) -> Any:
    each = x.shape[call.axis] // sum(call.ratios)
    return by_onnx(call, "Split", x, axis=call.axis, split=tuple(each * ratio for ratio in call.ratios))


def _slice(call: Call, x: Any) -> Any:
    steps = call.stride or (1,) * len(call.axes)
    cut = [slice(None)] * x.ndim
    for axis, begin, end, step in zip(call.axes, call.begin, call.end, steps, strict=True):
        cut[axis] = slice(begin, end if end or step < 0 else None, step)  # 0 is the end of the axis
    return x[tuple(cut)]


def _pad(call: Call, x: Any) -> Any:
    modes: dict[str, Any] = {"constant": "constant", "replicate": "edge", "reflect": "reflect"}
    _need(call, call.border in modes, f"the border {call.border!r} is not supported")
    more = {"constant_values": call.value} if call.border == "constant" else {}
    return lnp.pad(x, [tuple(pair) for pair in call.padding], mode=modes[call.border], **more)


def _nearest_upsample(call: Call, x: Any) -> Any:
    for axis, factor in enumerate(call.factor):
        x = lnp.repeat(x, factor, axis=axis + 2)
    return x


def _multilinear_upsample(call: Call, x: Any) -> Any:
    modes = {"symmetric": "half_pixel", "asymmetric": "asymmetric", "aligned": "align_corners"}
    _need(call, call.border == "replicate", f"the border {call.border!r} is not supported")
    scales = np.array([1, 1, *call.factor], np.float32)
    mode = modes[call.method]
    return by_onnx(call, "Resize", x, None, scales, mode="linear", coordinate_transformation_mode=mode)


def _linear_quantize(call: Call, x: Any, low: Any, high: Any) -> Any:
    """The nearest of 2^bits steps from `low` to `high`."""
    x, low, high = _aligned(x, low, high)
    step = (high - low) / (2.0**call.bits - 1)
    return lnp.round((lnp.clip(x, low, high) - low) / step) * step + low


def _zero_point_quantize(call: Call, x: Any, zero_point: Any, scale: Any) -> Any:
    """The nearest whole number of scales that `bits` bits hold, less the zero point."""
    x, zero_point, scale = _aligned(x, zero_point, scale)
    highest = 2.0 ** (call.bits - int(call.signed)) - 1
    lowest = 0.0 if not call.signed else -highest if call.symmetric else -highest - 1
    held = lnp.clip(lnp.round(x / scale) + zero_point, lowest, highest)
    return (held - zero_point) * scale


def _need(call: Call, is_fine: bool, why: str) -> None:
    if not is_fine:
        raise call.error(why)


_WINDOW = {"border": "constant", "padding": (), "stride": (), "dilation": ()}
_X = ("x",)

_UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh",
    "ceil": "Ceil", "copy": "Identity", "cos": "Cos", "cosh": "Cosh", "exp": "Exp", "floor": "Floor", "log": "Log",
    "neg": "Neg", "not": "Not", "rcp": "Reciprocal", "relu": "Relu", "round": "Round", "sigmoid": "Sigmoid",
    "sign": "Sign", "sin": "Sin", "sinh": "Sinh", "softplus": "Softplus", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
_BINARY = {
    "add": "Add", "and": "And", "div": "Div", "eq": "Equal", "ge": "GreaterOrEqual", "gt": "Greater",
    "le": "LessOrEqual", "lt": "Less", "max": "Max", "min": "Min", "mul": "Mul", "or": "Or", "pow": "Pow", "sub": "Sub",
}  # fmt: skip
_REDUCTIONS = {
    "max_reduce": _reduction("ReduceMax"), "mean_reduce": _reduction("ReduceMean"),
    "min_reduce": _reduction("ReduceMin"), "argmax_reduce": _position("ArgMax"),
    "argmin_reduce": _position("ArgMin"), "all_reduce": _reduction("ReduceMin"), "any_reduce": _reduction("ReduceMax"),
}  # fmt: skip


def _table() -> dict[str, Operation]:
    found: dict[str, Operation] = {}

    def add(name: str, tensors: tuple[str, ...], evaluate: Any, **attributes: Any) -> None:
        found[name] = Operation(tensors, attributes, Operator(name, evaluate, attributes, domain=DOMAIN))

    for name, operator in _UNARY.items():
        add(name, _X, _elementwise(operator))
    for name, operator in _BINARY.items():
        add(name, ("x", "y"), _elementwise(operator))
    for name, evaluate in _REDUCTIONS.items():
        add(name, ("input",), evaluate, axes=REQUIRED)
    add("ne", ("x", "y"), _function(lnp.not_equal))
    add("sqr", _X, _function(lnp.square))
    add("rsqr", _X, _function(lambda x: 1 / lnp.square(x)))
    add("rsqrt", _X, _function(lambda x: 1 / lnp.sqrt(x)))
    add("log2", _X, _function(lnp.log2))
    add("silu", _X, _function(nn.silu))
    add("gelu", _X, _function(lambda x: nn.gelu(x, approximate=False)))
    add("selu", _X, _function(nn.selu))
    add("prelu", ("x", "alpha"), _elementwise("PRelu"))
    add("elu", _X, lambda call, x: by_onnx(call, "Elu", x, alpha=call.alpha), alpha=1.0)
    add("leaky_relu", _X, lambda call, x: by_onnx(call, "LeakyRelu", x, alpha=call.alpha), alpha=REQUIRED)
    add("select", ("condition", "true_value", "false_value"), _elementwise("Where"))
    add("clamp", ("x", "a", "b"), _function(lnp.clip))
    add("conv", ("input", "filter", "bias"), _conv, **_WINDOW, groups=1)
    add("deconv", ("input", "filter", "bias"), _deconv, **_WINDOW, output_shape=(), groups=1)
    pools = {"max_pool": _pool("MaxPool"), "avg_pool": _pool("AveragePool")}
    for name, evaluate in pools.items():
        add(name, ("input",), evaluate, size=REQUIRED, **_WINDOW)
    add("box", ("input",), _pool("AveragePool"), size=REQUIRED, **_WINDOW, normalize=False)
    add("matmul", ("A", "B"), _matmul, transposeA=False, transposeB=False)
    add("linear", ("input", "filter", "bias"), _linear)
    add("softmax", _X, _softmax, axes=(1,))
    add("batch_normalization", ("input", "mean", "variance", "offset", "scale"), _batch_norm, epsilon=0.0)
    add("local_response_normalization", ("input",), _local_response, size=REQUIRED, alpha=1.0, beta=0.5, bias=1.0)
    add("l2_normalization", ("input",), _l2_normal, axes=REQUIRED, bias=0.0, epsilon=0.0)
    add("sum_reduce", ("input",), _sum_reduce, axes=REQUIRED, normalize=False)
    add("reshape", ("input",), _reshape, shape=REQUIRED, axis_start=0, axis_count=-1)
    add("transpose", ("input",), _transpose, axes=REQUIRED)
    add("concat", ("values",), lambda call, *parts: by_onnx(call, "Concat", *parts, axis=call.axis), axis=REQUIRED)
    add("stack", ("values",), lambda call, *parts: lnp.stack(parts, axis=call.axis), axis=REQUIRED)
    add("split", ("value",), _split, axis=REQUIRED, ratios=REQUIRED)
    add("slice", ("input",), _slice, axes=REQUIRED, begin=REQUIRED, end=REQUIRED, stride=())
    add("squeeze", ("input",), lambda call, x: by_onnx(call, "Squeeze", x, axes=call.axes), axes=REQUIRED)
    add("unsqueeze", ("input",), lambda call, x: by_onnx(call, "Unsqueeze", x, axes=call.axes), axes=REQUIRED)
    add("tile", ("input",), lambda call, x: lnp.tile(x, call.repeats), repeats=REQUIRED)
    add("gather", ("input", "indices"), lambda call, x, at: by_onnx(call, "Gather", x, at, axis=call.axis), axis=0)
    add("linear_quantize", ("x", "min", "max"), _linear_quantize, bits=REQUIRED)
    add("zero_point_linear_quantize", ("x", "zero_point", "scale"), _zero_point_quantize, bits=REQUIRED, signed=True,
        symmetric=False)  # fmt: skip
    add("pad", ("input",), _pad, padding=REQUIRED, border="constant", value=0.0)
    add("nearest_upsample", ("input",), _nearest_upsample, factor=REQUIRED)
    add("multilinear_upsample", ("input",), _multilinear_upsample, factor=REQUIRED, method="symmetric",
        border="replicate")  # fmt: skip
    return found


OPERATIONS = _table()
ENTRIES = {(DOMAIN, name): operation.entry for name, operation in OPERATIONS.items()}
