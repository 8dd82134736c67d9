"""A program: a plan with its pipelines, memory and recorded command buffers. A call submits it once.

A call writes the addresses of its arguments and results into a table that the shaders read, and submits command buffers
that were recorded before. There are RING recordings, each with its own table, so that as many calls may be in flight.
The first is made with the program, and others when so many calls are first in flight: then the device is busy. If
shaders see arrays through descriptors, the program is recorded for the descriptor ranges that the arrays lie in, when a
call first has arrays there. Where copies take the place of shaders, it is recorded for the arrays' places.

A program that takes long is cut into several submissions. Then a call returns when the last of them are in flight.
"""

from __future__ import annotations

import functools
import operator
import struct
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from lavax.backends.vulkan.api.api import ffi
from lavax.backends.vulkan.api.queue import MOST_IN_FLIGHT, Submission
from lavax.backends.vulkan.compile.ahead import Ahead
from lavax.backends.vulkan.compile.pipelines import Pipeline
from lavax.backends.vulkan.device.commands import COPYING, COUNTED, PLAIN, CommandPool, Recorder
from lavax.backends.vulkan.device.device import Device
from lavax.backends.vulkan.memory.descriptor_ranges import DescriptorRange, DescriptorSets
from lavax.backends.vulkan.memory.memory import Buffer
from lavax.backends.vulkan.plan.memory_use import ADDRESS_BYTES, RING, flag_bytes, table_stride
from lavax.backends.vulkan.plan.plan import Plan, Shader
from lavax.backends.vulkan.run.copied import Credit, Places, place_of, record_copies, slots_of_copies
from lavax.backends.vulkan.run.cuts import BOUNDS, Cuts, cuts_of
from lavax.backends.vulkan.run.estimate import Rates
from lavax.backends.vulkan.run.flow import Flow
from lavax.backends.vulkan.run.long_dispatches import with_long_dispatches_cut
from lavax.backends.vulkan.run.segments import Batch, Segment, batches_of, segments_of
from lavax.backends.vulkan.run.sequence import Once, Part, parts_of
from lavax.backends.vulkan.run.steps import DispatchStep, Run, make_steps, record_run
from lavax.base import config, counters
from lavax.base.errors import DeviceError
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.commands import FLAG_BYTES

# The number of combinations of descriptor ranges and places per recording for which command buffers are kept.
MOST_RECORDED = 16

# The descriptor ranges of arguments and results, and the positions there of those that are copied, if any are.
Where = tuple[tuple[DescriptorRange | None, ...], tuple[int, ...] | None]

_NOT_WRITTEN: list[int] = [-1]  # the addresses in a table that is being written

# A program that takes more than this many times as long as estimated is cut anew, also one that takes less than this
# part of it; and at most so often.
TOO_SLOW, TOO_FAST, MOST_CUTS = 2.0, 0.25, 4

_ANYWHERE: Where = ((), None)
_NO_RANGES = "plans use descriptor ranges only if the device's memory has them"


@dataclass(frozen=True, eq=False)
class CutProgram:
    """Where a program is cut into submissions: its segments, and the steps of their batches."""

    cuts: Cuts
    segments: tuple[Segment, ...]
    steps: Mapping[Batch, Sequence[DispatchStep]]


@dataclass(frozen=True, eq=False)
class RecordedProgram:
    """Command buffers of a program for one of its tables: their submission, or parts if there may be several."""

    cut: CutProgram
    submission: Submission | None
    parts: tuple[Part, ...]
    commands: list[Any]
    sets: DescriptorSets


class Recording:
    """An entry of the ring: its table, the addresses in the table, the command buffers for these, and the number of its
    last use. `made`: the command buffers for where arrays lie, the last used at the end."""

    __slots__ = ("table", "address", "addresses", "submission", "parts", "made", "number")

    def __init__(self, table: Any, address: int) -> None:
        self.table = table
        self.address = address
        self.addresses: list[int] = []
        self.submission: Submission | None = None
        self.parts: tuple[Part, ...] = ()
        self.made: OrderedDict[Where, RecordedProgram] = OrderedDict()
        self.number = 0


