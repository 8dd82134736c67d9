"""Device features: what lavax needs, what it switches on where it exists, and the profile read from a device."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from lavax.backends.vulkan.api.api import ffi, lib, structure, text, version, vk
from lavax.backends.vulkan.plan.plan import MAX_WORDS
from lavax.backends.vulkan.plan.profile import DeviceProfile

# Members of the structures of VkPhysicalDevice…Features, by structure. Vulkan 1.3 does not run without these.
REQUIRED = {
    "VkPhysicalDeviceVulkan12Features": ("bufferDeviceAddress", "timelineSemaphore", "scalarBlockLayout"),
    "VkPhysicalDeviceVulkan13Features": (
        "synchronization2", "subgroupSizeControl", "computeFullSubgroups", "maintenance4",
    ),
}

# Switched on where the device has them: the profile's name of the feature, and where it is found, with all members that
# go together. Barriers of plain shaders have the device's scope, which the memory model has as a feature of its own;
# functions of float64 compute with its bits.
OPTIONAL = {
    "int64": ("VkPhysicalDeviceFeatures2", "shaderInt64"),
    "float64": ("VkPhysicalDeviceFeatures2", "shaderFloat64", "shaderInt64"),
    "int16": ("VkPhysicalDeviceFeatures2", "shaderInt16"),
    "storage_16bit": ("VkPhysicalDeviceVulkan11Features", "storageBuffer16BitAccess"),
    "float16": ("VkPhysicalDeviceVulkan12Features", "shaderFloat16"),
    "int8": ("VkPhysicalDeviceVulkan12Features", "shaderInt8"),
    "storage_8bit": ("VkPhysicalDeviceVulkan12Features", "storageBuffer8BitAccess"),
    "memory_model": ("VkPhysicalDeviceVulkan12Features", "vulkanMemoryModel", "vulkanMemoryModelDeviceScope"),
}

# Of the smallest texels that shaders see of a buffer.
_WORD_BYTES = 4

# Descriptors of a shader whose push constants are slots and positions of arrays: each is written, or read in two forms.
_MOST_STORED, _MOST_READ = MAX_WORDS // 2, MAX_WORDS

# The chain in which features are asked for and switched on.
STRUCTURES = (
    "VkPhysicalDeviceVulkan13Features",
    "VkPhysicalDeviceVulkan12Features",
    "VkPhysicalDeviceVulkan11Features",
    "VkPhysicalDeviceFeatures2",
)


def missing(physical: Any, api_version: int) -> tuple[str, ...]:
    """What a physical device lacks of what lavax needs."""
    if api_version < version(1, 3):
        return (f"Vulkan 1.3 (it has {api_version >> 22}.{api_version >> 12 & 0x3FF})",)
    available = _available(physical)
    return tuple(
        name for kind, names in REQUIRED.items() for name in names if not getattr(_members(available[kind]), name)
    )


def enabled(physical: Any) -> Any:
    """The chain of structures to create a device with: all required features, and the optional ones it has."""
    available, chain = _available(physical), _chain()
    wanted = [(kind, name) for kind, names in REQUIRED.items() for name in names]
    wanted += [
        (kind, member) for kind, *members in OPTIONAL.values() if _has(available[kind], members) for member in members
    ]
    for kind, name in wanted:
        setattr(_members(chain[kind]), name, 1)
    return chain["VkPhysicalDeviceFeatures2"]


def read_profile(physical: Any) -> DeviceProfile:
    """The limits and features of a physical device."""
    version_13 = structure("VkPhysicalDeviceVulkan13Properties")
    version_12 = structure("VkPhysicalDeviceVulkan12Properties", pNext=version_13)
    version_11 = structure("VkPhysicalDeviceVulkan11Properties", pNext=version_12)
    properties = structure("VkPhysicalDeviceProperties2", pNext=version_11)
    lib.vkGetPhysicalDeviceProperties2(physical, properties)
    limits = properties.properties.limits
    available = _available(physical)
    operations = version_11.subgroupSupportedOperations
    profile = DeviceProfile(
        name=text(properties.properties.deviceName),
        kind="cpu" if properties.properties.deviceType == vk.VK_PHYSICAL_DEVICE_TYPE_CPU else "gpu",
        subgroup_size=version_11.subgroupSize,
        min_subgroup_size=version_13.minSubgroupSize,
        max_subgroup_size=version_13.maxSubgroupSize,
        names_subgroup_size=bool(version_13.requiredSubgroupSizeStages & vk.VK_SHADER_STAGE_COMPUTE_BIT),
        shared_memory_bytes=limits.maxComputeSharedMemorySize,
        max_workgroup_invocations=limits.maxComputeWorkGroupInvocations,
        max_workgroup_count=(*limits.maxComputeWorkGroupCount,),
        subgroup_shuffle=bool(operations & vk.VK_SUBGROUP_FEATURE_SHUFFLE_BIT),
        subgroup_ballot=bool(operations & vk.VK_SUBGROUP_FEATURE_BALLOT_BIT),
        preserves_special_floats=bool(version_12.shaderSignedZeroInfNanPreserveFloat32),
        preserves_special_doubles=bool(version_12.shaderSignedZeroInfNanPreserveFloat64),
        preserves_denormals=_preserves_denormals(version_12),
        descriptor_bytes=_descriptor_bytes(limits),
        matrices=(),
        **{name: _has(available[kind], members) for name, (kind, *members) in OPTIONAL.items()},
    )
    if profile.knows_subgroup_size:
        return profile
    return replace(profile, subgroup_shuffle=False, subgroup_ballot=False)


def _has(features: Any, members: Iterable[str]) -> bool:
    return all(getattr(_members(features), member) for member in members)


def _preserves_denormals(properties: Any) -> bool:
    """Whether shaders may ask for denormals of 32-bit floats without a word on those of 16 and 64 bits."""
    independent = properties.denormBehaviorIndependence != vk.VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE
    return independent and bool(properties.shaderDenormPreserveFloat32)


def _descriptor_bytes(limits: Any) -> int:
    """What a descriptor shows of a buffer at most; 0 where a shader may have fewer of them than it has arrays."""
    stored, read = limits.maxPerStageDescriptorStorageBuffers, limits.maxPerStageDescriptorSampledImages
    if stored < _MOST_STORED or read < _MOST_READ:
        return 0
    return int(min(_WORD_BYTES * limits.maxTexelBufferElements, limits.maxStorageBufferRange))


def _available(physical: Any) -> dict[str, Any]:
    chain = _chain()
    lib.vkGetPhysicalDeviceFeatures2(physical, chain["VkPhysicalDeviceFeatures2"])
    return chain


def _chain() -> dict[str, Any]:
    """Empty feature structures by name, each the pNext of the one after it in STRUCTURES."""
    chain: dict[str, Any] = {}
    following = ffi.NULL
    for kind in STRUCTURES:
        following = structure(kind, pNext=following)
        chain[kind] = following
    return chain


def _members(features: Any) -> Any:
    """Where a features structure has its members: those of Vulkan 1.0 are one level down."""
    return features.features if hasattr(features, "features") else features
