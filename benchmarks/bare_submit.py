"""Lower bounds of every call: submitting a command buffer, empty or a program's own, and waiting for it."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lavax.backends.vulkan.api.queue import Submission
from lavax.backends.vulkan.device.commands import CommandPool, Recorder
from lavax.backends.vulkan.device.device import Device
from lavax.backends.vulkan.memory.memory import Buffer
from lavax.backends.vulkan.run.program import Program


def bare_submit(device: Device, wait: Callable[[int], None]) -> Callable[[], None]:
    """A function that submits an empty command buffer and waits for it.

    `wait` is `device.queue.wait`, which waits for results, or `device.queue.sleep`, which is vkWaitSemaphores alone.
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

    weakref.finalize(submit_and_wait, lambda: device.retire(queue.attempted, pool.close)).atexit = False
    return submit_and_wait


@dataclass(frozen=True, eq=False)
class BareReplay:
    """A callable that submits the recording of a program without flag loops and waits: a call without the host's part.

    `buffers` are the arguments and results of the program's first call, which every replay reads and writes.
    """

    program: Program
    buffers: Sequence[Buffer]

    def __call__(self) -> None:
        queue, recording = self.program.device.queue, self.program.recordings[0]
        assert recording.submission is not None, "a program with loops is no single submission"
        with queue.lock:
            recording.number = queue.submit(recording.submission)
        queue.wait(recording.number)


def bare_replay(program: Program, *arguments: Buffer) -> BareReplay:
    """Calls a program that was never called, and returns the replay of that call."""
    return BareReplay(program, [*arguments, *program(*arguments)])
