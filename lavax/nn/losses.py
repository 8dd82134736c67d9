"""Losses of numbers and of probabilities, under the names and with the conventions of PyTorch.

They are computed, summed and returned in float32 also for 16-bit inputs. `reduction` is "mean", "sum" or "none".
"""
from __future__ import annotations

import math
from typing import Any, Literal

import lavax.numpy as lnp
from lavax.nn.activations import softplus
from lavax.nn.reduced import Reduction, operands, reduced, widened
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.transforms.grad import stop_gradient
from lavax.tracer.values.value import Value

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
]


def mse_loss(input: ArrayLike, target: ArrayLike, reduction: Reduction = "mean") -> Value:
    """(input - target)². Both have one shape, or `target` is a number; else ShapeError. Complex: DtypeError."""
    left, right = operands("mse_loss", input, target)
    return reduced("mse_loss", lnp.square(left - right), reduction)


def l1_loss(input: ArrayLike, target: ArrayLike, reduction: Reduction = "mean") -> Value:
    """|input - target|. Both have one shape, or `target` is a number; else ShapeError."""
    left, right = operands("l1_loss", input, target, of_distances=True)
    return reduced("l1_loss", lnp.abs(left - right), reduction)


def huber_loss(input: ArrayLike, target: ArrayLike, reduction: Reduction = "mean", delta: float = 1.0) -> Value:
    """d² / 2 for |d| <= delta and delta·(|d| - delta / 2) beyond, for d = input - target (Huber 1964)."""
    if delta <= 0:
        raise ValueError(f"huber_loss: delta must be positive, got {delta}")
    left, right = operands("huber_loss", input, target, of_distances=True)
    return reduced("huber_loss", _huber(left - right, delta), reduction)


def _huber(difference: Value, delta: float) -> Value:
    """With c = min(|d|, delta), c·(|d| - c / 2) is both branches, and no square overflows."""
    distance = lnp.abs(difference)
    inner = lnp.minimum(distance, delta)
    return inner * (distance - 0.5 * inner)


def smooth_l1_loss(input: ArrayLike, target: ArrayLike, reduction: Reduction = "mean", beta: float = 1.0) -> Value:
    """`huber_loss` with delta = beta, over beta; `l1_loss` for beta = 0 (Girshick 2015, equation 3)."""
    if beta < 0:
        raise ValueError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    left, right = operands("smooth_l1_loss", input, target, of_distances=True)
    losses = _huber(left - right, beta) / beta if beta else lnp.abs(left - right)
    return reduced("smooth_l1_loss", losses, reduction)


def binary_cross_entropy_with_logits(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    reduction: Reduction = "mean",
    pos_weight: ArrayLike | None = None,
) -> Value:
    """-t·log σ(x) - (1 - t)·log(1 - σ(x)) of logits x and targets t in [0, 1], without overflow.

    `weight` multiplies the losses, `pos_weight` their first term; both broadcast. Shapes as in `mse_loss`.
    """
    logits, targets = operands("binary_cross_entropy_with_logits", input, target)
    positive = 1.0 if pos_weight is None else 1 + (widened(pos_weight) - 1) * targets
    losses = (1 - targets) * logits + positive * softplus(-logits)
    losses = losses if weight is None else losses * widened(weight)
    return reduced("binary_cross_entropy_with_logits", losses, reduction)


@custom_jvp
def _binary_cross_entropy(probability: Any, target: Any) -> Any:
    return -(
        target * lnp.maximum(lnp.log(probability), -100.0)
        + (1 - target) * lnp.maximum(lnp.log1p(-probability), -100.0)
    )


@_binary_cross_entropy.defjvp
def _(primals: Any, tangents: Any) -> Any:
    probability, target = primals
    slope = (probability - target) / lnp.maximum(probability * (1 - probability), 1e-12)
    odds = lnp.maximum(lnp.log1p(-probability), -100.0) - lnp.maximum(lnp.log(probability), -100.0)
    return _binary_cross_entropy(probability, target), slope * tangents[0] + odds * tangents[1]


def binary_cross_entropy(
    input: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, reduction: Reduction = "mean"
) -> Value:
    """-t·log p - (1 - t)·log(1 - p) of probabilities p and targets t in [0, 1].

    Logarithms are at least -100, and gradients divide by 1e-12 at least, as in PyTorch. If you have logits,
    `binary_cross_entropy_with_logits` is exact everywhere.
    """
    probabilities, targets = operands("binary_cross_entropy", input, target)
    losses = _binary_cross_entropy(probabilities, lnp.broadcast_to(targets, probabilities.shape))
    return reduced("binary_cross_entropy", losses if weight is None else losses * widened(weight), reduction)


def kl_div(
    input: ArrayLike,
    target: ArrayLike,
    reduction: Literal["mean", "batchmean", "sum", "none"] = "mean",
    log_target: bool = False,
) -> Value:
    """t·(log t - input): the divergence of the probabilities t from those whose logarithms are `input`.

    `target` is t, or with `log_target` log t. A term with t = 0 is 0. "batchmean" divides the sum by the extent of
    axis 0: it is the mathematical divergence; "mean" divides by all elements.
    """
    logs, targets = operands("kl_div", input, target)
    if log_target:
        losses = lnp.exp(targets) * (targets - logs)
    else:
        is_positive = targets > 0
        own = lnp.log(lnp.where(is_positive, targets, 1.0))
        losses = lnp.where(is_positive, targets * (own - lnp.where(is_positive, logs, 0.0)), 0.0)
    if reduction == "batchmean":
        return lnp.sum(losses) / (losses.shape[0] if losses.ndim else 1)
    return reduced("kl_div", losses, reduction)


def poisson_nll_loss(
    input: ArrayLike,
    target: ArrayLike,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: Reduction = "mean",
) -> Value:
    """The negative log likelihood of the counts `target` under rates exp(input), or `input` without `log_input`.

    The constant log(target!) is left out; `full` adds Stirling's formula for it where target > 1.
    """
    rates, counts = operands("poisson_nll_loss", input, target)
    losses = lnp.exp(rates) - counts * rates if log_input else rates - counts * lnp.log(rates + eps)
    if full:
        is_large = counts > 1
        safe = lnp.where(is_large, counts, 1.0)
        losses = losses + lnp.where(is_large, safe * lnp.log(safe) - safe + 0.5 * lnp.log(2 * math.pi * safe), 0.0)
    return reduced("poisson_nll_loss", losses, reduction)


def gaussian_nll_loss(
    input: ArrayLike,
    target: ArrayLike,
    var: ArrayLike,
    full: bool = False,
    eps: float = 1e-6,
    reduction: Reduction = "mean",
) -> Value:
    """(log v + (input - target)² / v) / 2 for v = max(var, eps): the negative log likelihood of normal numbers.

    `var` broadcasts to `input`, or has one number for each of its rows: its shape without the last axis. Gradients by
    `var` are those at the bound where it is less, as in PyTorch, so that it can leave the bound again. `full` adds the
    constant log(2π) / 2.
    """
    means, targets = operands("gaussian_nll_loss", input, target)
    given = widened(var)
    if given.ndim and given.shape != means.shape and given.shape == means.shape[:-1]:
        given = lnp.expand_dims(given, -1)
    variance = given + stop_gradient(lnp.maximum(given, eps) - given)
    losses = 0.5 * (lnp.log(variance) + lnp.square(means - targets) / variance)
    return reduced("gaussian_nll_loss", losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)
