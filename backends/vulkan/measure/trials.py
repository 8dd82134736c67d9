"""Plans that compute the same, timed against each other on the device: in turn, over arrays of their own."""

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
from lavax.backends.vulkan.run.program import Program
from lavax.base.errors import LavaxError
from lavax.ir.types import DType

# A plan is run so often between two timestamps that it takes so long, but at most so many times.
_LONG_ENOUGH, _MOST_REPEATS = 300e-6, 32
# What takes so many times as long as the fastest is out after its first run.
_HOPELESS = 3.0
# Numbers that arguments are filled with, over and over; integers may be positions, so they are small.
_RANDOM, _LARGEST_INTEGER = 1 << 16, 1 << 10


def seconds_of(device: Device, plans: Sequence[Plan], dtypes: Sequence[DType]) -> list[float]:
    """The shortest time of each plan; infinity for those that the device refuses or that are far behind.

    The plans have the same arguments, of these dtypes, and results. Raises DeviceError where there is no room for them.
    """
    pairs = zip(plans[0].arguments, dtypes, strict=True)
    arguments = [_filled(device, nbytes, dtype) for nbytes, dtype in pairs]
    results = [device.arrays.allocate(result.nbytes) for result in plans[0].results]
    pipelines = _made_at_once(device, plans)
    programs = {number: program for number, plan in enumerate(plans) if (program := _program(device, plan)) is not None}
    del pipelines  # the programs keep theirs
    bound = {number: Bound(program, [*arguments, *results]) for number, program in programs.items()}
    first = {number: _first_seconds(device, program, bound[number]) for number, program in programs.items()}
    fastest = min(first.values(), default=math.inf)
    repeats = min(max(math.ceil(_LONG_ENOUGH / max(fastest, 1e-9)), 1), _MOST_REPEATS)
    best = [math.inf] * len(plans)
    with ExitStack() as stack:
        works = {
            number: stack.enter_context(timed_work(device, 2, _recording(program, bound[number], repeats)))
            for number, program in programs.items()
            if first[number] <= _HOPELESS * fastest
        }
        for number, work in _in_turn(works):
            best[number] = min(best[number], work.run()[-1] / repeats)
    return best


def _in_turn(works: dict[int, TimedWork]) -> Iterator[tuple[int, TimedWork]]:
    """Each of them once a round, another one first in each: clocks and caches change on the way."""
    order = list(works.items())
    for number in rounds():
        shift = number % max(len(order), 1)
        yield from order[shift:] + order[:shift]


def _filled(device: Device, nbytes: int, dtype: DType) -> Buffer:
    """An array of random numbers, which cost what the user's would: equal ones take less power, and so less time."""
    random = np.random.default_rng(0)
    highest = min(dtype.highest, _LARGEST_INTEGER)
    numbers = random.standard_normal(_RANDOM) if dtype.is_float else random.integers(0, highest, _RANDOM, endpoint=True)
    block = dtype.to_storage(numbers.astype(dtype.numpy))
    return device.transfer.upload(np.resize(block, -(-nbytes // block.itemsize)))


def _made_at_once(device: Device, plans: Sequence[Plan]) -> Mapping[Shader, Pipeline]:
    """All pipelines, since they are made in parallel; none where one fails, which its program then finds out."""
    try:
        return device.pipelines.get(dispatch.shader for plan in plans for dispatch in plan.dispatches)
    except LavaxError:
        return {}


def _program(device: Device, plan: Plan) -> Program | None:
    try:
        return Program(device, plan)
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
    """The shorter of two runs after a first one, in which drivers may compile."""
    with timed_work(device, 2, _recording(program, bound, 1)) as work:
        return min([work.run()[-1] for _ in range(3)][1:])
