"""The cross-entropy of classes, under the names and with the conventions of PyTorch."""
from __future__ import annotations

import math

import lavax.numpy as lnp
from lavax.ir.types import TensorType, int32
from lavax.nn.reduced import Reduction, reduced, widened
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy.arrays.creation import iota
from lavax.tracer.transforms.grad import stop_gradient
from lavax.tracer.values.value import Value

__all__ = ["cross_entropy", "nll_loss"]


def cross_entropy(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    label_smoothing: float = 0.0,
    *,
    z_loss: float = 0.0,
    axis: int | None = None,
) -> Value:
    """-log softmax(input) of the class `target`, from logits, without overflow.

    Classes lie along `axis` of `input`, by default as in PyTorch: axis 1, or axis 0 of a vector. For logits [B, T, V]
    of tokens [B, T] say axis=-1. `target` holds class indices (integers, in the shape of `input` without `axis`) or
    probabilities (floats, in the shape of `input`).

    - `weight` [classes] multiplies the loss of each class; the mean is then weighted too if targets are indices.
    - Positions whose index is `ignore_index` count for nothing, neither in sums nor in means.
    - `label_smoothing` ε replaces targets by (1 - ε)·target + ε / classes (Szegedy et al. 2016).
    - `z_loss` c adds c·(log Σ exp(input))² at each position, which keeps logits small (Chowdhery et al. 2022).

    The result and all sums are float32 also for 16-bit logits. The mean over no position is NaN, and so is the loss of
    an index that is no class. Raises ShapeError, DtypeError or ValueError for arguments that do not fit.
    """
    name = "cross_entropy"
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"{name}: label_smoothing lies between 0 and 1, got {label_smoothing}")
    logits, labels = widened(input), as_value(target)
    place = _class_axis(name, logits, axis)
    # The shift cancels, so it is a constant to gradients. Differences of large logits are exact.
    peak = stop_gradient(lnp.max(logits, axis=place, keepdims=True))
    shifted = logits - peak
    normalizer = lnp.log(lnp.sum(lnp.exp(shifted), axis=place))
    penalty = None
    if z_loss:
        penalty = z_loss * lnp.square(normalizer + lnp.squeeze(peak, place))
    weights = None if weight is None else _weights(name, weight, logits, place)
    if labels.type.dtype.is_float:
        return _with_probabilities(shifted, normalizer, labels, place, weights, penalty, label_smoothing, reduction)
    return _with_indices(
        name, shifted, normalizer, labels, place, weights, penalty, label_smoothing, ignore_index, reduction
    )


def nll_loss(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    *,
    axis: int | None = None,
) -> Value:
    """-input of the class `target`, from log probabilities; arguments are those of `cross_entropy`."""
    logs, labels = widened(input), as_value(target)
    place = _class_axis("nll_loss", logs, axis)
    weights = None if weight is None else _weights("nll_loss", weight, logs, place)
    none = lnp.zeros((), logs.dtype)
    return _with_indices("nll_loss", logs, none, labels, place, weights, None, 0.0, ignore_index, reduction)


def _class_axis(name: str, logits: Value, axis: int | None) -> int:
    if not logits.ndim:
        raise shape_error(f"{name}: input needs an axis of classes, got {logits.type}")
    return normal_axis(name, min(1, logits.ndim - 1) if axis is None else axis, logits.type)


def _weights(name: str, weight: ArrayLike, logits: Value, place: int) -> Value:
    """Weights of classes, with axes so that they broadcast to the logits."""
    given = widened(weight)
    if given.shape != (logits.shape[place],):
        raise shape_error(f"{name}: weight is [{logits.shape[place]}], one for each class, got {given.type}")
    return lnp.reshape(given, tuple(-1 if d == place else 1 for d in range(logits.ndim)))


def _with_probabilities(
    shifted: Value,
    normalizer: Value,
    target: Value,
    place: int,
    weights: Value | None,
    penalty: Value | None,
    smoothing: float,
    reduction: Reduction,
) -> Value:
    if target.shape != shifted.shape:
        raise shape_error(
            f"cross_entropy: probabilities have the shape of the input, got {target.type} for {shifted.type}; "
            "class indices are integers"
        )
    wanted = widened(target)
    if smoothing:
        wanted = wanted * (1 - smoothing) + smoothing / shifted.shape[place]
    if weights is not None:
        wanted = wanted * weights
    # A class without probability costs nothing, even if its logit is -inf.
    costs = lnp.expand_dims(normalizer, place) - shifted
    losses = lnp.sum(wanted * lnp.where((wanted == 0) & (costs == math.inf), 0.0, costs), axis=place)
    return reduced("cross_entropy", losses if penalty is None else losses + penalty, reduction)


def _with_indices(
    name: str,
    shifted: Value,
    normalizer: Value,
    target: Value,
    place: int,
    weights: Value | None,
    penalty: Value | None,
    smoothing: float,
    ignored: int,
    reduction: Reduction,
) -> Value:
    shape = shifted.shape[:place] + shifted.shape[place + 1 :]
    if not target.type.dtype.is_integer:
        raise dtype_error(f"{name}: class indices are integers, got {target.type}")
    if target.shape != shape:
        raise shape_error(
            f"{name}: with classes along axis {place} of {shifted.type} the indices are {list(shape)}, "
            f"got {target.type}" + ("; for classes along the last axis say axis=-1" if place == 1 else "")
        )
    labels = cast(target, int32)
    counts = labels != ignored
    is_class = (labels >= 0) & (labels < shifted.shape[place])
    classes = iota(TensorType(shifted.shape, int32), place)
    is_label = classes == lnp.expand_dims(labels, place)
    picked = lnp.sum(lnp.where(is_label, shifted, 0.0), axis=place)
    scale = None
    if weights is not None:
        scale = lnp.sum(lnp.where(is_label, weights, 0.0), axis=place)
    losses = normalizer - picked if scale is None else scale * (normalizer - picked)
    if smoothing:
        costs = lnp.expand_dims(normalizer, place) - shifted
        spread = lnp.sum(costs if weights is None else costs * weights, axis=place)
        losses = (1 - smoothing) * losses + smoothing / shifted.shape[place] * spread
    if penalty is not None:
        losses = losses + penalty
    losses = lnp.where(counts, lnp.where(is_class, losses, lnp.nan), 0.0)
    if reduction != "mean":
        return reduced(name, losses, reduction)
    number = cast(counts, losses.type.dtype) if scale is None else lnp.where(counts, scale, 0.0)
    return lnp.sum(losses) / lnp.sum(number)
