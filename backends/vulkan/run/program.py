"""A program: a plan with its pipelines, memory and recorded command buffers. Called, it is submitted once.

A call writes the addresses of its arguments and results into a table that the shaders read, and submits what was
recorded when the program was made. It is recorded RING times, each with a table of its own, so that so many calls
may be in flight. A program whose shaders see arrays through descriptors is recorded for the windows that these lie in,
when a call first has arrays in them.
"""

from __future__ import annotations

import functools
import operator
import struct
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lavax.backends.vulkan.api.api import ffi
from lavax.backends.vulkan.api.queue import Submission
from lavax.backends.vulkan.compile.pipelines import Pipeline
from lavax.backends.vulkan.device.commands import COUNTED, PLAIN, CommandPool, Recorder
from lavax.backends.vulkan.device.device import Device
from lavax.backends.vulkan.memory.memory import Buffer
from lavax.backends.vulkan.memory.windows import DescriptorSets, Seen, Window
from lavax.backends.vulkan.plan.plan import MAX_WORDS, Dispatch, Plan, Shader
from lavax.backends.vulkan.run.sequence import Part, Run, has_loop, in_order, parts_of, run_parts, runs_of, segments_of
from lavax.base import counters
from lavax.passes.kernels.commands import FLAG_BYTES

RING = 4

# For how many combinations of windows the commands are kept.
MOST_RECORDED = 16

ADDRESS_BYTES = 8
TABLE_ALIGNMENT = 256


@dataclass(frozen=True, eq=False)
class Step:
    """A dispatch with its pipeline, and the words that follow the table's address in its push constants."""

    pipeline: Pipeline
    words: bytes
    groups: tuple[int, int, int]
    barrier: bool
    name: str
    counts: tuple[int, int] | None  # the constant, and the offset in it, where the numbers of workgroups stand
    bindings: tuple[tuple[str, int], ...]  # at each binding the form, and the slot of the array that is seen

    def seen(self, windows: Mapping[int, Window]) -> Seen:
        """What its shader sees, if the arrays in those slots lie in these windows."""
        return tuple((form, windows[slot]) for form, slot in self.bindings)


@dataclass(frozen=True, eq=False)
class Recorded:
    """Command buffers of a program for one of its tables: their submission, or parts where loops end by their data."""

    submission: Submission | None
    parts: tuple[Part, ...]
    commands: list[Any]
    sets: DescriptorSets


class Recording:
    """One of the ring: its table, the addresses in the table, the commands that go with these, and the number of its
    last use. `made`: the commands for each combination of windows, those used last at the end."""

    __slots__ = ("table", "address", "addresses", "submission", "parts", "made", "number")

    def __init__(self, table: Any, address: int) -> None:
        self.table = table
        self.address = address
        self.addresses: list[int] = []
        self.submission: Submission | None = None
        self.parts: tuple[Part, ...] = ()
        self.made: dict[tuple[Window | None, ...], Recorded] = {}
        self.number = 0


