"""Losses of margins between the scores of classes or pairs, under the names and with the conventions of PyTorch."""
from __future__ import annotations

from collections.abc import Callable

import lavax.numpy as lnp
from lavax.ir.types import int32
from lavax.nn.activations import softplus
from lavax.nn.contrastive import pairwise_distance
from lavax.nn.reduced import Reduction, operands, reduced, widened
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value

__all__ = [
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
    "triplet_margin_with_distance_loss",
]


def soft_margin_loss(input: ArrayLike, target: ArrayLike, reduction: Reduction = "mean") -> Value:
    """log(1 + exp(-target·input)) for targets of 1 and -1, without overflow."""
    scores, signs = operands("soft_margin_loss", input, target)
    return reduced("soft_margin_loss", softplus(-signs * scores), reduction)


def multilabel_soft_margin_loss(
    input: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, reduction: Reduction = "mean"
) -> Value:
    """The mean over classes (the last axis) of `binary_cross_entropy_with_logits`; `weight` is [classes]."""
    name = "multilabel_soft_margin_loss"
    logits, targets = operands(name, input, target)
    losses = targets * softplus(-logits) + (1 - targets) * softplus(logits)
    losses = losses if weight is None else losses * widened(weight)
    return reduced(name, lnp.mean(losses, axis=-1), reduction)


def _classes(name: str, input: ArrayLike, target: ArrayLike, with_classes: bool) -> tuple[Value, Value, Value]:
    """Scores [N, C], class indices [N] or [N, C], and classes [C]."""
    scores, labels = widened(input), as_value(target)
    if not labels.type.dtype.is_integer:
        raise dtype_error(f"{name}: class indices are integers, got {labels.type}")
    wanted = scores.shape if with_classes else scores.shape[:-1]
    if scores.ndim not in (1, 2) or labels.shape != wanted:
        raise shape_error(f"{name}: input is [N, C] or [C], target {list(wanted)}, got {scores.type} and {labels.type}")
    return scores, cast(labels, int32), lnp.arange(scores.shape[-1], dtype="int32")


def multi_margin_loss(
    input: ArrayLike,
    target: ArrayLike,
    p: float = 1,
    margin: float = 1.0,
    weight: ArrayLike | None = None,
    reduction: Reduction = "mean",
) -> Value:
    """Σ max(0, margin - input[target] + input[c])^p over the other classes c, over the number of classes.

    `input` is [N, C] and `target` class indices [N]; `weight` [C] is that of the target. `p` is 1 or 2.
    """
    name = "multi_margin_loss"
    if p not in (1, 2):
        raise ValueError(f"{name}: p is 1 or 2, got {p}")
    scores, labels, classes = _classes(name, input, target, with_classes=False)
    is_label = classes == lnp.expand_dims(labels, -1)
    own = lnp.sum(lnp.where(is_label, scores, 0.0), axis=-1, keepdims=True)
    short = lnp.maximum(margin - own + scores, 0.0)
    costs = short if p == 1 else lnp.square(short)
    if weight is not None:
        costs = costs * lnp.sum(lnp.where(is_label, widened(weight), 0.0), axis=-1, keepdims=True)
    return reduced(name, lnp.sum(lnp.where(is_label, 0.0, costs), axis=-1) / scores.shape[-1], reduction)


def multilabel_margin_loss(input: ArrayLike, target: ArrayLike, reduction: Reduction = "mean") -> Value:
    """Σ max(0, 1 - input[t] + input[c]) over the targets t and the other classes c, over the number of classes.

    `target` [N, C] lists the targets of each row; those from the first -1 on do not count.
    """
    name = "multilabel_margin_loss"
    scores, labels, classes = _classes(name, input, target, with_classes=True)
    counts = lnp.cumsum(cast(labels < 0, int32), axis=-1) == 0
    # [..., targets, classes]
    is_label = (lnp.expand_dims(labels, -1) == classes) & lnp.expand_dims(counts, -1)
    own = lnp.sum(lnp.where(is_label, lnp.expand_dims(scores, -2), 0.0), axis=-1, keepdims=True)
    short = lnp.maximum(1 - own + lnp.expand_dims(scores, -2), 0.0)
    is_other = lnp.logical_not(lnp.any(is_label, axis=-2, keepdims=True)) & lnp.expand_dims(counts, -1)
    losses = lnp.sum(lnp.where(is_other, short, 0.0), axis=(-2, -1)) / scores.shape[-1]
    return reduced(name, losses, reduction)


def triplet_margin_with_distance_loss(
    anchor: ArrayLike,
    positive: ArrayLike,
    negative: ArrayLike,
    *,
    distance_function: Callable[[Value, Value], Value] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: Reduction = "mean",
) -> Value:
    """`triplet_margin_loss` with a distance of yours, by default `pairwise_distance`."""
    name = "triplet_margin_with_distance_loss"
    own, alike = operands(name, anchor, positive)
    _, unlike = operands(name, anchor, negative)
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(own, alike), distance(own, unlike)
    if swap:
        far = lnp.minimum(far, distance(alike, unlike))
    return reduced(name, lnp.maximum(margin + near - far, 0.0), reduction)
