"""Small kernels that come one after the other, in one dispatch of one workgroup, on CPU drivers.

A dispatch and its barrier take a CPU driver longer than a small kernel. So such kernels run as those of a workgroup's
loop do (emit/loop/workgroup.py), in a loop of one turn. In the turns of a loop of dispatches, which has too many
kernels for one workgroup's, or a large one among them, two are enough, and their shaders may be long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise

from lavax.backends.vulkan.emit.loop.turns import Member, Turns, While, members_of
from lavax.backends.vulkan.emit.loop.workgroup import ends_by_lane
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.commands import Command, Repeat, Until, after_barrier
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
# In loops of many turns, each of which saves the dispatches. Shaders may be those of products.
RUNS_IN_TURNS = SmallRuns(least=2, lines=400, accesses=400)
_MANY_TURNS = 8


def limits_within(loops: Sequence[Repeat | Until]) -> SmallRuns:
    """The runs that are one dispatch within loops of dispatches, the outermost of which comes first."""
    limits = SMALL_RUNS
    for loop in loops:
        if isinstance(loop, Until):
            limits = SMALL_RUNS if ends_by_lane(loop) else RUNS_IN_TURNS
        elif loop.count >= _MANY_TURNS:
            limits = RUNS_IN_TURNS
    return limits


# Whether the shaders of a step are short, by its kernels and by which of its arrays the steps around it write: turns
# that are written out have the same kernels again and again.
_Short = dict[tuple[tuple[object, ...], tuple[bool, ...]], bool]


@dataclass(frozen=True)
class Writing:
    """How runs are written.

    `limits`: which runs are one dispatch. `may_join`: whether a step's kernels are small, which is asked before any of
    them is written. `together`: what one workgroup runs of steps, given all of which they may become a part: what these
    write, kernels see through descriptors as arrays that change. `fits`: whether its arrays and numbers fit push
    constants, for which the whole loop is written.
    """

    limits: SmallRuns
    may_join: Callable[[KernelStep], bool]
    together: Callable[[Sequence[KernelStep], Sequence[KernelStep]], Turns | While | None]
    fits: Callable[[Turns | While], bool]


def in_runs(commands: Sequence[Command], writing: Writing) -> list[Command]:
    """The commands with runs of small kernels as loops of one turn."""
    found: list[Command] = []
    short: _Short = {}
    may_join = writing.may_join
    for joins, group in groupby(commands, key=lambda command: isinstance(command, KernelStep) and may_join(command)):
        stretch = list(group)
        steps = [step for step in stretch if isinstance(step, KernelStep)]
        if not joins or len(steps) < writing.limits.least:
            found += stretch
            continue
        for run in _runs(steps, writing, short):
            found += _dispatched(run, writing)
    return _behind_barriers(found)


def _dispatched(run: Sequence[KernelStep], writing: Writing) -> list[Command]:
    """The run as a loop of one turn; by halves, if its arrays are too many."""
    if len(run) < writing.limits.least:
        return [*run]
    turns = writing.together(run, run)
    if turns is not None and writing.fits(turns):
        return [Repeat(1, tuple(run))]
    middle = -(-len(run) // 2)
    return [*_dispatched(run[:middle], writing), *_dispatched(run[middle:], writing)]


def _behind_barriers(commands: Sequence[Command]) -> list[Command]:
    """The commands; what follows a run waits for it, as it may have waited for a barrier that is now inside the run."""
    waiting = (after_barrier((each,))[0] if is_run(before) else each for before, each in pairwise(commands))
    return [*commands[:1], *waiting]


def is_run(command: Command) -> bool:
    """Whether the command is such a loop."""
    return isinstance(command, Repeat) and command.count == 1


def _runs(steps: Sequence[KernelStep], writing: Writing, short: _Short) -> Iterator[list[KernelStep]]:
    """All steps in their order. No run has a kernel twice, whose code the driver would compile twice."""
    run: list[KernelStep] = []
    keys: list[object] = []
    written = {name for step in steps for names in step.writes for name in names}
    for step in steps:
        own = tuple(key for kernel in step.kernels if (key := kernel_key(kernel)) is not None)
        alike = own, tuple(name in written for names in step.reads for name in names)
        if len(own) < len(step.kernels) or alike not in short:
            short[alike] = _is_short(step, steps, writing)
        is_short = short[alike]
        full = sum(len(each.kernels) for each in (*run, step)) > writing.limits.kernels
        if not is_short or full or any(key in keys for key in own):
            yield run
            run, keys = [], []
        if is_short:
            run.append(step)
            keys += own
        else:
            yield [step]
    yield run


def _is_short(step: KernelStep, steps: Sequence[KernelStep], writing: Writing) -> bool:
    """Whether the driver compiles the step's kernels about as fast in the shader of a run as in their own."""
    turns = writing.together([step], steps)
    if turns is None or not all(_has_short_shader(member, writing.limits) for member in members_of(turns)):
        return False
    return writing.fits(turns)


def _has_short_shader(member: Member, limits: SmallRuns) -> bool:
    assert member.launch.text is not None, "a workgroup runs texts"
    lines = member.launch.text.main
    accesses = sum(line.count(".data[") + 2 * line.count("_four(") for line in lines)
    return len(lines) <= limits.lines and accesses <= limits.accesses
