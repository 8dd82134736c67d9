"""Device memory: a few large blocks, handed out in pieces as buffers.

When a buffer is dropped, its piece joins a list of pieces of its size, and the next buffer of that size takes it from
there: two list operations, no lock. If the list is empty, a piece is cut from the free ranges. If those are exhausted,
the lists are emptied into them. If that is not enough, a new block is allocated. A block that nothing has used for some
time is given back (idle.py).

A piece may be handed out while the device still uses it: submissions of one queue run in order, each program starts
with a full barrier, and the host waits for a piece's last use before it writes or reads it.
"""
from __future__ import annotations

import contextlib
import gc
import threading
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from lavax.backends.vulkan.api.api import check, ffi, lib, structure, vk
from lavax.backends.vulkan.api.queue import Queue
from lavax.backends.vulkan.memory.descriptor_ranges import DescriptorRange, DescriptorRanges
from lavax.backends.vulkan.memory.free_ranges import FreeRanges, Range
from lavax.backends.vulkan.memory.idle import IdleWatch
from lavax.backends.vulkan.memory.memory_types import MemoryType, create_buffer, requirements
from lavax.backends.vulkan.plan.memory_use import COARSEST_ROUNDING_BYTES, rounded_size
from lavax.base import config
from lavax.base.errors import DeviceError
from lavax.base.quick_dataclasses import dataclass

FIRST_BLOCK_BYTES = 16 << 20
LARGEST_GROWTH_BYTES = 1 << 30
GUARD_BYTES = 64  # behind every array, under config.guard_memory

_OUT_OF_MEMORY = (vk.VK_ERROR_OUT_OF_DEVICE_MEMORY, vk.VK_ERROR_OUT_OF_HOST_MEMORY)


class Block:
    """One allocation of the driver, and one VkBuffer over all of it. `host`: its mapped pointer, or NULL.

    `ranges`: its descriptor ranges, if shaders see it through descriptors.
    """

    __slots__ = ("pool", "number", "size", "memory", "buffer", "address", "host", "ranges")

    def __init__(
        self,
        pool: MemoryPool,
        number: int,
        size: int,
        memory: Any,
        buffer: Any,
        address: int,
        host: Any,
        ranges: DescriptorRanges | None,
    ) -> None:
        self.pool = pool
        self.number = number
        self.size = size
        self.memory = memory
        self.buffer = buffer
        self.address = address
        self.host = host
        self.ranges = ranges


class BlockPiece:
    """A part of a block. `last_use`: the number of the last submission that may have used it before it was freed.

    `returned`: the list of free pieces of its size, which it joins when its buffer is dropped. `range`: the descriptor
    range for an array that starts here, if there is one; `position`: the array's position in it.
    """

    __slots__ = ("block", "offset", "size", "address", "last_use", "queue", "returned", "range", "position")

    def __init__(self, block: Block, offset: int, size: int, last_use: int, returned: list[BlockPiece]) -> None:
        self.block = block
        self.offset = offset
        self.size = size
        self.address = block.address + offset
        self.last_use = last_use
        self.range: DescriptorRange | None = None
        self.position = 0
        if block.ranges is not None:
            self.range, self.position = block.ranges.at(offset)
        self.queue = block.pool.queue
        self.returned = returned


class Buffer:
    """`nbytes` bytes of device memory at the 64-bit device address `address`, freed when the buffer is dropped.

    `produced` is the number of the submission that wrote its contents, set before that is submitted. Calls do not
    record which submissions read them: when a buffer is dropped, the last one so far counts as its last use.
    """

    __slots__ = ("address", "nbytes", "piece", "produced", "__weakref__")

    def __init__(self, piece: BlockPiece, nbytes: int) -> None:
        self.piece = piece
        self.address = piece.address
        self.nbytes = nbytes
        self.produced = 0

    def __del__(self) -> None:
        try:
            piece = self.piece
        except AttributeError:  # an exception interrupted its making
            return
        piece.last_use = piece.queue.attempted
        piece.returned.append(piece)

    def ready(self) -> bool:
        """Whether its contents have been produced; does not wait."""
        return self.piece.queue.reached(self.produced)

    def wait(self) -> None:
        """Returns when its contents have been produced."""
        self.piece.queue.wait(self.produced)

    def host_pointer(self) -> Any:
        """The host's address of its first byte; only for host-visible memory."""
        return self.piece.block.host + self.piece.offset


