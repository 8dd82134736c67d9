"""Copies between host and device: through the mapped pointer if there is one, else through staging memory.

A staged upload has no submission of its own: its copy is kept in a list and submitted with the next program, before it.
Downloads wait for the submission that produced the buffer, and for no later one.
"""
from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from lavax.backends.vulkan.api.api import ffi
from lavax.backends.vulkan.api.queue import Queue, Submission
from lavax.backends.vulkan.device.commands import BEFORE_LATER_WORK, COPIES_BEFORE_HOST_READS, CommandPool, Recorder
from lavax.backends.vulkan.memory.memory import Buffer, MemoryPool, StagingBuffer
from lavax.base import counters
from lavax.base.quick_dataclasses import dataclass

# Large transfers are staged in parts of this size.
STAGING_BYTES = 32 << 20

# Pending copies are submitted on their own if they exceed this many bytes together. Two such submissions may be in
# flight; an upload waits for those before them, or staging memory would grow with what is uploaded.
LARGEST_PENDING_BYTES = 64 << 20

# Uncached mapped memory is slow to read, but a staged copy costs a submission. Up to this size, reading is faster.
DIRECT_READ_BYTES = 4096


@dataclass(frozen=True)
class _Copy:
    staging: StagingBuffer
    target: Buffer
    offset: int


class Transfer:
    """Uploads to, and downloads from, buffers of the pool `arrays`. Safe in several threads.

    `queue` runs programs; `copy_queue` runs downloads, and may be the same queue.
    """

    def __init__(
        self, device: Any, queue: Queue, copy_queue: Queue, arrays: MemoryPool, staging: MemoryPool
    ) -> None:
        self.pending: list[_Copy] = []
        self._queue = queue
        self._copy_queue = copy_queue
        self._arrays = arrays
        self._staging = staging
        self._upload_pool = CommandPool(device, queue.family)
        self._flushed = (0, 0)  # the last submissions of many pending bytes
        self._uploads: list[tuple[Any, int]] = []  # command buffers, and the submissions that used them
        self._download_pool = CommandPool(device, copy_queue.family)
        self._download_lock = threading.RLock()
        self._fetched: tuple[int, StagingBuffer | None] = (0, None)  # the last download, and its memory while in flight
        commands = self._download_pool.allocate()
        self._download = Submission(copy_queue, [commands], waits_for=self._awaited_by_downloads())

    def upload(self, array: np.ndarray[Any, Any]) -> Buffer:
        """A buffer with the bytes of `array` in C order; the array may be changed as soon as this returns."""
        source = np.ascontiguousarray(array)
        counters.count("bytes_to_device", source.nbytes)
        if self._arrays.type.host_visible:
            target = self._arrays.allocate_for_host(source.nbytes)
            ffi.memmove(target.host_pointer(), source, source.nbytes)
            return target
        target = self._arrays.allocate(source.nbytes)
        source_bytes = source.reshape(-1).view(np.uint8)
        for offset in range(0, source.nbytes, STAGING_BYTES):
            self._stage(source_bytes[offset : offset + STAGING_BYTES], target, offset)
        return target

    def download(self, buffer: Buffer, nbytes: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """A copy of the first `nbytes` of a buffer on the host."""
        counters.count("bytes_to_host", nbytes)
        result = np.empty(nbytes, np.uint8)
        memory = self._arrays.type
        if memory.host_visible and (memory.host_cached or nbytes <= DIRECT_READ_BYTES):
            self._queue.wait(buffer.produced)
            ffi.memmove(result, buffer.host_pointer(), nbytes)
            return result
        self.flush()
        with self._download_lock:
            for offset in range(0, nbytes, STAGING_BYTES):
                self._fetch(buffer, offset, result[offset : offset + STAGING_BYTES])
        return result

    def submit_behind_pending(self, submission: Submission) -> int:
        """Submits with the pending copies in front; returns the number. The caller holds the queue's lock.

        The copies are pending until the device is known to have them.
        """
        queue = self._queue
        queue.settle()  # copies that an interrupted submission took are no longer pending
        copies = list(self.pending)
        commands = self._record(copies)
        number = queue.next_number()
        for copy in copies:
            copy.staging.last_use = copy.target.produced = number
        return queue.submit(submission, commands, functools.partial(self._sent, commands, copies))

    def flush(self) -> None:
        """Submits the pending copies, if there are any."""
        with self._queue.lock:
            if self.pending:
                self.submit_behind_pending(Submission(self._queue, []))

    def close(self) -> None:
        """Frees the command buffers; the device must be done with them."""
        self._upload_pool.close()
        self._download_pool.close()

    def _record(self, copies: Sequence[_Copy]) -> Any:
        """A command buffer with these copies."""
        commands = self._free_command_buffer()
        with Recorder(commands) as recorder:
            for copy in copies:
                recorder.copy(copy.staging, copy.target, copy.staging.nbytes, target_offset=copy.offset)
            recorder.wait(BEFORE_LATER_WORK)
        return commands

    def _sent(self, commands: Any, copies: Sequence[_Copy], number: int) -> None:
        """Notes that these copies are part of submission `number`; for a second time, it changes nothing."""
        sent = set(map(id, copies))
        if (commands, number) not in self._uploads:
            self._uploads.append((commands, number))
        self.pending = [copy for copy in self.pending if id(copy) not in sent]

    def _awaited_by_downloads(self) -> Queue | None:
        return None if self._copy_queue is self._queue else self._queue

    def _stage(self, part: np.ndarray[Any, np.dtype[np.uint8]], target: Buffer, offset: int) -> None:
        """Writes a part of an upload to staging memory, and adds its copy to the pending ones."""
        staging = self._staging.allocate_staging(part.nbytes)
        ffi.memmove(staging.host_pointer(), part, part.nbytes)
        with self._queue.lock:
            self.pending.append(_Copy(staging, target, offset))
            waiting = sum(copy.staging.nbytes for copy in self.pending)
        if waiting > LARGEST_PENDING_BYTES:
            self.flush()
            earlier, self._flushed = self._flushed[0], (self._flushed[1], self._queue.attempted)
            self._queue.wait(earlier)

    def _fetch(self, buffer: Buffer, offset: int, part: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        """Copies a part of a buffer to staging memory, and from there to the host."""
        queue = self._copy_queue
        queue.wait(self._fetched[0])  # one that was interrupted uses the command buffer still
        staging = self._staging.allocate_staging(part.nbytes)
        with Recorder(self._download.commands[1]) as recorder:
            recorder.copy(buffer, staging, part.nbytes, source_offset=offset)
            recorder.wait(BEFORE_LATER_WORK if queue is self._queue else COPIES_BEFORE_HOST_READS)
        self._download.awaited[0] = self._queue.known(buffer.produced)
        with queue.lock:
            self._fetched = (queue.next_number(), staging)
            number = queue.submit(self._download)
        queue.wait(number)
        ffi.memmove(part, staging.host_pointer(), part.nbytes)
        self._fetched = (number, None)

    def _free_command_buffer(self) -> Any:
        """A command buffer that no submission in flight uses."""
        if self._uploads and self._queue.reached(self._uploads[0][1]):
            return self._uploads.pop(0)[0]
        return self._upload_pool.allocate()
