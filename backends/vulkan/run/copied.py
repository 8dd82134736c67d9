"""Copies and fills in place of dispatches, for arrays whose places are known when a program is recorded.

A command buffer names what it copies by buffers and offsets, and cannot read them from a table. So a program with
copies is recorded for the places of the arrays that they touch. A program whose arrays lie elsewhere in nearly every
call is recorded with its shaders instead, which serve all places, unless it copies so much that recording takes less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lavax.backends.vulkan.device.commands import BEFORE_LATER_WORK, Recorder
from lavax.backends.vulkan.memory.descriptor_ranges import TEXEL_BYTES, DescriptorRange
from lavax.backends.vulkan.plan.plan import Copies, Dispatch, Plan

# How many recordings for new places a program has left, one after the other, until its shaders are recorded instead,
# and how many submissions later a recording does not follow the one before.
MOST_CREDIT, APART = 64, 256
# Recording saves more than it costs if so many bytes are copied for a program, and for each of its dispatches: 60 and
# 15 µs, while a shader takes 0.3 ns a byte.
WORTH_A_RECORDING, WORTH_A_DISPATCH = 200_000, 50_000

# Where arrays lie, by their slots: VkBuffers and offsets in bytes.
Places = Mapping[int, tuple[Any, int]]


class Credit:
    """Whether a program's copies are worth recording it for the places of its arrays: while any is `left`."""

    __slots__ = ("left", "_last", "_cost")

    def __init__(self, plan: Plan) -> None:
        dispatches = plan.dispatches
        worth = sum(copies.nbytes for copies in copies_of(dispatches))
        self._cost = int(worth < WORTH_A_RECORDING + WORTH_A_DISPATCH * len(dispatches))
        self.left, self._last = MOST_CREDIT, 0

    def gain(self) -> None:
        """A call had its arrays in other places than the one before, for which the program is recorded."""
        self.left += 0 < self.left < MOST_CREDIT

    def lose(self, number: int) -> None:
        """The program was recorded before submission `number`."""
        if number - self._last < APART:
            self.left -= self._cost
        self._last = number


def copies_of(dispatches: Iterable[Dispatch]) -> Iterator[Copies]:
    """The copies that may take the place of dispatches."""
    for dispatch in dispatches:
        if dispatch.copies is not None and dispatch.counts is None:
            yield dispatch.copies


def slots_of_copies(plan: Plan) -> frozenset[int]:
    """The slots of all arrays that copies of a plan read or write."""
    return frozenset(slot for copies in copies_of(plan.dispatches) for slot in copies.slots)


def place_of(shown: DescriptorRange, position: int) -> tuple[Any, int]:
    """The VkBuffer and offset of an array, from its descriptor range and its position there."""
    return shown.buffer, shown.start + TEXEL_BYTES * position


def record_copies(recorder: Recorder, copies: Copies, places: Places) -> None:
    """Records copies and fills. What lies in its place already is not copied."""
    for fill in copies.fills:
        buffer, offset = places[fill.slot]
        recorder.fill(buffer, offset, fill.nbytes, fill.word)
    if copies.fills and copies.copies:
        recorder.wait(BEFORE_LATER_WORK)
    for copy in copies.copies:
        source, target = places[copy.source], places[copy.target]
        runs = _placed(copy.runs, source[1], target[1])
        if source[0] == target[0]:
            runs = [run for run in runs if run[0] != run[1]]
        if runs:
            recorder.copy_runs(source[0], target[0], runs)


def _placed(runs: Sequence[tuple[int, int, int]], source: int, target: int) -> list[tuple[int, int, int]]:
    return [(source + first, target + second, nbytes) for first, second, nbytes in runs]
