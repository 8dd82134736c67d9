"""Memory that goes back to the driver: what is left, and programs that ran with it before."""
from __future__ import annotations

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.device.device import get_device

MEGABYTE = 1 << 20


def test_clear_caches_gives_the_memory_of_a_peak_back() -> None:
    pool = get_device().arrays
    kept = lnp.arange(2500) + 1
    lx.clear_caches()
    before = pool.use().allocated
    count = 8 + before // (16 * MEGABYTE)  # blocks that other arrays keep may have room
    peak = [lnp.full((4 * MEGABYTE,), float(number)) + lnp.ones(4 * MEGABYTE) for number in range(count)]
    lx.block_until_ready(peak)
    assert pool.use().allocated >= before + 100 * MEGABYTE
    del peak
    lx.clear_caches()
    assert pool.use().allocated <= before
    assert (np.asarray(kept) == np.arange(1, 2501)).all()


def test_programs_do_not_mix_up_a_block_with_one_that_had_its_addresses() -> None:
    """A driver likes to give the addresses of a freed block to the next; descriptors show only one of them."""
    pool = get_device().arrays
    scaled = lx.compile(lambda x: x * 2.0 + 1.0)
    lx.clear_caches()
    places = set()
    for number in range(6):
        given = lnp.asarray(np.full(4 * MEGABYTE, float(number), np.float32))
        result = scaled(given)
        places.add((given._buffer.address, result._buffer.address))
        program = next(iter(scaled._entries.values())).run._program.program
        (recording,) = (each for each in program.recordings if tuple(each.addresses) in places)
        shown = [each for each in next(reversed(recording.made))[0] if each is not None]
        assert [each.buffer for each in shown] == [
            buffer.piece.block.buffer for buffer in (given._buffer, result._buffer)[: len(shown)]
        ]
        assert (np.asarray(result) == 2.0 * number + 1.0).all()
        del given, result
        pool.release_unused()
    assert len(places) < 6, "otherwise this test shows nothing"
