"""Pools of command buffers, and a recorder with the few commands that lavax uses, each a raw call."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lavax.backends.vulkan.api.api import array, check, created, ffi, lib, structure, vk
from lavax.backends.vulkan.memory.memory import Buffer
from lavax.base.quick_dataclasses import dataclass

# Stages and accesses of the barriers below. They cover shaders, copies and the host; nothing else accesses memory.
SHADER = vk.VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT
COPY = vk.VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT
COUNTS = vk.VK_PIPELINE_STAGE_2_DRAW_INDIRECT_BIT  # indirect dispatches read their workgroup counts
HOST = vk.VK_PIPELINE_STAGE_2_HOST_BIT
SHADER_READ = vk.VK_ACCESS_2_SHADER_STORAGE_READ_BIT | vk.VK_ACCESS_2_SHADER_SAMPLED_READ_BIT  # the second: of texels
SHADER_WRITE = vk.VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT
COPY_READ = vk.VK_ACCESS_2_TRANSFER_READ_BIT
COPY_WRITE = vk.VK_ACCESS_2_TRANSFER_WRITE_BIT
COUNTS_READ = vk.VK_ACCESS_2_INDIRECT_COMMAND_READ_BIT
HOST_READ = vk.VK_ACCESS_2_HOST_READ_BIT


def barrier(stages: int, writes: int, next_stages: int, next_accesses: int) -> Any:
    """A global memory barrier: accesses by `next_stages` come after, and see, the writes by `stages`."""
    memory = structure(
        "VkMemoryBarrier2",
        srcStageMask=stages,
        srcAccessMask=writes,
        dstStageMask=next_stages,
        dstAccessMask=next_accesses,
    )
    return structure("VkDependencyInfo", memoryBarrierCount=1, pMemoryBarriers=memory)


@dataclass(frozen=True)
class Barriers:
    """The barriers of a program: `between` dispatches that depend on each other, and `after` the last one.

    The latter makes results visible to all later work on the queue and to the host, and lets later work overwrite what
    was read. There is one per command buffer, because each costs as much as a small dispatch.
    """

    between: Any
    after: Any


def _barriers(counts: int, counts_read: int) -> Barriers:
    later, accesses = SHADER | COPY | counts | HOST, COPY_READ | COPY_WRITE | counts_read | HOST_READ
    return Barriers(
        barrier(SHADER, SHADER_WRITE, SHADER | counts, SHADER_READ | SHADER_WRITE | counts_read),
        barrier(SHADER, SHADER_WRITE, later, SHADER_READ | SHADER_WRITE | accesses),
    )


# With indirect dispatches, and without: GPUs wait for reads of workgroup counts separately, which took an H200 2 µs per
# barrier.
COUNTED, PLAIN = _barriers(COUNTS, COUNTS_READ), _barriers(0, 0)

# Between copies, or dispatches that are mixed with copies or measured, and all later work.
BEFORE_LATER_WORK = barrier(
    SHADER | COPY,
    SHADER_WRITE | COPY_WRITE,
    SHADER | COPY | COUNTS | HOST,
    SHADER_READ | SHADER_WRITE | COPY_READ | COPY_WRITE | COUNTS_READ | HOST_READ,
)

# Of a program with copies between its dispatches.
COPYING = Barriers(BEFORE_LATER_WORK, BEFORE_LATER_WORK)

# The same after copies to the host on a queue that only copies.
COPIES_BEFORE_HOST_READS = barrier(COPY, COPY_WRITE, HOST, HOST_READ)


class CommandPool:
    """Command buffers with a common lifetime."""

    def __init__(self, device: Any, family: int) -> None:
        self._device = device
        info = structure(
            "VkCommandPoolCreateInfo",
            queueFamilyIndex=family,
            flags=vk.VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        )
        self._handle = created(lib.vkCreateCommandPool, device, info, "VkCommandPool")

    def allocate(self) -> Any:
        """A new command buffer."""
        info = structure(
            "VkCommandBufferAllocateInfo",
            commandPool=self._handle,
            level=vk.VK_COMMAND_BUFFER_LEVEL_PRIMARY,
            commandBufferCount=1,
        )
        commands = ffi.new("VkCommandBuffer *")
        check(lib.vkAllocateCommandBuffers(self._device, info, commands), "Allocating a command buffer")
        return commands[0]

    def free(self, commands: Sequence[Any]) -> None:
        """Frees some command buffers; the device must be done with them."""
        lib.vkFreeCommandBuffers(self._device, self._handle, len(commands), array("VkCommandBuffer", commands))

    def close(self) -> None:
        """Frees the command buffers; the device must be done with them."""
        lib.vkDestroyCommandPool(self._device, self._handle, ffi.NULL)


class Recorder:
    """A context in which commands are recorded into `commands`, replacing its previous contents.

    With `repeated`, the command buffer may run several times within one submission.
    """

    def __init__(self, commands: Any, repeated: bool = False) -> None:
        self.commands = commands
        self._begin = _BEGIN_REPEATED if repeated else _BEGIN

    def __enter__(self) -> Recorder:
        # An exception may have left a command buffer that is used again in the middle of being recorded.
        check(lib.vkResetCommandBuffer(self.commands, 0), "Resetting a command buffer")
        check(lib.vkBeginCommandBuffer(self.commands, self._begin), "Beginning a command buffer")
        return self

    def __exit__(self, *_: object) -> None:
        check(lib.vkEndCommandBuffer(self.commands), "Ending a command buffer")

    def wait(self, dependency: Any) -> None:
        """A barrier, one of those above."""
        lib.vkCmdPipelineBarrier2(self.commands, dependency)

    def bind(self, pipeline: Any) -> None:
        """The compute pipeline of the dispatches that follow."""
        lib.vkCmdBindPipeline(self.commands, vk.VK_PIPELINE_BIND_POINT_COMPUTE, pipeline)

    def bind_descriptors(self, layout: Any, descriptors: Any) -> None:
        """The descriptor set of the dispatches that follow, as an array of one element."""
        point = vk.VK_PIPELINE_BIND_POINT_COMPUTE
        lib.vkCmdBindDescriptorSets(self.commands, point, layout, 0, 1, descriptors, 0, ffi.NULL)

    def push(self, layout: Any, constants: bytes) -> None:
        """The push constants of the dispatches that follow, from their first byte."""
        stage = vk.VK_SHADER_STAGE_COMPUTE_BIT
        lib.vkCmdPushConstants(self.commands, layout, stage, 0, len(constants), constants)

    def dispatch(self, groups: tuple[int, int, int]) -> None:
        """Runs the bound pipeline."""
        lib.vkCmdDispatch(self.commands, *groups)

    def dispatch_counted(self, counts: Buffer, offset: int) -> None:
        """Runs the bound pipeline with the workgroup counts that `counts` holds at the offset in bytes."""
        lib.vkCmdDispatchIndirect(self.commands, counts.piece.block.buffer, counts.piece.offset + offset)

    def copy(self, source: Buffer, target: Buffer, nbytes: int, source_offset: int = 0, target_offset: int = 0) -> None:
        """Copies `nbytes` from one buffer to another; offsets are in bytes from their beginnings."""
        begins = source.piece.offset + source_offset, target.piece.offset + target_offset
        self.copy_runs(source.piece.block.buffer, target.piece.block.buffer, [(*begins, nbytes)])

    def copy_runs(self, source: Any, target: Any, runs: Sequence[tuple[int, int, int]]) -> None:
        """Copies runs of bytes from one VkBuffer to another: where they begin in both, and their lengths."""
        lib.vkCmdCopyBuffer(self.commands, source, target, len(runs), ffi.new("VkBufferCopy[]", runs))

    def fill(self, target: Any, offset: int, nbytes: int, word: int) -> None:
        """Writes a word of 32 bits all over a part of a VkBuffer; its beginning and length are multiples of four."""
        lib.vkCmdFillBuffer(self.commands, target, offset, nbytes, word)


_BEGIN = structure("VkCommandBufferBeginInfo")
_BEGIN_REPEATED = structure("VkCommandBufferBeginInfo", flags=vk.VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT)
