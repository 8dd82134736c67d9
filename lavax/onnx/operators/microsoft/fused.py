"""Fused operators of com.microsoft, which onnxruntime's optimizer and exporters of language models write."""
from __future__ import annotations

from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax import nn
from lavax.onnx.operators.convolution import CONV_ATTRIBUTES, conv
from lavax.onnx.operators.normalization import rms_norm
from lavax.onnx.operators.operator import REQUIRED, Call, Operator, converted
from lavax.onnx.operators.quantized import MICROSOFT, centred, dequantized, quantized
from lavax.onnx.reading.graph import Node


def _fast_gelu(call: Call, x: Any, bias: Any = None) -> Any:
    return nn.gelu(x if bias is None else x + bias, approximate=True)


def _bias_gelu(call: Call, x: Any, bias: Any) -> Any:
    return nn.gelu(x + bias, approximate=False)


def _quick_gelu(call: Call, x: Any) -> Any:
    return x * nn.sigmoid(call.alpha * x)


def _bias_split_gelu(call: Call, x: Any, bias: Any) -> Any:
    kept, gate = lnp.split(x + bias, 2, axis=-1)
    return kept * nn.gelu(gate, approximate=False)


# What a fused operator applies at its end; each takes its numbers in order.
_ACTIVATIONS: dict[str, Any] = {
    "": lambda x: x,
    "Clip": lambda x, low, high: lnp.clip(x, low, high),
    "HardSigmoid": lambda x, alpha, beta: lnp.clip(alpha * x + beta, 0, 1),
    "LeakyRelu": lambda x, alpha: lnp.where(x < 0, alpha * x, x),
    "Relu": nn.relu,
    "Sigmoid": nn.sigmoid,
    "Tanh": lnp.tanh,
}


def _refuse_activation(node: Node) -> str | None:
    name = node.attributes.get("activation", "")
    return None if name in _ACTIVATIONS else f"the activation {name} is not supported"


def _fused_conv(call: Call, x: Any, w: Any, b: Any = None, added: Any = None) -> Any:
    made = conv(call, x, w, b)
    return _ACTIVATIONS[call.activation](made if added is None else made + added, *(call.activation_params or ()))


def _fused_gemm(call: Call, a: Any, b: Any, c: Any = None) -> Any:
    product = (a.T if call.transA else a) @ (b.T if call.transB else b) * call.alpha
    return _ACTIVATIONS[call.activation](product if c is None else product + call.beta * c)


def _fused_matmul(call: Call, a: Any, b: Any) -> Any:
    sides: list[Any] = []
    for side, of_batch, of_matrix in ((a, call.transBatchA, call.transA), (b, call.transBatchB, call.transB)):
        if of_batch:  # the first axis goes before the last
            side = lnp.moveaxis(side, 0, -2)
        sides.append(lnp.swapaxes(side, -1, -2) if of_matrix and side.ndim > 1 else side)
    made = lnp.matmul(sides[0], sides[1])
    return made if call.alpha == 1 else converted(made * call.alpha, made.dtype)


def _normal(x: Any, epsilon: float) -> tuple[Any, Any, Any]:
    """The values of the last axis with mean 0 and variance 1; their mean and inverse deviation before."""
    mean = lnp.mean(x, axis=-1, keepdims=True)
    centre = x - mean
    inverse = 1 / lnp.sqrt(lnp.mean(centre * centre, axis=-1, keepdims=True) + epsilon)
    return centre * inverse, mean, inverse


def _skip_layer_norm(call: Call, x: Any, skip: Any, gamma: Any, beta: Any = None, bias: Any = None) -> Any:
    total = x + skip if bias is None else x + skip + bias
    normal, mean, inverse = _normal(total, call.epsilon)
    made = normal * gamma if beta is None else normal * gamma + beta
    return (made, mean, inverse, total)[: max(call.outputs, 1)]


def _skip_rms_norm(call: Call, x: Any, skip: Any, gamma: Any, bias: Any = None) -> Any:
    total = x + skip if bias is None else x + skip + bias
    inverse = 1 / lnp.sqrt(lnp.mean(total * total, axis=-1, keepdims=True) + call.epsilon)
    return (total * inverse * gamma, None, inverse, total)[: max(call.outputs, 1)]