class StagingBuffer(Buffer):
    """A buffer that only copies read or write; whoever submits one sets `last_use`."""

    __slots__ = ("last_use",)

    def __init__(self, piece: BlockPiece, nbytes: int) -> None:
        self.last_use = 0
        super().__init__(piece, nbytes)

    def __del__(self) -> None:
        try:
            piece = self.piece
        except AttributeError:  # an exception interrupted its making
            return
        piece.last_use = self.last_use
        piece.returned.append(piece)


@dataclass(frozen=True)
class MemoryUse:
    """Bytes: `allocated` from the driver, `in_use` by buffers, and the `peak` of those handed out or kept for reuse."""

    allocated: int
    in_use: int
    peak: int


class Rememberer(Protocol):
    """Something that remembers where buffers lie."""

    def forget_addresses(self) -> None:
        """Called when blocks go back to the driver: a new block may have their addresses, but not their buffers."""


class MemoryPool:
    """Buffers of one memory type. Safe in several threads.

    `range_bytes`: the length of descriptor ranges; 0 if shaders use addresses alone.
    """

    def __init__(
        self,
        device: Any,
        queue: Queue,
        families: tuple[int, ...],
        memory_type: MemoryType,
        largest_block: int,
        range_bytes: int = 0,
    ) -> None:
        self.queue = queue
        self.type = memory_type
        self._device = device
        self._families = families
        self._range_bytes = range_bytes
        self.largest_block = largest_block // COARSEST_ROUNDING_BYTES * COARSEST_ROUNDING_BYTES
        self._blocks: dict[int, Block] = {}
        self._next_block = 0
        self._free = FreeRanges()
        self._returned: dict[int, list[BlockPiece]] = {}
        self._returned_by_nbytes: dict[int, list[BlockPiece]] = {}
        self._cut_bytes = 0
        self._peak_bytes = 0
        self._guard_bytes = GUARD_BYTES if config.guard_memory() else 0
        self._lock = threading.RLock()
        self._idle = IdleWatch(self)
        self.rememberers: weakref.WeakSet[Rememberer] = weakref.WeakSet()  # changed and read with the queue's lock held

    def allocate(self, nbytes: int) -> Buffer:
        """A buffer of `nbytes` for work on the queue; the device may still use the memory for earlier work.

        Raises DeviceError if the device is out of memory.
        """
        try:
            returned = self._returned_by_nbytes[nbytes]
        except KeyError:
            returned = self._list_of_returned(nbytes)
        try:
            piece = returned.pop()
        except IndexError:
            piece = self._cut(returned, nbytes)
        return Buffer(piece, nbytes)

    def reserve(self, sizes: Sequence[int]) -> None:
        """Has memory for buffers of these sizes, which are allocated next."""
        with contextlib.suppress(DeviceError):  # whoever allocates them says so
            self.allocate_all(sizes)

    def allocate_all(self, sizes: Sequence[int]) -> list[Buffer]:
        """A buffer per size in bytes, as from `allocate`, in three quarters of the time that the single calls take."""
        returned_by_nbytes, new = self._returned_by_nbytes, Buffer.__new__
        buffers = []
        for nbytes in sizes:
            try:
                piece = returned_by_nbytes[nbytes].pop()
            except (KeyError, IndexError):
                buffers.append(self.allocate(nbytes))
                continue
            buffer = new(Buffer)  # as in __init__, without the call
            buffer.piece = piece
            buffer.address = piece.address
            buffer.nbytes = nbytes
            buffer.produced = 0
            buffers.append(buffer)
        return buffers

    def allocate_for_host(self, nbytes: int) -> Buffer:
        """A buffer of `nbytes` that the host may access at once: the device is done with it."""
        return Buffer(self._idle_piece(nbytes), nbytes)

    def allocate_staging(self, nbytes: int) -> StagingBuffer:
        """The same for copies."""
        return StagingBuffer(self._idle_piece(nbytes), nbytes)

    def use(self) -> MemoryUse:
        """How much memory is allocated and used."""
        with self._lock:
            kept = sum(piece.size for pieces in self._returned.values() for piece in list(pieces))
            allocated = sum(block.size for block in self._blocks.values())
            return MemoryUse(allocated, self._cut_bytes - kept, self._peak_bytes)

    def close(self) -> None:
        """Returns all memory to the driver; no buffer may be used again."""
        self._idle.end()
        with self._lock:
            for block in self._blocks.values():
                self._destroy(block)
            self._blocks.clear()

    def moment(self) -> int:
        """The number of the last submission so far, which stands for now in `release_idle`."""
        return self.queue.attempted

    def has_idle_blocks(self) -> bool:
        """Whether `release_idle` may ever find something: whether there is more than the first block."""
        with self._lock:
            return sum(block.size for block in self._blocks.values()) > FIRST_BLOCK_BYTES

    def release_idle(self, since: int) -> None:
        """Gives back the blocks that no submission after `since` may have used, but for one of the first block's size.

        Pieces in use, and those that were handed out and dropped in the meantime, keep their blocks.
        """
        with self._lock:
            self._release(self._taken_whole(since))

    def release_unused(self) -> None:
        """Gives back all blocks that no buffer lies in, when the device is done with them."""
        with self._lock:
            self._collect_returned()
            self._release_unused_blocks()

    def _taken_whole(self, since: int) -> list[Block]:
        """The blocks for `release_idle`, the largest first; their ranges are free no longer."""
        kept = sum(block.size for block in self._blocks.values())
        taken = []
        for block in sorted(self._whole_blocks(since), key=lambda block: block.size, reverse=True):
            if kept - block.size >= FIRST_BLOCK_BYTES and self._free.take_whole(block.number, block.size):
                kept -= block.size
                taken.append(block)
        return taken

    def _idle_piece(self, nbytes: int) -> BlockPiece:
        returned = self._returned_by_nbytes.get(nbytes)
        if returned is None:
            returned = self._list_of_returned(nbytes)
        try:
            piece = returned.pop(0)
        except IndexError:
            pass
        else:
            if self.queue.reached(piece.last_use):
                return piece
            returned.append(piece)
        piece = self._cut(returned, nbytes)
        self.queue.wait(piece.last_use)
        return piece

    def _list_of_returned(self, nbytes: int) -> list[BlockPiece]:
        with self._lock:
            returned = self._returned.setdefault(rounded_size(nbytes + self._guard_bytes), [])
            self._returned_by_nbytes[nbytes] = returned
            return returned

    def _cut(self, returned: list[BlockPiece], nbytes: int) -> BlockPiece:
        """A piece for `nbytes` from the free ranges, which grow if necessary. When dropped, it joins `returned`."""
        size = rounded_size(nbytes + self._guard_bytes)
        with self._lock:
            found = self._free.take(size)
            if found is None:
                self._collect_returned()
                found = self._free.take(size)
            if found is None:
                self._grow(size)
                found = self._free.take(size)
            assert found is not None, "a new block holds at least the size it was allocated for"
            self._cut_bytes += size
            self._peak_bytes = max(self._peak_bytes, self._cut_bytes)
            return BlockPiece(self._blocks[found.block], found.offset, size, found.last_use, returned)

    def _collect_returned(self) -> None:
        """Moves all pieces that wait for reuse into the free ranges."""
        for pieces in self._returned.values():
            while True:
                try:
                    piece = pieces.pop()
                except IndexError:
                    break
                self._free.give(Range(piece.block.number, piece.offset, piece.size, piece.last_use))
                self._cut_bytes -= piece.size

    def _whole_blocks(self, since: int) -> list[Block]:
        """The blocks that are all free and have not been used since; their pieces are moved into the free ranges."""
        waiting: dict[int, list[tuple[list[BlockPiece], BlockPiece]]] = {}
        for pieces in list(self._returned.values()):
            for piece in list(pieces):
                if piece.last_use <= since:
                    waiting.setdefault(piece.block.number, []).append((pieces, piece))
        free = self._free.by_block()
        whole = []
        for number, block in self._blocks.items():
            of_block = waiting.get(number, ())
            size, last_use = free.get(number, (0, 0))
            last_use = max([last_use, *(piece.last_use for _, piece in of_block)])
            is_free = size + sum(piece.size for _, piece in of_block) == block.size
            if is_free and last_use <= since and self.queue.reached(last_use):
                self._collect(of_block)
                whole.append(block)
        return whole

    def _collect(self, waiting: Iterable[tuple[list[BlockPiece], BlockPiece]]) -> None:
        """Moves pieces that wait for reuse in these lists into the free ranges, unless they are gone from there."""
        for pieces, piece in waiting:
            try:
                pieces.remove(piece)
            except ValueError:  # another thread has taken it just now
                continue
            self._free.give(Range(piece.block.number, piece.offset, piece.size, piece.last_use))
            self._cut_bytes -= piece.size

    def _grow(self, size: int) -> None:
        """Allocates a block of at least `size` bytes: as large as all others together, if the device has that much."""
        if size > self.largest_block:
            raise DeviceError(f"A buffer of {size} bytes is over the device's limit of {self.largest_block} bytes.")
        present = sum(block.size for block in self._blocks.values())
        wished = max(size, min(max(present, FIRST_BLOCK_BYTES), LARGEST_GROWTH_BYTES, self.largest_block))
        for attempt in (wished, size):
            if self._add_block(attempt):
                if present:
                    self._idle.start()
                return
        # Buffers in garbage cycles and unused blocks are all that is left to reclaim.
        gc.collect()
        self._collect_returned()
        self._release_unused_blocks()
        if not self._add_block(size):
            raise DeviceError(
                f"The device is out of memory: {size} bytes were asked for, {self._cut_bytes} are in use. "
                "Use smaller arrays, drop arrays that are no longer needed, or donate arguments."
            )

    def _add_block(self, size: int) -> bool:
        """Allocates a block and adds it to the free ranges; False if the device lacks the memory."""
        buffer = create_buffer(self._device, size, self._families, texels=self._range_bytes > 0)
        flags = structure("VkMemoryAllocateFlagsInfo", flags=lib.VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT)
        info = structure(
            "VkMemoryAllocateInfo",
            pNext=flags,
            allocationSize=requirements(self._device, buffer).size,
            memoryTypeIndex=self.type.index,
        )
        memory = ffi.new("VkDeviceMemory *")
        result = lib.vkAllocateMemory(self._device, info, ffi.NULL, memory)
        if result in _OUT_OF_MEMORY:
            lib.vkDestroyBuffer(self._device, buffer, ffi.NULL)
            return False
        check(result, f"Allocating {size} bytes of device memory")
        check(lib.vkBindBufferMemory(self._device, buffer, memory[0], 0), "Binding device memory")
        address = lib.vkGetBufferDeviceAddress(self._device, structure("VkBufferDeviceAddressInfo", buffer=buffer))
        number = self._next_block
        self._next_block += 1
        host = _mapped(self._device, memory[0], size) if self.type.host_visible else ffi.NULL
        ranges = DescriptorRanges(self._device, buffer, size, self._range_bytes) if self._range_bytes else None
        self._blocks[number] = Block(self, number, size, memory[0], buffer, address, host, ranges)
        self._free.give(Range(number, 0, size, 0))
        return True

    def _release_unused_blocks(self) -> None:
        self.queue.drain()
        blocks = self._blocks.values()
        self._release([block for block in blocks if self._free.take_whole(block.number, block.size) is not None])

    def _release(self, blocks: Sequence[Block]) -> None:
        """Gives back blocks that are in no list any more, and that the device is done with."""
        if not blocks:
            return
        with self.queue.lock:
            for each in self.rememberers:
                each.forget_addresses()
        for block in blocks:
            del self._blocks[block.number]
            self._destroy(block)

    def _destroy(self, block: Block) -> None:
        if block.ranges is not None:
            block.ranges.close()
        lib.vkDestroyBuffer(self._device, block.buffer, ffi.NULL)
        lib.vkFreeMemory(self._device, block.memory, ffi.NULL)


def _mapped(device: Any, memory: Any, size: int) -> Any:
    pointer = ffi.new("void **")
    check(lib.vkMapMemory(device, memory, 0, size, 0, pointer), "Mapping device memory")
    return ffi.cast("char *", pointer[0])
