"""The submissions of a program, in order: each once, or in loops.

A loop whose turns are short is a submission of a variable number of turns. If it depends on data, the host checks its
flag after each submission; surplus turns change nothing, because their dispatches read a workgroup count of zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Union

from lavax.backends.vulkan.api.queue import Queue, Submission
from lavax.backends.vulkan.run.cuts import BOUNDS, Cuts, Pace
from lavax.backends.vulkan.run.segments import (
    Batch,
    Loop,
    Segment,
    command_buffers_of,
    depends_on_data,
    in_order,
    seconds_of,
)
from lavax.base.quick_dataclasses import dataclass


@dataclass(frozen=True)
class FlagChecks:
    """Turns per submission of a loop that depends on data; docs/performance/linear_algebra_on_gpus.md, "Loops that
    the host looks at". Surplus turns of a loop that has ended take time, too, and so does every look. The first
    submission has all but one of the turns of the last run."""

    first: int = 4  # until it is known how long a turn takes
    growth: int = 4  # at most, from one submission to the next
    seconds: float = 2e-4  # of a submission, at least
    share: float = 1 / 4  # of all turns before, if that is more
    largest: int = 256


FLAG_CHECKS = FlagChecks()


@dataclass(frozen=True, eq=False)
class Once:
    """A submission, with its estimated seconds."""

    submission: Submission
    seconds: float


@dataclass(frozen=True, eq=False)
class ShortTurns:
    """A loop, several of whose turns make a submission: up to `most`, of so many `command_buffers` each.

    It has `count` turns or, if that is None, goes on until the flag with that number is 0. `may_be_skipped`: it is
    in a branch; if that is not taken, the first turn sets the flag to 0.
    """

    submission: Submission
    command_buffers: int
    most: int
    count: int | None
    flag: int
    pace: Pace
    may_be_skipped: bool


@dataclass(frozen=True, eq=False)
class LongTurns:
    """A loop, each of whose turns takes these parts."""

    parts: tuple[Part, ...]
    count: int | None
    flag: int


Part = Union[Once, ShortTurns, LongTurns]  # noqa: UP007


def parts_of(
    segments: Sequence[Segment], buffers: Mapping[Batch, Any], queue: Queue, cuts: Cuts
) -> tuple[Part, ...]:
    """The submissions and loops of segments, in order."""
    parts: list[Part] = []
    together: list[Segment] = []

    def close() -> None:
        if together:
            parts.append(Once(Submission(queue, in_order(together, buffers)), seconds_of(together)))
            together.clear()

    for segment in segments:
        if isinstance(segment, Loop) and (depends_on_data(segment) or _is_over(segment, cuts)):
            close()
            parts.append(_loop(segment, buffers, queue, cuts))
            continue
        if together and _is_over((*together, segment), cuts):
            close()
        together.append(segment)
    close()
    return tuple(parts)


def _loop(loop: Loop, buffers: Mapping[Batch, Any], queue: Queue, cuts: Cuts) -> Part:
    turn = loop.segments
    is_one_batch = len(turn) == 1 and isinstance(turn[0], Batch)
    if any(map(depends_on_data, turn)) or (not is_one_batch and _is_over(turn, cuts)):
        return LongTurns(parts_of(turn, buffers, queue, cuts), loop.count, loop.flag)
    commands = in_order(turn, buffers)
    most = max(1, BOUNDS.command_buffers // max(len(commands), 1))
    most = min(most, FLAG_CHECKS.largest if loop.count is None else loop.count)
    submission = Submission(queue, commands * most)
    return ShortTurns(submission, len(commands), most, loop.count, loop.flag, loop.pace, loop.may_be_skipped)


def _is_over(segments: Segment | Sequence[Segment], cuts: Cuts) -> bool:
    every = (segments,) if isinstance(segments, (Batch, Loop)) else segments
    return cuts.is_over(seconds_of(every), command_buffers_of(every))
