"""The time of each dispatch of a program on the device, in separate runs with timestamps around every dispatch."""
from __future__ import annotations

import struct
import weakref
from collections.abc import Callable, Sequence

from lavax.backends.vulkan.api.api import ffi
from lavax.backends.vulkan.device.commands import BEFORE_LATER_WORK, Recorder
from lavax.backends.vulkan.measure.timing import median_run
from lavax.backends.vulkan.memory.memory import Buffer
from lavax.backends.vulkan.plan.memory_use import ADDRESS_BYTES
from lavax.backends.vulkan.run.copied import record_copies
from lavax.backends.vulkan.run.program import Program
from lavax.backends.vulkan.run.steps import DispatchStep, record_run
from lavax.passes.reports import TimedDispatch


def profile_program(program: Program, buffers: Sequence[Buffer]) -> list[TimedDispatch]:
    """Every dispatch of one run, in order. Raises DeviceError if the device has no timestamps.

    Dispatches run one after another, so that each has its own time: those of all branches, and those of loops once.
    Arguments that a call would overwrite are copied first.
    """
    device, plan = program.device, program.plan
    donors = {result.donor for result in plan.results if result.donor is not None}
    copies = {donor: device.arrays.allocate(buffers[donor].nbytes) for donor in donors}
    arguments = [copies.get(index, buffer) for index, buffer in enumerate(buffers)]
    results = [
        device.arrays.allocate(result.nbytes) if result.donor is None else copies[result.donor]
        for result in plan.results
    ]
    bound = Bound(program, [*arguments, *results])

    def record(recorder: Recorder, mark: Callable[[], None]) -> None:
        for donor, copy in copies.items():
            recorder.copy(buffers[donor], copy, copy.nbytes)
        for step in program.steps:
            recorder.wait(BEFORE_LATER_WORK)
            mark()
            bound.record(recorder, step)
            mark()

    times = median_run(device, 2 * len(program.steps), record)
    starts, ends = times[::2], times[1::2]
    timed = zip(program.steps, starts, ends, strict=True)
    return [TimedDispatch(step.name, start, end - start) for step, start, end in timed]


class Bound:
    """A program with arguments and results, whose addresses are in a table of its own.

    It must live until the device is done with the recorded commands.
    """

    def __init__(self, program: Program, buffers: Sequence[Buffer]) -> None:
        addresses = [buffer.address for buffer in buffers] + program.static_addresses() + program.positions(buffers)
        self._table = program.device.tables.allocate_for_host(ADDRESS_BYTES * len(addresses))
        contents = ffi.buffer(self._table.host_pointer(), self._table.piece.size)
        struct.pack_into(f"={len(addresses)}Q", contents, 0, *addresses)
        self._sets, self._runs = program.runs(buffers)
        self._places = program.places(buffers)
        weakref.finalize(self, self._sets.close).atexit = False

    def record(self, recorder: Recorder, step: DispatchStep) -> None:
        """Records one of the program's steps."""
        if step.copies is not None:
            record_copies(recorder, step.copies, self._places)
            return
        for run in self._runs[step]:
            record_run(recorder, step, run, self._table.address, self._sets)
            recorder.dispatch(run.groups)
