"""How long each dispatch of a program takes on the device: runs of its own, with a timestamp around every dispatch."""
from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lavax.backends.vulkan.api import check, created, enumerated, ffi, lib, structure, vk
from lavax.backends.vulkan.commands import BEFORE_LATER_WORK, CommandPool, Recorder
from lavax.backends.vulkan.device import Device
from lavax.backends.vulkan.memory import Buffer, MemoryPool
from lavax.backends.vulkan.program import ADDRESS_BYTES, Program, record_step
from lavax.backends.vulkan.queue import Submission
from lavax.errors import DeviceError
from lavax.passes.reports import TimedDispatch

# A first run wakes the device and has drivers compile; of so many more, or as many as take this long, the one of
# median length is shown.
RUNS, ENOUGH_SECONDS = 5, 1.0

# A copy of this size goes through no cache.
COPY_BYTES = 64 << 20


def profile_program(program: Program, buffers: tuple[Buffer, ...]) -> list[TimedDispatch]:
    """Every dispatch of one run, in order. Raises DeviceError where the device has no timestamps.

    Dispatches run one after another, so that each time is that dispatch's own; of branches and loops all of it, once.
    What a call would write in place is written to a copy.
    """
    device, plan = program.device, program.plan
    donors = {result.donor for result in plan.results if result.donor is not None}
    copies = {donor: device.arrays.allocate(buffers[donor].nbytes) for donor in donors}
    arguments = [copies.get(index, buffer) for index, buffer in enumerate(buffers)]
    results = [
        device.arrays.allocate(result.nbytes) if result.donor is None else copies[result.donor]
        for result in plan.results
    ]
    addresses = [buffer.address for buffer in (*arguments, *results)] + program.static_addresses()
    table = device.tables.allocate_for_host(ADDRESS_BYTES * len(addresses))
    struct.pack_into(f"={len(addresses)}Q", ffi.buffer(table.host_pointer(), table.piece.size), 0, *addresses)

    def record(recorder: Recorder, mark: Callable[[], None]) -> None:
        for donor, copy in copies.items():
            recorder.copy(buffers[donor], copy, copy.nbytes)
        for step in program.steps:
            recorder.wait(BEFORE_LATER_WORK)
            mark()
            record_step(recorder, device, step, table.address)
            recorder.dispatch(step.groups)
            mark()

    times = _median_run(device, 2 * len(program.steps), record)
    starts, ends = times[::2], times[1::2]
    timed = zip(program.steps, starts, ends, strict=True)
    return [TimedDispatch(step.name, start, end - start) for step, start, end in timed]


def copy_rate(device: Device) -> float:
    """Bytes a second that a copy of a large buffer reads and writes."""
    largest = 2 * COPY_BYTES
    pool = MemoryPool(device.handle, device.queue, (device.queue.family,), device.arrays.type, largest)
    source, target = pool.allocate(COPY_BYTES), pool.allocate(COPY_BYTES)

    def record(recorder: Recorder, mark: Callable[[], None]) -> None:
        recorder.copy(target, source, COPY_BYTES)  # memory that was never written may be cheaper to read
        recorder.wait(BEFORE_LATER_WORK)
        mark()
        recorder.copy(source, target, COPY_BYTES)
        mark()

    start, end = _median_run(device, 2, record)
    pool.close()
    return 2 * COPY_BYTES / (end - start)


def _median_run(
    device: Device, count: int, record: Callable[[Recorder, Callable[[], None]], None]
) -> Sequence[float]:
    """Records once and runs several times; seconds of the `count` marks of the run of median length."""
    if count == 0:
        return ()
    device.transfer.flush()
    pool = CommandPool(device.handle, device.queue.family)
    with _queries(device, count) as queries:
        submission = Submission(device.queue, [_recorded(pool, queries, count, record)])
        runs = [_run(device, submission, queries, count) for _ in _rounds()]
    pool.close()
    measured = sorted(runs[1:], key=lambda times: times[-1])
    return measured[len(measured) // 2]


def _rounds() -> Iterator[int]:
    """One round to warm up, then some until there are enough."""
    yield 0
    start = time.perf_counter()
    for number in range(1, RUNS + 1):
        yield number
        if time.perf_counter() - start > ENOUGH_SECONDS:
            return


@contextmanager
def _queries(device: Device, count: int) -> Iterator[Any]:
    """A pool of so many timestamps."""
    info = structure("VkQueryPoolCreateInfo", queryType=vk.VK_QUERY_TYPE_TIMESTAMP, queryCount=count)
    queries = created(lib.vkCreateQueryPool, device.handle, info, "VkQueryPool")
    try:
        yield queries
    finally:
        lib.vkDestroyQueryPool(device.handle, queries, ffi.NULL)


def _recorded(
    pool: CommandPool, queries: Any, count: int, record: Callable[[Recorder, Callable[[], None]], None]
) -> Any:
    """A command buffer of what `record` records; `mark` there takes the next timestamp, when all before it is done."""
    commands = pool.allocate()
    positions = iter(range(count))

    def mark() -> None:
        stage = vk.VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT
        lib.vkCmdWriteTimestamp2(commands, stage, queries, next(positions))

    with Recorder(commands) as recorder:
        lib.vkCmdResetQueryPool(commands, queries, 0, count)
        record(recorder, mark)
        recorder.wait(BEFORE_LATER_WORK)
    return commands


def _run(device: Device, submission: Submission, queries: Any, count: int) -> list[float]:
    """Seconds from the first timestamp to each, of one run."""
    with device.queue.lock:
        number = device.queue.submit(submission)
    device.queue.wait(number)
    ticks = ffi.new("uint64_t[]", count)
    flags = vk.VK_QUERY_RESULT_64_BIT | vk.VK_QUERY_RESULT_WAIT_BIT
    nbytes = count * ffi.sizeof("uint64_t")
    check(lib.vkGetQueryPoolResults(device.handle, queries, 0, count, nbytes, ticks, 8, flags), "Reading timestamps")
    seconds, valid = _tick_seconds(device)
    return [((tick - ticks[0]) & valid) * seconds for tick in ticks]


def _tick_seconds(device: Device) -> tuple[float, int]:
    """How long a tick of the device's clock is, and a mask of the bits that count."""
    physical = device.physical.handle
    families = enumerated(lib.vkGetPhysicalDeviceQueueFamilyProperties, "VkQueueFamilyProperties", physical)
    bits = families[device.queue.family].timestampValidBits
    if bits == 0:
        raise DeviceError(f"{device.physical.name} takes no timestamps, so nothing can be profiled on it.")
    properties = ffi.new("VkPhysicalDeviceProperties *")
    lib.vkGetPhysicalDeviceProperties(physical, properties)
    return properties.limits.timestampPeriod * 1e-9, (1 << bits) - 1
