"""The driver's own cache of compiled pipelines, kept on disk from process to process."""
from __future__ import annotations

import struct
from typing import Any

from lavax.backends.vulkan.api.api import created, ffi, lib, structure, vk
from lavax.backends.vulkan.compile.disk_cache import DiskCache, folder_of
from lavax.base.errors import DeviceError

_LIMIT_BYTES = 256 << 20

# VkPipelineCacheHeaderVersionOne: its own length, its version, vendor, device, and the UUID of what the driver writes.
_HEADER = struct.Struct("=4I16s")
_HEADER_VERSION = 1


class DriverCache:
    """The VkPipelineCache `handle` of a device, with what an earlier process left on disk if this driver wrote it."""

    def __init__(self, physical: Any, device: Any) -> None:
        self._device = device
        self._disk = DiskCache(folder_of("pipelines"), _LIMIT_BYTES)
        self._key, self._header = identity_of(physical), header_of(physical)
        kept = self._disk.load(self._key) or b""
        blob = kept if is_of(self._header, kept) else b""
        try:
            self.handle = _created(device, blob)
        except DeviceError:
            if not blob:
                raise
            blob = b""
            self.handle = _created(device, blob)
        self._saved_bytes = len(blob)

    def save(self) -> None:
        """Writes what the driver has to disk, if it has grown and the driver gives it away."""
        size = ffi.new("size_t *")
        if lib.vkGetPipelineCacheData(self._device, self.handle, size, ffi.NULL) != vk.VK_SUCCESS:
            return
        content = ffi.new("char[]", size[0])
        if lib.vkGetPipelineCacheData(self._device, self.handle, size, content) != vk.VK_SUCCESS:
            return
        blob = bytes(ffi.buffer(content, size[0]))
        if len(blob) > self._saved_bytes and is_of(self._header, blob):
            self._disk.store(self._key, blob)
            self._saved_bytes = len(blob)

    def close(self) -> None:
        lib.vkDestroyPipelineCache(self._device, self.handle, ffi.NULL)


def _created(device: Any, blob: bytes) -> Any:
    info = structure("VkPipelineCacheCreateInfo", initialDataSize=len(blob), pInitialData=ffi.from_buffer(blob))
    return created(lib.vkCreatePipelineCache, device, info, "VkPipelineCache")


def header_of(physical: Any) -> tuple[Any, ...]:
    """How what this device's driver writes begins."""
    properties = structure("VkPhysicalDeviceProperties2")
    lib.vkGetPhysicalDeviceProperties2(physical, properties)
    found = properties.properties
    return _HEADER.size, _HEADER_VERSION, found.vendorID, found.deviceID, bytes(ffi.buffer(found.pipelineCacheUUID))


def is_of(header: tuple[Any, ...], blob: bytes) -> bool:
    """Whether the content of a cache begins with this header. Drivers are to check it, but crash if they do not."""
    return len(blob) >= _HEADER.size and _HEADER.unpack_from(blob) == header


def identity_of(physical: Any) -> str:
    """The UUIDs of device and driver, which name them: another version of the driver has another one."""
    identity = structure("VkPhysicalDeviceIDProperties")
    properties = structure("VkPhysicalDeviceProperties2", pNext=identity)
    lib.vkGetPhysicalDeviceProperties2(physical, properties)
    parts = (identity.deviceUUID, identity.driverUUID, properties.properties.pipelineCacheUUID)
    return " ".join(bytes(ffi.buffer(part)).hex() for part in parts)
