"""Memory that nothing uses goes back to the driver: after some time, or when it is asked for."""
from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable

import pytest

from lavax.backends.vulkan.device.device import Device
from lavax.backends.vulkan.memory.idle import IdleWatch
from lavax.backends.vulkan.memory.memory import FIRST_BLOCK_BYTES, Buffer, MemoryPool

BLOCK = FIRST_BLOCK_BYTES


@pytest.fixture
def pool(device: Device) -> MemoryPool:
    return MemoryPool(device.handle, device.queue, (device.queue.family,), device.arrays.type, largest_block=256 << 20)


@pytest.fixture
def keeps_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that call `release_idle` themselves."""
    monkeypatch.setenv("LAVAX_IDLE_MEMORY_SECONDS", "inf")


def _submitted(pool: MemoryPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if work had been submitted, and were done."""
    queue, number = pool.queue, pool.queue.attempted + 1
    for name in ("attempted", "submitted", "completed"):
        monkeypatch.setattr(queue, name, number)


def _filled(pool: MemoryPool) -> list[Buffer]:
    return [pool.allocate(BLOCK) for _ in range(6)]


def _until(reached: Callable[[], bool]) -> bool:
    end = time.monotonic() + 10
    while not reached() and time.monotonic() < end:
        time.sleep(0.02)
    return reached()


@pytest.mark.usefixtures("keeps_all")
def test_blocks_that_nothing_used_since_are_given_back(pool: MemoryPool) -> None:
    small = pool.allocate(10_000)
    peak = _filled(pool)
    allocated = pool.use().allocated
    assert allocated >= 6 * BLOCK
    pool.release_idle(pool.moment())
    assert pool.use().allocated == allocated, "all of it is in use"
    del peak
    pool.release_idle(pool.moment())
    assert pool.use().allocated == BLOCK
    assert pool.use().in_use == small.piece.size
    again = _filled(pool)
    addresses = sorted(buffer.address for buffer in (small, *again))
    assert all(after - before >= 10_000 for before, after in itertools.pairwise(addresses))
    del small, again
    pool.close()


@pytest.mark.usefixtures("keeps_all")
def test_memory_that_was_used_in_the_meantime_is_kept(pool: MemoryPool, monkeypatch: pytest.MonkeyPatch) -> None:
    filled = _filled(pool)
    since = pool.moment()
    _submitted(pool, monkeypatch)
    del filled  # what was just submitted may have used it
    allocated = pool.use().allocated
    pool.release_idle(since)
    assert pool.use().allocated == allocated
    pool.release_idle(pool.moment())
    assert pool.use().allocated == BLOCK
    pool.close()


@pytest.mark.usefixtures("keeps_all")
def test_memory_that_the_device_may_use_is_kept(pool: MemoryPool, monkeypatch: pytest.MonkeyPatch) -> None:
    filled = _filled(pool)
    _submitted(pool, monkeypatch)
    monkeypatch.setattr(pool.queue, "completed", pool.queue.completed - 1)
    monkeypatch.setattr(pool.queue, "reached", lambda number: number <= pool.queue.completed)
    del filled
    allocated = pool.use().allocated
    pool.release_idle(pool.moment())
    assert pool.use().allocated == allocated
    monkeypatch.undo()
    pool.close()


@pytest.mark.usefixtures("keeps_all")
def test_all_unused_blocks_are_given_back_when_asked_for(pool: MemoryPool) -> None:
    filled = _filled(pool)
    del filled
    pool.release_unused()
    assert pool.use().allocated == 0
    assert pool.allocate(1).nbytes == 1
    pool.close()


def test_a_thread_gives_memory_back_while_nobody_calls(pool: MemoryPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAVAX_IDLE_MEMORY_SECONDS", "0.05")
    before = threading.active_count()
    filled = _filled(pool)
    del filled
    assert _until(lambda: pool.use().allocated <= BLOCK)
    assert _until(lambda: threading.active_count() == before), "there is nothing left to give back"
    filled = _filled(pool)
    assert threading.active_count() == before + 1
    del filled
    pool.close()
    assert threading.active_count() == before


class _GrowingPool:
    """A pool whose lock the test holds, as pools do while they grow."""

    def __init__(self) -> None:
        self.lock, self.asked, self.looks = threading.Lock(), threading.Event(), 0

    def moment(self) -> int:
        return 0

    def release_idle(self, since: int) -> None:
        self.looks += 1

    def has_idle_blocks(self) -> bool:
        self.asked.set()
        with self.lock:
            return False


def test_a_pool_may_grow_while_the_thread_asks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAVAX_IDLE_MEMORY_SECONDS", "0.01")
    pool = _GrowingPool()
    watch = IdleWatch(pool)
    with pool.lock:
        watch.start()
        assert pool.asked.wait(10)
        grown = threading.Thread(target=watch.start, daemon=True)
        grown.start()
        grown.join(10)
        assert not grown.is_alive(), "the thread asks the pool while it holds a lock that the pool waits for"
    assert _until(lambda: pool.looks >= 2), "what was added while the thread asked was not looked at"
    watch.end()
