"""A program's commands as segments: dispatches that are recorded together, and loops of segments.

Consecutive dispatches are recorded into one command buffer, unless they take so long that a submission must end there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Union

from lavax.backends.vulkan.plan.plan import Command, Dispatch, RepeatDispatches
from lavax.backends.vulkan.run.cuts import Cuts, Pace
from lavax.base.quick_dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive dispatches, in one command buffer. `repeated`: they may run several times in one submission."""

    dispatches: tuple[Dispatch, ...]
    repeated: bool
    seconds: float = 0.0  # estimated

    @property
    def command_buffers(self) -> int:
        return 1


@dataclass(frozen=True, eq=False)
class Loop:
    """Segments that run `count` times or, if that is None, until the flag with that number is 0.

    `may_be_skipped`: they are in a branch.
    """

    segments: tuple[Segment, ...]
    count: int | None
    flag: int
    may_be_skipped: bool = False
    pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pace", Pace(max(seconds_of(self.segments), 1e-9)))

    @property
    def seconds(self) -> float:
        return (self.count or 1) * seconds_of(self.segments)

    @property
    def command_buffers(self) -> int:
        return (self.count or 1) * command_buffers_of(self.segments)


Segment = Union[Batch, Loop]  # noqa: UP007  # names of classes defined above use it


def segments_of(commands: Sequence[Command], cuts: Cuts, repeated: bool = False) -> tuple[Segment, ...]:
    """A program's commands, split where a command buffer must end."""
    segments: list[Segment] = []
    batch: list[Dispatch] = []
    seconds = 0.0
    for command in [*commands, None]:
        more = cuts.estimate.seconds(command) if isinstance(command, Dispatch) else 0.0
        if batch and (not isinstance(command, Dispatch) or cuts.is_over(seconds + more, 1)):
            segments.append(Batch(tuple(batch), repeated, seconds))
            batch, seconds = [], 0.0
        if isinstance(command, Dispatch):
            batch.append(command)
            seconds += more
        elif isinstance(command, RepeatDispatches):
            segments.append(Loop(segments_of(command.commands, cuts, True), command.count, 0))
        elif command is not None:
            segments.append(Loop(segments_of(command.commands, cuts, True), None, command.flag, command.may_be_skipped))
    return tuple(segments)


def seconds_of(segments: Sequence[Segment]) -> float:
    """The estimated seconds of segments, one after the other."""
    return sum(segment.seconds for segment in segments)


def command_buffers_of(segments: Sequence[Segment]) -> int:
    """How many command buffers run, one after the other."""
    return sum(segment.command_buffers for segment in segments)


def batches_of(segments: Sequence[Segment]) -> Iterator[Batch]:
    """All batches, each once."""
    for segment in segments:
        if isinstance(segment, Batch):
            yield segment
        else:
            yield from batches_of(segment.segments)


def depends_on_data(segment: Segment) -> bool:
    """Whether the host has to check a flag between submissions."""
    return isinstance(segment, Loop) and (segment.count is None or any(map(depends_on_data, segment.segments)))


def in_order(segments: Sequence[Segment], buffers: Mapping[Batch, Any]) -> list[Any]:
    """The command buffers of segments that do not depend on data, each as often as it runs."""
    found: list[Any] = []
    for segment in segments:
        if isinstance(segment, Batch):
            found.append(buffers[segment])
        else:
            found += in_order(segment.segments, buffers) * (segment.count or 0)
    return found
