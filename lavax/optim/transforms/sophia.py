"""Sophia: steps by a running estimate of the Hessian's diagonal, clipped (Liu et al. 2023)."""
from __future__ import annotations

from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax import random
from lavax.optim.transforms.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    require_params,
    with_extra_args_support,
)
from lavax.optim.tree.moments import bias_correction, increment, update_moment
from lavax.optim.tree.precision import cast, require_real, wide, zeros_like
from lavax.tracer.control_flow.branches import cond
from lavax.tracer.pytrees import pytree
from lavax.tracer.transforms.grad import grad
from lavax.tracer.transforms.jvp import jvp


class HutchinsonState(NamedTuple):
    """The key of the signs to come."""

    key: Any


class SophiaState(NamedTuple):
    """Steps done (int32), running means of gradients and of the Hessian's diagonal, and the state of its estimate."""

    count: Any
    mu: Any
    nu: Any
    hessian_fn_state: Any


def hutchinson_estimator_diag_hessian(random_seed: Any = None) -> GradientTransformationExtraArgs:
    """Unbiased estimates of the Hessian's diagonal: z ⊙ (H z) with random signs z (Hutchinson 1989).

    `update` needs the parameters and `obj_fn`, the loss as a function of them alone. `random_seed` is a key or an
    integer.
    """

    def init(params: Any) -> HutchinsonState:
        seed = 0 if random_seed is None else random_seed
        return HutchinsonState(random.key(seed) if isinstance(seed, int) else seed)

    def update(
        updates: Any, state: HutchinsonState, params: Any = None, obj_fn: Any = None, **extra_args: Any
    ) -> tuple[Any, HutchinsonState]:
        require_params("hutchinson_estimator_diag_hessian", params)
        if obj_fn is None:
            raise TypeError("hutchinson_estimator_diag_hessian: update needs the loss: update(..., obj_fn=loss)")
        following, now = random.split(state.key)
        leaves, structure = pytree.flatten(params)
        keys = random.split(now, len(leaves))
        signs = [
            lnp.astype(random.rademacher(keys[position], lnp.shape(leaf)), lnp.asarray(leaf).dtype)
            for position, leaf in enumerate(leaves)
        ]
        direction = pytree.unflatten(structure, signs)
        _, curvature = jvp(grad(obj_fn), (params,), (direction,))
        return pytree.map(lambda h, z: wide(h) * wide(z), curvature, direction), HutchinsonState(following)

    return GradientTransformationExtraArgs(init, update)


def scale_by_sophia(
    b1: Any = 0.965, b2: Any = 0.99, eps: Any = 1e-8, gamma: Any = 0.01, clip_threshold: Any = 1.0,
    update_interval: int = 10, hessian_diagonal_fn: GradientTransformation | None = None, mu_dtype: Any = None,
) -> GradientTransformationExtraArgs:
    """Mean gradients over gamma times the Hessian's diagonal, clipped to `clip_threshold` (None does not clip).

    The diagonal is estimated anew every `update_interval` steps, by Hutchinson's method unless `hessian_diagonal_fn`
    is another transformation from gradients to estimates; it gets the keyword arguments of `update`.
    """
    estimate = with_extra_args_support(hessian_diagonal_fn or hutchinson_estimator_diag_hessian())

    def init(params: Any) -> SophiaState:
        require_real("scale_by_sophia", params)
        zeros = zeros_like(params)
        return SophiaState(lnp.zeros((), lnp.int32), zeros_like(params, mu_dtype), zeros, estimate.init(params))

    def direction(mean: Any, curvature: Any) -> Any:
        step = mean / lnp.maximum(gamma * curvature, eps)
        return step if clip_threshold is None else lnp.clip(step, -clip_threshold, clip_threshold)

    def update(updates: Any, state: SophiaState, params: Any = None, **extra: Any) -> tuple[Any, SophiaState]:
        require_params("scale_by_sophia", params)
        count = increment(state.count)
        mu = update_moment(updates, state.mu, b1, 1)
        steps = pytree.map(direction, bias_correction(mu, b1, count), state.nu)

        def estimated() -> tuple[Any, Any]:
            diagonal, following = estimate.update(updates, state.hessian_fn_state, params, **extra)
            return update_moment(diagonal, state.nu, b2, 1), following

        nu, following = cond(
            state.count % update_interval == 0, estimated, lambda: (state.nu, state.hessian_fn_state)
        )
        return steps, SophiaState(count, cast(mu, mu_dtype), nu, following)

    return GradientTransformationExtraArgs(init, update)
