"""A device queue with a timeline: every submission has a number, and waiting is for a number.

The timeline is one semaphore that counts the queue's submissions. Submissions of a queue run in order.
"""
from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Sequence
from typing import Any

from lavax.backends.vulkan.api.api import array, check, created, ffi, lib, structure, vk
from lavax.base.counters import counts

# Short work ends before a sleeping thread would wake up. So a wait first polls, for a time that depends on the kind of
# device, and yields the processor between polls. On a CPU driver the work itself needs that processor, so polling is
# short; on a GPU polling takes nothing from the work. Chosen by `python -m benchmarks overhead` (docs/rejected.md).
POLLING_SECONDS = {"cpu": 100e-6, "gpu": 1e-3}
_yield_processor = getattr(os, "sched_yield", functools.partial(time.sleep, 0))  # Windows has only the latter

# Then it sleeps, for at most this long at a time, so that Ctrl-C still works.
SLEEP_NANOSECONDS = 250_000_000

_NULL = ffi.NULL


class Submission:
    """Command buffers with the structures to submit them, any number of times.

    Submitting changes the structures, so two threads may not submit the same one at once.
    """

    def __init__(self, queue: Queue, commands: Sequence[Any], waits_for: Queue | None = None) -> None:
        self.value = ffi.new("uint64_t[1]")
        self.awaited = ffi.new("uint64_t[1]")
        self.count = len(commands)
        self.commands = ffi.new("VkCommandBuffer[]", [_NULL, *commands])  # with room for one in front
        self.own = self.commands + 1
        timeline = structure(
            "VkTimelineSemaphoreSubmitInfo", signalSemaphoreValueCount=1, pSignalSemaphoreValues=self.value
        )
        self.info = structure(
            "VkSubmitInfo",
            pNext=timeline,
            commandBufferCount=self.count,
            pCommandBuffers=self.own,
            signalSemaphoreCount=1,
            pSignalSemaphores=queue.semaphores,
        )
        if waits_for is not None:
            timeline.waitSemaphoreValueCount, timeline.pWaitSemaphoreValues = 1, self.awaited
            self.info.waitSemaphoreCount, self.info.pWaitSemaphores = 1, waits_for.semaphores
            self._stages = array("VkPipelineStageFlags", [vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT])
            self.info.pWaitDstStageMask = self._stages


class Queue:
    """One VkQueue. `submitted`: the number of the last submission; `completed`: of the last one known to be done."""

    def __init__(self, device: Any, family: int, kind: str) -> None:
        self.family = family
        self._polling = POLLING_SECONDS[kind]
        self.lock = threading.Lock()
        self.submitted = 0
        self.completed = 0
        self._device = device
        handle = ffi.new("VkQueue *")
        lib.vkGetDeviceQueue(device, family, 0, handle)
        self._handle = handle[0]
        kind = structure("VkSemaphoreTypeCreateInfo", semaphoreType=vk.VK_SEMAPHORE_TYPE_TIMELINE)
        info = structure("VkSemaphoreCreateInfo", pNext=kind)
        self._semaphore = created(lib.vkCreateSemaphore, device, info, "VkSemaphore")
        self.semaphores = array("VkSemaphore", [self._semaphore])
        self._answers: list[Any] = []  # memory for a counter's value, unused just now; one per thread that polls
        self._submit = lib.vkQueueSubmit
        self._wait = lib.vkWaitSemaphores
        self._read = lib.vkGetSemaphoreCounterValue

    def submit(self, submission: Submission, preceding: Any = None) -> int:
        """Submits, after the command buffer `preceding` if there is one; returns the submission's number.

        The caller holds `lock`. Raises DeviceError.
        """
        number = self.submitted + 1
        submission.value[0] = number
        if preceding is None:
            result = self._submit(self._handle, 1, submission.info, _NULL)
        else:
            result = self._submit_behind(preceding, submission)
        if result:
            check(result, "Submitting work to the device")
        self.submitted = number
        counts["submits"] += 1
        return number

    def _submit_behind(self, preceding: Any, submission: Submission) -> int:
        """Submits with `preceding` in front; returns the VkResult."""
        info = submission.info
        submission.commands[0] = preceding
        info.pCommandBuffers, info.commandBufferCount = submission.commands, submission.count + 1
        result: int = self._submit(self._handle, 1, info, _NULL)
        info.pCommandBuffers, info.commandBufferCount = submission.own, submission.count
        return result

    def wait(self, number: int) -> None:
        """Returns when submission `number` and all before it are done. Raises DeviceError if the device fails."""
        if self.reached(number):
            return
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
        result = vk.VK_TIMEOUT
        while result == vk.VK_TIMEOUT:
            result = self._wait(self._device, info, SLEEP_NANOSECONDS)
        check(result, "Waiting for the device")
        if number > self.completed:
            self.completed = number

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
            self.completed = done
        return done >= number

    def drain(self) -> None:
        """Waits for everything submitted so far."""
        self.wait(self.submitted)

    def close(self) -> None:
        """Destroys the semaphore; all work must be done."""
        lib.vkDestroySemaphore(self._device, self._semaphore, _NULL)
