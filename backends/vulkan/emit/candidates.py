"""Which schedules of a kernel are worth timing: tuning chooses among them.

A schedule is any hashable value that the kernel's emitter accepts, and whose `repr` differs from that of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from lavax.backends.vulkan.emit.contract.kernel import contract_candidates, schedule_of
from lavax.backends.vulkan.emit.map.choose import candidates as map_candidates
from lavax.backends.vulkan.emit.reduce.choose import candidates as row_candidates
from lavax.backends.vulkan.emit.routines import routine_candidates
from lavax.backends.vulkan.emit.table_names import moves
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.commands import View
from lavax.passes.kernels.kernel import Kernel, KernelStep

_CANDIDATES: dict[str, Callable[[Kernel, DeviceProfile], Sequence[Hashable]]] = {
    "contract": contract_candidates,
    "map": map_candidates,
    "routine": routine_candidates,
    "row": row_candidates,
}


def chosen_by_rules(step: KernelStep, views: Mapping[str, View], profile: DeviceProfile) -> Hashable | None:
    """The schedule that a step's kernels get without timing, None if there is no choice.

    On GPUs the tiles of contractions also depend on how many of them one dispatch computes.
    """
    kernel, together = step.kernel, len(step.kernels)
    if kernel.kind == "contract" and together > 1 and profile.kind == "gpu" and not moves(step, views):
        return schedule_of(kernel, profile, together)
    return next(iter(schedules_of(kernel, profile)), None)


def schedules_of(kernel: Kernel, profile: DeviceProfile) -> Sequence[Hashable]:
    """A kernel's schedules on a device of this profile, first the one chosen by rules; () if it has no choice."""
    return _CANDIDATES[kernel.kind](kernel, profile) if kernel.kind in _CANDIDATES else ()
