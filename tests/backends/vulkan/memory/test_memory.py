from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavax.backends.vulkan.device.device import Device
from lavax.backends.vulkan.memory.memory import FIRST_BLOCK_BYTES, MemoryPool
from lavax.backends.vulkan.plan.memory_use import ALIGNMENT, rounded_size
from lavax.base.errors import DeviceError


@pytest.fixture
def pool(device: Device, monkeypatch: pytest.MonkeyPatch) -> MemoryPool:
    """A pool of its own, so that what other tests keep does not count, and whose pieces have no guards."""
    monkeypatch.delenv("LAVAX_GUARD_MEMORY", raising=False)
    types = device.arrays.type
    return MemoryPool(device.handle, device.queue, (device.queue.family,), types, largest_block=64 << 20)


@given(st.integers(0, 1 << 40))
def test_rounding_up_wastes_at_most_a_sixteenth(nbytes: int) -> None:
    size = rounded_size(nbytes)
    assert nbytes <= size and size % ALIGNMENT == 0 and size > 0
    assert size - nbytes <= max(ALIGNMENT, nbytes / 16)
    assert rounded_size(size) == size


def test_buffers_are_aligned_and_apart(pool: MemoryPool) -> None:
    buffers = [pool.allocate(nbytes) for nbytes in (1, 0, 255, 256, 257, 5000, 1 << 20)]
    ends = [buffer.address + max(1, buffer.nbytes) for buffer in buffers]
    assert all(buffer.address % ALIGNMENT == 0 for buffer in buffers)
    for buffer, end in zip(buffers, ends, strict=True):
        assert all(end <= other.address or other is buffer or other.address < buffer.address for other in buffers)
    del buffer, buffers
    pool.close()


def test_a_dropped_buffer_is_reused_by_the_next_of_its_size(pool: MemoryPool) -> None:
    first = pool.allocate(1000)
    address = first.address
    del first
    again = pool.allocate(1001)
    assert again.address == address
    assert pool.use().in_use == rounded_size(1001)
    del again
    assert pool.use().in_use == 0
    assert pool.use().peak == rounded_size(1001)
    pool.close()


def test_buffers_allocated_together_are_like_those_allocated_alone(pool: MemoryPool) -> None:
    first = pool.allocate_all([1000, 5, 1000])  # from the free ranges
    assert [buffer.nbytes for buffer in first] == [1000, 5, 1000]
    addresses = [buffer.address for buffer in first]
    assert len(set(addresses)) == 3
    del first
    again = pool.allocate_all([5, 1000, 1000])  # what came back
    assert sorted(buffer.address for buffer in again) == sorted(addresses)
    assert again[0].address == addresses[1] and again[0].produced == 0
    assert pool.use().in_use == 2 * rounded_size(1000) + rounded_size(5)
    del again
    assert pool.use().in_use == 0
    pool.close()


def test_the_host_gets_no_memory_that_work_so_far_may_use(pool: MemoryPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody notes what reads a buffer, so all that was submitted when it was dropped must be over."""
    queue = pool.queue
    buffer, staging = pool.allocate(1000), pool.allocate_staging(5)
    addresses = buffer.address, staging.address
    for name in ("attempted", "submitted"):
        monkeypatch.setattr(queue, name, getattr(queue, name) + 2)
    staging.last_use = queue.submitted - 1
    del buffer, staging
    under_way = pool.allocate_for_host(1000)
    assert under_way.address != addresses[0]
    monkeypatch.setattr(queue, "completed", queue.submitted - 1)
    assert pool.allocate_staging(5).address == addresses[1], "copies say themselves how long they need it"
    assert pool.allocate_for_host(1000).address != addresses[0]
    monkeypatch.setattr(queue, "completed", queue.submitted)
    assert pool.allocate_for_host(1000).address == addresses[0]
    del under_way
    pool.close()


def test_where_the_device_refuses_one_of_several_buffers_the_others_come_back(pool: MemoryPool) -> None:
    with pytest.raises(DeviceError, match="over the device's limit"):
        pool.allocate_all([1000, (64 << 20) + 1])
    assert pool.use().in_use == 0
    pool.close()


def test_pieces_of_one_size_become_memory_for_another_before_the_pool_grows(pool: MemoryPool) -> None:
    small = [pool.allocate(1 << 20) for _ in range(FIRST_BLOCK_BYTES >> 20)]
    assert pool.use().allocated == FIRST_BLOCK_BYTES
    del small
    large = pool.allocate(FIRST_BLOCK_BYTES)
    assert pool.use().allocated == FIRST_BLOCK_BYTES
    more = pool.allocate(1)
    assert pool.use().allocated == 2 * FIRST_BLOCK_BYTES
    del large, more
    pool.close()


def test_memory_is_constant_over_many_allocations(pool: MemoryPool) -> None:
    held = [pool.allocate(100 * index) for index in range(20)]
    use = pool.use()
    for step in range(10_000):
        index = step * 7 % 20
        held[index] = pool.allocate(100 * index)
    assert pool.use().allocated == use.allocated
    assert pool.use().in_use == use.in_use
    del held
    pool.close()


def test_a_buffer_over_the_limit_of_the_device_is_refused(pool: MemoryPool) -> None:
    with pytest.raises(DeviceError, match="over the device's limit of 67108864 bytes"):
        pool.allocate((64 << 20) + 1)


def test_when_the_device_is_full_unused_blocks_are_given_back(
    pool: MemoryPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    capacity, add = 48 << 20, pool._add_block

    def add_within_capacity(size: int) -> bool:
        return pool.use().allocated + size <= capacity and add(size)

    monkeypatch.setattr(pool, "_add_block", add_within_capacity)
    small = pool.allocate(1)
    medium = pool.allocate(30 << 20)
    assert pool.use().allocated == 46 << 20
    del small, medium
    large = pool.allocate(40 << 20)
    assert pool.use().allocated == 40 << 20
    with pytest.raises(DeviceError, match=f"out of memory: {32 << 20} bytes were asked for, {40 << 20} are in use"):
        pool.allocate(32 << 20)
    del large
    pool.close()
