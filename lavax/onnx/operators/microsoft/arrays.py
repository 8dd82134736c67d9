"""Operators of com.microsoft that move, combine and transform arrays."""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax import lax
from lavax.onnx.operators import indexing, pooling, sampling, shaping
from lavax.onnx.operators.microsoft.fused import group_norm
from lavax.onnx.operators.operator import OF_DATA, REQUIRED, Call, Operator, converted
from lavax.onnx.operators.quantized import MICROSOFT
from lavax.onnx.reading.graph import Node


def _entry(operators: Sequence[Operator], name: str) -> Operator:
    return next(entry for entry in operators if entry.name == name)


_PAD, _RANGE, _TRILU = (_entry(shaping.OPERATORS, name) for name in ("Pad", "Range", "Trilu"))
_GATHER_ND, _UNIQUE = (_entry(indexing.OPERATORS, name) for name in ("GatherND", "Unique"))
_GRID_SAMPLE = _entry(sampling.OPERATORS, "GridSample")
_MAX_POOL = next(entry for entry in pooling.OPERATORS if entry.name == "MaxPool")


def _distances(call: Call, a: Any, b: Any) -> Any:
    """Between the rows of two matrices."""
    apart = a[:, None] - b[None]
    squares = lnp.sum(apart * apart, axis=-1)
    return squares if call.metric == "sqeuclidean" else lnp.sqrt(squares)


def _expand_dims(call: Call, x: Any, axis: Any) -> Any:
    place = call.integers(axis, "axis")[0]
    at = place + x.ndim + 1 if place < 0 else place
    return x.reshape((*x.shape[:at], 1, *x.shape[at:]))


def _max_pool_channels_last(call: Call, x: Any) -> Any:
    return lnp.moveaxis(_MAX_POOL.evaluate(call, lnp.moveaxis(x, -1, 1)), 1, -1)


def _spectrum_axes(call: Call, rank: int) -> tuple[int, ...]:
    return tuple(range(rank - call.signal_ndim, rank))


def _rfft(call: Call, x: Any) -> Any:
    """Real numbers to the half of their spectrum that is not the mirror of another, as pairs."""
    found: Any = lnp.fft.rfftn(x, axes=_spectrum_axes(call, x.ndim))
    return lnp.stack([lnp.real(found), lnp.imag(found)], axis=-1)


def _irfft(call: Call, x: Any) -> Any:
    """The way back, to an even length."""
    spectrum: Any = lax.complex(x[..., 0], x[..., 1])
    return lnp.fft.irfftn(spectrum, axes=_spectrum_axes(call, spectrum.ndim))


def _refuse_spectrum(node: Node) -> str | None:
    if node.attributes.get("normalized", 0) or not node.attributes.get("onesided", 1):
        return "normalized = 1 and onesided = 0 are not supported"
    return None


def _skip_group_norm(call: Call, x: Any, gamma: Any, beta: Any, skip: Any, bias: Any = None) -> Any:
    """Channels are the last axis; the skip may stand for a whole picture."""
    batch, channels = skip.shape[0], skip.shape[-1]
    aside = skip.reshape(batch, *(1,) * (x.ndim - 2), channels) if prod(skip.shape) == batch * channels else skip
    total = x + aside if bias is None else x + aside + bias
    return (group_norm(call, total, gamma, beta), total)[: max(call.outputs, 1)]


def _gather_nd(call: Call, x: Any, indices: Any) -> Any:
    return _GATHER_ND.evaluate(dataclasses.replace(call, attributes={"batch_dims": 0}), x, indices)


def _range(call: Call, first: Any, limit: Any, step: Any = None) -> Any:
    return _RANGE.evaluate(call, first, limit, np.ones((), first.dtype) if step is None else step)


def _unique(call: Call, x: Any) -> Any:
    """In the order in which they come first; where each lies among them; how many there are."""
    values, _, inverse, counts = _UNIQUE.evaluate(
        dataclasses.replace(call, attributes={"axis": None, "sorted": 0}), call.known(x, "x")
    )
    return values, inverse, counts


def _unfold(call: Call, x: Any) -> Any:
    """Windows of an axis, whose elements are a new last axis."""
    axis = call.dim % x.ndim
    starts = np.arange(0, x.shape[axis] - call.size + 1, call.step)
    made = lnp.take(x, starts[:, None] + np.arange(call.size), axis=axis)
    return lnp.moveaxis(made, axis + 1, -1)


_SPECTRUM = {"normalized": 0, "onesided": 1, "signal_ndim": REQUIRED}
_LACKING = "normalized, two-sided"


def _own(name: str, evaluate: Any, attributes: Any = None, **others: Any) -> Operator:
    return Operator(name, evaluate, attributes or {}, domain=MICROSOFT, **others)


OPERATORS = (
    _own("BiasAdd", lambda call, x, bias, skip: x + bias + skip),
    _own("GatherND", _gather_nd, keeps=(1,)),
    _own(
        "GridSample", _GRID_SAMPLE.evaluate, {"align_corners": 0, "mode": "bilinear", "padding_mode": "zeros"},
    ),
    _own("MatMulInteger16", lambda call, a, b: lnp.matmul(converted(a, "int32"), converted(b, "int32"))),
    _own("Range", _range, known=(0, 1, 2), folds=True),
    _own("UnfoldTensor", _unfold, {"dim": -1, "size": REQUIRED, "step": 1}),
    _own("Unique", _unique, known=(0,), folds=True, lacking=OF_DATA),
    _own("CDist", _distances, {"metric": "sqeuclidean"}),
    _own("ExpandDims", _expand_dims, known=(1,), folds=True),
    _own("Irfft", _irfft, _SPECTRUM, refuse=_refuse_spectrum, lacking=_LACKING),
    _own("NhwcMaxPool", _max_pool_channels_last, _MAX_POOL.attributes),
    _own("Pad", _PAD.evaluate, {"mode": "constant", "pads": None}, known=(1,), folds=True),
    _own("Rfft", _rfft, _SPECTRUM, refuse=_refuse_spectrum, lacking=_LACKING),
    _own(
        "SkipGroupNorm", _skip_group_norm,
        {"activation": 0, "channels_last": 1, "epsilon": 1e-5, "groups": REQUIRED},
    ),
    _own("Trilu", _TRILU.evaluate, _TRILU.attributes, folds=True),
)  # fmt: skip
