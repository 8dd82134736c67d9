"""A logical device: its queues, memory, transfers and pipelines. A process has one per physical device in use.

Import late: importing loads Vulkan, and raises DeviceError if there is no loader.
"""
from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from lavax.backends.vulkan.api.api import array, check, enumerated, ffi, lib, strings, structure, vk
from lavax.backends.vulkan.api.queue import Queue
from lavax.backends.vulkan.compile.driver_cache import identity_of
from lavax.backends.vulkan.compile.pipelines import Pipelines
from lavax.backends.vulkan.device import features
from lavax.backends.vulkan.device.extensions import enabling, usable_extensions, with_extensions
from lavax.backends.vulkan.device.fork import exit_without_destructors
from lavax.backends.vulkan.device.instance import PhysicalDevice, choose_device, instance
from lavax.backends.vulkan.device.transfer import Transfer
from lavax.backends.vulkan.memory.memory import MemoryPool
from lavax.backends.vulkan.memory.memory_types import choose_memory_types
from lavax.base import config
from lavax.base.errors import DeviceError

_devices: dict[str, Device] = {}
_opening = threading.Lock()
_open: weakref.WeakSet[Device] = weakref.WeakSet()


def _abandon_all() -> None:
    """In a process that was just forked."""
    global _opening
    _opening = threading.Lock()  # another thread may have held it
    for device in list(_open):
        device.abandon()
    if _open:
        exit_without_destructors()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_abandon_all)


def get_device() -> Device:
    """The device that LAVAX_DEVICE chooses, or the best; the same object every time. Raises DeviceError."""
    chosen = choose_device(config.device_selector())
    name = f"{chosen.name} {chosen.handle}"
    with _opening:
        if name not in _devices:
            _devices[name] = Device(chosen)
            atexit.register(_devices[name].finish_at_exit)
        return _devices[name]


class Device:
    """A device with everything that programs need.

    `identity` names it, its driver and the driver's version. `queue` runs programs; `copy_queue` runs downloads (the
    same queue if the device has none for copies). `arrays`, `staging` and `tables` are its memory pools;
    `largest_block` is the size limit of a buffer in bytes. With `local_only`, array memory counts as invisible to the
    host, as on a GPU without a resizable BAR.
    """

    def __init__(self, physical: PhysicalDevice, local_only: bool = False) -> None:
        self.physical = physical
        profile = features.read_profile(physical.handle)
        self.profile = with_extensions(profile, instance(), physical.handle)
        families = _queue_families(physical.handle)
        distinct = tuple(sorted(set(families)))
        self.handle = _create(physical.handle, distinct)
        self.queue = Queue(self.handle, families[0], self.profile.kind)
        self.copy_queue = self.queue if len(distinct) == 1 else Queue(self.handle, families[1], self.profile.kind)
        self.largest_block = largest_block(physical.handle)
        self._pools: dict[Any, MemoryPool] = {}
        types = choose_memory_types(physical.handle, self.handle, distinct, local_only)
        self.arrays, self.staging, self.tables = (
            self._pool(kind, distinct) for kind in (types.arrays, types.staging, types.tables)
        )
        self.transfer = Transfer(self.handle, self.queue, self.copy_queue, self.arrays, self.staging)
        self.pipelines = Pipelines(physical.handle, self.handle, self.profile.names_subgroup_size)
        self.identity = f"{identity_of(physical.handle)} {physical.name} {physical.driver}"
        self._retired: deque[tuple[int, Callable[[], None]]] = deque()
        _open.add(self)

    def retire(self, number: int, destroy: Callable[[], None]) -> None:
        """Schedules a call of `destroy` for after submission `number` is done. The garbage collector may call this."""
        self._retired.append((number, destroy))

    def destroy_retired(self) -> None:
        """Destroys retired objects that the device no longer uses."""
        for _ in range(len(self._retired)):
            try:
                number, destroy = self._retired.popleft()
            except IndexError:
                return
            if self.queue.reached(number):
                destroy()
            else:
                self._retired.append((number, destroy))

    def release_unused(self) -> None:
        """Waits for all work, destroys what no program uses, and gives memory without buffers back to the driver."""
        self.queue.drain()
        self.copy_queue.drain()
        self.pipelines.made.clear()
        self.destroy_retired()
        for pool in self._pools.values():
            pool.release_unused()

    def abandon(self) -> None:
        """In a forked process: every use from now on raises DeviceError, and nothing is waited for at the end."""
        atexit.unregister(self.finish_at_exit)
        for queue in (self.queue, self.copy_queue):
            queue.abandon()
        self.pipelines.abandon()

    def finish(self) -> None:
        """Waits for all work and saves the pipeline cache to disk."""
        self.queue.drain()
        self.copy_queue.drain()
        self.pipelines.save()

    def finish_at_exit(self) -> None:
        """`finish`, but what failed is not said once more: results that anybody waited for said so."""
        with contextlib.suppress(DeviceError):
            self.finish()

    def close(self) -> None:
        """Waits for all work and destroys everything. The device's programs and buffers may not be used any more."""
        self.finish()
        self.destroy_retired()
        self.pipelines.close()
        self.transfer.close()
        for pool in self._pools.values():
            pool.close()
        for queue in {self.queue, self.copy_queue}:
            queue.close()
        lib.vkDestroyDevice(self.handle, ffi.NULL)

    def _pool(self, kind: Any, families: tuple[int, ...]) -> MemoryPool:
        if kind not in self._pools:
            self._pools[kind] = MemoryPool(
                self.handle, self.queue, families, kind, self.largest_block, self.profile.descriptor_range_bytes
            )
        return self._pools[kind]


