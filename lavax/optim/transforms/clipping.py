"""Gradients kept within bounds."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax.optim.transforms.transformation import GradientTransformation, empty_state, require_params, stateless
from lavax.optim.tree.norms import global_norm
from lavax.optim.tree.precision import require_real, squared_size, wide
from lavax.tracer.pytrees import pytree


def _check_bound(name: str, argument: str, bound: Any) -> None:
    if isinstance(bound, (int, float)) and not bound >= 0:
        raise ValueError(f"{name}: {argument} must not be negative, got {bound}")


def clip(max_delta: Any) -> GradientTransformation:
    """Every number clipped to [-max_delta, max_delta]. Raises ValueError for a negative number."""
    _check_bound("clip", "max_delta", max_delta)

    def clipped(updates: Any, params: Any) -> Any:
        require_real("clip", updates)
        return pytree.map(lambda u: lnp.clip(u, -max_delta, max_delta), updates)

    return stateless(clipped)


def clip_by_block_rms(threshold: Any) -> GradientTransformation:
    """Arrays whose root mean square exceeds `threshold` scaled down to it (Shazeer and Stern 2018, section 6)."""
    _check_bound("clip_by_block_rms", "threshold", threshold)

    def clipped(update: Any) -> Any:
        value = wide(update)
        return value / lnp.maximum(1, lnp.sqrt(lnp.mean(squared_size(value))) / threshold)

    return stateless(lambda updates, params: pytree.map(clipped, updates))


def clip_by_block_norm(max_norm: Any) -> GradientTransformation:
    """Arrays whose Euclidean norm exceeds `max_norm` scaled down to it, each by itself."""
    _check_bound("clip_by_block_norm", "max_norm", max_norm)

    def clipped(update: Any) -> Any:
        value = wide(update)
        return value * _within(lnp.sqrt(lnp.sum(squared_size(value))), max_norm)

    return stateless(lambda updates, params: pytree.map(clipped, updates))


def clip_by_global_norm(max_norm: Any) -> GradientTransformation:
    """Scales gradients whose global norm exceeds `max_norm` down to that norm; to be chained before an optimizer.

    Pascanu, Mikolov and Bengio 2013. Raises ValueError for a negative number.
    """
    _check_bound("clip_by_global_norm", "max_norm", max_norm)

    def clipped(updates: Any, params: Any) -> Any:
        factor = _within(global_norm(updates), max_norm)
        return pytree.map(lambda u: wide(u) * factor, updates)

    return stateless(clipped)


def _within(norm: Any, most: Any) -> Any:
    """What `norm` has to be multiplied with so that it is `most` or less; 1 for a norm that is less already."""
    return lnp.where(norm < most, 1, most / lnp.where(norm == 0, 1, norm))


def unitwise_norm(x: Any, axis: int | tuple[int, ...] | None = None) -> Any:
    """The norms over the inputs of each output unit, in the shape of `x`.

    Without `axis`: all numbers of an array of rank 0 or 1, axis 0 of rank 2 and 3, all but the last axis of rank 4 and
    5. Raises ValueError for other ranks.
    """
    value = wide(x)
    axes = {0: None, 1: None, 2: 0, 3: 0, 4: (0, 1, 2), 5: (0, 1, 2, 3)}
    rank = sum(size != 1 for size in value.shape)
    if axis is None and rank > 1:
        if value.ndim not in axes:
            raise ValueError(f"unitwise_norm: rank 5 at most, got shape {value.shape}; say which axes by axis=")
        axis = axes[value.ndim]
    squares = lnp.sum(squared_size(value), axis=axis, keepdims=True)
    return lnp.broadcast_to(lnp.sqrt(squares), value.shape)


def adaptive_grad_clip(
    clipping: Any, eps: Any = 1e-3, axis: int | tuple[int, ...] | None = None
) -> GradientTransformation:
    """Each unit's gradient clipped to `clipping` times the norm of its weights, of `eps` at least (Brock et al. 2021).

    `axis` says over which axes norms are taken (see `unitwise_norm`).
    """
    _check_bound("adaptive_grad_clip", "clipping", clipping)

    def clipped(update: Any, param: Any) -> Any:
        value = wide(update)
        norm, most = unitwise_norm(value, axis), clipping * lnp.maximum(unitwise_norm(param, axis), eps)
        return lnp.where(norm < most, value, value * (most / lnp.maximum(norm, 1e-6)))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        require_params("adaptive_grad_clip", params)
        return pytree.map(clipped, updates, params), state

    return GradientTransformation(empty_state, update)
