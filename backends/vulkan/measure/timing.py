"""Work between timestamps of the device, recorded once and run several times."""
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

# A first run wakes the device up and lets drivers compile. It is followed by this many, fewer if these take longer.
RUNS = 5
ENOUGH_SECONDS = 1.0

# Records work into a command buffer; calling the second argument records the next timestamp, after all earlier work.
Record = Callable[[Recorder, Callable[[], None]], None]


class TimedWork:
    """A command buffer with `count` timestamps, which can run any number of times, until it is closed.

    Raises DeviceError if the device has no timestamps.
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
        """Seconds from the first timestamp to each, in one run; waits for it."""
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
        """Destroys the command buffer and the timestamps, when the device is done with them."""
        self._device.queue.drain()
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
    """A TimedWork that is closed at the end of a `with` block."""
    work = TimedWork(device, count, record)
    try:
        yield work
    finally:
        work.close()


def runs_of(device: Device, count: int, record: Record, most: int = RUNS) -> list[list[float]]:
    """The timestamps of up to `most` runs, shortest run first; a run before these is dropped."""
    with timed_work(device, count, record) as work:
        runs = [work.run() for _ in rounds(most)]
    return sorted(runs[1:], key=lambda times: times[-1])


def median_run(device: Device, count: int, record: Record) -> Sequence[float]:
    """The timestamps of the run of median length; empty if `count` is 0."""
    if count == 0:
        return ()
    measured = runs_of(device, count, record)
    return measured[len(measured) // 2]


def rounds(most: int = RUNS) -> Iterator[int]:
    """The numbers of rounds: 0 to warm up, then up to `most` more within about ENOUGH_SECONDS."""
    yield 0
    start = time.perf_counter()
    for number in range(1, most + 1):
        yield number
        if time.perf_counter() - start > ENOUGH_SECONDS:
            return


def _tick_seconds(device: Device) -> tuple[float, int]:
    """The seconds per tick of the device's clock, and a mask of the valid bits."""
    physical = device.physical.handle
    families = enumerated(lib.vkGetPhysicalDeviceQueueFamilyProperties, "VkQueueFamilyProperties", physical)
    bits = families[device.queue.family].timestampValidBits
    if bits == 0:
        raise DeviceError(f"{device.physical.name} takes no timestamps, so nothing can be timed on it.")
    properties = ffi.new("VkPhysicalDeviceProperties *")
    lib.vkGetPhysicalDeviceProperties(physical, properties)
    return properties.limits.timestampPeriod * 1e-9, (1 << bits) - 1
