"""The floor under every call: an empty command buffer, recorded once, submitted and waited for."""
from __future__ import annotations

import weakref
from collections.abc import Callable

from lavax.backends.vulkan.commands import CommandPool, Recorder
from lavax.backends.vulkan.device import Device
from lavax.backends.vulkan.queue import Submission


def bare_submit(device: Device, wait: Callable[[int], None]) -> Callable[[], None]:
    """A function that submits an empty command buffer and waits for it; benchmarks hold calls against it.

    `wait` is `device.queue.wait`, with which results are waited for, or `device.queue.sleep`, which is
    vkWaitSemaphores alone.
    """
    queue = device.queue
    pool = CommandPool(device.handle, queue.family)
    commands = pool.allocate()
    with Recorder(commands):
        pass
    submission = Submission(queue, [commands])

    def submit_and_wait() -> None:
        with queue.lock:
            number = queue.submit(submission)
        wait(number)

    weakref.finalize(submit_and_wait, lambda: device.retire(queue.submitted, pool.close)).atexit = False
    return submit_and_wait
