"""Losses under the names and with the conventions of optax: one loss for each example, nothing averaged.

`nn` has losses with PyTorch's names, which are averaged. All are computed and returned in float32 for 16-bit inputs.
Along `axis` (-1 by default) lie classes or features; `where` says which of them count.
"""
from __future__ import annotations

import math

import lavax.numpy as lnp
from lavax.ir.types import int32
from lavax.nn.activations import log_sigmoid
from lavax.nn.cross_entropy import cross_entropy
from lavax.nn.ctc import ctc_losses
from lavax.nn.functional import log_softmax, logsumexp, one_hot, softmax
from lavax.nn.reduced import real_operand, widened
from lavax.numpy._core.axes import Axis
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value

__all__ = [
    "cosine_distance",
    "cosine_similarity",
    "ctc_loss",
    "generalized_kl_divergence",
    "hinge_loss",
    "huber_loss",
    "kl_divergence",
    "kl_divergence_with_log_targets",
    "l2_loss",
    "log_cosh",
    "multiclass_hinge_loss",
    "multiclass_perceptron_loss",
    "ntxent",
    "perceptron_loss",
    "poly_loss_cross_entropy",
    "safe_softmax_cross_entropy",
    "sigmoid_binary_cross_entropy",
    "sigmoid_focal_loss",
    "smooth_labels",
    "softmax_cross_entropy",
    "softmax_cross_entropy_with_integer_labels",
    "squared_error",
    "triplet_margin_loss",
]


def _errors(name: str, predictions: ArrayLike, targets: ArrayLike | None) -> Value:
    return _differences(name, real_operand(name, predictions), None if targets is None else real_operand(name, targets))


def _differences(name: str, predictions: ArrayLike, targets: ArrayLike | None) -> Value:
    left = widened(predictions)
    if targets is None:
        return left
    right = widened(targets)
    if left.shape != right.shape:
        raise shape_error(f"{name}: predictions and targets must have the same shape, got {left.type} and {right.type}")
    return left - right


def _summed(x: Value, axis: Axis, where: ArrayLike | None) -> Value:
    return lnp.sum(x if where is None else lnp.where(where, x, 0.0), axis=axis)


def squared_error(predictions: ArrayLike, targets: ArrayLike | None = None) -> Value:
    """(predictions - targets)², elementwise; targets are 0 by default."""
    return lnp.square(_errors("squared_error", predictions, targets))


def l2_loss(predictions: ArrayLike, targets: ArrayLike | None = None) -> Value:
    """Half of `squared_error`."""
    return 0.5 * lnp.square(_errors("l2_loss", predictions, targets))


def huber_loss(predictions: ArrayLike, targets: ArrayLike | None = None, *, delta: float = 1.0) -> Value:
    """d² / 2 for errors of |d| <= delta, delta·(|d| - delta / 2) beyond (Huber 1964), elementwise."""
    distance = lnp.abs(_differences("huber_loss", predictions, targets))
    inner = lnp.minimum(distance, delta)
    return 0.5 * lnp.square(inner) + delta * (distance - inner)


def log_cosh(predictions: ArrayLike, targets: ArrayLike | None = None) -> Value:
    """log(cosh(predictions - targets)), elementwise: square near 0, linear far from it."""
    errors = _errors("log_cosh", predictions, targets)
    return lnp.logaddexp(errors, -errors) - math.log(2)


def cosine_similarity(
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    epsilon: float = 0.0,
    axis: Axis = -1,
    where: ArrayLike | None = None,
) -> Value:
    """The cosine of the angle between vectors along `axis`; squared lengths count as at least `epsilon`."""
    units = []
    for given in (predictions, targets):
        value = real_operand("cosine_similarity", given)
        kept = value if where is None else lnp.where(where, value, 0.0)
        square = lnp.sum(lnp.square(kept), axis=axis, keepdims=True)
        units.append(kept / lnp.sqrt(lnp.maximum(square, epsilon)))
    return lnp.sum(units[0] * units[1], axis=axis)


def cosine_distance(
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    epsilon: float = 0.0,
    axis: Axis = -1,
    where: ArrayLike | None = None,
) -> Value:
    """1 - `cosine_similarity`."""
    return 1 - cosine_similarity(predictions, targets, epsilon=epsilon, axis=axis, where=where)


