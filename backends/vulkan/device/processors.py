"""How many processors a device has, from the drivers that tell: Vulkan itself has no limit for it."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from lavax.backends.vulkan.api.api import lib, structure
from lavax.base.quick_dataclasses import dataclass


@dataclass(frozen=True)
class Told:
    """Where a driver with an extension tells it: a structure of properties, and the number in it."""

    structure: str
    count: Callable[[Any], int]


# Structures of properties may be asked for wherever the extension is there; nothing has to be enabled.
_TOLD = {
    "VK_NV_shader_sm_builtins": Told(
        "VkPhysicalDeviceShaderSMBuiltinsPropertiesNV", operator.attrgetter("shaderSMCount")
    ),
    "VK_AMD_shader_core_properties2": Told(
        "VkPhysicalDeviceShaderCoreProperties2AMD", operator.attrgetter("activeComputeUnitCount")
    ),
    "VK_ARM_shader_core_builtins": Told(
        "VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM", operator.attrgetter("shaderCoreCount")
    ),
}


def told_processors(physical: Any, extensions: set[str]) -> int | None:
    """The processors of a device with these extensions, which each run several workgroups; None if it is not told."""
    for name, told in _TOLD.items():
        if name in extensions:
            properties = structure(told.structure)
            lib.vkGetPhysicalDeviceProperties2(
                physical, structure("VkPhysicalDeviceProperties2", pNext=properties)
            )
            return int(told.count(properties)) or None
    return None
