"""A device queue with a timeline: every submission has a number, and waiting is for a number.

The timeline is one semaphore, to which each submission gives its number when it is done. Submissions of a queue run in
order.

An exception may arrive between any two bytecodes: Ctrl-C, or what another signal's handler raises. So a number is noted
wherever it is needed before the submission. Whether the device has the work is known exactly all the same: the driver's
answer gets into a list in the same bytecode that calls the driver, and whoever uses the queue next takes note of it. If
there was no submission, the next one gets the number, and who waits for it may wait longer than needed.
"""
from __future__ import annotations

import functools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from lavax.backends.vulkan.api.api import array, check, created, ffi, lib, structure, vk
from lavax.base.counters import counts
from lavax.base.errors import DeviceError
from lavax.base.quick_dataclasses import dataclass

# Short work ends before a sleeping thread would wake up. So a wait first polls, for a time that depends on the kind of
# device, and yields the processor between polls. On a CPU driver the work itself needs that processor, so polling is
# short; on a GPU polling takes nothing from the work. Chosen by `python -m benchmarks overhead`
# (docs/rejected/calls.md).
POLLING_SECONDS = {"cpu": 100e-6, "gpu": 1e-3}
_yield_processor = getattr(os, "sched_yield", functools.partial(time.sleep, 0))  # Windows has only the latter

# Then it sleeps, for at most this long at a time, so that Ctrl-C still works.
SLEEP_NANOSECONDS = 250_000_000

# The submissions in flight, if nobody waits for any: each may hold memory of the driver, and the end of the process
# waits for all of them. Above the first number, a program waits until the second number is left. A device that always
# has that many ahead is never idle.
MOST_IN_FLIGHT, LEFT_IN_FLIGHT = 32, 16

_NULL = ffi.NULL
_EVERYTHING = array("VkPipelineStageFlags", [vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT])
_ONE, _NO_FENCE = (1,), (_NULL,)  # as many values as vkQueueSubmit is called times


def refuse_forked(*_: Any) -> Any:
    """Raises DeviceError: stands in for what would wait for ever in a forked process."""
    raise DeviceError(
        "this process was forked from one that uses a Vulkan device, and has none of its driver's threads: start "
        'processes by multiprocessing.get_context("spawn") or "forkserver", or fork before the first use of an array'
    )


class Submission:
    """Command buffers with the structures to submit them, any number of times.

    Submitting changes the structures, so two threads may not submit the same one at once.
    """

    def __init__(self, queue: Queue, commands: Sequence[Any], waits_for: Queue | None = None) -> None:
        self.value = ffi.new("uint64_t[1]")
        self.awaited = ffi.new("uint64_t[1]")
        self.commands = ffi.new("VkCommandBuffer[]", [_NULL, *commands])  # with room for one in front
        self._timeline = structure(
            "VkTimelineSemaphoreSubmitInfo", signalSemaphoreValueCount=1, pSignalSemaphoreValues=self.value
        )
        if waits_for is not None:
            self._timeline.waitSemaphoreValueCount, self._timeline.pWaitSemaphoreValues = 1, self.awaited
        self.plain = (self._info(queue, waits_for, self.commands + 1, len(commands)),)
        self.with_one_in_front = (self._info(queue, waits_for, self.commands, len(commands) + 1),)

    def _info(self, queue: Queue, waits_for: Queue | None, commands: Any, count: int) -> Any:
        info = structure(
            "VkSubmitInfo",
            pNext=self._timeline,
            commandBufferCount=count,
            pCommandBuffers=commands,
            signalSemaphoreCount=1,
            pSignalSemaphores=queue.semaphores,
        )
        if waits_for is not None:
            info.waitSemaphoreCount, info.pWaitSemaphores = 1, waits_for.semaphores
            info.pWaitDstStageMask = _EVERYTHING
        return info

    def take(self, count: int) -> None:
        """From now on, only the first `count` command buffers are submitted."""
        self.plain[0].commandBufferCount = count
        self.with_one_in_front[0].commandBufferCount = count + 1


@dataclass(frozen=True)
class Stall:
    """A submission during which somebody waited in vain: for `seconds` at least, it was the one that ran."""

    number: int
    seconds: float