def softmax_cross_entropy(
    logits: ArrayLike, labels: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None
) -> Value:
    """-Σ labels·log softmax(logits) for probabilities `labels`, such as one-hot vectors."""
    logs = log_softmax(widened(logits), axis, where)
    # Under `where` logarithms may be -inf, and 0 times that is NaN.
    kept = logs if where is None else lnp.where(where, logs, 0.0)
    return -_summed(widened(labels) * kept, axis, where)


def safe_softmax_cross_entropy(logits: ArrayLike, labels: ArrayLike) -> Value:
    """`softmax_cross_entropy`, where classes of probability 0 cost nothing even if their logits are -inf."""
    return cross_entropy(logits, widened(labels), reduction="none", axis=-1)


def softmax_cross_entropy_with_integer_labels(
    logits: ArrayLike, labels: ArrayLike, axis: int = -1, where: ArrayLike | None = None
) -> Value:
    """-log softmax(logits) of the class `labels`, integers in the shape of `logits` without `axis`.

    `where` says which classes the softmax counts; the loss is 0 where it counts none.
    """
    value = widened(logits)
    if where is None:
        return cross_entropy(value, labels, ignore_index=-(2**31), reduction="none", axis=axis)
    picked = lnp.take_along_axis(value, lnp.expand_dims(labels, axis), axis=axis, mode="promise_in_bounds")
    losses = logsumexp(value, axis=axis, where=where) - lnp.squeeze(picked, axis)
    result: Value = lnp.where(lnp.any(lnp.broadcast_to(where, value.shape), axis=axis), losses, 0.0)
    return result


def sigmoid_binary_cross_entropy(logits: ArrayLike, labels: ArrayLike) -> Value:
    """-labels·log σ(logits) - (1 - labels)·log σ(-logits), elementwise; both broadcast."""
    value, targets = widened(logits), widened(labels)
    return -targets * log_sigmoid(value) - (1 - targets) * log_sigmoid(-value)


def sigmoid_focal_loss(
    logits: ArrayLike, labels: ArrayLike, *, alpha: float | None = None, gamma: float = 2.0
) -> Value:
    """`sigmoid_binary_cross_entropy` times (1 - p)^gamma of the label's probability p (Lin et al. 2017).

    With `alpha` also times alpha where the label is 1, and 1 - alpha where it is 0.
    """
    value, targets = widened(logits), widened(labels)
    logs = lnp.stack([log_sigmoid(value), log_sigmoid(-value)], axis=-1)
    wrong = logsumexp(logs, axis=-1, b=lnp.stack(lnp.broadcast_arrays(1 - targets, targets), axis=-1))
    losses = sigmoid_binary_cross_entropy(value, targets) * lnp.exp(gamma * wrong)
    return losses if alpha is None else (alpha * targets + (1 - alpha) * (1 - targets)) * losses


def poly_loss_cross_entropy(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    epsilon: float = 2.0,
    axis: Axis = -1,
    where: ArrayLike | None = None,
) -> Value:
    """`softmax_cross_entropy` + epsilon·Σ labels·(1 - softmax(logits)) (Leng et al. 2022)."""
    missing = _summed(widened(labels) * (1 - softmax(widened(logits), axis, where)), axis, where)
    return softmax_cross_entropy(logits, labels, axis, where) + epsilon * missing


def smooth_labels(
    labels: ArrayLike, alpha: float, *, axis: int = -1, where: ArrayLike | None = None
) -> Value:
    """(1 - alpha)·labels + alpha / classes."""
    value = widened(labels)
    count = value.shape[axis] if where is None else lnp.sum(where, axis=axis, keepdims=True)
    return (1 - alpha) * value + alpha / count


def kl_divergence(
    log_predictions: ArrayLike, targets: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None
) -> Value:
    """Σ targets·(log targets - log_predictions); a target of 0 adds nothing."""
    value = widened(targets)
    is_zero = value == 0
    logs = lnp.where(is_zero, 0.0, lnp.log(lnp.where(is_zero, 1.0, value)))
    return _summed(value * (logs - widened(log_predictions)), axis, where)


def kl_divergence_with_log_targets(
    log_predictions: ArrayLike, log_targets: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None
) -> Value:
    """`kl_divergence` for logarithms of targets."""
    logs = widened(log_targets)
    return _summed(lnp.exp(logs) * (logs - widened(log_predictions)), axis, where)


