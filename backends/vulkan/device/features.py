"""Device features: those that lavax requires, those that it enables if they exist, and the profile of a device."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from lavax.backends.vulkan.api.api import ffi, lib, structure, text, version, vk
from lavax.backends.vulkan.device.registers import register_bits
from lavax.backends.vulkan.plan.plan import MAX_WORDS
from lavax.backends.vulkan.plan.profile import DeviceProfile

# Members of VkPhysicalDevice…Features, by structure. Vulkan 1.3 requires them.
REQUIRED = {
    "VkPhysicalDeviceVulkan12Features": ("bufferDeviceAddress", "timelineSemaphore", "scalarBlockLayout"),
    "VkPhysicalDeviceVulkan13Features": (
        "synchronization2", "subgroupSizeControl", "computeFullSubgroups", "maintenance4",
    ),
}

# Enabled if the device has them: per feature of the profile, the structure and all members that go together. Barriers
# of plain shaders have device scope, which is a separate feature of the memory model. Functions of float64 use integer
# operations on its bits.
OPTIONAL = {
    "int64": ("VkPhysicalDeviceFeatures2", "shaderInt64"),
    "float64": ("VkPhysicalDeviceFeatures2", "shaderFloat64", "shaderInt64"),
    "int16": ("VkPhysicalDeviceFeatures2", "shaderInt16"),
    "storage_16bit": ("VkPhysicalDeviceVulkan11Features", "storageBuffer16BitAccess"),
    "float16": ("VkPhysicalDeviceVulkan12Features", "shaderFloat16"),
    "int8": ("VkPhysicalDeviceVulkan12Features", "shaderInt8"),
    "storage_8bit": ("VkPhysicalDeviceVulkan12Features", "storageBuffer8BitAccess"),
    "adds_longs": ("VkPhysicalDeviceVulkan12Features", "shaderBufferInt64Atomics"),
    "memory_model": ("VkPhysicalDeviceVulkan12Features", "vulkanMemoryModel", "vulkanMemoryModelDeviceScope"),
}

# The size of the smallest texels that shaders read from a buffer.
_WORD_BYTES = 4

# The most descriptors that a shader needs if its push constants are all slots and positions of arrays: each array is
# written, or read in two forms.
_MOST_STORED = MAX_WORDS // 2
_MOST_READ = MAX_WORDS

# What a shader requests where it converts to float16 exactly.
_EXACT_HALVES = (
    "shaderSignedZeroInfNanPreserveFloat16",
    "shaderDenormPreserveFloat16",
    "shaderRoundingModeRTEFloat16",
)

# The chain in which features are queried and enabled.
STRUCTURES = (
    "VkPhysicalDeviceVulkan13Features",
    "VkPhysicalDeviceVulkan12Features",
    "VkPhysicalDeviceVulkan11Features",
    "VkPhysicalDeviceFeatures2",
)


def missing(physical: Any, api_version: int) -> tuple[str, ...]:
    """The requirements of lavax that a physical device does not meet."""
    if api_version < version(1, 3):
        return (f"Vulkan 1.3 (it has {api_version >> 22}.{api_version >> 12 & 0x3FF})",)
    available = _available(physical)
    return tuple(
        name for kind, names in REQUIRED.items() for name in names if not getattr(_members(available[kind]), name)
    )


def enabled(physical: Any) -> Any:
    """The chain of structures for creating a device: all required features, and the optional ones that it has."""
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
    is_cpu = properties.properties.deviceType == vk.VK_PHYSICAL_DEVICE_TYPE_CPU
    profile = DeviceProfile(
        name=text(properties.properties.deviceName),
        kind="cpu" if is_cpu else "gpu",
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
        reorders_floats=False,
        exact_float16=_exact_halves(available["VkPhysicalDeviceVulkan12Features"], version_12),
        descriptor_bytes=_descriptor_bytes(limits),
        changing_texels=limits.maxPerStageDescriptorStorageImages,
        matrices=(),
        converts_matrices=False,
        told_processors=None,
        register_bits=register_bits() if is_cpu else 0,
        adds_floats=False,
        **{name: _has(available[kind], members) for name, (kind, *members) in OPTIONAL.items()},
    )
    if profile.knows_subgroup_size:
        return profile
    return replace(profile, subgroup_shuffle=False, subgroup_ballot=False)


def _has(features: Any, members: Iterable[str]) -> bool:
    return all(getattr(_members(features), member) for member in members)


def _preserves_denormals(properties: Any) -> bool:
    """Whether shaders may preserve denormals of 32-bit floats independently of those of 16 and 64 bits."""
    independent = properties.denormBehaviorIndependence != vk.VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE
    return independent and bool(properties.shaderDenormPreserveFloat32)


def _exact_halves(features: Any, properties: Any) -> bool:
    """Whether shaders may request that 16-bit floats are exact, whatever they request of others."""
    every = vk.VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL
    independent = properties.denormBehaviorIndependence == properties.roundingModeIndependence == every
    promised = all(getattr(properties, promise) for promise in _EXACT_HALVES)
    return independent and promised and _has(features, ("shaderFloat16",))


def _descriptor_bytes(limits: Any) -> int:
    """The most bytes that a descriptor covers; 0 if a shader may have fewer descriptors than arrays."""
    stored, read = limits.maxPerStageDescriptorStorageBuffers, limits.maxPerStageDescriptorSampledImages
    if stored < _MOST_STORED or read < _MOST_READ:
        return 0
    return int(min(_WORD_BYTES * limits.maxTexelBufferElements, limits.maxStorageBufferRange))


def _available(physical: Any) -> dict[str, Any]:
    chain = _chain()
    lib.vkGetPhysicalDeviceFeatures2(physical, chain["VkPhysicalDeviceFeatures2"])
    return chain


def _chain() -> dict[str, Any]:
    """Empty feature structures by name; each is the pNext of its successor in STRUCTURES."""
    chain: dict[str, Any] = {}
    following = ffi.NULL
    for kind in STRUCTURES:
        following = structure(kind, pNext=following)
        chain[kind] = following
    return chain


def _members(features: Any) -> Any:
    """The part of a features structure that holds its members: those of Vulkan 1.0 are one level down."""
    return features.features if hasattr(features, "features") else features