class Resources:
    """What a program owns on the device; given back when the program is dropped and its last call is done."""

    def __init__(self, device: Device, plan: Plan, pipelines: Iterable[Pipeline]) -> None:
        self.device = device
        self.pipelines = tuple(pipelines)
        self.pool = CommandPool(device.handle, device.queue.family)
        self.constants = [
            device.transfer.upload(np.frombuffer(content, np.uint8)) if content else None for content in plan.constants
        ]
        self.arena = device.arrays.allocate(plan.arena_bytes)
        self.static_addresses = [constant.address if constant else 0 for constant in self.constants]
        self.static_addresses += [self.arena.address + offset for offset in plan.temporaries]
        self.flags = device.tables.allocate_for_host(FLAG_BYTES * max(1, plan.flags))
        self.static_addresses += [self.flags.address + FLAG_BYTES * flag for flag in range(plan.flags)]
        given = len(plan.arguments) + len(plan.results)
        pieces = self._temporaries_in_windows(plan, given + len(self.constants))
        self.windows = {slot: window for slot, (window, _) in pieces.items()}
        self.positions = {slot: position for slot, (_, position) in pieces.items()}
        slots = given + len(self.static_addresses) + len(plan.windowed)
        self.table_stride = max(1, -(-slots * ADDRESS_BYTES // TABLE_ALIGNMENT)) * TABLE_ALIGNMENT
        self.tables = device.tables.allocate_for_host(RING * self.table_stride)
        self.recordings: list[Recording] = []

    def _temporaries_in_windows(self, plan: Plan, first: int) -> dict[int, tuple[Window, int]]:
        """By slot, of which theirs begin at `first`, the windows of temporaries, and the positions there."""
        found = {}
        for slot in plan.windowed:
            if slot >= first:
                piece = self.arena.piece
                assert piece.block.windows is not None, "plans have windows where the device's memory has some"
                found[slot] = piece.block.windows.at(piece.offset + plan.temporaries[slot - first])
        return found

    def buffers(self) -> list[Buffer]:
        """All memory there is; constants without content have none."""
        return [*filter(None, self.constants), self.arena, self.flags, self.tables]

    def retire(self) -> None:
        """Gives the buffers back, which later work may reuse at once; when all is done, the rest."""
        number = max((recording.number for recording in self.recordings), default=0)
        sets = [recorded.sets for recording in self.recordings for recorded in recording.made.values()]
        self.device.retire(number, functools.partial(_destroy, self.pool, sets, self.pipelines))


def _destroy(pool: CommandPool, sets: list[DescriptorSets], pipelines: tuple[Pipeline, ...]) -> None:
    """Gives back command buffers that are done, and lets go of their pipelines, which are not needed before that."""
    pool.close()
    for each in sets:
        each.close()


class Program:
    """A plan ready to run on a device. Safe in several threads. Raises DeviceError if it does not fit the device."""

    def __init__(self, device: Device, plan: Plan) -> None:
        device.destroy_retired()
        self.device = device
        self.plan = plan
        self.segments = segments_of(plan.commands)
        active = [dispatch.shader for dispatch in plan.dispatches if 0 not in dispatch.groups]
        pipelines = device.pipelines.get(active)  # all at once: they are made in parallel
        self._steps = {run: make_steps(device, plan, run.dispatches, pipelines) for run in runs_of(self.segments)}
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
        self._positions = struct.Struct(f"={len(plan.windowed)}Q")
        self._windowed = bool(plan.windowed)
        self._seen = [slot for slot in plan.windowed if slot < given]
        self._has_loop = has_loop(self.segments)
        self._resources = Resources(device, plan, pipelines.values())
        self.recordings = self._resources.recordings
        self.recordings.extend(self._open_recording(index) for index in range(RING))
        self._turn = 0
        self._recording = self.recordings[0]
        weakref.finalize(self, self._resources.retire).atexit = False
        if not plan.windowed:
            for recording in self.recordings:
                self._use_windows(recording, ())

    def __call__(self, *buffers: Buffer) -> list[Buffer]:
        """Submits one run and returns its results at once; their contents are there when they are `ready()`.

        `buffers` are the arguments. A result with a donor is the donor's buffer itself, with new contents. Raises
        DeviceError when the device has no memory left or fails.
        """
        self.check(buffers)
        return self.run(buffers)

    def check(self, buffers: Sequence[Buffer]) -> None:
        """Raises ValueError unless the buffers are as many as the arguments, and at least as large."""
        given, wanted = [buffer.nbytes for buffer in buffers], self._argument_bytes
        if len(given) != len(wanted) or any(map(operator.lt, given, wanted)):
            sizes = ", ".join(map(str, wanted)), ", ".join(map(str, given))
            raise ValueError("The program takes buffers of ({}) bytes, and got ({}).".format(*sizes))

    def run(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """A call whose buffers are known to be as many as the arguments, and as large."""
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
                self._write(recording.table, 0, *addresses)
                if self._windowed:
                    self._place(recording, (*buffers, *results))
                recording.addresses = addresses
            submission = recording.submission
            if submission is None or self._transfer.pending:
                number = self._run_parts(recording)
            else:
                number = queue.submit(submission)
            recording.number = number
            for buffer in results:
                buffer.produced = number
        return results

    def static_addresses(self) -> list[int]:
        """The addresses of the constants and temporaries: the end of every table."""
        return self._resources.static_addresses

    def overhead_bytes(self) -> int:
        """Memory for tables of addresses and flags, and what is lost to rounding in that and the program's own."""
        own = self._resources
        sizes = sum(buffer.piece.size for buffer in own.buffers())
        return sizes - self.plan.arena_bytes - sum(map(len, self.plan.constants))

    def positions(self, buffers: Sequence[Buffer]) -> list[int]:
        """Where arrays begin in their windows, as the end of a table has it; `buffers` are arguments and results."""
        own = self._resources.positions
        return [own[slot] if slot in own else buffers[slot].piece.position for slot in self.plan.windowed]

    def shown(self, buffers: Sequence[Buffer]) -> tuple[DescriptorSets, dict[Step, Any]]:
        """What steps see through descriptors, where these are the arguments and results; whoever asks closes them."""
        return self._shown(self._windows([buffers[slot].piece.window for slot in self._seen]))

    def _shown(self, windows: Mapping[int, Window]) -> tuple[DescriptorSets, dict[Step, Any]]:
        seen = {step: step.seen(windows) for step in self.steps if step.bindings}
        sets = DescriptorSets(self.device.handle, self.device.pipelines.layouts, seen.values())
        return sets, {step: sets.of(of_step) for step, of_step in seen.items()}

    def _windows(self, seen: Sequence[Window | None]) -> dict[int, Window]:
        found = dict(self._resources.windows)
        for slot, window in zip(self._seen, seen, strict=True):
            assert window is not None, "plans have windows where the device's memory has some"
            found[slot] = window
        return found

    def _place(self, recording: Recording, given: tuple[Buffer, ...]) -> None:
        """Writes where arrays begin in their windows into the table, and finds the commands for these windows."""
        offset = self._moving_bytes + ADDRESS_BYTES * len(self.static_addresses())
        self._positions.pack_into(recording.table, offset, *self.positions(given))
        self._use_windows(recording, tuple([given[slot].piece.window for slot in self._seen]))

    def _use_windows(self, recording: Recording, windows: tuple[Window | None, ...]) -> None:
        """Finds the commands for these windows, or records them; the device is done with all others of this table."""
        made = recording.made
        recorded = made.pop(windows, None)
        if recorded is None:
            while len(made) >= MOST_RECORDED:
                oldest = made.pop(next(iter(made)))
                self._resources.pool.free(oldest.commands)
                oldest.sets.close()
            recorded = self._record(recording, self._windows(windows))
            if not any(windows in other.made for other in self.recordings):
                counters.count("recordings")
        made[windows] = recorded
        recording.submission, recording.parts = recorded.submission, recorded.parts

    def _next_recording(self) -> Recording:
        """The one used longest ago, once it is done.

        While calls are waited for one by one they share a recording, which is in the caches of host and device then.
        """
        self._turn = (self._turn + 1) % RING
        recording = self.recordings[self._turn]
        self._queue.wait(recording.number)
        return recording

    def _run_parts(self, recording: Recording) -> int:
        """Submits what is more than one submission: behind copies that wait, or with loops that end by their data, for
        which the calls of other threads wait meanwhile."""
        if recording.submission is not None:
            return self._submit(recording.submission)
        flags = ffi.cast("uint32_t *", self._resources.flags.host_pointer())

        def is_set(flag: int, number: int) -> bool:
            self._queue.wait(number)
            return bool(flags[flag])

        return run_parts(recording.parts, self._submit, is_set)

    def _submit(self, submission: Submission) -> int:
        if not self._transfer.pending:
            return self._queue.submit(submission)
        number = self._queue.submit(submission, self._transfer.record_pending())
        self._transfer.sent(number)
        return number

    def _open_recording(self, index: int) -> Recording:
        """The recording with table `index`, of which the part that never changes is filled in."""
        tables, stride = self._resources.tables, self._resources.table_stride
        offset = index * stride
        table = ffi.buffer(tables.host_pointer() + offset, stride)
        static = self.static_addresses()
        struct.pack_into(f"={len(static)}Q", table, self._moving_bytes, *static)
        return Recording(table, tables.address + offset)

    def _record(self, recording: Recording, windows: Mapping[int, Window]) -> Recorded:
        """Records the program once, for a table, and for arrays in these windows, by slot."""
        segments = self.segments or (Run((), False),)
        sets, shown = self._shown(windows)
        buffers = {run: self._record_run(run, recording.address, shown) for run in runs_of(segments)}
        commands = list(buffers.values())
        if self._has_loop:
            return Recorded(None, parts_of(segments, buffers, self._queue), commands, sets)
        return Recorded(Submission(self._queue, in_order(segments, buffers)), (), commands, sets)

    def _record_run(self, run: Run, table: int, shown: Mapping[Step, Any]) -> Any:
        """A command buffer with the dispatches of one row."""
        commands = self._resources.pool.allocate()
        barriers = PLAIN if all(step.counts is None for step in self.steps) else COUNTED
        with Recorder(commands, run.repeated) as recorder:
            for step in self._steps.get(run, ()):
                if step.barrier:
                    recorder.wait(barriers.between)
                record_step(recorder, step, table, shown)
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
) -> list[Step]:
    """Dispatches with their pipelines; those with nothing to do are left out, their barriers kept."""
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
            steps.append(Step(pipeline, words, dispatch.groups, barrier, dispatch.name, counts, bindings))
            barrier = False
    return steps


def record_step(recorder: Recorder, step: Step, table: int, shown: Mapping[Step, Any]) -> None:
    """Records a step's pipeline, what its shader sees, by step, and its push constants.

    The table lies at the device address `table`.
    """
    recorder.bind(step.pipeline.handle)
    if step.bindings:
        recorder.show(step.pipeline.layout, shown[step])
    recorder.push(step.pipeline.layout, table.to_bytes(ADDRESS_BYTES, "little") + step.words)


def _check_limits(device: Device, dispatch: Dispatch) -> None:
    words = len(dispatch.slots) + len(dispatch.words)
    if words > MAX_WORDS:
        raise ValueError(f"Dispatch {dispatch.name} has {words} slots and words; push constants hold {MAX_WORDS}.")
    limits = device.profile.max_workgroup_count
    if any(map(operator.gt, dispatch.groups, limits)):
        raise ValueError(f"Dispatch {dispatch.name} has {dispatch.groups} workgroups; the device allows {limits}.")
