"""The dispatches of a program as they are recorded: with pipelines and push constants."""

from __future__ import annotations

import operator
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from lavax.backends.vulkan.compile.pipelines import Pipeline
from lavax.backends.vulkan.device.commands import Recorder
from lavax.backends.vulkan.device.device import Device
from lavax.backends.vulkan.memory.descriptor_ranges import BoundRanges, DescriptorRange, DescriptorSets
from lavax.backends.vulkan.plan.memory_use import ADDRESS_BYTES
from lavax.backends.vulkan.plan.plan import MAX_WORDS, Copies, Dispatch, DispatchPart, Plan, Shader
from lavax.base.quick_dataclasses import dataclass

_WORD = struct.Struct("=I")
Bindings = tuple[tuple[str, int], ...]  # for each binding its form, and the slot of the array


@dataclass(frozen=True)
class Run:
    """What is recorded of a step at once: ranges at its shader's bindings, words that follow the table's address in the
    push constants, and workgroups."""

    bound: BoundRanges
    words: bytes
    groups: tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class DispatchStep:
    """A dispatch with its pipeline, its words, and the bindings of its parts with their workgroups: mostly one part."""

    pipeline: Pipeline
    words: bytes
    groups: tuple[int, int, int]
    barrier: bool
    name: str
    counts: tuple[int, int] | None  # the constant with the numbers of workgroups, and their offset in it
    parts: tuple[tuple[Bindings, int], ...]
    copies: Copies | None  # that may take its place

    def runs(self, ranges: Mapping[int, DescriptorRange]) -> Iterator[Run]:
        """The runs if the arrays lie in these ranges, by slot: one for all neighbouring parts with the same ranges."""
        bound = [(tuple((form, ranges[slot]) for form, slot in bindings), groups) for bindings, groups in self.parts]
        if len(bound) == 1:
            yield Run(bound[0][0], self.words, self.groups)
            return
        first = 0
        for of_run, parts in groupby(bound, key=operator.itemgetter(0)):
            groups = sum(count for _, count in parts)
            yield Run(of_run, self.words[: -_WORD.size] + _WORD.pack(first), (groups, 1, 1))
            first += groups


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
            pipeline = pipelines[dispatch.shader]
            parts = tuple(_parts_of(dispatch))
            copies = None if counts else dispatch.copies
            steps.append(DispatchStep(pipeline, words, dispatch.groups, barrier, dispatch.name, counts, parts, copies))
            barrier = False
    return steps


def _parts_of(dispatch: Dispatch) -> Iterator[tuple[Bindings, int]]:
    alone = DispatchPart(dispatch.seen or dispatch.slots, dispatch.groups[0])
    for part in dispatch.parts or (alone,):
        yield tuple((form, part.seen[number]) for form, number in dispatch.shader.bindings), part.groups


def record_run(recorder: Recorder, step: DispatchStep, run: Run, table: int, sets: DescriptorSets) -> None:
    """Records a step's pipeline, and the descriptor set of the run if it has one, and its push constants.

    `table` is the table's device address.
    """
    recorder.bind(step.pipeline.handle)
    if run.bound:
        recorder.bind_descriptors(step.pipeline.layout, sets.of(run.bound))
    recorder.push(step.pipeline.layout, table.to_bytes(ADDRESS_BYTES, "little") + run.words)


def _check_limits(device: Device, dispatch: Dispatch) -> None:
    words = len(dispatch.slots) + len(dispatch.words)
    if words > MAX_WORDS:
        raise ValueError(f"Dispatch {dispatch.name} has {words} slots and words; push constants hold {MAX_WORDS}.")
    limits = device.profile.max_workgroup_count
    if any(map(operator.gt, dispatch.groups, limits)):
        raise ValueError(f"Dispatch {dispatch.name} has {dispatch.groups} workgroups; the device allows {limits}.")
