"""The host's time for a call of a compiled function, compared with Vulkan's minimum."""
from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

import numpy as np

import lavax as lx
from benchmarks import figure
from benchmarks.figure import Figure

ROUNDS = 2000
WARM_UP = 100


def measure() -> Sequence[Figure]:
    """A compiled `x + 1`, called and waited for, against an empty command buffer, submitted and waited for."""
    from benchmarks.bare_submit import bare_replay, bare_submit  # late: these need a Vulkan loader
    from lavax.backends.vulkan.backend import VulkanBackend
    from lavax.backends.vulkan.device.device import get_device

    device = get_device()
    add_one = lx.compile(lambda x: x + 1)
    x = lx.device_put(np.zeros(8, np.float32))
    lowered = VulkanBackend().lower(lx.trace(lambda x: x + 1)(x))
    asking, sleeping, replayed, called = interleaved(
        bare_submit(device, device.queue.wait),
        bare_submit(device, device.queue.sleep),
        bare_replay(lowered.compile().program, x.buffer),
        lambda: add_one(x).block_until_ready(),
    )
    return [
        Figure("an empty command buffer, waited for as results are", figure.spread(asking)),
        Figure("an empty command buffer, vkWaitSemaphores alone", figure.spread(sleeping)),
        Figure("x + 1, its command buffer alone", figure.spread(replayed)),
        Figure("x + 1, called and waited for", figure.spread(called)),
        figure.at_most("of this, the host's part", microseconds(called) - microseconds(replayed), 12, unit=" µs"),
        figure.at_most("x + 1 over the first", microseconds(called) / microseconds(asking), 2),
        figure.at_most("x + 1 over the second", microseconds(called) / microseconds(sleeping), 2),
    ]


def microseconds(times: Sequence[float]) -> float:
    """The median of times in seconds."""
    return 1e6 * figure.median(times)


def interleaved(*functions: Callable[[], object]) -> list[list[float]]:
    """Seconds of each function, called in turn, so that other work on the machine affects all alike.

    The order differs in each round, because the state of the driver's threads depends on the previous call.
    """
    times: list[list[float]] = [[] for _ in functions]
    shuffle = random.Random(0).shuffle
    order = list(range(len(functions)))
    for number in range(WARM_UP + ROUNDS):
        shuffle(order)
        for index in order:
            start = time.perf_counter()
            functions[index]()
            if number >= WARM_UP:
                times[index].append(time.perf_counter() - start)
    return times
