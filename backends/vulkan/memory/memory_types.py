"""The memory types of a device by purpose, and the kind of VkBuffer that is allocated in all of them."""
from __future__ import annotations

from typing import Any

from lavax.backends.vulkan.api.api import array, created, ffi, lib, structure, vk
from lavax.base.errors import DeviceError
from lavax.base.quick_dataclasses import dataclass

LOCAL = vk.VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
VISIBLE = vk.VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | vk.VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
CACHED = vk.VK_MEMORY_PROPERTY_HOST_CACHED_BIT


@dataclass(frozen=True)
class MemoryType:
    """A memory type: its index, and whether it is visible to the host, and cached so that the host reads it fast."""

    index: int
    host_visible: bool
    host_cached: bool


@dataclass(frozen=True)
class MemoryTypes:
    """`arrays`: for the data of programs. `staging`: for copies. `tables`: for data that the host writes per call."""

    arrays: MemoryType
    staging: MemoryType
    tables: MemoryType


@dataclass(frozen=True)
class _Candidate:
    index: int
    flags: int
    heap_bytes: int


def choose_memory_types(physical: Any, device: Any, families: tuple[int, ...], local_only: bool) -> MemoryTypes:
    """The memory types for a device.

    Arrays are in device-local memory. It is host-visible as well if that costs nothing, because all local memory is (on
    a processor, an integrated GPU, a GPU with a resizable BAR). With `local_only` it counts as invisible even then.
    """
    candidates = _candidates(physical, device, families)
    local_bytes = max((entry.heap_bytes for entry in candidates if entry.flags & LOCAL), default=0)
    covering = [entry for entry in candidates if entry.heap_bytes * 2 > local_bytes]
    arrays = _first(covering, (LOCAL | VISIBLE | CACHED, LOCAL | VISIBLE, LOCAL, 0))
    return MemoryTypes(
        arrays=MemoryType(arrays.index, host_visible=False, host_cached=False) if local_only else _described(arrays),
        staging=_described(_first(candidates, (VISIBLE | CACHED, VISIBLE))),
        tables=_described(_first(candidates, (LOCAL | VISIBLE, VISIBLE))),
    )


def create_buffer(device: Any, size: int, families: tuple[int, ...], texels: bool = False) -> Any:
    """A VkBuffer of `size` bytes for shaders and copies, shared by the queue families that use it.

    With `texels`, shaders may read it through texel buffers.
    """
    of_texels = vk.VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT | vk.VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT
    usage = (
        lib.VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT
        | vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
        | vk.VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT
        | vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT
        | vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT
        | (of_texels if texels else 0)
    )
    info = structure(
        "VkBufferCreateInfo",
        size=size,
        usage=usage,
        sharingMode=vk.VK_SHARING_MODE_CONCURRENT if len(families) > 1 else vk.VK_SHARING_MODE_EXCLUSIVE,
        queueFamilyIndexCount=len(families),
        pQueueFamilyIndices=array("uint32_t", families),
    )
    return created(lib.vkCreateBuffer, device, info, "VkBuffer")


def requirements(device: Any, buffer: Any) -> Any:
    """The VkMemoryRequirements of a buffer."""
    result = ffi.new("VkMemoryRequirements *")
    lib.vkGetBufferMemoryRequirements(device, buffer, result)
    return result


def _candidates(physical: Any, device: Any, families: tuple[int, ...]) -> list[_Candidate]:
    """The memory types that buffers may use, in the driver's order, from fast to slow."""
    probe = create_buffer(device, 1 << 16, families)
    allowed = requirements(device, probe).memoryTypeBits
    lib.vkDestroyBuffer(device, probe, ffi.NULL)
    properties = ffi.new("VkPhysicalDeviceMemoryProperties *")
    lib.vkGetPhysicalDeviceMemoryProperties(physical, properties)
    result = []
    for index in range(properties.memoryTypeCount):
        kind = properties.memoryTypes[index]
        if allowed >> index & 1:
            result.append(_Candidate(index, kind.propertyFlags, properties.memoryHeaps[kind.heapIndex].size))
    return result


def _first(candidates: list[_Candidate], wishes: tuple[int, ...]) -> _Candidate:
    """The first candidate that has all flags of a wish, for the first wish that any candidate fulfils."""
    for flags in wishes:
        for candidate in candidates:
            if candidate.flags & flags == flags:
                return candidate
    raise DeviceError("The device has no memory that lavax can use.")


def _described(candidate: _Candidate) -> MemoryType:
    return MemoryType(
        candidate.index,
        host_visible=candidate.flags & VISIBLE == VISIBLE,
        host_cached=candidate.flags & CACHED == CACHED,
    )