def generalized_kl_divergence(
    log_predictions: ArrayLike, targets: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None
) -> Value:
    """`kl_divergence` + Σ (predictions - targets): not negative for numbers that do not add up to 1 either."""
    rest = _summed(lnp.exp(widened(log_predictions)) - widened(targets), axis, where)
    return kl_divergence(log_predictions, targets, axis, where) + rest


def hinge_loss(predictor_outputs: ArrayLike, targets: ArrayLike) -> Value:
    """max(0, 1 - outputs·targets) for targets of -1 and 1, elementwise."""
    return lnp.maximum(1 - widened(predictor_outputs) * widened(targets), 0.0)


def perceptron_loss(predictor_outputs: ArrayLike, targets: ArrayLike) -> Value:
    """max(0, -outputs·targets) for targets of -1 and 1, elementwise."""
    return lnp.maximum(-widened(predictor_outputs) * widened(targets), 0.0)


def multiclass_hinge_loss(scores: ArrayLike, labels: ArrayLike) -> Value:
    """The greatest of scores + 1 of the wrong classes, and of the right one's, less that of the right class."""
    value = widened(scores)
    right = one_hot(labels, value.shape[-1])
    return lnp.max(value + 1 - right, axis=-1) - lnp.sum(value * right, axis=-1)


def multiclass_perceptron_loss(scores: ArrayLike, labels: ArrayLike) -> Value:
    """The greatest score less that of the right class."""
    value = widened(scores)
    return lnp.max(value, axis=-1) - lnp.sum(value * one_hot(labels, value.shape[-1]), axis=-1)


def triplet_margin_loss(
    anchors: ArrayLike,
    positives: ArrayLike,
    negatives: ArrayLike,
    axis: int = -1,
    norm_degree: float = 2,
    margin: float = 1.0,
    eps: float = 1e-6,
) -> Value:
    """max(0, margin + d(anchors, positives) - d(anchors, negatives)) with d = (Σ differences^p + eps)^(1/p)."""

    def distance(other: ArrayLike) -> Value:
        difference = widened(anchors) - widened(other)
        power = lnp.square(difference) if norm_degree == 2 else lnp.power(difference, norm_degree)
        return lnp.power(lnp.sum(power, axis=axis) + eps, 1 / norm_degree)

    return lnp.maximum(distance(positives) - distance(negatives) + margin, 0.0)


def ntxent(embeddings: ArrayLike, labels: ArrayLike, temperature: float = 0.07) -> Value:
    """The normalised temperature-scaled cross-entropy of embeddings [N, D] with the same label (Chen et al. 2020).

    One number: the mean over all pairs of equal labels.
    """
    value, own = widened(embeddings), as_value(labels)
    if value.ndim != 2 or own.shape != value.shape[:1]:
        raise shape_error(f"ntxent: embeddings are [N, D] and labels [N], got {value.type} and {own.type}")
    square = lnp.maximum(lnp.sum(lnp.square(value), axis=1, keepdims=True), 2.0**-23)
    units = value / lnp.sqrt(square)
    scores = lnp.matmul(units, lnp.matrix_transpose(units)) / temperature
    is_alike = own[:, None] == own[None, :]
    is_pair = is_alike & (lnp.arange(own.shape[0])[:, None] != lnp.arange(own.shape[0])[None, :])
    others = logsumexp(scores, axis=1, where=lnp.logical_not(is_alike), keepdims=True)
    costs = lnp.logaddexp(scores, lnp.maximum(others, -1e30)) - scores
    return lnp.sum(lnp.where(is_pair, costs, 0.0)) / lnp.sum(cast(is_pair, value.type.dtype))


def ctc_loss(
    logits: ArrayLike,
    logit_paddings: ArrayLike,
    labels: ArrayLike,
    label_paddings: ArrayLike,
    *,
    blank_id: int = 0,
) -> Value:
    """The CTC loss of each sequence, [B] (Graves et al. 2006), from logits [B, T, K] and labels [B, N].

    Paddings [B, T] and [B, N] are 1 at the end of a row that is shorter, else 0. A row of labels that does not fit into
    its steps costs inf.
    """
    logs = lnp.moveaxis(log_softmax(widened(logits)), 0, 1)
    steps, lengths = (
        cast(lnp.sum(1 - widened(paddings), axis=1), int32) for paddings in (logit_paddings, label_paddings)
    )
    return ctc_losses(logs, as_value(labels), steps, lengths, blank_id)
