"""Losses of classifiers."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import nn
from lavax.onnx.operators.operator import Call, Operator, converted


def _negative_log_likelihood(call: Call, log_probabilities: Any, labels: Any, weights: Any = None) -> Any:
    classes = log_probabilities.shape[1]
    safe = lnp.clip(labels, 0, classes - 1)
    picked = lnp.take_along_axis(log_probabilities, lnp.expand_dims(safe, 1), axis=1)[:, 0]
    counted = lnp.ones_like(picked) if weights is None else lnp.take(weights, safe, axis=0)
    if call.ignore_index is not None:
        counted = lnp.where(labels == call.ignore_index, 0, counted)
    loss = converted(-picked * counted, log_probabilities.dtype)
    if call.reduction == "none":
        return loss
    return lnp.sum(loss) if call.reduction == "sum" else lnp.sum(loss) / lnp.sum(counted)


def _softmax_cross_entropy(call: Call, scores: Any, labels: Any, weights: Any = None) -> Any:
    log_probabilities = nn.log_softmax(scores, axis=1)
    loss = _negative_log_likelihood(call, log_probabilities, labels, weights)
    return (loss, log_probabilities)[: max(call.outputs, 1)]


_ATTRIBUTES = {"ignore_index": None, "reduction": "mean"}

OPERATORS = (
    Operator("NegativeLogLikelihoodLoss", _negative_log_likelihood, _ATTRIBUTES),
    Operator("SoftmaxCrossEntropyLoss", _softmax_cross_entropy, _ATTRIBUTES),
)