def _queue_families(physical: Any) -> tuple[int, int]:
    """The queue families of programs and of downloads."""
    properties = enumerated(lib.vkGetPhysicalDeviceQueueFamilyProperties, "VkQueueFamilyProperties", physical)
    return families_among([family.queueFlags for family in properties])


def families_among(flags: Sequence[int]) -> tuple[int, int]:
    """The indices of the families for programs and for downloads, given the capabilities of each family.

    Programs use a family without graphics, if there is one: on an H200, a submission that follows another then takes
    4.5 µs instead of 9. Downloads use a family that only copies, if there is one. Raises DeviceError if none runs
    shaders.
    """
    compute = [index for index, bits in enumerate(flags) if bits & vk.VK_QUEUE_COMPUTE_BIT]
    if not compute:
        raise DeviceError("The device has no queue that runs compute shaders.")
    without_graphics = [index for index in compute if not flags[index] & vk.VK_QUEUE_GRAPHICS_BIT]
    copy_only = vk.VK_QUEUE_TRANSFER_BIT | vk.VK_QUEUE_SPARSE_BINDING_BIT
    copying = [
        index for index, bits in enumerate(flags) if bits & vk.VK_QUEUE_TRANSFER_BIT and not bits & ~copy_only
    ]
    programs = (without_graphics or compute)[0]
    return programs, (copying or [programs])[0]


def _create(physical: Any, families: tuple[int, ...]) -> Any:
    priority = ffi.new("float[]", [1.0])
    queues = array(
        "VkDeviceQueueCreateInfo",
        [
            structure("VkDeviceQueueCreateInfo", queueFamilyIndex=family, queueCount=1, pQueuePriorities=priority)[0]
            for family in families
        ],
    )
    extensions = usable_extensions(physical)
    info = structure(
        "VkDeviceCreateInfo",
        pNext=enabling(extensions, features.enabled(physical)),
        enabledExtensionCount=len(extensions),
        ppEnabledExtensionNames=strings(extensions),
        queueCreateInfoCount=len(families),
        pQueueCreateInfos=queues,
    )
    handle = ffi.new("VkDevice *")
    check(lib.vkCreateDevice(physical, info, ffi.NULL, handle), "Creating the Vulkan device")
    return handle[0]


def largest_block(physical: Any) -> int:
    """The size limit of a buffer in bytes."""
    buffers = structure("VkPhysicalDeviceMaintenance4Properties")
    allocations = structure("VkPhysicalDeviceMaintenance3Properties", pNext=buffers)
    properties = structure("VkPhysicalDeviceProperties2", pNext=allocations)
    lib.vkGetPhysicalDeviceProperties2(physical, properties)
    return int(min(buffers.maxBufferSize, allocations.maxMemoryAllocationSize))
