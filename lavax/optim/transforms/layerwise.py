"""Updates scaled array by array, by norms of the parameter and of the update."""
from __future__ import annotations

from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.transforms.transformation import GradientTransformation, empty_state, require_params
from lavax.optim.tree.moments import increment
from lavax.optim.tree.precision import cast, size_dtype, squared_size, wide, zeros_like
from lavax.tracer.pytrees import pytree


class ScaleByNovogradState(NamedTuple):
    """Steps done (int32), running means of the normalised gradients, and of each array's squared norm (rank 0)."""

    count: Any
    mu: Any
    nu: Any


def _norm(leaf: Any, least: Any = 0.0) -> Any:
    return lnp.maximum(lnp.sqrt(lnp.sum(squared_size(leaf))), least)


def scale_by_param_block_norm(min_scale: Any = 1e-3) -> GradientTransformation:
    """Each update times the norm of its parameter, at least `min_scale`."""
    return _by_parameter("scale_by_param_block_norm", lambda u, p: wide(u) * _norm(p, min_scale))


def scale_by_param_block_rms(min_scale: Any = 1e-3) -> GradientTransformation:
    """Each update times the root mean square of its parameter, at least `min_scale`."""

    def scaled(u: Any, p: Any) -> Any:
        return wide(u) * lnp.maximum(lnp.sqrt(lnp.mean(squared_size(p))), min_scale)

    return _by_parameter("scale_by_param_block_rms", scaled)


def scale_by_trust_ratio(
    min_norm: Any = 0.0, trust_coefficient: Any = 1.0, eps: Any = 0.0
) -> GradientTransformation:
    """Each update times trust_coefficient · ‖parameter‖ / (‖update‖ + eps); times 1 where a norm is 0.

    You, Gitman and Ginsburg 2017 (LARS), You et al. 2020 (LAMB).
    """

    def scaled(u: Any, p: Any) -> Any:
        weight, step = _norm(p, min_norm), _norm(u, min_norm)
        either_zero = (weight == 0) | (step == 0)
        ratio = trust_coefficient * weight / lnp.where(either_zero, 1, step + eps)
        return wide(u) * lnp.where(either_zero, 1, ratio)

    return _by_parameter("scale_by_trust_ratio", scaled)


def _by_parameter(name: str, scaled: Any) -> GradientTransformation:
    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        require_params(name, params)
        return pytree.map(scaled, updates, params), state

    return GradientTransformation(empty_state, update)


def scale_by_novograd(
    b1: Any = 0.9, b2: Any = 0.25, eps: Any = 1e-8, eps_root: Any = 0.0, weight_decay: Any = 0.0, mu_dtype: Any = None
) -> GradientTransformation:
    """The direction of NovoGrad (Ginsburg et al. 2019): momentum of gradients over a running norm of each array."""

    def init(params: Any) -> ScaleByNovogradState:
        nu = pytree.map(lambda p: lnp.zeros((), size_dtype(p)), params)
        return ScaleByNovogradState(lnp.zeros((), lnp.int32), zeros_like(params, mu_dtype), nu)

    def update(updates: Any, state: ScaleByNovogradState, params: Any = None) -> tuple[Any, ScaleByNovogradState]:
        require_params("scale_by_novograd", params)
        first = state.count == 0

        def spread(u: Any, v: Any) -> Any:
            square = lnp.sum(squared_size(u))
            return lnp.where(first, square, b2 * v + (1 - b2) * square)

        nu = pytree.map(spread, updates, state.nu)

        def momentum(u: Any, m: Any, v: Any, p: Any) -> Any:
            normalized = wide(u) / (lnp.sqrt(v + eps_root) + eps) + weight_decay * wide(p)
            return lnp.where(first, normalized, b1 * wide(m) + normalized)

        mu = pytree.map(momentum, updates, state.mu, nu, params)
        return mu, ScaleByNovogradState(increment(state.count), cast(mu, mu_dtype), nu)

    return GradientTransformation(init, update)
