"""Arrays that shaders see through descriptors: what they read and write, and programs whose arrays move."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from textwrap import dedent

import numpy as np
import pytest

from lavax.backends.vulkan.api.api import ffi
from lavax.backends.vulkan.device.device import get_device
from lavax.backends.vulkan.device.validation import is_about_descriptor_ranges
from lavax.backends.vulkan.memory.descriptor_ranges import DescriptorRange
from lavax.backends.vulkan.memory.memory import Buffer, MemoryPool
from lavax.backends.vulkan.plan.memory_use import RING
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.run.program import MOST_RECORDED, Program
from lavax.base import counters
from lavax.ir import Graph, parse
from tests.backends.vulkan.emit.emission import dispatch_of, plan_of
from tests.backends.vulkan.run.execution import assert_agrees

SIDE = 128
PLUS = dedent(
    """
    graph (x: f32[128,128], y: f32[128,128]) {
      %0 = add(x, y) : f32[128,128]
      return %0
    }
    """
)
ARRAY_BYTES = 4 * SIDE * SIDE

# name: graph, its arrays' forms at the bindings of its only kernel's shader
GRAPHS: dict[str, tuple[str, set[str]]] = {
    "vectors that are aligned": (
        """
        graph (x: f32[128,128], y: i32[128]) {
          %0 = cast(y) : f32[128]
          %1 = broadcast(%0) axes=[1] : f32[128,128]
          %2 = multiply(x, %1) : f32[128,128]
          return %2
        }
        """,
        {"vectors", "eights"},
    ),
    "vectors that are not": (
        """
        graph (x: f32[129,130]) {
          %0 = slice(x) start=[1,1] limit=[129,129] stride=[1,1] : f32[128,128]
          return %0
        }
        """,
        {"elements", "eights"},
    ),
    "elements apart": (
        """
        graph (x: u32[128,129]) {
          %0 = transpose(x) axes=[1,0] : u32[129,128]
          return %0
        }
        """,
        {"elements", "eights"},
    ),
    "truth values": (
        """
        graph (x: bool[16384], y: bool[16384]) {
          %0 = and(x, y) : bool[16384]
          return %0
        }
        """,
        {"vectors", "eights"},
    ),
    "places found in an array": (
        """
        graph (x: f32[16384], i: i32[4096]) {
          %0 = gather(x, i) axes=[0] : f32[4096]
          return %0
        }
        """,
        {"elements", "vectors", "eights"},
    ),
    "rows": (
        """
        graph (x: f32[64,256]) {
          %0 = sum(x) axes=[1] : f32[64]
          return %0
        }
        """,
        {"vectors"},
    ),
    "products": (
        """
        graph (x: f32[128,128], y: f32[128,128]) {
          %0 = dot(x, y) contract=[1]x[0] : f32[128,128]
          return %0
        }
        """,
        {"vectors", "stores"},
    ),
}


def drawn(graph: Graph) -> list[np.ndarray]:
    """Arguments for a graph: small integers, so that sums of products are exact."""
    random = np.random.default_rng(0)
    return [random.integers(-8, 8, node.shape).astype(node.dtype.numpy) for node in graph.inputs]


@pytest.mark.parametrize("name", GRAPHS)
def test_what_is_seen_is_what_memory_holds(name: str) -> None:
    text, forms = GRAPHS[name]
    graph = parse(dedent(text))
    dispatch = dispatch_of(graph, CPU_DRIVER)
    assert {form for form, _ in dispatch.shader.bindings} == forms
    assert_agrees(graph, drawn(graph))


def test_a_loop_over_arrays_that_are_seen() -> None:
    graph = parse(
        dedent("""
        graph (h: f32[128,128], xs: f32[3,128,128]) {
          %0 = scan(h, xs) carries=1 sequences=1 length=3 reverse=false body=graph (h: f32[128,128], x: f32[128,128]) {
            %0 = add(h, x) : f32[128,128]
            %1 = multiply(%0, %0) : f32[128,128]
            return %0, %1
          } : (f32[128,128], f32[3,128,128])
          %1 = item(%0) index=0 : f32[128,128]
          %2 = item(%0) index=1 : f32[3,128,128]
          return %1, %2
        }
        """)
    )
    assert_agrees(graph, drawn(graph))


def test_small_work_and_gpus_use_addresses() -> None:
    small = PLUS.replace("128,128", "127,32")
    for text, profile in ((small, CPU_DRIVER), (PLUS, GENERIC_GPU)):
        plan = plan_of(text, profile)
        assert plan.dispatches[0].shader.bindings == ()
        assert plan.range_slots == ()


def test_an_array_longer_than_half_a_range_is_used_by_address() -> None:
    text = PLUS.replace("y: f32[128,128]", "z: f32[128]").replace(
        "%0 = add(x, y)", "%0 = broadcast(z) axes=[1] : f32[128,128]\n  %1 = add(x, %0)"
    ).replace("return %0", "return %1")
    for descriptor_bytes, seen in ((2 * ARRAY_BYTES, (0, 1, 2)), (2 * ARRAY_BYTES - 512, (1,))):
        plan = plan_of(text, replace(CPU_DRIVER, descriptor_bytes=descriptor_bytes))
        assert tuple(sorted(plan.range_slots)) == seen
        (dispatch,) = plan.dispatches
        assert {dispatch.slots[number] for _, number in dispatch.shader.bindings} == set(seen)


@pytest.fixture
def blocks() -> Iterator[MemoryPool]:
    """A pool with its own blocks, whose descriptor ranges are two arrays long, on a device where shaders use them."""
    device = get_device()
    if device.profile.descriptor_range_bytes == 0:
        pytest.skip("the device's shaders use addresses")
    family, kind = device.queue.family, device.arrays.type
    pool = MemoryPool(device.handle, device.queue, (family,), kind, 64 << 20, range_bytes=2 * ARRAY_BYTES)
    yield pool
    device.queue.drain()
    pool.close()


def filled(pool: MemoryPool, value: int) -> Buffer:
    buffer = pool.allocate(ARRAY_BYTES)
    content = np.full((SIDE, SIDE), value, np.float32)
    ffi.memmove(buffer.host_pointer(), ffi.from_buffer(content), ARRAY_BYTES)
    return buffer


def of_result(buffer: Buffer) -> np.ndarray:
    contents = get_device().transfer.download(buffer, ARRAY_BYTES).view(np.float32)
    return contents.reshape(SIDE, SIDE)


def recordings() -> int:
    return counters.snapshot()["recordings"]


def test_a_program_is_recorded_again_for_arrays_elsewhere_and_once_only(blocks: MemoryPool) -> None:
    device = get_device()
    program = Program(device, plan_of(PLUS, device.profile))
    here = [filled(device.arrays, value) for value in (1, 2)]
    there = [filled(blocks, value) for value in (3, 4)]
    seen: set[tuple[int, DescriptorRange | None]] = set()
    for buffers, total in ((here, 3), (there, 7), (here, 3), (there, 7)):
        before = recordings()
        results = [program(*buffers)[0] for _ in range(2 * RING)]
        assert all(np.all(of_result(result) == total) for result in results)
        now = {(total, result.piece.range) for result in results}  # one, unless a block ends among the results
        assert recordings() == before + len(now - seen)
        seen |= now
    assert {total for total, _ in seen} == {3, 7}
    del here, there, buffers


def test_arrays_are_seen_wherever_they_lie_in_a_block(blocks: MemoryPool) -> None:
    device = get_device()
    program = Program(device, plan_of(PLUS, device.profile))
    shift = blocks.allocate(ARRAY_BYTES // 2 + 256)  # so that arrays cross the ends of ranges
    buffers = [filled(blocks, value) for value in range(2 * MOST_RECORDED)]
    ranges = {id(buffer.piece.range) for buffer in buffers}
    assert len(ranges) > MOST_RECORDED, "more of them than are kept"
    for _ in range(RING):
        for value, buffer in enumerate(buffers):
            (result,) = program(buffers[5], buffer)
            assert np.all(of_result(result) == 5 + value)
    assert max(len(recording.made) for recording in program.recordings) == MOST_RECORDED
    del shift, buffers, buffer


def test_programs_that_wait_for_each_other_see_what_was_written(blocks: MemoryPool) -> None:
    """A donated array, which is read and written in the same place, in changing ranges."""
    device = get_device()
    program = Program(device, plan_of(PLUS, device.profile, donated=(0,)))
    states, ones = [filled(blocks, 0), filled(device.arrays, 0)], filled(blocks, 1)
    for _ in range(3 * RING):
        states = [program(state, ones)[0] for state in states]
    assert all(np.all(of_result(state) == 3 * RING) for state in states)
    del states, ones


def test_temporaries_are_seen_too() -> None:
    graph = parse(
        dedent("""
        graph (x: f32[128,256]) {
          %0 = sum(x) axes=[0] : f32[256]
          %1 = broadcast(%0) axes=[1] : f32[128,256]
          %2 = multiply(x, %1) : f32[128,256]
          %3 = dot(%2, x) contract=[1]x[1] : f32[128,128]
          return %3
        }
        """)
    )
    plan = plan_of(graph, CPU_DRIVER)
    assert any(slot >= len(plan.arguments) + len(plan.results) + len(plan.constants) for slot in plan.range_slots)
    assert_agrees(graph, drawn(graph))


def test_the_validation_layer_is_not_heard_on_what_two_shaders_see() -> None:
    hazard = "[ SYNC-HAZARD-READ-AFTER-WRITE ] vkCmdDispatch: Hazard READ_AFTER_WRITE for VkBuffer"
    texels = "type: VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER"
    assert is_about_descriptor_ranges(f"{hazard}View, and VkDescriptorSet 0xb7, {texels}")
    write = "prior_usage: SYNC_COMPUTE_SHADER_SHADER_STORAGE_WRITE"
    assert is_about_descriptor_ranges(f"{hazard} for indirect VkBuffer 0x7, {write}")
    assert not is_about_descriptor_ranges(f"{hazard} for indirect VkBuffer 0x7, prior_usage: SYNC_COPY_TRANSFER_WRITE")
    assert not is_about_descriptor_ranges(f"{hazard}, vkCmdCopyBuffer")
    assert not is_about_descriptor_ranges("[ VUID-vkCmdDispatch-None-02697 ] VkDescriptorSet 0xb7 is not bound")
