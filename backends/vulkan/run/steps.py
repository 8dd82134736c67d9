"""The dispatches of a program as they are recorded: with pipelines and push constants."""

from __future__ import annotations

import operator
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lavax.backends.vulkan.compile.pipelines import Pipeline
from lavax.backends.vulkan.device.commands import Recorder
from lavax.backends.vulkan.device.device import Device
from lavax.backends.vulkan.memory.descriptor_ranges import BoundRanges, DescriptorRange
from lavax.backends.vulkan.plan.memory_use import ADDRESS_BYTES
from lavax.backends.vulkan.plan.plan import MAX_WORDS, Dispatch, Plan, Shader


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
