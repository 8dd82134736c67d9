"""Operators of com.microsoft on quantised numbers: products, pools, choices, rows of tables, attention."""
from __future__ import annotations

from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.onnx.operators import pooling
from lavax.onnx.operators.microsoft.attention import attention
from lavax.onnx.operators.microsoft.fused import dynamic_product
from lavax.onnx.operators.operator import REQUIRED, Call, Operator, converted
from lavax.onnx.operators.quantized import MICROSOFT, centred, dequantized, quantized, spread
from lavax.onnx.operators.recurrent import LSTM_ATTRIBUTES, lstm, refuse_activations
from lavax.onnx.reading.graph import Node

_AVERAGE_POOL = next(entry for entry in pooling.OPERATORS if entry.name == "AveragePool")


def _by_column(scale: Any) -> Any:
    return scale.reshape(()) if scale.size == 1 else scale


def _gemm(
    call: Call, a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, c: Any = None,
    y_scale: Any = None, y_zero: Any = None,
) -> Any:  # fmt: skip
    """The bias is in steps of both scales. Without a scale of the result it stays a float."""
    left = centred(a.T if call.transA else a, a_zero)
    right = centred(b.T, b_zero, -1) if call.transB else centred(b, b_zero, -1)
    total = lnp.matmul(left, right)
    total = total if c is None else total + c
    made = converted(total, "float32") * (call.alpha * a_scale.reshape(()) * _by_column(b_scale))
    if y_scale is None:
        return made
    return quantized(call, made, y_scale.reshape(()), y_zero, np.dtype(a.dtype))


def _average_pool(call: Call, x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None) -> Any:
    numbers = dequantized(x, x_scale.reshape(()), x_zero)
    first = lnp.moveaxis(numbers, -1, 1) if call.channels_last else numbers
    made = _AVERAGE_POOL.evaluate(call, first)
    placed = lnp.moveaxis(made, 1, -1) if call.channels_last else made
    return quantized(call, placed, y_scale.reshape(()), y_zero, np.dtype(x.dtype))


def _where(
    call: Call, condition: Any, x: Any, x_scale: Any, x_zero: Any, y: Any, y_scale: Any, y_zero: Any, z_scale: Any,
    z_zero: Any,
) -> Any:  # fmt: skip
    chosen, other = dequantized(x, x_scale.reshape(()), x_zero), dequantized(y, y_scale.reshape(()), y_zero)
    return quantized(call, lnp.where(condition, chosen, other), z_scale.reshape(()), z_zero, np.dtype(x.dtype))


def _gather_blocks(call: Call, data: Any, indices: Any, scales: Any, zeros: Any = None) -> Any:
    """Rows of a table of quantised blocks; only what is read is made a float."""
    gather, along = call.gather_axis % data.ndim, call.quantize_axis % data.ndim
    step = spread(scales, data, along, call.block_size)
    rows = converted(lnp.take(data, indices, axis=gather), "int32")
    if zeros is not None:
        held = converted(zeros.astype(np.int32) if isinstance(zeros, np.ndarray) else zeros, "int32")
        rows = rows - lnp.take(spread(held, data, along, call.block_size), indices, axis=gather)
    return converted(rows, scales.dtype) * lnp.take(step, indices, axis=gather)


def _refuse_gather(node: Node) -> str | None:
    along, over = node.attributes.get("quantize_axis", 1), node.attributes.get("gather_axis", 0)
    return "gather_axis and quantize_axis must differ" if along == over else None


def _attention(
    call: Call, x: Any, w: Any, bias: Any, x_scale: Any, w_scale: Any, mask: Any = None, x_zero: Any = None,
    w_zero: Any = None, past: Any = None,
) -> Any:  # fmt: skip
    """Attention whose projections are products of quantised numbers."""
    left = converted(centred(x, x_zero), "float32") * x_scale.reshape(())
    right = converted(centred(w, w_zero, -1), "float32") * _by_column(w_scale)
    return attention(call, left, right, bias, mask, past)


def _dynamic_lstm(
    call: Call, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h: Any = None, c: Any = None,
    p: Any = None, w_scale: Any = None, w_zero: Any = None, r_scale: Any = None, r_zero: Any = None,
) -> Any:  # fmt: skip
    """An LSTM whose weights are quantised, with a column for each gate; inputs and states are where they are read."""

    def times(k: int, weights: Any, scale: Any, zero: Any) -> Any:
        own_zero = None if zero is None else zero[k]
        return lambda left: dynamic_product(left, weights[k], scale[k], own_zero)

    products = [(times(k, w, w_scale, w_zero), times(k, r, r_scale, r_zero)) for k in range(w.shape[0])]
    return lstm(call, x, r.shape[1], products, b, lengths, h, c, p)


def _refuse_attention(node: Node) -> str | None:
    if node.attributes.get("do_rotary") or node.attributes.get("past_present_share_buffer"):
        return "do_rotary and past_present_share_buffer are not supported"
    return None


def _own(name: str, evaluate: Any, attributes: Any = None, **others: Any) -> Operator:
    return Operator(name, evaluate, attributes or {}, domain=MICROSOFT, **others)


OPERATORS = (
    _own(
        "GatherBlockQuantized", _gather_blocks, {"block_size": 128, "gather_axis": 0, "quantize_axis": 1},
        refuse=_refuse_gather, lacking="bytes that hold several numbers (bits)",
    ),
    _own(
        "QAttention", _attention,
        {
            "do_rotary": 0, "mask_filter_value": -10000.0, "num_heads": REQUIRED, "past_present_share_buffer": 0,
            "qkv_hidden_sizes": None, "scale": 0.0, "unidirectional": 0,
        },
        refuse=_refuse_attention, lacking="do_rotary and shared buffers",
    ),
    _own("DynamicQuantizeLSTM", _dynamic_lstm, LSTM_ATTRIBUTES, refuse=refuse_activations),
    _own("QGemm", _gemm, {"alpha": 1.0, "transA": 0, "transB": 0}),
    _own("QLinearAveragePool", _average_pool, {**_AVERAGE_POOL.attributes, "channels_last": 0}),
    _own("QLinearWhere", _where),
)  # fmt: skip
