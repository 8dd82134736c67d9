"""SPIR-V modules whose float arithmetic is computed as it is written.

Unless a shader asks for exactness, a driver may take (x + y) - x to be y, x y + x z to be x (y + z), and x - x to be 0
(SPIR-V specification, NoContraction; Vulkan specification, "Precision and Operation of SPIR-V Instructions"). Mesa does
so from version 26 on. GLSL has a word for it, `precise`, but only for single variables.
"""
from __future__ import annotations

from array import array

from lavax.backends.vulkan.compile.spirv import HEADER_WORDS, instructions

# The mark of such a shader.
EXACT_FLOATS = "#pragma floats_are_computed_as_written\n"
# Numbers in SPIR-V: opcodes, a decoration.
OP_DECORATE, _OP_TYPE_VOID, NO_CONTRACTION = 71, 19, 42
# Negation, sums, differences, products, quotients, remainders; products of vectors and matrices with all else; dot.
ARITHMETIC = frozenset((127, 129, 131, 133, 136, 140, 141, *range(142, 149)))


def with_exact_floats(spirv: bytes) -> bytes:
    """The module with every instruction of float arithmetic decorated so that it is left as it is."""
    words = array("I", spirv)
    position, types = HEADER_WORDS, 0
    decorated: set[int] = set()
    arithmetic: list[int] = []
    for instruction in instructions(words):
        operation = instruction[0] & 0xFFFF
        if operation in ARITHMETIC:
            arithmetic.append(instruction[2])
        elif operation == OP_DECORATE and instruction[2] == NO_CONTRACTION:
            decorated.add(instruction[1])
        elif operation == _OP_TYPE_VOID and not types:
            types = position  # decorations stand before all types, of which this is the first that glslang writes
        position += len(instruction)
    added = array("I")
    for result in arithmetic:
        if result not in decorated:
            added.extend((3 << 16 | OP_DECORATE, result, NO_CONTRACTION))
    return (words[:types] + added + words[types:]).tobytes()
