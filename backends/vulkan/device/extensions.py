"""Device extensions that lavax enables if they exist, and what a profile says of them.

The `vulkan` package lacks the structures of newer extensions. But all structures that report features have the same
layout: a type, a pointer to the next structure, and a 32-bit boolean per feature. So a table is enough.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from lavax.backends.vulkan.api.api import (
    HEADER_WORDS,
    array,
    enumerated,
    ffi,
    lib,
    structure,
    text,
    untyped_structure,
    vk,
)
from lavax.backends.vulkan.compile.shader_compiler import accepts_extension
from lavax.backends.vulkan.device.processors import told_processors
from lavax.backends.vulkan.plan.profile import DeviceProfile, MatrixShape
from lavax.base.quick_dataclasses import dataclass

COOPERATIVE_MATRIX = "VK_KHR_cooperative_matrix"
COOPERATIVE_MATRIX_2 = "VK_NV_cooperative_matrix2"
BFLOAT16 = "VK_KHR_shader_bfloat16"
ATOMIC_FLOAT = "VK_EXT_shader_atomic_float"
FLOAT_CONTROLS_2 = "VK_KHR_shader_float_controls2"


@dataclass(frozen=True)
class Extension:
    """An extension: the sType of its features structure, the features in the structure's order, and those to enable."""

    structure_type: int
    features: tuple[str, ...]
    wanted: frozenset[str]


EXTENSIONS = {
    COOPERATIVE_MATRIX: Extension(
        1000506000, ("cooperativeMatrix", "cooperativeMatrixRobustBufferAccess"), frozenset(("cooperativeMatrix",))
    ),
    COOPERATIVE_MATRIX_2: Extension(
        1000593000,
        (
            "cooperativeMatrixWorkgroupScope", "cooperativeMatrixFlexibleDimensions", "cooperativeMatrixReductions",
            "cooperativeMatrixConversions", "cooperativeMatrixPerElementOperations",
            "cooperativeMatrixTensorAddressing", "cooperativeMatrixBlockLoads",
        ),
        frozenset(("cooperativeMatrixReductions", "cooperativeMatrixConversions")),
    ),
    BFLOAT16: Extension(
        1000141000,
        ("shaderBFloat16Type", "shaderBFloat16DotProduct", "shaderBFloat16CooperativeMatrix"),
        frozenset(("shaderBFloat16Type", "shaderBFloat16CooperativeMatrix")),
    ),
    ATOMIC_FLOAT: Extension(
        1000260000,
        (
            "shaderBufferFloat32Atomics", "shaderBufferFloat32AtomicAdd",
            "shaderBufferFloat64Atomics", "shaderBufferFloat64AtomicAdd",
            "shaderSharedFloat32Atomics", "shaderSharedFloat32AtomicAdd",
            "shaderSharedFloat64Atomics", "shaderSharedFloat64AtomicAdd",
            "shaderImageFloat32Atomics", "shaderImageFloat32AtomicAdd",
            "sparseImageFloat32Atomics", "sparseImageFloat32AtomicAdd",
        ),
        frozenset(("shaderBufferFloat32Atomics", "shaderBufferFloat32AtomicAdd")),
    ),
    FLOAT_CONTROLS_2: Extension(1000528000, ("shaderFloatControls2",), frozenset(("shaderFloatControls2",))),
}
# VkDriverId of the drivers that share Mesa's compiler. Where they know for each operation what they may do with it,
# they compute floats in another order unless they are told not to, from version 26 on. Being told costs older ones
# nothing: they fuse nothing where infinities are preserved. Other drivers are not known to reorder.
_REORDERING = frozenset(
    {
        3,  # RADV
        6,  # Intel's
        13,  # lavapipe
        18,  # Turnip
        19,  # V3DV
        20,  # PanVK
        22,  # Venus, which hands shaders on to a driver of the host
        23,  # Dozen
        24,  # NVK
        25,  # Imagination's
        26,  # Honeykrisp
    }
)
# VkComponentTypeKHR of a matrix's elements.
_COMPONENTS = {"f16": 0, "f32": 1, "bf16": 1000141000}
# The extensions that matrices of a dtype need.
_NEEDS = {"f16": (COOPERATIVE_MATRIX,), "bf16": (COOPERATIVE_MATRIX, BFLOAT16)}
# Larger matrices need fewer instructions; the largest size used along each dimension.
_LARGEST_MATRIX = 16


