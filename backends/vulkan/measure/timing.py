"""Work between timestamps of the device: recorded once, run several times."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lavax.backends.vulkan.api.api import check, created, enumerated, ffi, lib, structure, vk
from lavax.backends.vulkan.api.queue import Submission
from lavax.backends.vulkan.device.commands import BEFORE_LATER_WORK, CommandPool, Recorder
from lavax.backends.vulkan.device.device import Device
from lavax.base.errors import DeviceError

# A first run wakes the device and has drivers compile; of so many more, or as many as take this long, one is shown.
RUNS, ENOUGH_SECONDS = 5, 1.0

# Records work into a command buffer; its second argument takes the next timestamp, when all before it is done.
Record = Callable[[Recorder, Callable[[], None]], None]


class TimedWork:
    """A command buffer with `count` timestamps, to be run any number of times. Close it when it is no longer used.

    Raises DeviceError where the device has no timestamps.
    """

    def __init__(self, device: Device, count: int, record: Record) -> None:
        self._device, self._count = device, count
        self._tick, self._valid = _tick_seconds(device)
        device.transfer.flush()
        info = structure("VkQueryPoolCreateInfo", queryType=vk.VK_QUERY_TYPE_TIMESTAMP, queryCount=count)
        self._queries = created(lib.vkCreateQueryPool, device.handle, info, "VkQueryPool")
        self._pool = CommandPool(device.handle, device.queue.family)
        self._submission = Submission(device.queue, [self._recorded(record)])

    def run(self) -> list[float]:
        """Seconds from the first timestamp to each, of one run that is waited for."""
        device = self._device
        with device.queue.lock:
            number = device.queue.submit(self._submission)
        device.queue.wait(number)
        ticks = ffi.new("uint64_t[]", self._count)
        flags = vk.VK_QUERY_RESULT_64_BIT | vk.VK_QUERY_RESULT_WAIT_BIT
        nbytes = self._count * ffi.sizeof("uint64_t")
        found = lib.vkGetQueryPoolResults(device.handle, self._queries, 0, self._count, nbytes, ticks, 8, flags)
        check(found, "Reading timestamps")
        return [((tick - ticks[0]) & self._valid) * self._tick for tick in ticks]

    def close(self) -> None:
        """Gives the command buffer and the timestamps back."""
        self._pool.close()
        lib.vkDestroyQueryPool(self._device.handle, self._queries, ffi.NULL)

    def _recorded(self, record: Record) -> Any:
        commands = self._pool.allocate()
        positions = iter(range(self._count))

        def mark() -> None:
            stage = vk.VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT
            lib.vkCmdWriteTimestamp2(commands, stage, self._queries, next(positions))

        with Recorder(commands) as recorder:
            lib.vkCmdResetQueryPool(commands, self._queries, 0, self._count)
            record(recorder, mark)
            recorder.wait(BEFORE_LATER_WORK)
        return commands


@contextmanager
def timed_work(device: Device, count: int, record: Record) -> Iterator[TimedWork]:
    """A TimedWork for a block of code."""
    work = TimedWork(device, count, record)
    try:
        yield work
    finally:
        work.close()


def runs_of(device: Device, count: int, record: Record) -> list[list[float]]:
    """The timestamps of some runs, without the first one, those that took least first."""
    with timed_work(device, count, record) as work:
        runs = [work.run() for _ in rounds()]
    return sorted(runs[1:], key=lambda times: times[-1])


def median_run(device: Device, count: int, record: Record) -> Sequence[float]:
    """The timestamps of the run of median length; nothing where there are none."""
    if count == 0:
        return ()
    measured = runs_of(device, count, record)
    return measured[len(measured) // 2]


def rounds() -> Iterator[int]:
    """One round to warm up, then some until there are enough."""
    yield 0
    start = time.perf_counter()
    for number in range(1, RUNS + 1):
        yield number
        if time.perf_counter() - start > ENOUGH_SECONDS:
            return


def _tick_seconds(device: Device) -> tuple[float, int]:
    """How long a tick of the device's clock is, and a mask of the bits that count."""
    physical = device.physical.handle
    families = enumerated(lib.vkGetPhysicalDeviceQueueFamilyProperties, "VkQueueFamilyProperties", physical)
    bits = families[device.queue.family].timestampValidBits
    if bits == 0:
        raise DeviceError(f"{device.physical.name} takes no timestamps, so nothing can be timed on it.")
    properties = ffi.new("VkPhysicalDeviceProperties *")
    lib.vkGetPhysicalDeviceProperties(physical, properties)
    return properties.limits.timestampPeriod * 1e-9, (1 << bits) - 1
