"""The number of a device's processors, where a driver tells it, and what schedules see of it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from lavax.backends.vulkan.api.api import ffi
from lavax.backends.vulkan.device import processors
from lavax.backends.vulkan.device.processors import told_processors
from lavax.backends.vulkan.emit.contract.choose_gpu import processors_of
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU

# By extension: the structure's type in Vulkan's registry, the member's place behind the header in bytes, and its name.
STRUCTURES = {
    "VK_NV_shader_sm_builtins": (1000154001, 0, "VkPhysicalDeviceShaderSMBuiltinsPropertiesNV", "shaderSMCount"),
    "VK_AMD_shader_core_properties2": (
        1000227000, 4, "VkPhysicalDeviceShaderCoreProperties2AMD", "activeComputeUnitCount"
    ),
    "VK_ARM_shader_core_builtins": (
        1000497001, 8, "VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM", "shaderCoreCount"
    ),
}  # fmt: skip


def driver(code: int, kind: str, member: str, count: int) -> SimpleNamespace:
    """Answers what a driver would that has the extension."""

    def answer(physical: Any, properties: Any) -> None:
        found = ffi.cast(f"{kind} *", properties.pNext)
        assert found.sType == code
        setattr(found, member, count)

    return SimpleNamespace(vkGetPhysicalDeviceProperties2=answer)


@pytest.mark.parametrize("count", [132, 1, 0])
@pytest.mark.parametrize("extension", STRUCTURES)
def test_drivers_that_tell_are_asked(extension: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    code, place, kind, member = STRUCTURES[extension]
    monkeypatch.setattr(processors, "lib", driver(code, kind, member, count))
    assert told_processors(None, {extension, "VK_KHR_maintenance9"}) == (count or None)
    assert told_processors(None, {"VK_KHR_maintenance9"}) is None
    assert ffi.offsetof(kind, member) == 16 + place


def test_a_number_is_assumed_where_none_is_told() -> None:
    assert processors_of(GENERIC_GPU) == 128
    assert processors_of(replace(GENERIC_GPU, told_processors=132)) == 132
    assert CPU_DRIVER.told_processors is None