class Resources:
    """What a program owns on the device, until the program is dropped and its last call is done."""

    def __init__(self, device: Device, plan: Plan, pipelines: Iterable[Pipeline]) -> None:
        self.device = device
        self.pipelines = list(pipelines)
        self.pool = CommandPool(device.handle, device.queue.family)
        self.constants = [
            device.transfer.upload(np.frombuffer(content, np.uint8)) if content else None for content in plan.constants
        ]
        self.arena = [device.arrays.allocate(nbytes) for nbytes in plan.arena_blocks]
        self.static_addresses = [constant.address if constant else 0 for constant in self.constants]
        within = [divmod(offset, plan.block_bytes) for offset in plan.temporaries]
        self.static_addresses += [self.arena[number].address + offset for number, offset in within]
        self.flags = device.tables.allocate_for_host(flag_bytes(plan))
        self.static_addresses += [self.flags.address + FLAG_BYTES * flag for flag in range(plan.flags)]
        given = len(plan.arguments) + len(plan.results)
        places = self._ranges_of_temporaries(plan, given + len(self.constants))
        self.ranges = {slot: found for slot, (found, _) in places.items()}
        self.positions = {slot: position for slot, (_, position) in places.items()}
        self.table_stride = table_stride(plan)
        self.tables = device.tables.allocate_for_host(RING * self.table_stride)
        self.recordings: list[Recording] = []
        if plan.range_slots:  # a new block may have the addresses of an old one, but no descriptor shows it
            with device.queue.lock:
                device.arrays.rememberers.add(self)

    def forget_addresses(self) -> None:
        """Has the next call look up the descriptor ranges of its arrays again."""
        for recording in self.recordings:
            recording.addresses = _NOT_WRITTEN

    def _ranges_of_temporaries(self, plan: Plan, first: int) -> dict[int, tuple[DescriptorRange, int]]:
        """The descriptor ranges of temporaries and the positions there, by slot; `first` is the first temporary's."""
        found = {}
        for slot in plan.range_slots:
            if slot >= first:
                number, offset = divmod(plan.temporaries[slot - first], plan.block_bytes)
                piece = self.arena[number].piece
                assert piece.block.ranges is not None, _NO_RANGES
                found[slot] = piece.block.ranges.at(piece.offset + offset)
        return found

    def buffers(self) -> list[Buffer]:
        """All buffers; empty constants have none."""
        return [*filter(None, self.constants), *self.arena, self.flags, self.tables]

    def retire(self) -> None:
        """Frees the buffers, which later work may reuse at once, and everything else when all work is done."""
        number = max((recording.number for recording in self.recordings), default=0)
        sets = [recorded.sets for recording in self.recordings for recorded in recording.made.values()]
        self.device.retire(number, functools.partial(_destroy, self.pool, sets, self.pipelines))


def _destroy(pool: CommandPool, sets: list[DescriptorSets], pipelines: list[Pipeline]) -> None:
    """Destroys command buffers that are done, and drops their pipelines, which had to live until then."""
    pool.close()
    for each in sets:
        each.close()