def _embed_layer_norm(
    call: Call, ids: Any, segments: Any, words: Any, positions: Any, kinds: Any, gamma: Any, beta: Any,
    mask: Any = None, places: Any = None,
) -> Any:  # fmt: skip
    total = lnp.take(words, ids, axis=0)
    total = total + (positions[: ids.shape[1]] if places is None else lnp.take(positions, places, axis=0))
    if segments is not None and kinds is not None:
        total = total + lnp.take(kinds, segments, axis=0)
    normal, _, _ = _normal(total, call.epsilon)
    index = np.zeros(ids.shape[0], np.int32) if mask is None else lnp.sum(converted(mask, "int32"), axis=1)
    return (normal * gamma + beta, index, total)[: max(call.outputs, 1)]


def group_norm(call: Call, x: Any, gamma: Any, beta: Any) -> Any:
    """GroupNorm: over groups of channels, which are the last axis with `channels_last`."""
    last = lnp.moveaxis(x, 1, -1) if not call.channels_last else x
    apart = lnp.reshape(last, (x.shape[0], -1, call.groups, last.shape[-1] // call.groups))
    centre = apart - lnp.mean(apart, axis=(1, 3), keepdims=True)
    spread = lnp.sqrt(lnp.mean(centre * centre, axis=(1, 3), keepdims=True) + call.epsilon)
    made = lnp.reshape(centre / spread, last.shape) * gamma + beta
    made = nn.silu(made) if call.activation else made
    return made if call.channels_last else lnp.moveaxis(made, -1, 1)


def unpacked(packed: Any, bits: int) -> Any:
    """Bytes [..., n] as integers of `bits` bits [..., n · 8 / bits], the lowest bits first."""
    if bits == 8:
        return converted(packed, "int32")
    shifts = np.arange(0, 8, bits, dtype=np.int32)
    apart = lnp.right_shift(lnp.expand_dims(converted(packed, "int32"), -1), shifts) & (2**bits - 1)
    return lnp.reshape(apart, (*packed.shape[:-1], -1))


def _blocks(call: Call, packed: Any, scales: Any, zeros: Any, order: Any, blocks: int) -> Any:
    """Weights [rows, blocks, block_size] of a matrix whose blocks have scales and zero points.

    With an order, each column has the scale and the zero point of the block that it names.
    """
    rows = packed.shape[0]
    whole = unpacked(packed, call.bits)
    scale: Any = lnp.reshape(scales, (rows, blocks, 1))
    if zeros is None:
        offset: Any = 2 ** (call.bits - 1)
    elif zeros.dtype == np.uint8:
        offset = lnp.reshape(unpacked(zeros.reshape(rows, -1), call.bits)[:, :blocks], (rows, blocks, 1))
    else:
        offset = lnp.reshape(zeros, (rows, blocks, 1))
    if order is not None:
        at = lnp.pad(converted(order, "int32").reshape(-1), [(0, whole.shape[1] * whole.shape[2] - call.K)])
        scale = lnp.reshape(lnp.take(scale[..., 0], at, axis=1), whole.shape)
        offset = offset if zeros is None else lnp.reshape(lnp.take(offset[..., 0], at, axis=1), whole.shape)
    return converted(whole - offset, scale.dtype) * scale


def _matmul_n_bits(
    call: Call, a: Any, b: Any, scales: Any, zeros: Any = None, order: Any = None, bias: Any = None
) -> Any:
    """Weights of 2, 4 or 8 bits, [N, K] in blocks along K: unpacked where the product reads them."""
    blocks = -(-call.K // call.block_size)
    weights = _blocks(call, b, scales, zeros, order, blocks)
    weights = lnp.reshape(weights, (call.N, -1))[:, : call.K]
    made = lnp.matmul(a, converted(weights, a.dtype).T)
    return made if bias is None else made + bias


def _refuse_bits(node: Node) -> str | None:
    if node.attributes.get("bits", 4) not in (2, 4, 8):
        return "bits must be 2, 4 or 8"
    return None


def dynamic_product(a: Any, b: Any, b_scale: Any, b_zero: Any) -> Any:
    """The product of floats and quantised numbers; the left side is quantised to 8 bits by its own range."""
    low, high = lnp.minimum(lnp.min(a), 0), lnp.maximum(lnp.max(a), 0)
    scale = lnp.where(high > low, (high - low) / 255, 1)
    zero = lnp.round(lnp.clip(-low / scale, 0, 255))
    whole = converted(lnp.clip(lnp.round(a / scale) + zero, 0, 255) - zero, "int32")
    return converted(lnp.matmul(whole, centred(b, b_zero, -1)), b_scale.dtype) * (scale * b_scale)


def _dynamic_matmul(call: Call, a: Any, b: Any, b_scale: Any, b_zero: Any = None, bias: Any = None) -> Any:
    made = dynamic_product(a, b, b_scale, b_zero)
    return made if bias is None else made + bias


def _qlinear_concat(call: Call, scale: Any, zero: Any, *inputs: Any) -> Any:
    parts = [
        dequantized(inputs[k], inputs[k + 1].reshape(()), inputs[k + 2]) for k in range(0, len(inputs), 3)
    ]
    made = lnp.concatenate(parts, axis=call.axis)
    return quantized(call, made, scale.reshape(()), zero, np.dtype(inputs[0].dtype))


def _qlinear_softmax(call: Call, x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any) -> Any:
    made = nn.softmax(dequantized(x, x_scale.reshape(()), x_zero), axis=call.axis)
    return quantized(call, made, y_scale.reshape(()), y_zero, np.dtype(x.dtype))


def _qlinear_global_pool(call: Call, x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any) -> Any:
    axes = tuple(range(1, x.ndim - 1)) if call.channels_last else tuple(range(2, x.ndim))
    made = lnp.mean(dequantized(x, x_scale.reshape(()), x_zero), axis=axes, keepdims=True)
    return quantized(call, made, y_scale.reshape(()), y_zero, np.dtype(x.dtype))


_EPSILON = {"epsilon": 1e-12}
_N_BITS = {"K": REQUIRED, "N": REQUIRED, "accuracy_level": 0, "bits": 4, "block_size": REQUIRED, "weight_prepacked": 0}
_MATMUL = {"alpha": 1.0, "transA": 0, "transB": 0, "transBatchA": 0, "transBatchB": 0}
_GEMM = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}


def _own(name: str, evaluate: Any, attributes: Any = None, **others: Any) -> Operator:
    return Operator(name, evaluate, attributes or {}, domain=MICROSOFT, **others)


OPERATORS = (
    _own("BiasGelu", _bias_gelu),
    _own("BiasSplitGelu", _bias_split_gelu),
    _own("DynamicQuantizeMatMul", _dynamic_matmul),
    _own("EmbedLayerNormalization", _embed_layer_norm, {**_EPSILON, "mask_index_type": 0}),
    _own("FastGelu", _fast_gelu),
    _own(
        "FusedConv", _fused_conv, {**CONV_ATTRIBUTES, "activation": "", "activation_params": None},
        refuse=_refuse_activation,
    ),
    _own("FusedGemm", _fused_gemm, {**_GEMM, "activation": ""}, refuse=_refuse_activation),
    _own("FusedMatMul", _fused_matmul, _MATMUL),
    _own("TransposeMatMul", _fused_matmul, _MATMUL),
    _own("Gelu", lambda call, x: nn.gelu(x, approximate=False)),
    _own(
        "GroupNorm", group_norm, {"activation": 0, "channels_last": 1, "epsilon": 1e-5, "groups": REQUIRED},
    ),
    _own("Inverse", lambda call, x: lnp.linalg.inv(x)),
    _own("MatMulNBits", _matmul_n_bits, _N_BITS, refuse=_refuse_bits),
    _own("QLinearConcat", _qlinear_concat, {"axis": REQUIRED}),
    _own("QLinearGlobalAveragePool", _qlinear_global_pool, {"channels_last": 0}),
    _own("QLinearSoftmax", _qlinear_softmax, {"axis": -1, "opset": None}),
    _own("QuickGelu", _quick_gelu, {"alpha": 1.702}),
    _own("SkipLayerNormalization", _skip_layer_norm, _EPSILON),
    _own("SkipSimplifiedLayerNormalization", _skip_rms_norm, _EPSILON),
    # onnxruntime writes this one without a domain.
    Operator("SimplifiedLayerNormalization", rms_norm, {"axis": -1, "epsilon": 1e-5, "stash_type": 1}),
)  # fmt: skip
