"""The extensions of GLSL that shaders are written with, by the name under which their use is recorded."""

from __future__ import annotations

# Every shader's: addresses of buffers, their layout, and integers of 64 bits to hold the addresses.
ADDRESSES_IN_INTEGERS = "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n"
HEADER = (
    "#version 460\n"
    "#extension GL_EXT_buffer_reference2 : require\n"
    "#extension GL_EXT_scalar_block_layout : require\n" + ADDRESSES_IN_INTEGERS
)

FLOAT16 = "#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require\n"

# In the order in which a shader lists them.
EXTENSIONS: dict[str, str] = {
    "storage_8bit": "#extension GL_EXT_shader_8bit_storage : require\n",
    "storage_16bit": "#extension GL_EXT_shader_16bit_storage : require\n",
    "shuffle": "#extension GL_KHR_shader_subgroup_shuffle : require\n",
    "atomic_float": "#extension GL_EXT_shader_atomic_float : require\n",
    "atomic_int64": "#extension GL_EXT_shader_atomic_int64 : require\n",
    "unroll": "#extension GL_EXT_control_flow_attributes : require\n",
    "ballot": "#extension GL_KHR_shader_subgroup_ballot : require\n",
    "cooperative_matrix": (
        "#extension GL_KHR_cooperative_matrix : require\n"
        "#extension GL_KHR_memory_scope_semantics : require\n"
        + FLOAT16
        + "#extension GL_KHR_shader_subgroup_basic : require\n"
    ),
    "cooperative_matrix_2": "#extension GL_NV_cooperative_matrix2 : require\n",
}
INTRINSICS = "#extension GL_EXT_spirv_intrinsics : require\n"


def execution_mode(capability: int, mode: int, bits: int) -> str:
    """The request of a mode of SPIR-V's float controls, by its numbers, for floats of so many bits."""
    extensions = 'extensions = ["SPV_KHR_float_controls"]'
    return f"spirv_execution_mode({extensions}, capabilities = [{capability}], {mode}, {bits});\n"
