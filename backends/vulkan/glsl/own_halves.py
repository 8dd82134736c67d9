"""Shaders of devices that convert exactly between float32 and float16 themselves.

The library converts by integers, which gives the same numbers everywhere and takes several times as long.
"""
from __future__ import annotations

from lavax.backends.vulkan.compile.brain_floats import BRAIN_FLOATS
from lavax.backends.vulkan.glsl.extensions import FLOAT16, INTRINSICS, execution_mode
from lavax.shaders_glsl import functions_for

# Capabilities and execution modes for 16-bit floats: SignedZeroInfNanPreserve, DenormPreserve, RoundingModeRTE.
_MODES = ((4466, 4461), (4464, 4459), (4467, 4462))
_BITS = "packFloat2x16(f16vec2(x, 0.0))"
# Drivers take float32 to float16 and back for nothing at all, as it is for what float16 holds; those of NVIDIA do, for
# all the modes. A workgroup's number along z is 0 in every dispatch, which they do not know, and so they have to round.
_CONVERSIONS = {
    "lx_f16_held_to_bits": f"uint lx_f16_held_to_bits(float x) {{ return {_BITS}; }}\n",
    "lx_f16_to_bits": f"uint lx_f16_to_bits(float x) {{ return {_BITS}; }}\n",
    "lx_f16_from_bits": "float lx_f16_from_bits(uint h) { return float(unpackFloat2x16(h).x); }\n",
    "lx_round_to_f16": (
        f"float lx_round_to_f16(float x) {{ return float(unpackFloat2x16({_BITS} | gl_WorkGroupID.z).x); }}\n"
    ),
}


def with_own_halves(source: str) -> str:
    """The shader with the device's own conversions, in which rounding is to the nearest and denormals stay."""
    library = functions_for(_CONVERSIONS)
    used = [function for function in library if function.name in _CONVERSIONS and function.text in source]
    if not used or BRAIN_FLOATS in source:  # there the type stands for bfloat16
        return source
    for function in used:
        source = source.replace(function.text, _CONVERSIONS[function.name])
    modes = (execution_mode(capability, mode, 16) for capability, mode in _MODES)
    return source.replace("\n", "\n" + "".join([INTRINSICS, FLOAT16, *modes]), 1)
