"""Operators of com.microsoft that move, combine and transform arrays."""
from __future__ import annotations

from math import prod
from typing import Any

import lavax.numpy as lnp
from lavax.onnx.operators import pooling, shaping
from lavax.onnx.operators.microsoft.fused import group_norm
from lavax.onnx.operators.operator import REQUIRED, Call, Operator
from lavax.onnx.operators.quantized import MICROSOFT
from lavax.onnx.reading.graph import Node

_PAD, _TRILU = (next(e for e in shaping.OPERATORS if e.name == name) for name in ("Pad", "Trilu"))
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
    spectrum: Any = x[..., 0] + 1j * x[..., 1]
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


_SPECTRUM = {"normalized": 0, "onesided": 1, "signal_ndim": REQUIRED}
_LACKING = "normalized, two-sided"


def _own(name: str, evaluate: Any, attributes: Any = None, **others: Any) -> Operator:
    return Operator(name, evaluate, attributes or {}, domain=MICROSOFT, **others)


OPERATORS = (
    _own("BiasAdd", lambda call, x, bias, skip: x + bias + skip),
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
