"""The order in which a program's command buffers are submitted: once, repeated, or until a flag is cleared.

Consecutive dispatches are recorded into one command buffer. A loop of known length is that command buffer several times
in one submission. A loop that depends on data is submitted in chunks of iterations, which grow, and the host checks its
flag after each. Extra iterations change nothing: their dispatches read a workgroup count of zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from lavax.backends.vulkan.api.queue import Queue, Submission
from lavax.backends.vulkan.plan.plan import Command, Dispatch, RepeatDispatches


@dataclass(frozen=True)
class LoopChunks:
    """Iterations per submission of a loop that depends on data. No benchmark has such a loop yet."""

    first: int = 4
    growth: int = 4  # from one chunk to the next
    largest: int = 256


LOOP_CHUNKS = LoopChunks()


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive dispatches, in one command buffer. `repeated`: they may run several times in one submission."""

    dispatches: tuple[Dispatch, ...]
    repeated: bool


@dataclass(frozen=True, eq=False)
class CountedLoop:
    """Segments that run `count` times."""

    count: int
    segments: tuple[Segment, ...]


@dataclass(frozen=True, eq=False)
class FlagLoop:
    """Segments that run until the flag with this number is 0."""

    flag: int
    segments: tuple[Segment, ...]


Segment = Union[Batch, CountedLoop, FlagLoop]  # noqa: UP007  # names of classes defined above use it


def segments_of(commands: Sequence[Command], repeated: bool = False) -> tuple[Segment, ...]:
    """A program's commands, split where a command buffer must end."""
    segments: list[Segment] = []
    batch: list[Dispatch] = []
    for command in [*commands, None]:
        if isinstance(command, Dispatch):
            batch.append(command)
            continue
        if batch:
            segments.append(Batch(tuple(batch), repeated))
            batch = []
        if isinstance(command, RepeatDispatches):
            segments.append(CountedLoop(command.count, segments_of(command.commands, True)))
        elif command is not None:
            segments.append(FlagLoop(command.flag, segments_of(command.commands, True)))
    return tuple(segments)


def batches_of(segments: Sequence[Segment]) -> Iterator[Batch]:
    """All batches, each once."""
    for segment in segments:
        if isinstance(segment, Batch):
            yield segment
        else:
            yield from batches_of(segment.segments)


def has_flag_loop(segments: Sequence[Segment]) -> bool:
    """Whether the host has to check a flag between submissions."""
    return any(
        isinstance(segment, FlagLoop) or (isinstance(segment, CountedLoop) and has_flag_loop(segment.segments))
        for segment in segments
    )


def in_order(segments: Sequence[Segment], buffers: Mapping[Batch, Any]) -> list[Any]:
    """The command buffers of segments without flag loops, each as often as it runs."""
    found: list[Any] = []
    for segment in segments:
        if isinstance(segment, Batch):
            found.append(buffers[segment])
        else:
            found += in_order(segment.segments, buffers) * (segment.count if isinstance(segment, CountedLoop) else 1)
    return found


@dataclass(frozen=True, eq=False)
class LoopPart:
    """Parts that run `count` times or, if that is None, until the flag with that number is 0."""

    parts: tuple[Part, ...]
    count: int | None
    flag: int
    chunks: Mapping[int, Submission]  # by number of iterations; none if an iteration has flag loops in it


Part = Union[Submission, LoopPart]  # noqa: UP007


def parts_of(segments: Sequence[Segment], buffers: Mapping[Batch, Any], queue: Queue) -> tuple[Part, ...]:
    """The submissions and loops of segments, in order."""
    parts: list[Part] = []
    straight: list[Segment] = []
    for segment in [*segments, None]:
        if segment is not None and not has_flag_loop([segment]):
            straight.append(segment)
            continue
        if straight:
            parts.append(Submission(queue, in_order(straight, buffers)))
            straight = []
        if isinstance(segment, CountedLoop):
            parts.append(LoopPart(parts_of(segment.segments, buffers, queue), segment.count, 0, {}))
        elif isinstance(segment, FlagLoop):
            parts.append(_loop_part(segment, buffers, queue))
    return tuple(parts)


def _loop_part(loop: FlagLoop, buffers: Mapping[Batch, Any], queue: Queue) -> LoopPart:
    if has_flag_loop(loop.segments):
        return LoopPart(parts_of(loop.segments, buffers, queue), None, loop.flag, {})
    iteration = in_order(loop.segments, buffers)
    chunks, size = {}, LOOP_CHUNKS.first
    while size <= LOOP_CHUNKS.largest:
        chunks[size] = Submission(queue, iteration * size)
        size *= LOOP_CHUNKS.growth
    return LoopPart((), None, loop.flag, chunks)


def run_parts(
    parts: Sequence[Part], submit: Callable[[Submission], int], is_set: Callable[[int, int], bool], number: int = 0
) -> int:
    """Submits all parts; returns the number of the last submission.

    `is_set(flag, number)` reads a flag when submission `number` is done.
    """
    for part in parts:
        if isinstance(part, Submission):
            number = submit(part)
        elif part.count is not None:
            for _ in range(part.count):
                number = run_parts(part.parts, submit, is_set, number)
        else:
            number = _run_loop(part, submit, is_set, number)
    return number


def _run_loop(
    loop: LoopPart, submit: Callable[[Submission], int], is_set: Callable[[int, int], bool], number: int
) -> int:
    size = LOOP_CHUNKS.first
    while True:
        if loop.chunks:
            number = submit(loop.chunks[size])
            size = min(size * LOOP_CHUNKS.growth, LOOP_CHUNKS.largest)
        else:
            number = run_parts(loop.parts, submit, is_set, number)
        if not is_set(loop.flag, number):
            return number
