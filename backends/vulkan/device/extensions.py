"""Extensions of a device that lavax switches on where they exist, and the cooperative matrices that come with them.

The `vulkan` package knows no structures of newer extensions. All that say which features there are have one form: a
type, a pointer to the next structure, and a 32-bit truth value a feature. So a table is enough.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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
from lavax.backends.vulkan.plan.profile import DeviceProfile, MatrixShape

COOPERATIVE_MATRIX = "VK_KHR_cooperative_matrix"
BFLOAT16 = "VK_KHR_shader_bfloat16"


@dataclass(frozen=True)
class Extension:
    """The number of its structure of features, the features in the structure's order, and those that are wanted."""

    structure_type: int
    features: tuple[str, ...]
    wanted: frozenset[str]


EXTENSIONS = {
    COOPERATIVE_MATRIX: Extension(
        1000506000, ("cooperativeMatrix", "cooperativeMatrixRobustBufferAccess"), frozenset(("cooperativeMatrix",))
    ),
    BFLOAT16: Extension(
        1000141000,
        ("shaderBFloat16Type", "shaderBFloat16DotProduct", "shaderBFloat16CooperativeMatrix"),
        frozenset(("shaderBFloat16Type", "shaderBFloat16CooperativeMatrix")),
    ),
}
# Types of a matrix's elements, as the device names them.
_COMPONENTS = {"f16": 0, "f32": 1, "bf16": 1000141000}
# What matrices of a dtype need.
_NEEDS = {"f16": (COOPERATIVE_MATRIX,), "bf16": (COOPERATIVE_MATRIX, BFLOAT16)}
# The larger the matrices, the fewer instructions; up to this extent in each direction.
_LARGEST_MATRIX = 16


def usable_extensions(physical: Any) -> tuple[str, ...]:
    """Those of EXTENSIONS that the device has with all features that are wanted of them."""
    properties = enumerated(
        lib.vkEnumerateDeviceExtensionProperties, "VkExtensionProperties", physical, ffi.NULL
    )
    there = {text(each.extensionName) for each in properties}
    return tuple(
        name
        for name, extension in EXTENSIONS.items()
        if name in there and extension.wanted <= _available(physical, extension)
    )


def enabling(names: Iterable[str], following: Any) -> Any:
    """A chain of structures that switches the extensions' wanted features on, in front of `following`."""
    for name in names:
        extension = EXTENSIONS[name]
        following, values = _features(extension, following)
        for number, feature in enumerate(extension.features):
            values[number] = feature in extension.wanted
    return following


def matrices(instance: Any, physical: Any, profile: DeviceProfile) -> tuple[MatrixShape, ...]:
    """The subgroup's matrices that shaders can be compiled for: for each dtype the largest first."""
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
    """Whether a kind of matrices multiplies numbers of the dtype and adds up in float32, in vectors of 128 bits."""
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
    """An empty structure of an extension's features, in front of another one, and the features in it."""
    memory = untyped_structure(extension.structure_type, 4 * len(extension.features), following)
    return memory, ffi.cast("uint32_t *", memory + HEADER_WORDS)
