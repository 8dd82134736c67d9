"""Activations: elementwise operators of networks, and those that normalise along an axis."""
from __future__ import annotations

from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax import nn
from lavax.onnx.operators.operator import Call, Operator, converted


def _celu(call: Call, x: Any) -> Any:
    return lnp.maximum(x, 0) + lnp.minimum(call.alpha * lnp.expm1(lnp.minimum(x, 0) / call.alpha), 0)


def _elu(call: Call, x: Any) -> Any:
    return lnp.where(x > 0, x, call.alpha * lnp.expm1(lnp.minimum(x, 0)))


def _gelu(call: Call, x: Any) -> Any:
    return nn.gelu(x, approximate=call.approximate == "tanh")


def _hard_sigmoid(call: Call, x: Any) -> Any:
    return lnp.clip(call.alpha * x + call.beta, 0, 1)


def _hard_swish(call: Call, x: Any) -> Any:
    return x * lnp.clip(x / 6 + 0.5, 0, 1)


def _leaky_relu(call: Call, x: Any) -> Any:
    return lnp.where(x < 0, call.alpha * x, x)


def _prelu(call: Call, x: Any, slope: Any) -> Any:
    return lnp.where(x < 0, slope * x, x)


def _relu(call: Call, x: Any) -> Any:
    return np.maximum(x, 0) if call.is_known else nn.relu(x)


def _selu(call: Call, x: Any) -> Any:
    return call.gamma * lnp.where(x > 0, x, call.alpha * lnp.expm1(lnp.minimum(x, 0)))


def _shrink(call: Call, x: Any) -> Any:
    zero = lnp.zeros_like(x)
    return lnp.where(x < -call.lambd, x + call.bias, lnp.where(x > call.lambd, x - call.bias, zero)).astype(x.dtype)


def _swish(call: Call, x: Any) -> Any:
    return x * nn.sigmoid(call.alpha * x)


def _thresholded_relu(call: Call, x: Any) -> Any:
    return lnp.where(x > call.alpha, x, lnp.zeros_like(x))


def _softmax(call: Call, x: Any) -> Any:
    return nn.softmax(x, axis=call.axis)


def _log_softmax(call: Call, x: Any) -> Any:
    return nn.log_softmax(x, axis=call.axis)


def _hardmax(call: Call, x: Any) -> Any:
    axis = call.axis % x.ndim
    places = lnp.reshape(lnp.arange(x.shape[axis]), [-1 if k == axis else 1 for k in range(x.ndim)])
    return converted(places == lnp.argmax(x, axis=axis, keepdims=True), x.dtype)


def _dropout(call: Call, x: Any, ratio: Any = None, training: Any = None) -> Any:
    training_mode = training is not None and bool(call.known(training, "training_mode"))
    rate = 0.5 if ratio is None else float(call.known(ratio, "ratio"))
    if training_mode and rate:
        raise call.error("training_mode drops at random, for which a model has no key; give lavax.nn.dropout a key")
    return (x, call.np.ones(x.shape, "bool"))[: max(call.outputs, 1)]


OPERATORS = (
    Operator("Celu", _celu, {"alpha": 1.0}),
    Operator("Dropout", _dropout, {"seed": 0}, known=(1, 2), since=12, lacking="training_mode"),
    Operator("Elu", _elu, {"alpha": 1.0}),
    Operator("Gelu", _gelu, {"approximate": "none"}),
    Operator("HardSigmoid", _hard_sigmoid, {"alpha": 0.2, "beta": 0.5}),
    Operator("HardSwish", _hard_swish),
    Operator("Hardmax", _hardmax, {"axis": -1}, since=13),
    Operator("LeakyRelu", _leaky_relu, {"alpha": 0.01}),
    Operator("LogSoftmax", _log_softmax, {"axis": -1}, since=13),
    Operator("Mish", lambda call, x: nn.mish(x)),
    Operator("PRelu", _prelu),
    Operator("Relu", _relu, folds=True),
    Operator("Selu", _selu, {"alpha": 1.6732632423543772, "gamma": 1.0507009873554805}),
    Operator("Shrink", _shrink, {"bias": 0.0, "lambd": 0.5}),
    Operator("Sigmoid", lambda call, x: nn.sigmoid(x)),
    Operator("Softmax", _softmax, {"axis": -1}, since=13),
    Operator("Softplus", lambda call, x: nn.softplus(x)),
    Operator("Softsign", lambda call, x: x / (1 + abs(x))),
    Operator("Swish", _swish, {"alpha": 1.0}),
    Operator("ThresholdedRelu", _thresholded_relu, {"alpha": 1.0}),
)
