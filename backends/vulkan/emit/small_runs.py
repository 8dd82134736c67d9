"""Small kernels that come one after the other, in one dispatch of one workgroup, on CPU drivers.

A dispatch and its barrier take a CPU driver longer than a small kernel. So such kernels run as those of a workgroup's
loop do (emit/loop/workgroup.py), in a loop of one turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise

from lavax.backends.vulkan.emit.loop.turns import Member, Turns, While, members_of
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.commands import Command, Repeat, after_barrier
from lavax.passes.kernels.kernel import KernelStep, kernel_key


@dataclass(frozen=True)
class SmallRuns:
    """The runs that are one dispatch. Checked by `python -m benchmarks programs`."""

    least: int = 4  # steps: fewer save too little to be worth a shader of their own
    kernels: int = 8  # of all steps, at most: drivers compile longer shaders disproportionately long
    work: int = 1 << 16  # operations and bytes of a kernel, at most: what takes as long as a dispatch
    # Of a kernel's shader, at most. In one shader, small arrays that others have written are read by address, which
    # drivers compile longer than texels.
    lines: int = 64
    accesses: int = 24


SMALL_RUNS = SmallRuns()

# What one workgroup runs of steps, given all of which they may become a part: what these write, kernels see through
# descriptors as arrays that change.
Together = Callable[[Sequence[KernelStep], Sequence[KernelStep]], "Turns | While | None"]


def in_runs(commands: Sequence[Command], may_join: Callable[[KernelStep], bool], together: Together) -> list[Command]:
    """The commands with runs of small kernels as loops of one turn.

    `may_join`: whether a step's kernels are small, which is asked before any of them is written. `together` is given
    steps, and all of which they may become a run.
    """
    found: list[Command] = []
    for joins, group in groupby(commands, key=lambda command: isinstance(command, KernelStep) and may_join(command)):
        stretch = list(group)
        steps = [step for step in stretch if isinstance(step, KernelStep)]
        if not joins or len(steps) < SMALL_RUNS.least:
            found += stretch
            continue
        for run in _runs(steps, together):
            fits = len(run) >= SMALL_RUNS.least and together(run, run) is not None
            found += [Repeat(1, tuple(run))] if fits else run
    return _behind_barriers(found)


def _behind_barriers(commands: Sequence[Command]) -> list[Command]:
    """The commands; what follows a run waits for it, as it may have waited for a barrier that is now inside the run."""
    waiting = (after_barrier((each,))[0] if is_run(before) else each for before, each in pairwise(commands))
    return [*commands[:1], *waiting]


def is_run(command: Command) -> bool:
    """Whether the command is such a loop."""
    return isinstance(command, Repeat) and command.count == 1


def _runs(steps: Sequence[KernelStep], together: Together) -> Iterator[list[KernelStep]]:
    """All steps in their order. No run has a kernel twice, whose code the driver would compile twice."""
    run: list[KernelStep] = []
    keys: list[object] = []
    short: dict[tuple[object, ...], bool] = {}  # of steps of equal kernels, whose shaders are as long
    for step in steps:
        own = tuple(key for kernel in step.kernels if (key := kernel_key(kernel)) is not None)
        if len(own) < len(step.kernels) or own not in short:
            short[own] = _is_short(step, steps, together)
        is_short = short[own]
        full = sum(len(each.kernels) for each in (*run, step)) > SMALL_RUNS.kernels
        if not is_short or full or any(key in keys for key in own):
            yield run
            run, keys = [], []
        if is_short:
            run.append(step)
            keys += own
        else:
            yield [step]
    yield run


def _is_short(step: KernelStep, steps: Sequence[KernelStep], together: Together) -> bool:
    """Whether the driver compiles the step's kernels about as fast in the shader of a run as in their own."""
    turns = together([step], steps)
    return turns is not None and all(map(_has_short_shader, members_of(turns)))


def _has_short_shader(member: Member) -> bool:
    assert member.launch.text is not None, "a workgroup runs texts"
    lines = member.launch.text.main
    accesses = sum(line.count(".data[") + 2 * line.count("_four(") for line in lines)
    return len(lines) <= SMALL_RUNS.lines and accesses <= SMALL_RUNS.accesses
