"""A program: a plan with its pipelines, memory and recorded command buffers. A call submits it once.

A call writes the addresses of its arguments and results into a table that the shaders read, and submits the command
buffers that were recorded when the program was created. There are RING recordings, each with its own table, so that as
many calls may be in flight. If shaders see arrays through descriptors, the program is recorded for the descriptor
ranges that the arrays lie in, when a call first has arrays there.
"""

from __future__ import annotations

import functools
import operator
import struct
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lavax.backends.vulkan.api.api import ffi
from lavax.backends.vulkan.api.queue import Submission
from lavax.backends.vulkan.compile.pipelines import Pipeline
from lavax.backends.vulkan.device.commands import COUNTED, PLAIN, CommandPool, Recorder
from lavax.backends.vulkan.device.device import Device
from lavax.backends.vulkan.memory.descriptor_ranges import BoundRanges, DescriptorRange, DescriptorSets
from lavax.backends.vulkan.memory.memory import Buffer
from lavax.backends.vulkan.plan.memory_use import ADDRESS_BYTES, RING, flag_bytes, table_stride
from lavax.backends.vulkan.plan.plan import MAX_WORDS, Dispatch, Plan, Shader
from lavax.backends.vulkan.run.sequence import (
    Batch,
    Part,
    batches_of,
    has_flag_loop,
    in_order,
    parts_of,
    run_parts,
    segments_of,
)
from lavax.base import counters
from lavax.passes.kernels.commands import FLAG_BYTES

# The number of combinations of descriptor ranges per recording for which command buffers are kept.
MOST_RECORDED = 16

_NOT_WRITTEN: list[int] = [-1]  # the addresses in a table that is being written

_NO_RANGES = "plans use descriptor ranges only if the device's memory has them"


@dataclass(frozen=True, eq=False)
class DispatchStep:
    """A dispatch with its pipeline, and the words that follow the table's address in its push constants."""

    pipeline: Pipeline
    words: bytes
    groups: tuple[int, int, int]
    barrier: bool
    name: str
    counts: tuple[int, int] | None  # the constant with the numbers of workgroups, and their offset in it
    bindings: tuple[tuple[str, int], ...]  # for each binding its form, and the slot of the array

    def bound(self, ranges: Mapping[int, DescriptorRange]) -> BoundRanges:
        """The ranges at its shader's bindings, given those that the arrays lie in, by slot."""
        return tuple((form, ranges[slot]) for form, slot in self.bindings)


@dataclass(frozen=True, eq=False)
class RecordedProgram:
    """Command buffers of a program for one of its tables: their submission, or parts if a loop depends on data."""

    submission: Submission | None
    parts: tuple[Part, ...]
    commands: list[Any]
    sets: DescriptorSets


class Recording:
    """An entry of the ring: its table, the addresses in the table, the command buffers for these, and the number of its
    last use. `made`: the command buffers for each combination of descriptor ranges, the last used at the end."""

    __slots__ = ("table", "address", "addresses", "submission", "parts", "made", "number")

    def __init__(self, table: Any, address: int) -> None:
        self.table = table
        self.address = address
        self.addresses: list[int] = []
        self.submission: Submission | None = None
        self.parts: tuple[Part, ...] = ()
        self.made: OrderedDict[tuple[DescriptorRange | None, ...], RecordedProgram] = OrderedDict()
        self.number = 0


class Resources:
    """What a program owns on the device, until the program is dropped and its last call is done."""

    def __init__(self, device: Device, plan: Plan, pipelines: Iterable[Pipeline]) -> None:
        self.device = device
        self.pipelines = tuple(pipelines)
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


def _destroy(pool: CommandPool, sets: list[DescriptorSets], pipelines: tuple[Pipeline, ...]) -> None:
    """Destroys command buffers that are done, and drops their pipelines, which had to live until then."""
    pool.close()
    for each in sets:
        each.close()