class Queue:
    """One VkQueue.

    `attempted`: the number of the last attempt to submit; `submitted`: that of the last submission that the device is
    known to have; `completed`: of the last one known to be done. `lock` is held to submit, and may be taken again by
    its holder. `stalls`: submissions that took long, the last ones noticed; `stalled`: how often that was.
    """

    def __init__(self, device: Any, family: int, kind: str) -> None:
        self.family = family
        self._polling = POLLING_SECONDS[kind]
        self.lock = threading.RLock()
        self.stalls: deque[Stall] = deque(maxlen=16)
        self.stalled = 0
        self.attempted = 0
        self.submitted = 0
        self.completed = 0
        self._device = device
        handle = ffi.new("VkQueue *")
        lib.vkGetDeviceQueue(device, family, 0, handle)
        self._handles = (handle[0],)
        self._results: list[int] = []  # what the driver answered to an attempt that is not taken note of
        self._then: Callable[[int], None] | None = None
        kind = structure("VkSemaphoreTypeCreateInfo", semaphoreType=vk.VK_SEMAPHORE_TYPE_TIMELINE)
        info = structure("VkSemaphoreCreateInfo", pNext=kind)
        self._semaphore = created(lib.vkCreateSemaphore, device, info, "VkSemaphore")
        self.semaphores = array("VkSemaphore", [self._semaphore])
        self._answers: list[Any] = []  # memory for a counter's value, unused just now; one per thread that polls
        self._submit = lib.vkQueueSubmit
        self._wait = lib.vkWaitSemaphores
        self._read = lib.vkGetSemaphoreCounterValue

    def submit(
        self, submission: Submission, preceding: Any = None, then: Callable[[int], None] | None = None
    ) -> int:
        """Submits, after the command buffer `preceding` if there is one; returns the submission's number.

        Callers note the `next_number` where it is needed, then submit. `then` is called with it if the device has the
        work, also if an exception interrupted this call; perhaps several times. The caller holds `lock`. Raises
        DeviceError.
        """
        results = self._results
        self.attempted = number = self.next_number()
        self._then = then
        submission.value[0] = number
        infos = submission.plain
        if preceding is not None:
            submission.commands[0] = preceding
            infos = submission.with_one_in_front
        results.extend(map(self._submit, self._handles, _ONE, infos, _NO_FENCE))
        result = results[0]
        self.settle()
        if result:
            check(result, "Submitting work to the device")
        counts["submits"] += 1
        return number

    def next_number(self) -> int:
        """The number of the next submission. The caller holds `lock`."""
        if self._results:
            self.settle()
        return self.submitted + 1

    def settle(self) -> None:
        """Takes note of the driver's answer to the last attempt, if nobody has yet. The caller holds `lock`."""
        if self._results and not self._results[0]:
            if self._then is not None:
                self._then(self.attempted)
            self.submitted = self.attempted
        self._results.clear()
        self._then = None  # it may hold memory

    def make_room(self) -> None:
        """Waits until few submissions are in flight; call it if more than MOST_IN_FLIGHT may be."""
        if not self.reached(self.attempted - MOST_IN_FLIGHT):
            self.wait(self.attempted - LEFT_IN_FLIGHT)

    def known(self, number: int) -> int:
        """The last submission up to `number` that the device has: an interrupted attempt may have left none."""
        if number > self.submitted:
            with self.lock:
                self.settle()
                number = min(number, self.submitted)
        return number

    def wait(self, number: int) -> None:
        """Returns when submission `number` and all before it are done. Raises DeviceError if the device fails."""
        if self.reached(number):
            return
        number = self.known(number)
        deadline = time.perf_counter() + self._polling
        _yield_processor()
        while not self.reached(number):
            if time.perf_counter() > deadline:
                self.sleep(number)
                return
            _yield_processor()

    def sleep(self, number: int) -> None:
        """Like `wait`, but sleeps without polling first."""
        value = ffi.new("uint64_t[1]", [number])
        info = structure("VkSemaphoreWaitInfo", semaphoreCount=1, pSemaphores=self.semaphores, pValues=value)
        result, before = vk.VK_TIMEOUT, -1
        while result == vk.VK_TIMEOUT:
            result = self._wait(self._device, info, SLEEP_NANOSECONDS)
            if result == vk.VK_TIMEOUT:
                self.reached(number)  # finds out how far the device is
                if self.completed == before:
                    self._note_stall(before + 1)
                before = self.completed
        check(result, "Waiting for the device")
        if number > self.completed:
            self.completed = number

    def _note_stall(self, number: int) -> None:
        earlier = next((stall.seconds for stall in self.stalls if stall.number == number), 0.0)
        self.stalls.appendleft(Stall(number, earlier + SLEEP_NANOSECONDS * 1e-9))
        self.stalled += 1

    def reached(self, number: int) -> bool:
        """Whether submission `number` is done; does not wait."""
        if number <= self.completed:
            return True
        try:
            answer = self._answers.pop()
        except IndexError:
            answer = ffi.new("uint64_t *")
        result = self._read(self._device, self._semaphore, answer)
        if result:
            check(result, "Asking how far the device is")
        done: int = answer[0]
        self._answers.append(answer)
        if done > self.completed:
            if done > self.attempted:  # drivers above Direct3D 12 have the highest number there when a device is lost
                check(vk.VK_ERROR_DEVICE_LOST, "Asking how far the device is")
            self.completed = done
        return done >= number or (number > self.submitted and done >= self.known(number))

    def drain(self) -> None:
        """Waits for everything submitted so far."""
        self.wait(self.attempted)

    def abandon(self) -> None:
        """In a forked process, which has none of the driver's threads: every use from now on raises DeviceError."""
        self.lock = threading.RLock()  # another thread may have held it
        self._submit = self._wait = self._read = refuse_forked

    def close(self) -> None:
        """Destroys the semaphore; all work must be done."""
        lib.vkDestroySemaphore(self._device, self._semaphore, _NULL)
