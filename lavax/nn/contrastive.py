"""Losses of pairs and triplets of vectors."""
from __future__ import annotations

import math

import lavax.numpy as lnp
from lavax.nn.cross_entropy import cross_entropy
from lavax.nn.reduced import Reduction, operands, real_operand, reduced, widened
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value

__all__ = [
    "clip_loss",
    "cosine_embedding_loss",
    "cosine_similarity",
    "hinge_embedding_loss",
    "info_nce_loss",
    "margin_ranking_loss",
    "normalize",
    "pairwise_distance",
    "triplet_margin_loss",
]


def normalize(x: ArrayLike, p: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Value:
    """x / max(|x|, eps) along `axis`, by default axis 1 as in PyTorch: vectors whose p-norm is 1.

    The result is float32 also for 16-bit inputs. The gradient of a zero vector is finite. Raises ValueError unless p is
    positive.
    """
    if not p > 0:
        raise ValueError(f"normalize: p must be positive, got {p}")
    value = widened(x)
    if p == 2:
        return _unit(value, axis, eps)
    size = lnp.abs(value)
    if p == math.inf:
        length = lnp.max(size, axis=axis, keepdims=True)
    elif p == 1:
        length = lnp.sum(size, axis=axis, keepdims=True)
    else:
        length = lnp.power(lnp.sum(lnp.power(size, p), axis=axis, keepdims=True), 1 / p)
    return value / lnp.maximum(length, eps)


def _unit(value: Value, axis: int = -1, eps: float = 1e-12) -> Value:
    """Vectors of Euclidean length 1, or less if they are shorter than `eps`."""
    square = lnp.sum(lnp.square(value), axis=axis, keepdims=True)
    return value * lnp.rsqrt(lnp.maximum(square, max(eps * eps, 1e-37)))


def cosine_similarity(x1: ArrayLike, x2: ArrayLike, axis: int = 1, eps: float = 1e-8) -> Value:
    """The cosine of the angle between vectors along `axis`; lengths count as at least `eps`. Both broadcast."""
    left, right = (real_operand("cosine_similarity", x) for x in (x1, x2))
    return lnp.sum(_unit(left, axis, eps) * _unit(right, axis, eps), axis=axis)


def pairwise_distance(
    x1: ArrayLike, x2: ArrayLike, p: float = 2.0, eps: float = 1e-6, keepdims: bool = False
) -> Value:
    """The p-norm of x1 - x2 + eps along the last axis, as in PyTorch. Both broadcast."""
    difference = widened(x1) - widened(x2) + eps
    if p == 2:
        return lnp.sqrt(lnp.sum(lnp.square(difference), axis=-1, keepdims=keepdims))
    distance = lnp.abs(difference)
    if p == 1:
        return lnp.sum(distance, axis=-1, keepdims=keepdims)
    return lnp.power(lnp.sum(lnp.power(distance, p), axis=-1, keepdims=keepdims), 1 / p)


def cosine_embedding_loss(
    input1: ArrayLike, input2: ArrayLike, target: ArrayLike, margin: float = 0.0, reduction: Reduction = "mean"
) -> Value:
    """1 - cos for pairs [N, D] with target 1, max(0, cos - margin) for those with target -1. `target` is [N]."""
    name = "cosine_embedding_loss"
    left, right = operands(name, input1, input2)
    signs = _signs(name, target, left.shape[:-1])
    square = [lnp.sum(lnp.square(x), axis=-1) + 1e-12 for x in (left, right)]
    cosine = lnp.sum(left * right, axis=-1) * lnp.rsqrt(square[0]) * lnp.rsqrt(square[1])
    alike = lnp.where(signs == 1, 1 - cosine, 0.0)
    return reduced(name, lnp.where(signs == -1, lnp.maximum(cosine - margin, 0.0), alike), reduction)


def hinge_embedding_loss(
    input: ArrayLike, target: ArrayLike, margin: float = 1.0, reduction: Reduction = "mean"
) -> Value:
    """Distances where the target is 1, max(0, margin - distance) where it is -1."""
    distance = widened(input)
    signs = _signs("hinge_embedding_loss", target, distance.shape)
    alike = lnp.where(signs == 1, distance, 0.0)
    losses = lnp.where(signs == -1, lnp.maximum(margin - distance, 0.0), alike)
    return reduced("hinge_embedding_loss", losses, reduction)


def margin_ranking_loss(
    input1: ArrayLike, input2: ArrayLike, target: ArrayLike, margin: float = 0.0, reduction: Reduction = "mean"
) -> Value:
    """max(0, margin - y·(x1 - x2)): x1 should be greater where y = 1, less where y = -1."""
    left, right = operands("margin_ranking_loss", input1, input2)
    signs = _signs("margin_ranking_loss", target, left.shape)
    return reduced("margin_ranking_loss", lnp.maximum(margin - signs * (left - right), 0.0), reduction)


def _signs(name: str, target: ArrayLike, shape: tuple[int, ...]) -> Value:
    signs = widened(target)
    if signs.shape != shape:
        raise shape_error(f"{name}: target must be {list(shape)}, with 1 or -1 for each pair, got {signs.type}")
    return signs


def triplet_margin_loss(
    anchor: ArrayLike,
    positive: ArrayLike,
    negative: ArrayLike,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: Reduction = "mean",
) -> Value:
    """max(0, margin + d(anchor, positive) - d(anchor, negative)) with `pairwise_distance` (Balntas et al. 2016).

    Vectors lie along the last axis. With `swap` the lesser of d(anchor, negative) and d(positive, negative) counts.
    """
    operands("triplet_margin_loss", anchor, positive)
    operands("triplet_margin_loss", anchor, negative)
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = lnp.minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced("triplet_margin_loss", lnp.maximum(margin + near - far, 0.0), reduction)


def info_nce_loss(
    query: ArrayLike,
    positive: ArrayLike,
    negatives: ArrayLike | None = None,
    temperature: float = 0.1,
    reduction: Reduction = "mean",
) -> Value:
    """The cross-entropy of finding each query's positive, by cosine over `temperature` (van den Oord et al. 2018).

    `query` and `positive` are [N, D]. The other positives are the negatives of a query, or, if `negatives` are given,
    only those: [M, D] for all queries, or [N, M, D].
    """
    queries, keys = (_unit(x) for x in operands("info_nce_loss", query, positive))
    if queries.ndim != 2:
        raise shape_error(f"info_nce_loss: query and positive are [N, D], got {queries.type}")
    if negatives is None:
        labels = lnp.arange(queries.shape[0])
        return cross_entropy(lnp.matmul(queries, lnp.matrix_transpose(keys)) / temperature, labels, reduction=reduction)
    others = _unit(widened(negatives))
    if others.ndim not in (2, 3) or others.shape[-1] != queries.shape[-1]:
        raise shape_error(f"info_nce_loss: negatives are [M, D] or [N, M, D] for {queries.type}, got {others.type}")
    own = lnp.sum(queries * keys, axis=-1, keepdims=True)
    unlike = lnp.einsum("nd,md->nm" if others.ndim == 2 else "nd,nmd->nm", queries, others)
    logits = lnp.concatenate([own, unlike], axis=-1) / temperature
    return cross_entropy(logits, lnp.zeros(queries.shape[0], "int32"), reduction=reduction)


def clip_loss(image: ArrayLike, text: ArrayLike, scale: ArrayLike) -> Value:
    """The mean of finding each image's text and each text's image in a batch (Radford et al. 2021, figure 3).

    `image` and `text` are features [N, D], normalised here; `scale` multiplies their cosines: it is exp of CLIP's
    parameter logit_scale.
    """
    images, texts = (_unit(x) for x in operands("clip_loss", image, text))
    if images.ndim != 2:
        raise shape_error(f"clip_loss: image and text are [N, D], got {images.type}")
    logits = lnp.matmul(images, lnp.matrix_transpose(texts)) * scale
    labels = lnp.arange(images.shape[0])
    return 0.5 * (cross_entropy(logits, labels, axis=1) + cross_entropy(logits, labels, axis=0))