def usable_extensions(physical: Any) -> tuple[str, ...]:
    """Those of EXTENSIONS that the device has, with all wanted features, and that lavax has a use for."""
    there = _names(physical)
    return tuple(
        name
        for name, extension in EXTENSIONS.items()
        if name in there and extension.wanted <= _available(physical, extension)
        if name != FLOAT_CONTROLS_2 or _driver(physical) in _REORDERING
    )


def _driver(physical: Any) -> int:
    """The device's VkDriverId."""
    driver = structure("VkPhysicalDeviceDriverProperties")
    lib.vkGetPhysicalDeviceProperties2(physical, structure("VkPhysicalDeviceProperties2", pNext=driver))
    return int(driver.driverID)


def _names(physical: Any) -> set[str]:
    """The device's extensions."""
    properties = enumerated(
        lib.vkEnumerateDeviceExtensionProperties, "VkExtensionProperties", physical, ffi.NULL
    )
    return {text(each.extensionName) for each in properties}


def enabling(names: Iterable[str], following: Any) -> Any:
    """A chain of structures that enables the extensions' wanted features, followed by `following`."""
    for name in names:
        extension = EXTENSIONS[name]
        following, values = _features(extension, following)
        for number, feature in enumerate(extension.features):
            values[number] = feature in extension.wanted
    return following


def with_extensions(profile: DeviceProfile, instance: Any, physical: Any) -> DeviceProfile:
    """The profile of a device with what extensions add to it."""
    there = usable_extensions(physical)
    adds = ATOMIC_FLOAT in there and accepts_extension("GL_EXT_shader_atomic_float")
    matrices = _matrices(instance, physical, profile)
    converts = COOPERATIVE_MATRIX_2 in there and accepts_extension("GL_NV_cooperative_matrix2")
    return replace(
        profile,
        matrices=matrices,
        converts_matrices=bool(matrices) and converts,
        adds_floats=adds,
        reorders_floats=FLOAT_CONTROLS_2 in there,
        told_processors=told_processors(physical, _names(physical)) if profile.kind == "gpu" else None,
    )


def _matrices(instance: Any, physical: Any, profile: DeviceProfile) -> tuple[MatrixShape, ...]:
    """The shapes of subgroup matrices that shaders can be compiled for; per dtype, the largest first."""
    there = usable_extensions(physical)
    able = profile.memory_model and profile.float16 and profile.knows_subgroup_size
    if not able or COOPERATIVE_MATRIX not in there or not accepts_extension("GL_KHR_cooperative_matrix"):
        return ()
    found = [
        MatrixShape(dtype, each.MSize, each.NSize, each.KSize)
        for each in _matrix_properties(instance, physical)
        for dtype, needs in _NEEDS.items()
        if _is_of(each, dtype) and set(needs) <= set(there)
    ]
    suited = [shape for shape in found if max(shape.m, shape.n, shape.k) <= _LARGEST_MATRIX]
    return tuple(sorted(suited, key=lambda shape: (shape.dtype, -shape.m * shape.n * shape.k)))


def _is_of(properties: Any, dtype: str) -> bool:
    """Whether matrices of a shape multiply numbers of the dtype, sum in float32, and consist of vectors of 128 bits."""
    operands = (properties.AType, properties.BType)
    sums = (properties.CType, properties.ResultType)
    whole = all(size % 8 == 0 for size in (properties.MSize, properties.NSize, properties.KSize))
    within = properties.scope == vk.VK_SCOPE_SUBGROUP_KHR and whole
    return within and operands == (_COMPONENTS[dtype],) * 2 and sums == (_COMPONENTS["f32"],) * 2


def _matrix_properties(instance: Any, physical: Any) -> Any:
    name = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"
    call = ffi.cast(f"PFN_{name}", lib.vkGetInstanceProcAddr(instance, name.encode()))
    count = ffi.new("uint32_t *")
    call(physical, count, ffi.NULL)
    kind = "VkCooperativeMatrixPropertiesKHR"
    found = array(kind, [structure(kind)[0] for _ in range(count[0])])
    call(physical, count, found)
    return found


def _available(physical: Any, extension: Extension) -> set[str]:
    features, values = _features(extension, ffi.NULL)
    chain = structure("VkPhysicalDeviceFeatures2", pNext=features)
    lib.vkGetPhysicalDeviceFeatures2(physical, chain)
    return {name for number, name in enumerate(extension.features) if values[number]}


def _features(extension: Extension, following: Any) -> tuple[Any, Any]:
    """An empty structure of an extension's features, followed by `following`, and the array of features in it."""
    memory = untyped_structure(extension.structure_type, 4 * len(extension.features), following)
    return memory, ffi.cast("uint32_t *", memory + HEADER_WORDS)
