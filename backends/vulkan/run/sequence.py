"""In what order a program's command buffers are submitted: straight on, repeated, or until a flag is cleared.

Dispatches in a row are recorded into one command buffer. A repetition whose count is known is the same command buffer
several times in one submission. A loop that ends by its data is submitted in chunks of turns that grow, and the host
looks at its flag after each; turns too many change nothing, since their dispatches read that they have no workgroups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from lavax.backends.vulkan.api.queue import Queue, Submission
from lavax.backends.vulkan.plan.plan import Command, Dispatch, Repeat

# Turns of a loop in one submission: the first, and what each later one has at most.
FIRST_CHUNK, LARGEST_CHUNK = 4, 256


@dataclass(frozen=True, eq=False)
class Run:
    """Dispatches in a row. `repeated`: they may run several times within one submission."""

    dispatches: tuple[Dispatch, ...]
    repeated: bool


@dataclass(frozen=True, eq=False)
class Turns:
    """Segments that are gone through `count` times."""

    count: int
    segments: tuple[Segment, ...]


@dataclass(frozen=True, eq=False)
class Loop:
    """Segments that are gone through until the flag of this number is 0."""

    flag: int
    segments: tuple[Segment, ...]


Segment = Union[Run, Turns, Loop]  # noqa: UP007  # names of classes defined above use it


def segments_of(commands: Sequence[Command], repeated: bool = False) -> tuple[Segment, ...]:
    """A program's commands, cut where a command buffer must end."""
    segments: list[Segment] = []
    row: list[Dispatch] = []
    for command in [*commands, None]:
        if isinstance(command, Dispatch):
            row.append(command)
            continue
        if row:
            segments.append(Run(tuple(row), repeated))
            row = []
        if isinstance(command, Repeat):
            segments.append(Turns(command.count, segments_of(command.commands, True)))
        elif command is not None:
            segments.append(Loop(command.flag, segments_of(command.commands, True)))
    return tuple(segments)


def runs_of(segments: Sequence[Segment]) -> Iterator[Run]:
    """All rows of dispatches, each once."""
    for segment in segments:
        if isinstance(segment, Run):
            yield segment
        else:
            yield from runs_of(segment.segments)


def has_loop(segments: Sequence[Segment]) -> bool:
    """Whether the host has to look at a flag on the way."""
    return any(
        isinstance(segment, Loop) or (isinstance(segment, Turns) and has_loop(segment.segments)) for segment in segments
    )


def in_order(segments: Sequence[Segment], buffers: Mapping[Run, Any]) -> list[Any]:
    """The command buffers of segments without loops, each as often as it runs."""
    found: list[Any] = []
    for segment in segments:
        if isinstance(segment, Run):
            found.append(buffers[segment])
        else:
            found += in_order(segment.segments, buffers) * (segment.count if isinstance(segment, Turns) else 1)
    return found


@dataclass(frozen=True, eq=False)
class Repetition:
    """Parts that are gone through `count` times, or, where that is None, until the flag of that number is 0."""

    parts: tuple[Part, ...]
    count: int | None
    flag: int
    chunks: Mapping[int, Submission]  # that many turns in one submission, where the turns have no loops in them


Part = Union[Submission, Repetition]  # noqa: UP007


def parts_of(segments: Sequence[Segment], buffers: Mapping[Run, Any], queue: Queue) -> tuple[Part, ...]:
    """What is submitted and looked at, in order."""
    parts: list[Part] = []
    straight: list[Segment] = []
    for segment in [*segments, None]:
        if segment is not None and not has_loop([segment]):
            straight.append(segment)
            continue
        if straight:
            parts.append(Submission(queue, in_order(straight, buffers)))
            straight = []
        if isinstance(segment, Turns):
            parts.append(Repetition(parts_of(segment.segments, buffers, queue), segment.count, 0, {}))
        elif isinstance(segment, Loop):
            parts.append(_loop_part(segment, buffers, queue))
    return tuple(parts)


def _loop_part(loop: Loop, buffers: Mapping[Run, Any], queue: Queue) -> Repetition:
    if has_loop(loop.segments):
        return Repetition(parts_of(loop.segments, buffers, queue), None, loop.flag, {})
    turn = in_order(loop.segments, buffers)
    chunks, size = {}, FIRST_CHUNK
    while size <= LARGEST_CHUNK:
        chunks[size] = Submission(queue, turn * size)
        size *= 4
    return Repetition((), None, loop.flag, chunks)


def run_parts(
    parts: Sequence[Part], submit: Callable[[Submission], int], is_set: Callable[[int, int], bool], number: int = 0
) -> int:
    """Submits everything; returns the number of the last submission.

    `is_set(flag, number)` looks at a flag once submission `number` is done.
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
    loop: Repetition, submit: Callable[[Submission], int], is_set: Callable[[int, int], bool], number: int
) -> int:
    size = FIRST_CHUNK
    while True:
        if loop.chunks:
            number = submit(loop.chunks[size])
            size = min(size * 4, LARGEST_CHUNK)
        else:
            number = run_parts(loop.parts, submit, is_set, number)
        if not is_set(loop.flag, number):
            return number
