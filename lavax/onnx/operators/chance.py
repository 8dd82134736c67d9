"""Operators that draw. A model is a function, so its draws are the same at every call: they follow from the node."""
from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np

import lavax.numpy as lnp
from lavax import random
from lavax.onnx.operators.elementwise import unsupported_type
from lavax.onnx.operators.operator import REQUIRED, Call, Operator, converted, device_dtype
from lavax.onnx.reading.graph import Node
from lavax.onnx.reading.tensors import numpy_dtype


def key_of(call: Call) -> Any:
    """The key of a node's draws: from its seed or, if it has none, from its name."""
    seed = call.attributes.get("seed")
    return random.key(crc32(call.node.name.encode() if seed is None else np.float32(seed).tobytes()))


def _dtype(call: Call, like: Any = None) -> Any:
    if call.dtype is None:
        return np.dtype(np.float32) if like is None else np.dtype(like.dtype)
    found = numpy_dtype(call.dtype)
    assert found is not None, "refused while loading"
    return device_dtype(found)


def _normal(call: Call, like: Any = None) -> Any:
    shape = call.attributes.get("shape") if like is None else like.shape
    drawn = random.normal(key_of(call), tuple(shape or ()))
    return converted(drawn * call.scale + call.mean, _dtype(call, like))


def _uniform(call: Call, like: Any = None) -> Any:
    shape = call.attributes.get("shape") if like is None else like.shape
    drawn = random.uniform(key_of(call), tuple(shape or ()))
    return converted(drawn * (call.high - call.low) + call.low, _dtype(call, like))


def _bernoulli(call: Call, probability: Any) -> Any:
    drawn = random.uniform(key_of(call), probability.shape) < converted(probability, "float32")
    return converted(drawn, _dtype(call, probability))


def _multinomial(call: Call, logits: Any) -> Any:
    """Draws [batch, sample_size] of classes by their unnormalised log-probabilities [batch, classes]."""
    noise = random.gumbel(key_of(call), (logits.shape[0], call.sample_size, logits.shape[1]))
    drawn = lnp.argmax(lnp.expand_dims(converted(logits, "float32"), 1) + noise, axis=-1)
    return converted(drawn, np.int32 if call.dtype is None else _dtype(call))


def _refuse_type(node: Node) -> str | None:
    return unsupported_type(node.attributes.get("dtype") or 1)


_NORMAL = {"dtype": None, "mean": 0.0, "scale": 1.0, "seed": None}
_UNIFORM = {"dtype": None, "high": 1.0, "low": 0.0, "seed": None}
_SHAPE = {"shape": REQUIRED}


def _random(name: str, evaluate: Any, attributes: dict[str, Any]) -> Operator:
    return Operator(name, evaluate, attributes, refuse=_refuse_type, lacking="other draws at each call")


OPERATORS = (
    _random("Bernoulli", _bernoulli, {"dtype": None, "seed": None}),
    _random("Multinomial", _multinomial, {"dtype": None, "sample_size": 1, "seed": None}),
    _random("RandomNormal", _normal, {**_NORMAL, **_SHAPE}),
    _random("RandomNormalLike", _normal, _NORMAL),
    _random("RandomUniform", _uniform, {**_UNIFORM, **_SHAPE}),
    _random("RandomUniformLike", _uniform, _UNIFORM),
)