class Program:
    """A plan that is ready to run on a device. Safe in several threads.

    Raises DeviceError if the plan does not fit the device.
    """

    def __init__(self, device: Device, plan: Plan) -> None:
        device.destroy_retired()
        self.device = device
        self.plan = plan
        self.segments = segments_of(plan.commands)
        active = [dispatch.shader for dispatch in plan.dispatches if 0 not in dispatch.groups]
        pipelines = device.pipelines.get(active)  # all at once: they are compiled in parallel
        self._steps = {
            batch: make_steps(device, plan, batch.dispatches, pipelines) for batch in batches_of(self.segments)
        }
        self.steps = [step for steps in self._steps.values() for step in steps]
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
        self._has_flag_loop = has_flag_loop(self.segments)
        self._resources = Resources(device, plan, pipelines.values())
        self.recordings = self._resources.recordings
        self.recordings.extend(self._open_recording(index) for index in range(RING))
        self._position_in_ring = 0
        self._recording = self.recordings[0]
        weakref.finalize(self, self._resources.retire).atexit = False
        if not plan.range_slots:
            for recording in self.recordings:
                self._use_ranges(recording, ())

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
            recording = self._recording
            if recording.number > queue.completed:
                recording = self._recording = self._next_recording()
            if recording.addresses != addresses:
                recording.addresses = _NOT_WRITTEN
                self._write(recording.table, 0, *addresses)
                if self._has_ranges:
                    self._place(recording, (*buffers, *results))
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

    def static_addresses(self) -> list[int]:
        """The addresses of the constants and temporaries: the end of every table."""
        return self._resources.static_addresses

    def positions(self, buffers: Sequence[Buffer]) -> list[int]:
        """The arrays' positions in their descriptor ranges, the end of a table; `buffers` are arguments and results."""
        own = self._resources.positions
        return [own[slot] if slot in own else buffers[slot].piece.position for slot in self.plan.range_slots]

    def descriptor_sets(self, buffers: Sequence[Buffer]) -> tuple[DescriptorSets, dict[DispatchStep, Any]]:
        """The descriptor sets for these arguments and results, all and by step; the caller closes them."""
        return self._sets_for(self._ranges_by_slot([buffers[slot].piece.range for slot in self._given_range_slots]))

    def _sets_for(self, ranges: Mapping[int, DescriptorRange]) -> tuple[DescriptorSets, dict[DispatchStep, Any]]:
        bound = {step: step.bound(ranges) for step in self.steps if step.bindings}
        sets = DescriptorSets(self.device.handle, self.device.pipelines.layouts, bound.values())
        return sets, {step: sets.of(of_step) for step, of_step in bound.items()}

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
        self._use_ranges(recording, tuple([given[slot].piece.range for slot in self._given_range_slots]))

    def _use_ranges(self, recording: Recording, ranges: tuple[DescriptorRange | None, ...]) -> None:
        """Selects the command buffers for these ranges, or records them. The device is done with this table."""
        made = recording.made
        recorded = made.get(ranges)
        if recorded is None:
            while len(made) >= MOST_RECORDED:
                oldest = made.pop(next(iter(made)))
                self._resources.pool.free(oldest.commands)
                oldest.sets.close()
            recorded = self._record(recording, self._ranges_by_slot(ranges))
            if not any(ranges in other.made for other in self.recordings):
                counters.count("recordings")
            made[ranges] = recorded
        made.move_to_end(ranges)
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
        """Submits a run that takes more than one submission: pending copies come first, or loops depend on data. Calls
        of other threads wait meanwhile."""
        queue, transfer = self._queue, self._transfer
        flags = ffi.cast("uint32_t *", self._resources.flags.host_pointer())

        def submit(submission: Submission) -> int:
            recording.number = number = queue.next_number()
            for buffer in results:
                buffer.produced = number
            return transfer.submit_behind_pending(submission) if transfer.pending else queue.submit(submission)

        def is_set(flag: int, number: int) -> bool:
            queue.wait(number)
            return bool(flags[flag])

        if recording.submission is not None:
            submit(recording.submission)
        else:
            run_parts(recording.parts, submit, is_set)

    def _open_recording(self, index: int) -> Recording:
        """The recording with table `index`, in which the part that never changes is filled in."""
        tables, stride = self._resources.tables, self._resources.table_stride
        offset = index * stride
        table = ffi.buffer(tables.host_pointer() + offset, stride)
        static = self.static_addresses()
        struct.pack_into(f"={len(static)}Q", table, self._moving_bytes, *static)
        return Recording(table, tables.address + offset)

    def _record(self, recording: Recording, ranges: Mapping[int, DescriptorRange]) -> RecordedProgram:
        """Records the program once, for a table, and for arrays in these descriptor ranges, by slot."""
        segments = self.segments or (Batch((), False),)
        sets, set_of = self._sets_for(ranges)
        buffers = {batch: self._record_batch(batch, recording.address, set_of) for batch in batches_of(segments)}
        commands = list(buffers.values())
        if self._has_flag_loop:
            return RecordedProgram(None, parts_of(segments, buffers, self._queue), commands, sets)
        return RecordedProgram(Submission(self._queue, in_order(segments, buffers)), (), commands, sets)

    def _record_batch(self, batch: Batch, table: int, set_of: Mapping[DispatchStep, Any]) -> Any:
        """A command buffer with the dispatches of one batch."""
        commands = self._resources.pool.allocate()
        barriers = PLAIN if all(step.counts is None for step in self.steps) else COUNTED
        with Recorder(commands, batch.repeated) as recorder:
            for step in self._steps.get(batch, ()):
                if step.barrier:
                    recorder.wait(barriers.between)
                record_step(recorder, step, table, set_of)
                if step.counts is None:
                    recorder.dispatch(step.groups)
                else:
                    counts = self._resources.constants[step.counts[0]]
                    assert counts is not None
                    recorder.dispatch_counted(counts, step.counts[1])
            recorder.wait(barriers.after)
        return commands


