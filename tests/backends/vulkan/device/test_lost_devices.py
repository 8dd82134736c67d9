"""A device that the driver gives up: who waits for it hears so once, and the end of the process says nothing more."""
from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.backends.vulkan.api.api import check
from lavax.backends.vulkan.api.queue import Queue
from lavax.backends.vulkan.compile import driver_cache
from lavax.backends.vulkan.device.device import Device
from lavax.backends.vulkan.memory.idle import IdleWatch
from tests.backends.vulkan.run.execution import backend

OUT_OF_HOST_MEMORY, LOST = -1, -4


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> Device:
    """A device that had work which it was not done with when the driver gave it up."""
    device = backend().device
    lx.block_until_ready(lx.numpy.asarray(np.ones(3, np.float32)) + 1)
    device.queue.drain()
    for name, value in (("completed", device.queue.attempted - 1), ("_read", _fails), ("_wait", _fails)):
        monkeypatch.setattr(device.queue, name, value)
    return device


def _fails(*_: Any) -> int:
    return LOST


def test_who_waits_for_a_lost_device_hears_what_to_do(lost: Device) -> None:
    with pytest.raises(lx.DeviceError, match=r"VK_ERROR_DEVICE_LOST\. The driver has given .* start another process"):
        lost.queue.wait(lost.queue.attempted)


def test_other_failures_are_told_without_it() -> None:
    with pytest.raises(lx.DeviceError, match=r"^Work failed: VK_ERROR_OUT_OF_HOST_MEMORY\.$"):
        check(OUT_OF_HOST_MEMORY, "Work")


def test_a_count_above_all_submissions_is_that_of_a_lost_device(
    lost: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that the device did not do counts as done."""

    def highest(device: Any, semaphore: Any, answer: Any) -> int:
        answer[0] = (1 << 64) - 1
        return 0

    queue: Queue = lost.queue
    monkeypatch.setattr(queue, "_read", highest)
    before = queue.completed
    with pytest.raises(lx.DeviceError, match="VK_ERROR_DEVICE_LOST"):
        queue.reached(queue.attempted)
    assert queue.completed == before


def test_the_end_of_the_process_says_nothing_more(lost: Device) -> None:
    with pytest.raises(lx.DeviceError):
        lost.finish()
    lost.finish_at_exit()


def test_a_driver_that_does_not_give_its_cache_away_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def vkGetPipelineCacheData(self, *_: Any) -> int:  # noqa: N802
            return OUT_OF_HOST_MEMORY

    monkeypatch.setattr(driver_cache, "lib", Refusing())
    backend().device.pipelines.save()


def test_the_thread_that_gives_memory_back_ends_with_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    class LostPool:
        def moment(self) -> int:
            return 0

        def release_idle(self, since: int) -> None:
            check(LOST, "Asking how far the device is")

        def has_idle_blocks(self) -> bool:
            return True

    heard: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", heard.append)
    monkeypatch.setenv("LAVAX_IDLE_MEMORY_SECONDS", "0.01")
    pool = LostPool()
    watch = IdleWatch(pool)
    watch.start()
    watch.end()
    assert not heard
