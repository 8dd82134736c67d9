"""Rounding to bfloat16 on GPUs, in as few operations as integers allow.

The library finds NaN by its bits, because a driver may assume that no float is NaN. Where shaders may request that NaN
is preserved, one comparison of floats finds it. A gradient of a gated layer rounds five numbers per result, as PyTorch
does, so its epilogue is a quarter shorter.
"""

from __future__ import annotations

from lavax.shaders_glsl import functions_for

_NAME = "lx_bf16_to_bits"
_SHORT = f"""uint {_NAME}(float x) {{
    uint bits = floatBitsToUint(x);
    uint nearest = bits + 0x7fffu + bitfieldExtract(bits, 16, 1);
    return (isnan(x) ? bits | 0x400000u : nearest) >> 16;
}}
"""


def with_short_rounding(source: str) -> str:
    """The shader with the short form, which gives the same bits."""
    (function,) = functions_for([_NAME])
    return source.replace(function.text, _SHORT)
