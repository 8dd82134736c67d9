"""How long each dispatch of a program takes on the device: a run of its own, with a timestamp around every dispatch."""
from __future__ import annotations

import struct
from typing import Any

from lavax.backends.vulkan.api import check, created, ffi, lib, structure, vk
from lavax.backends.vulkan.commands import (
    BEFORE_LATER_WORK,
    CommandPool,
    Recorder,
)
from lavax.backends.vulkan.device import Device
from lavax.backends.vulkan.memory import Buffer
from lavax.backends.vulkan.program import ADDRESS_BYTES, Program, record_step
from lavax.backends.vulkan.queue import Submission


def profile_program(program: Program, buffers: tuple[Buffer, ...]) -> list[tuple[str, float]]:
    """Name and seconds of every dispatch of one run.

    Dispatches run one after another, so that each time is that dispatch's own. What a call would write in place
    is written to a copy.
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
    device.transfer.flush()
    pool = CommandPool(device.handle, device.queue.family)
    queries = _create_queries(device, 2 * len(program.steps))
    commands = pool.allocate()
    with Recorder(commands) as recorder:
        recorder.wait(BEFORE_LATER_WORK)
        for donor, copy in copies.items():
            recorder.copy(buffers[donor], copy, copy.nbytes)
        _record_timed(recorder, program, queries, table.address)
    with device.queue.lock:
        number = device.queue.submit(Submission(device.queue, [commands]))
    device.queue.wait(number)
    seconds = _read_seconds(device, queries, len(program.steps))
    lib.vkDestroyQueryPool(device.handle, queries, ffi.NULL)
    pool.close()
    return [(step.name, time) for step, time in zip(program.steps, seconds, strict=True)]


def _create_queries(device: Device, count: int) -> Any:
    kind = vk.VK_QUERY_TYPE_TIMESTAMP
    info = structure("VkQueryPoolCreateInfo", queryType=kind, queryCount=max(1, count))
    return created(lib.vkCreateQueryPool, device.handle, info, "VkQueryPool")


def _record_timed(recorder: Recorder, program: Program, queries: Any, table: int) -> None:
    stage = vk.VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT
    lib.vkCmdResetQueryPool(recorder.commands, queries, 0, max(1, 2 * len(program.steps)))
    for index, step in enumerate(program.steps):
        recorder.wait(BEFORE_LATER_WORK)
        lib.vkCmdWriteTimestamp2(recorder.commands, stage, queries, 2 * index)
        record_step(recorder, program.device, step, table)
        recorder.dispatch(step.groups)  # of branches and loops all of it, once
        lib.vkCmdWriteTimestamp2(recorder.commands, stage, queries, 2 * index + 1)


def _read_seconds(device: Device, queries: Any, steps: int) -> list[float]:
    """The differences of the timestamps, two for each step."""
    if steps == 0:
        return []
    properties = ffi.new("VkPhysicalDeviceProperties *")
    lib.vkGetPhysicalDeviceProperties(device.physical.handle, properties)
    ticks = ffi.new("uint64_t[]", 2 * steps)
    flags = vk.VK_QUERY_RESULT_64_BIT | vk.VK_QUERY_RESULT_WAIT_BIT
    check(
        lib.vkGetQueryPoolResults(device.handle, queries, 0, 2 * steps, 16 * steps, ticks, 8, flags),
        "Reading timestamps",
    )
    nanoseconds = properties.limits.timestampPeriod
    return [(ticks[2 * index + 1] - ticks[2 * index]) * nanoseconds * 1e-9 for index in range(steps)]
