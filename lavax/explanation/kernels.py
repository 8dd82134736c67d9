"""The kernels of a program, each with all that is known of it."""
from __future__ import annotations

from collections.abc import Iterator

from lavax.backends.vulkan.backend import LoweredGraph
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.location import line_and_scope
from lavax.passes.kernels.commands import steps_of
from lavax.passes.kernels.program import print_step
from lavax.passes.reports import Cost, KernelCost, Profile
from lavax.passes.reports.fusion import FusionReport
from lavax.passes.reports.profile import KernelTime


@dataclass(frozen=True)
class ExplainedKernel:
    """A kernel: its cost, its measured time if there is one, and its texts.

    `graph`: what it computes. `reasons`: why it begins and ends where it does; empty for kernels of loops. `shaders`:
    its GLSL, one text per dispatch. `schedule`: how it is computed on this device.
    """

    cost: KernelCost
    time: KernelTime | None
    of_limit: float | None
    share: float | None
    graph: str
    reasons: str
    schedule: str
    groups: tuple[tuple[int, int, int], ...]
    shaders: tuple[str, ...]

    @property
    def name(self) -> str:
        """As in the stages "kernels" and "glsl"."""
        return self.cost.name

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of the user's program that it comes from, "file:line"."""
        return tuple(dict.fromkeys(line_and_scope(location)[0] for location in self.cost.locations))


def explained_kernels(
    program: LoweredGraph, fusion: FusionReport, cost: Cost, profile: Profile | None
) -> Iterator[ExplainedKernel]:
    """All kernels in the order they run, with the guards of branches and loops."""
    steps = {step.name: step for step in steps_of(program.kernels.steps)}
    reasons = dict(_reasons(fusion))
    dispatches = program.plan.dispatches
    for name, found in cost.kernels.items():
        own = [dispatch for dispatch in dispatches if dispatch.name == name]
        step = steps.get(name)
        schedule = None if step is None else program.schedule_of(step)
        time, share, of_limit = _measured(found, profile)
        yield ExplainedKernel(
            cost=found,
            time=time,
            of_limit=of_limit,
            share=share,
            graph="" if step is None else print_step(step),
            reasons=reasons.get(name, ""),
            schedule="" if schedule is None else repr(schedule),
            groups=tuple(dispatch.groups for dispatch in own),
            shaders=tuple(dict.fromkeys(dispatch.shader.source for dispatch in own)),
        )


def _measured(cost: KernelCost, profile: Profile | None) -> tuple[KernelTime | None, float | None, float | None]:
    """A kernel's time, its share of the whole, and its part of what the device could do; None where unknown."""
    time = None if profile is None else profile.kernels.get(cost.name)
    if profile is None or time is None:
        return None, None, None
    return time, time.total_seconds / profile.seconds if profile.seconds else 0.0, profile.of_limit(cost, time.seconds)


def _reasons(fusion: FusionReport) -> Iterator[tuple[str, str]]:
    for kernel in fusion.kernels:
        _, *lines = fusion.lines_of(kernel)
        yield kernel.name, "\n".join(stripped for line in lines if (stripped := line.strip()) != "computes")
