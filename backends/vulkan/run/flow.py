"""The submissions of one run, a few at a time, and how long they take.

Whoever waits hears Ctrl-C, and then nothing more is submitted. So at most two submissions are in flight: one that runs,
and one that follows without a gap.
"""

from __future__ import annotations

import functools
import time
from collections import deque
from collections.abc import Callable, Sequence

from lavax.backends.vulkan.api.queue import Queue, Submission
from lavax.backends.vulkan.run.cuts import Cuts, Pace
from lavax.backends.vulkan.run.sequence import FLAG_CHECKS, LongTurns, Once, Part, ShortTurns
from lavax.base.quick_dataclasses import dataclass

MOST_IN_FLIGHT = 2

# Called with the seconds that a submission took, and whether these are exact, or a bound.
Note = Callable[[float, bool], None]


@dataclass(frozen=True)
class _Sent:
    number: int
    at: float
    is_alone: bool  # nothing else was in flight
    note: Note


def _wished(pace: Pace, done: int) -> int:
    """The turns of the next submission of a loop that has had so many."""
    if not pace.is_measured:
        return FLAG_CHECKS.largest
    return max(1, int(FLAG_CHECKS.seconds / pace.seconds), int(FLAG_CHECKS.share * done))


class Flow:
    """One run. `submit` makes a submission and returns its number; `is_set` reads a flag when the device is idle.

    `note` is called with the estimated seconds of a submission that runs once, and its seconds as for `Note`.
    """

    def __init__(
        self,
        queue: Queue,
        cuts: Cuts,
        submit: Callable[[Submission], int],
        is_set: Callable[[int], bool],
        note: Callable[[float, float, bool], None],
    ) -> None:
        self._queue, self._cuts, self._submit, self._is_set, self._note = queue, cuts, submit, is_set, note
        self._in_flight: deque[_Sent] = deque()
        self._ended = 0.0  # when a submission was last seen to end
        self._ended_is_exact = False

    def run(self, parts: Sequence[Part]) -> None:
        """Submits all parts; returns when the last few are in flight."""
        for part in parts:
            match part:
                case Once():
                    self._send(part.submission, functools.partial(self._note, part.seconds))
                case ShortTurns() if part.count is not None:
                    self._count(part, part.count)
                case ShortTurns():
                    self._until(part)
                case LongTurns():
                    self._repeat(part)

    def _count(self, loop: ShortTurns, left: int) -> None:
        while left:
            turns = min(left, loop.most, self._cuts.turns(loop.pace))
            self._send_turns(loop, turns)
            left -= turns

    def _until(self, loop: ShortTurns) -> None:
        done, most = 0, 1 if loop.may_be_skipped else FLAG_CHECKS.first
        expected = 0 if loop.may_be_skipped else loop.pace.turns_before - 1
        while True:
            wished = expected - done if done < expected else min(_wished(loop.pace, done), most)
            turns = min(wished, loop.most, self._cuts.turns(loop.pace))
            self._send_turns(loop, turns)
            self._finish(0)
            done += turns
            if not self._is_set(loop.flag):
                break
            most = min(most * FLAG_CHECKS.growth, loop.most)
        loop.pace.turns_before = done

    def _repeat(self, loop: LongTurns) -> None:
        left = loop.count
        while left != 0:
            self.run(loop.parts)
            if left is not None:
                left -= 1
                continue
            self._finish(0)
            if not self._is_set(loop.flag):
                return

    def _send_turns(self, loop: ShortTurns, turns: int) -> None:
        loop.submission.take(turns * loop.command_buffers)
        self._send(loop.submission, functools.partial(loop.pace.note, turns))
        if not loop.pace.is_measured:
            self._finish(0)  # before more is submitted that may take far longer than estimated

    def _send(self, submission: Submission, note: Note) -> None:
        self._finish(MOST_IN_FLIGHT - 1)
        is_alone = not self._in_flight
        at = time.perf_counter()
        self._in_flight.append(_Sent(self._submit(submission), at, is_alone, note))

    def _finish(self, left: int) -> None:
        """Waits until at most `left` submissions are in flight."""
        while len(self._in_flight) > left:
            sent = self._in_flight.popleft()
            was_done = self._queue.reached(sent.number)
            self._queue.wait(sent.number)
            now = time.perf_counter()
            is_exact = not was_done and (sent.is_alone or self._ended_is_exact)
            sent.note(now - max(sent.at, self._ended), is_exact)
            self._ended_is_exact = not was_done
            if not was_done:
                self._ended = now