def make_steps(
    device: Device, plan: Plan, dispatches: Sequence[Dispatch], pipelines: Mapping[Shader, Pipeline]
) -> list[DispatchStep]:
    """Dispatches with their pipelines, without the empty ones, whose barriers are kept."""
    active = [dispatch for dispatch in dispatches if 0 not in dispatch.groups]
    for dispatch in active:
        _check_limits(device, dispatch)
    first_constant = len(plan.arguments) + len(plan.results)
    steps = []
    barrier = False
    for dispatch in dispatches:
        barrier = barrier or dispatch.barrier
        if 0 not in dispatch.groups:
            words = struct.pack(f"={len(dispatch.slots + dispatch.words)}I", *dispatch.slots, *dispatch.words)
            counts = dispatch.counts and (dispatch.counts[0] - first_constant, dispatch.counts[1])
            seen = dispatch.seen or dispatch.slots
            bindings = tuple((form, seen[number]) for form, number in dispatch.shader.bindings)
            pipeline = pipelines[dispatch.shader]
            steps.append(DispatchStep(pipeline, words, dispatch.groups, barrier, dispatch.name, counts, bindings))
            barrier = False
    return steps


def record_step(recorder: Recorder, step: DispatchStep, table: int, set_of: Mapping[DispatchStep, Any]) -> None:
    """Records a step's pipeline, its descriptor set if it has one, and its push constants.

    `table` is the table's device address.
    """
    recorder.bind(step.pipeline.handle)
    if step.bindings:
        recorder.bind_descriptors(step.pipeline.layout, set_of[step])
    recorder.push(step.pipeline.layout, table.to_bytes(ADDRESS_BYTES, "little") + step.words)


def _check_limits(device: Device, dispatch: Dispatch) -> None:
    words = len(dispatch.slots) + len(dispatch.words)
    if words > MAX_WORDS:
        raise ValueError(f"Dispatch {dispatch.name} has {words} slots and words; push constants hold {MAX_WORDS}.")
    limits = device.profile.max_workgroup_count
    if any(map(operator.gt, dispatch.groups, limits)):
        raise ValueError(f"Dispatch {dispatch.name} has {dispatch.groups} workgroups; the device allows {limits}.")
