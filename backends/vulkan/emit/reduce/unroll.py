"""How many steps of a walk over a row are written out: all of them, or a few per iteration of a loop."""

from __future__ import annotations

from dataclasses import replace

from lavax.backends.vulkan.emit.reduce.row_reads import arrays_kept
from lavax.backends.vulkan.emit.reduce.row_schedule import RowSchedule
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.kernel import Kernel


@dataclass(frozen=True)
class UnrollLimits:
    """What is written out on a GPU. Exercised by `python -m benchmarks comparison --only softmax`."""

    steps: int = 4  # of a loop's iteration, so that as many loads are in flight
    statements: int = 768  # of the graph, times the steps written out
    kept: int = 64  # values of a row in an invocation's registers, of all arrays together


UNROLL_LIMITS = UnrollLimits()


def unrolled(kernel: Kernel, steps: int, kept: int) -> tuple[int, bool]:
    """How many of a member's steps are written out, and whether in a loop: all if `kept` allows it, else a few.

    A loop that keeps nothing is written once, so that it is the same for every number of steps.
    """
    if steps <= kept and may_write_out(kernel, steps):
        return steps, False
    several = UNROLL_LIMITS.steps
    return (several if kept and steps >= several and may_write_out(kernel, several) else 1), True


def may_write_out(kernel: Kernel, steps: int) -> bool:
    return steps * len(kernel.graph.nodes) <= UNROLL_LIMITS.statements


def ways_to_walk(kernel: Kernel, schedule: RowSchedule) -> list[RowSchedule]:
    """The schedule with whole rows written out, if they are short enough, and with one or several runs per iteration.
    """
    run = schedule.run
    steps = -(-schedule.steps(kernel.domain.length) // (run * schedule.members)) * run
    kept = steps * max(schedule.row_width, schedule.element_width) * arrays_kept(kernel)
    short = kept <= 2 * UNROLL_LIMITS.kept and may_write_out(kernel, steps)
    ways = [replace(schedule, unrolled=steps, loop=False)] if short else []
    several = dict.fromkeys((run, max(UNROLL_LIMITS.steps // run, 1) * run))
    counts = [count for count in several if count == run or (count <= steps and may_write_out(kernel, count))]
    return [*ways, *(replace(schedule, unrolled=count, loop=True) for count in counts)]