class Program:
    """A plan that is ready to run on a device. Safe in several threads.

    `rates` measures what the device does in a second, if the plan might take long. Pipelines may be begun `ahead`.
    Raises DeviceError if the plan does not fit the device.
    """

    def __new__(
        cls,
        device: Device,
        plan: Plan,
        rates: Callable[[], Rates] | None = None,
        ahead: Ahead[Shader, Pipeline] | None = None,
    ) -> Program:
        """Under the setting, one whose calls are checked."""
        if cls is Program and config.guard_memory():
            from lavax.backends.vulkan.run.guarded_program import GuardedProgram  # which is made of this module

            return super().__new__(GuardedProgram)
        return super().__new__(cls)

    def __init__(
        self,
        device: Device,
        plan: Plan,
        rates: Callable[[], Rates] | None = None,
        ahead: Ahead[Shader, Pipeline] | None = None,
    ) -> None:
        device.destroy_retired()
        self.device = device
        self._rates = rates
        cuts = cuts_of(plan, device.profile, rates)
        self._whole = plan
        self.plan = plan = with_long_dispatches_cut(plan, cuts.pieces)
        self._cut, pipelines = self._cut_by(cuts, ahead)
        self._cuts_left, self._is_warm, self._heeded = MOST_CUTS, False, device.queue.stalled
        self._queue = device.queue
        self._transfer = device.transfer
        self._allocate = device.arrays.allocate_all
        self._new_bytes = [result.nbytes for result in plan.results if result.donor is None]
        self._donors = [(k, result.donor) for k, result in enumerate(plan.results) if result.donor is not None]
        self._argument_bytes = plan.arguments
        given = len(plan.arguments) + len(plan.results)
        addresses = struct.Struct(f"={given}Q")
        self._write, self._moving_bytes = addresses.pack_into, addresses.size
        self._positions = struct.Struct(f"={len(plan.range_slots)}Q")
        self._has_ranges = bool(plan.range_slots)
        self._given_range_slots = [slot for slot in plan.range_slots if slot < given]
        self._copied_slots = slots_of_copies(plan)
        self._given_copied_slots = [slot for slot in self._given_range_slots if slot in self._copied_slots]
        self._credit = Credit(plan) if self._copied_slots else None
        self._resources = Resources(device, plan, pipelines)
        self.recordings = self._resources.recordings
        self.recordings.extend(self._open_recording(index) for index in range(RING))
        self._position_in_ring = 0
        self._recording = self.recordings[0]
        weakref.finalize(self, self._resources.retire).atexit = False
        if not plan.range_slots:
            self._use(self._recording, _ANYWHERE)

    def __call__(self, *buffers: Buffer) -> list[Buffer]:
        """Submits one run and returns its results at once; their contents are valid when they are `ready()`.

        `buffers` are the arguments. A result with a donor is the donor's buffer itself, with new contents. Raises
        DeviceError if the device fails or is out of memory.
        """
        self.check(buffers)
        return self.run(buffers)

    def check(self, buffers: Sequence[Buffer]) -> None:
        """Raises ValueError unless there is a buffer for each argument, and it is large enough."""
        given, wanted = [buffer.nbytes for buffer in buffers], self._argument_bytes
        if len(given) != len(wanted) or any(map(operator.lt, given, wanted)):
            sizes = ", ".join(map(str, wanted)), ", ".join(map(str, given))
            raise ValueError("The program takes buffers of ({}) bytes, and got ({}).".format(*sizes))

    def run(self, buffers: Sequence[Buffer], claim: Callable[[], None] | None = None) -> list[Buffer]:
        """A call with buffers that were checked. `claim` is called just before anything is submitted, in one thread at
        a time; if it raises, nothing is.

        An exception may interrupt this anywhere. So everything that later calls rely on is noted before a submission.
        """
        results = self._allocate(self._new_bytes)
        for position, donor in self._donors:
            results.insert(position, buffers[donor])
        addresses = [buffer.address for buffer in (*buffers, *results)]
        queue = self._queue
        with queue.lock:
            if queue.stalled != self._heeded:
                self._heed_stalls()
            if queue.attempted - queue.completed > MOST_IN_FLIGHT:
                queue.make_room()
            recording = self._recording
            if recording.number > queue.completed:
                recording = self._recording = self._next_recording()
            if recording.addresses != addresses:
                recording.addresses = _NOT_WRITTEN
                self._write(recording.table, 0, *addresses)
                if self._has_ranges:
                    self._place(recording, (*buffers, *results))
                elif self._cuts_left < MOST_CUTS or not recording.made:
                    self._use(recording, _ANYWHERE)
                recording.addresses = addresses
            if claim is not None:
                claim()
            submission = recording.submission
            if submission is None or self._transfer.pending:
                self._run_parts(recording, results)
            else:
                recording.number = number = queue.next_number()
                for buffer in results:
                    buffer.produced = number
                queue.submit(submission)
        return results

    @property
    def steps(self) -> list[DispatchStep]:
        """All dispatches, each once."""
        return [step for of_batch in self._cut.steps.values() for step in of_batch]

    def static_addresses(self) -> list[int]:
        """The addresses of the constants and temporaries: the end of every table."""
        return self._resources.static_addresses

    def positions(self, buffers: Sequence[Buffer]) -> list[int]:
        """The arrays' positions in their descriptor ranges, the end of a table; `buffers` are arguments and results."""
        own = self._resources.positions
        return [own[slot] if slot in own else buffers[slot].piece.position for slot in self.plan.range_slots]

    def runs(self, buffers: Sequence[Buffer]) -> tuple[DescriptorSets, dict[DispatchStep, tuple[Run, ...]]]:
        """The runs of each step for these arguments and results, and their descriptor sets, which the caller closes."""
        return self._runs_in(self._ranges_of(buffers), {})

    def places(self, buffers: Sequence[Buffer]) -> Places:
        """The places of the arrays that copies read and write; `buffers` are arguments and results."""
        positions = [buffers[slot].piece.position for slot in self._given_copied_slots]
        return self._places_by_slot(self._ranges_of(buffers), positions)

    def _ranges_of(self, buffers: Sequence[Buffer]) -> dict[int, DescriptorRange]:
        return self._ranges_by_slot([buffers[slot].piece.range for slot in self._given_range_slots])

    def _places_by_slot(self, ranges: Mapping[int, DescriptorRange], positions: Sequence[int]) -> Places:
        """The places of all arrays that copies read and write, from their ranges and the positions of those given."""
        found = self._resources.positions | dict(zip(self._given_copied_slots, positions, strict=True))
        return {slot: place_of(ranges[slot], found[slot]) for slot in self._copied_slots}

    def _runs_in(
        self, ranges: Mapping[int, DescriptorRange], places: Places
    ) -> tuple[DescriptorSets, dict[DispatchStep, tuple[Run, ...]]]:
        """The runs of each step but those in whose place arrays are copied."""
        runs = {
            step: () if step.copies is not None and places else tuple(step.runs(ranges)) for step in self.steps
        }
        bound = (run.bound for of_step in runs.values() for run in of_step)
        return DescriptorSets(self.device.handle, self.device.pipelines.layouts, bound), runs

    def _ranges_by_slot(self, given: Sequence[DescriptorRange | None]) -> dict[int, DescriptorRange]:
        found = dict(self._resources.ranges)
        for slot, of_array in zip(self._given_range_slots, given, strict=True):
            assert of_array is not None, _NO_RANGES
            found[slot] = of_array
        return found

    def _place(self, recording: Recording, given: tuple[Buffer, ...]) -> None:
        """Writes the arrays' positions into the table, and selects the command buffers for their descriptor ranges."""
        offset = self._moving_bytes + ADDRESS_BYTES * len(self.static_addresses())
        self._positions.pack_into(recording.table, offset, *self.positions(given))
        copied = None
        if self._credit is not None and self._credit.left:
            copied = tuple([given[slot].piece.position for slot in self._given_copied_slots])
        self._use(recording, (tuple([given[slot].piece.range for slot in self._given_range_slots]), copied))

    def _use(self, recording: Recording, where: Where) -> None:
        """Selects the command buffers for arrays that lie there, or records them. The device is done with the table."""
        made = recording.made
        recorded = made.get(where)
        if recorded is None or recorded.cut is not self._cut:
            while where in made or len(made) >= MOST_RECORDED:
                oldest = made.pop(where if where in made else next(iter(made)))
                self._resources.pool.free(oldest.commands)
                oldest.sets.close()
            recorded = self._record(recording, where)
            if not any(where in other.made for other in self.recordings):
                counters.count("recordings")
            made[where] = recorded
            if where[1] is not None and self._credit is not None:
                self._credit.lose(self._queue.attempted)
        elif self._credit is not None:
            self._credit.gain()
        made.move_to_end(where)
        recording.submission, recording.parts = recorded.submission, recorded.parts

    def _next_recording(self) -> Recording:
        """The least recently used one, when it is done.

        Calls that are waited for one by one share a recording, which stays in the caches of host and device.
        """
        self._position_in_ring = (self._position_in_ring + 1) % RING
        recording = self.recordings[self._position_in_ring]
        self._queue.wait(recording.number)
        return recording

    def _run_parts(self, recording: Recording, results: Sequence[Buffer]) -> None:
        """Submits a run that may take more than one submission: pending copies come first, it takes long, or loops
        depend on data. Calls of other threads wait meanwhile: they might donate what this one reads."""
        queue, transfer = self._queue, self._transfer
        flags = ffi.cast("uint32_t *", self._resources.flags.host_pointer())
        before, exact = queue.attempted, list[tuple[float, float]]()

        def submit(submission: Submission) -> int:
            recording.number = number = queue.next_number()
            for buffer in results:
                buffer.produced = number
            return transfer.submit_behind_pending(submission) if transfer.pending else queue.submit(submission)

        def note(estimated: float, seconds: float, is_exact: bool) -> None:
            if is_exact:
                exact.append((estimated, seconds))

        if recording.submission is not None:
            submit(recording.submission)
            return
        flow = Flow(queue, self._cut.cuts, submit, lambda flag: bool(flags[flag]), note)
        try:
            flow.run(recording.parts)
        except DeviceError as error:
            error.has_begun = queue.submitted > before
            raise
        slow = [seconds / estimated for estimated, seconds in exact if seconds > BOUNDS.seconds]
        estimated, seconds = (sum(each) for each in zip((0.0, 0.0), *exact, strict=True))
        self._learn(max(slow) if slow else seconds / estimated if estimated > BOUNDS.part_seconds else 1.0)

    def _heed_stalls(self) -> None:
        """Takes note of runs that took long, of those that are one submission."""
        queue = self._queue
        self._heeded = queue.stalled
        numbers = {recording.number for recording in self.recordings if recording.submission is not None}
        seconds = max((stall.seconds for stall in list(queue.stalls) if stall.number in numbers), default=0.0)
        if seconds > BOUNDS.seconds:
            self._learn(seconds / max(self._cut.cuts.estimate.total(self.plan.commands), 1e-9))

    def _learn(self, slowness: float) -> None:
        """Cuts the program anew if it took so many times as long as estimated. Its first run is no measure: drivers may
        compile."""
        if not self._is_warm:
            self._is_warm = True
        elif not TOO_FAST <= slowness <= TOO_SLOW and self._cuts_left:
            known = self._cut.cuts.estimate.slowness
            cuts = cuts_of(self.plan, self.device.profile, self._rates, known * slowness)
            # Constants stay as they are, also the tables of guards.
            whole = self._whole if self._whole.constants == self.plan.constants else self.plan
            self.plan = with_long_dispatches_cut(
                whole, lambda dispatch: cuts.pieces(dispatch) if dispatch.counts is None else 1
            )
            cut, pipelines = self._cut_by(cuts)
            self._resources.pipelines += pipelines
            self._cut = cut
            self._cuts_left -= 1
            for recording in self.recordings:
                recording.addresses = _NOT_WRITTEN  # so that it is recorded anew when it is free

    def _cut_by(
        self, cuts: Cuts, ahead: Ahead[Shader, Pipeline] | None = None
    ) -> tuple[CutProgram, list[Pipeline]]:
        """The program's segments with their steps, and all its pipelines."""
        device, plan = self.device, self.plan
        active = [dispatch.shader for dispatch in plan.dispatches if 0 not in dispatch.groups]
        pipelines = device.pipelines.get(active, ahead)  # all at once: they are compiled in parallel
        segments = segments_of(plan.commands, cuts)
        steps = {batch: make_steps(device, plan, batch.dispatches, pipelines) for batch in batches_of(segments)}
        return CutProgram(cuts, segments, steps), list(pipelines.values())

    def _open_recording(self, index: int) -> Recording:
        """The recording with table `index`, in which the part that never changes is filled in."""
        tables, stride = self._resources.tables, self._resources.table_stride
        offset = index * stride
        table = ffi.buffer(tables.host_pointer() + offset, stride)
        static = self.static_addresses()
        struct.pack_into(f"={len(static)}Q", table, self._moving_bytes, *static)
        return Recording(table, tables.address + offset)

    def _record(self, recording: Recording, where: Where) -> RecordedProgram:
        """Records the program once, for a table, and for arrays that lie there."""
        cut = self._cut
        segments = cut.segments or (Batch((), False),)
        in_ranges, positions = where
        ranges = self._ranges_by_slot(in_ranges)
        places = {} if positions is None else self._places_by_slot(ranges, positions)
        sets, runs = self._runs_in(ranges, places)
        buffers = {
            batch: self._record_batch(batch, cut.steps.get(batch, ()), recording.address, sets, runs, places)
            for batch in batches_of(segments)
        }
        parts = parts_of(segments, buffers, self._queue, cut.cuts)
        submission = parts[0].submission if len(parts) == 1 and isinstance(parts[0], Once) else None
        return RecordedProgram(cut, submission, parts, list(buffers.values()), sets)

    def _record_batch(
        self,
        batch: Batch,
        steps: Sequence[DispatchStep],
        table: int,
        sets: DescriptorSets,
        runs: Mapping[DispatchStep, Sequence[Run]],
        places: Places,
    ) -> Any:
        """A command buffer with the dispatches of one batch."""
        commands = self._resources.pool.allocate()
        barriers = PLAIN if all(step.counts is None for step in self.steps) else COUNTED
        barriers = COPYING if places else barriers
        with Recorder(commands, batch.repeated) as recorder:
            copied: bool | None = None  # whether the step before was copies
            for step in steps:
                copies = step.copies if places else None
                # Shaders and copies write other parts of a buffer without a barrier between them, but a layer that
                # validates cannot tell which part a shader writes.
                if step.barrier or copied not in (None, copies is not None):
                    recorder.wait(barriers.between)
                copied = copies is not None
                if copies is not None:
                    record_copies(recorder, copies, places)
                for run in runs[step]:
                    record_run(recorder, step, run, table, sets)
                    if step.counts is None:
                        recorder.dispatch(run.groups)
                    else:
                        counts = self._resources.constants[step.counts[0]]
                        assert counts is not None
                        recorder.dispatch_counted(counts, step.counts[1])
            recorder.wait(barriers.after)
        return commands
