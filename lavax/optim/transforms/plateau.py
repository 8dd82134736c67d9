"""Learning rates that shrink where the loss no longer does."""
from __future__ import annotations

from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.transforms.transformation import GradientTransformationExtraArgs
from lavax.optim.tree.precision import wide
from lavax.tracer.pytrees import pytree


class ReduceLROnPlateauState(NamedTuple):
    """The scale of updates, the best mean of losses, counts (int32), and the mean of the losses since the last one."""

    scale: Any
    best_value: Any
    plateau_count: Any
    cooldown_count: Any
    count: Any
    avg_value: Any


def reduce_on_plateau(
    factor: float = 0.1,
    patience: int = 10,
    rtol: float = 1e-4,
    atol: float = 0.0,
    cooldown: int = 0,
    accumulation_size: int = 1,
    min_scale: float = 0.0,
) -> GradientTransformationExtraArgs:
    """Scales updates by 1, and `factor` times less whenever the loss has not become less for `patience` means of it.

        optimizer = optim.chain(optim.adam(1e-3), optim.reduce_on_plateau(patience=5, accumulation_size=100))
        updates, state = optimizer.update(gradients, state, params, value=loss)

    A mean is over `accumulation_size` steps. It is less if it is below (1 - rtol)·best - atol. After a reduction,
    `cooldown` means are not counted. The scale does not fall below `min_scale`. Raises ValueError for settings out of
    range.
    """
    if not 0 < factor < 1:
        raise ValueError(f"reduce_on_plateau: factor lies between 0 and 1, got {factor}")
    if not 0 <= rtol <= 1 or atol < 0 or rtol == atol == 0:
        raise ValueError(f"reduce_on_plateau: rtol or atol must be positive, and rtol at most 1, got {rtol} and {atol}")

    def init(params: Any) -> ReduceLROnPlateauState:
        waited, cooling, seen = (lnp.zeros((), lnp.int32) for _ in range(3))
        return ReduceLROnPlateauState(lnp.ones(()), lnp.float32(lnp.inf), waited, cooling, seen, lnp.zeros(()))

    def judged(state: ReduceLROnPlateauState) -> ReduceLROnPlateauState:
        """The state after a whole mean, with counts for the next one."""
        is_less = state.avg_value < (1 - rtol) * state.best_value - atol
        cools = state.cooldown_count > 0
        waited = lnp.where(is_less | cools, 0, state.plateau_count + 1)
        reduces = waited == patience
        scale = lnp.where(reduces, lnp.maximum(state.scale * factor, min_scale), state.scale)
        return ReduceLROnPlateauState(
            scale,
            lnp.where(is_less, state.avg_value, state.best_value),
            lnp.where(reduces, 0, waited),
            lnp.where(cools, state.cooldown_count - 1, lnp.where(reduces, cooldown, 0)),
            lnp.zeros_like(state.count),
            lnp.zeros_like(state.avg_value),
        )

    def update(
        updates: Any, state: ReduceLROnPlateauState, params: Any = None, *, value: Any, **extra: Any
    ) -> tuple[Any, ReduceLROnPlateauState]:
        count = state.count + 1
        mean = state.avg_value + (wide(value) - state.avg_value) / count
        seen = state._replace(count=count, avg_value=mean)
        is_whole = count == accumulation_size
        following = pytree.map(lambda after, before: lnp.where(is_whole, after, before), judged(seen), seen)
        return pytree.map(lambda u: wide(u) * following.scale, updates), following

    return GradientTransformationExtraArgs(init, update)
