"""The Vulkan instance of this process, and its physical devices."""
from __future__ import annotations

import functools
from typing import Any

from lavax.backends.vulkan.api.api import (
    check,
    enumerated,
    ffi,
    lib,
    result_name,
    strings,
    structure,
    text,
    version,
    vk,
)
from lavax.backends.vulkan.device import features, validation
from lavax.base import config
from lavax.base.errors import DeviceError
from lavax.base.quick_dataclasses import dataclass

# Best first; kinds that are not listed come last.
KINDS = {
    vk.VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: "discrete",
    vk.VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: "integrated",
    vk.VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: "virtual",
    vk.VK_PHYSICAL_DEVICE_TYPE_CPU: "cpu",
}

NO_DRIVER = (
    "No Vulkan driver was found. Install one (Debian and Ubuntu: apt install mesa-vulkan-drivers, which also has a "
    "driver that runs on the processor; or your GPU vendor's driver)."
)


@dataclass(frozen=True)
class DeviceDescription:
    """A Vulkan device of this machine. `index`: its place among the usable devices, best first, for LAVAX_DEVICE."""

    index: int
    name: str
    kind: str  # "discrete", "integrated", "virtual", "cpu" or "other"
    driver: str
    memory_bytes: int

    @property
    def platform(self) -> str:
        """ "cpu" or "gpu", as JAX names it."""
        return "cpu" if self.kind == "cpu" else "gpu"

    @property
    def device_kind(self) -> str:
        """The name, as JAX calls it."""
        return self.name

    @property
    def id(self) -> int:
        """The index, as JAX calls it."""
        return self.index

    @property
    def process_index(self) -> int:
        """0: a program is one process on one machine."""
        return 0


@dataclass(frozen=True)
class PhysicalDevice:
    """A device as the loader reports it. `missing`: the requirements of lavax that it does not meet."""

    handle: Any
    name: str
    kind: str
    driver: str
    memory_bytes: int
    missing: tuple[str, ...]


def list_devices() -> list[DeviceDescription]:
    """The usable devices, best first: discrete, integrated, virtual, CPU. Raises DeviceError if there is none."""
    return [describe(device) for device in usable_devices()]


def describe(device: PhysicalDevice) -> DeviceDescription:
    """The description of a usable device."""
    index = usable_devices().index(device)
    return DeviceDescription(index, device.name, device.kind, device.driver, device.memory_bytes)


def choose_device(selector: str | None) -> PhysicalDevice:
    """The best device, or the one `selector` names by index or by part of its name. Raises DeviceError."""
    devices = usable_devices()
    if selector is None:
        return devices[0]
    if selector.isdecimal():
        if int(selector) < len(devices):
            return devices[int(selector)]
    else:
        for device in devices:
            if selector.lower() in device.name.lower():
                return device
    listed = ", ".join(f"{index}: {device.name}" for index, device in enumerate(devices))
    raise DeviceError(f"LAVAX_DEVICE={selector} names no device of this machine. There are: {listed}.")


def usable_devices() -> list[PhysicalDevice]:
    """All devices that meet the requirements of lavax, best first. Raises DeviceError if there is none."""
    devices = physical_devices()
    usable = [device for device in devices if not device.missing]
    if not usable:
        reasons = "".join(f"\n  {device.name} lacks {', '.join(device.missing)}" for device in devices)
        raise DeviceError(f"No Vulkan device has what lavax needs.{reasons}" if devices else NO_DRIVER)
    return usable


@functools.cache
def physical_devices() -> tuple[PhysicalDevice, ...]:
    """All devices that the loader reports, best kind first."""
    handles = enumerated(lib.vkEnumeratePhysicalDevices, "VkPhysicalDevice", instance())
    ranks = [*KINDS.values(), "other"]
    return tuple(sorted(map(_describe, handles), key=lambda device: ranks.index(device.kind)))


@functools.cache
def instance() -> Any:
    """The instance, created once per process; with the validation layer if LAVAX_VALIDATE is set."""
    validate = config.validate()
    if validate:
        validation.require_layer()
    application = structure("VkApplicationInfo", apiVersion=version(1, 3))
    info = structure("VkInstanceCreateInfo", pApplicationInfo=application)
    if validate:
        settings, layers, extensions = (
            validation.layer_settings(), strings([validation.LAYER]), strings(validation.EXTENSIONS)
        )
        info.pNext = settings
        info.enabledLayerCount, info.ppEnabledLayerNames = len(layers), layers
        info.enabledExtensionCount, info.ppEnabledExtensionNames = len(extensions), extensions
    handle = ffi.new("VkInstance *")
    result = lib.vkCreateInstance(info, ffi.NULL, handle)
    if result == vk.VK_ERROR_INCOMPATIBLE_DRIVER:
        raise DeviceError(f"{NO_DRIVER} ({result_name(result)})")
    check(result, "Creating the Vulkan instance")
    if validate:
        validation.collect_messages(handle[0])
    return handle[0]


def _describe(handle: Any) -> PhysicalDevice:
    driver = structure("VkPhysicalDeviceDriverProperties")
    properties = structure("VkPhysicalDeviceProperties2", pNext=driver)
    lib.vkGetPhysicalDeviceProperties2(handle, properties)
    memory = ffi.new("VkPhysicalDeviceMemoryProperties *")
    lib.vkGetPhysicalDeviceMemoryProperties(handle, memory)
    local = [
        heap.size
        for heap in memory.memoryHeaps[0 : memory.memoryHeapCount]
        if heap.flags & vk.VK_MEMORY_HEAP_DEVICE_LOCAL_BIT
    ]
    limits = properties.properties
    return PhysicalDevice(
        handle=handle,
        name=text(limits.deviceName),
        kind=KINDS.get(limits.deviceType, "other"),
        driver=f"{text(driver.driverName)} {text(driver.driverInfo)}".strip(),
        memory_bytes=sum(local),
        missing=features.missing(handle, limits.apiVersion),
    )
