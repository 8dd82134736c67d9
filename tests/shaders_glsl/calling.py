"""One of lavax's GLSL functions on the device at hand, for every element of arrays."""
from __future__ import annotations

from typing import Any

import numpy as np

from lavax.backends.vulkan.device.device import get_device
from lavax.backends.vulkan.plan.plan import Dispatch, Plan, Result, Shader
from lavax.backends.vulkan.run.program import Program
from lavax.shaders_glsl import function_source

LOCAL_SIZE = 64

SHADER = """#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430) buffer Addresses { uint64_t at[]; };
layout(buffer_reference, std430) buffer Numbers { NUMBER at[]; };
layout(push_constant, std430) uniform Constants { uint64_t table; uint words[30]; } constants;
FUNCTIONS
void main() {
    uint i = gl_GlobalInvocationID.x;
    Addresses table = Addresses(constants.table);
    if (i < constants.words[3]) {
        NUMBER x = Numbers(table.at[constants.words[0]]).at[i];
        NUMBER y = Numbers(table.at[constants.words[1]]).at[i];
        Numbers(table.at[constants.words[2]]).at[i] = NUMBER(CALL);
    }
}
"""
_NUMBERS = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}


def apply(name: str, arity: int, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`name(x)` or `name(x, y)` for every element, on the device; both arrays are float32 or both float64."""
    call = f"{name}({', '.join('xy'[:arity])})"
    text = SHADER.replace("FUNCTIONS", function_source([name])).replace("CALL", call)
    text = text.replace("NUMBER", _NUMBERS[x.dtype])
    groups = (-(-len(x) // LOCAL_SIZE), 1, 1)
    dispatch = Dispatch(Shader(text), (0, 1, 2), (len(x),), groups, False, name)
    plan = Plan((x.nbytes, y.nbytes), (Result(x.nbytes, None),), (), (), 0, (dispatch,))
    device = get_device()
    (result,) = Program(device, plan)(device.transfer.upload(x), device.transfer.upload(y))
    return device.transfer.download(result, x.nbytes).view(x.dtype)
