"""Equivalent plans, timed against each other on the device: in turn, over arrays of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack

import numpy as np

from lavax.backends.vulkan.compile.pipelines import Pipeline
from lavax.backends.vulkan.device.commands import BEFORE_LATER_WORK, Recorder
from lavax.backends.vulkan.device.device import Device
from lavax.backends.vulkan.measure.profiling import Bound
from lavax.backends.vulkan.measure.timing import TimedWork, rounds, timed_work
from lavax.backends.vulkan.memory.memory import Buffer
from lavax.backends.vulkan.plan.plan import Plan, Shader
from lavax.backends.vulkan.run.estimate import Rates
from lavax.backends.vulkan.run.program import Program
from lavax.base.errors import LavaxError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DType


@dataclass(frozen=True)
class Trials:
    """How often plans are repeated, and which are given up.

    Exercised by `LAVAX_TUNE=1 python -m benchmarks comparison --only matmul-1024`.
    """

    seconds: float = 300e-6  # a plan repeats between two timestamps until it takes this long,
    most_repeats: int = 32  # but at most this often
    hopeless: float = 3.0  # a plan that took this many times the fastest one's time is dropped after its first run


@dataclass(frozen=True)
class TrialContents:
    """The contents of arguments. Integers may be indices, so they are small."""

    random_numbers: int = 1 << 16  # which repeat over an argument
    largest_integer: int = 1 << 10


_TRIALS, _CONTENTS = Trials(), TrialContents()


def seconds_of(
    device: Device, plans: Sequence[Plan], dtypes: Sequence[DType], rates: Callable[[], Rates]
) -> list[float]:
    """The shortest time of each plan; infinity for those that the device refuses or that are far behind.

    The plans have the same arguments, of these dtypes, and the same results. `rates` measures what the device does in a
    second: a dispatch that would take long is cut, here as in a program. Raises DeviceError if memory is too small for
    the arrays.
    """
    pairs = zip(plans[0].arguments, dtypes, strict=True)
    arguments = [_filled(device, nbytes, dtype) for nbytes, dtype in pairs]
    results = [device.arrays.allocate(result.nbytes) for result in plans[0].results]
    pipelines = _made_at_once(device, plans)
    made = [_program(device, plan, rates) for plan in plans]
    programs = {number: program for number, program in enumerate(made) if program is not None}
    del pipelines  # the programs keep theirs
    bound = {number: Bound(program, [*arguments, *results]) for number, program in programs.items()}
    first = {number: _first_seconds(device, program, bound[number]) for number, program in programs.items()}
    fastest = min(first.values(), default=math.inf)
    repeats = min(max(math.ceil(_TRIALS.seconds / max(fastest, 1e-9)), 1), _TRIALS.most_repeats)
    best = [math.inf] * len(plans)
    hopeful = [number for number in programs if first[number] <= _TRIALS.hopeless * fastest]
    with ExitStack() as stack:
        works = {
            number: stack.enter_context(timed_work(device, 2, _recording(programs[number], bound[number], repeats)))
            for number in hopeful
        }
        for number, work in _in_turn(works):
            best[number] = min(best[number], work.run()[-1] / repeats)
    return best


def _in_turn(works: dict[int, TimedWork]) -> Iterator[tuple[int, TimedWork]]:
    """Each of them once per round. Each round starts with another one, because clocks and caches change over time."""
    order = list(works.items())
    for number in rounds():
        shift = number % max(len(order), 1)
        yield from order[shift:] + order[:shift]


def _filled(device: Device, nbytes: int, dtype: DType) -> Buffer:
    """An array of random numbers, which take as long as the user's: equal numbers take less power, and so less time."""
    random = np.random.default_rng(0)
    count, highest = _CONTENTS.random_numbers, min(dtype.highest, _CONTENTS.largest_integer)
    numbers = random.standard_normal(count) if dtype.is_float else random.integers(0, highest, count, endpoint=True)
    block = dtype.to_storage(numbers.astype(dtype.numpy))
    return device.transfer.upload(np.resize(block, -(-nbytes // block.itemsize)))


def _made_at_once(device: Device, plans: Sequence[Plan]) -> Mapping[Shader, Pipeline]:
    """All pipelines, because they are created in parallel. None if one fails; its program will then find out."""
    try:
        return device.pipelines.get(dispatch.shader for plan in plans for dispatch in plan.dispatches)
    except LavaxError:
        return {}


def _program(device: Device, plan: Plan, rates: Callable[[], Rates]) -> Program | None:
    try:
        return Program(device, plan, rates)
    except (LavaxError, ValueError):
        return None


def _recording(
    program: Program, bound: Bound, repeats: int
) -> Callable[[Recorder, Callable[[], None]], None]:
    def record(recorder: Recorder, mark: Callable[[], None]) -> None:
        mark()
        for _ in range(repeats):
            for step in program.steps:
                recorder.wait(BEFORE_LATER_WORK)
                bound.record(recorder, step)
        mark()

    return record


def _first_seconds(device: Device, program: Program, bound: Bound) -> float:
    """The shorter of two runs, which follow a first one in which drivers may compile."""
    with timed_work(device, 2, _recording(program, bound, 1)) as work:
        return min([work.run()[-1] for _ in range(3)][1:])
