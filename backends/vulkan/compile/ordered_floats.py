"""SPIR-V modules whose float arithmetic keeps its order, and may be contracted: x y + z to one fused operation.

A driver that offers VK_KHR_shader_float_controls2 knows for each operation what it may do with it. A module says so for
all operations of a type at once (SPIR-V, SPV_KHR_float_controls2: FPFastMathDefault), here that they may be contracted,
and neither reordered nor otherwise transformed. What GLSL calls `precise` may not even be contracted. These take the
place of the older SignedZeroInfNanPreserve and NoContraction, which may not stand beside them.
"""
from __future__ import annotations

from array import array

from lavax.backends.vulkan.compile.exact_floats import ARITHMETIC, NO_CONTRACTION, OP_DECORATE
from lavax.backends.vulkan.compile.spirv import HEADER_WORDS, in_words, instructions
from lavax.base.quick_dataclasses import dataclass

# The mark of such a shader.
ORDERED_FLOATS = "#pragma floats_are_computed_in_order\n"
# Numbers in SPIR-V: opcodes, a capability, decorations, execution modes.
_OP_EXTENSION, _OP_ENTRY_POINT, _OP_EXECUTION_MODE, _OP_EXECUTION_MODE_ID = 10, 15, 16, 331
_OP_CAPABILITY, _OP_TYPE_INTEGER, _OP_TYPE_FLOAT, _OP_TYPE_VECTOR, _OP_CONSTANT = 17, 21, 22, 23, 43
_FLOAT_CONTROLS_2 = 6029
_FAST_MATH_MODE = 40
_SPECIAL_FLOATS, _FAST_MATH_DEFAULT = 4461, 6028
_EXTENSION = b"SPV_KHR_float_controls2"
# What an operation may be taken for: one on numbers, on finite ones, on zeros without signs; a part of a fused one.
_ON_ALL_NUMBERS = 0
_ON_NORMAL_NUMBERS = 0x1 | 0x2 | 0x4
_CONTRACTED = 0x10000


@dataclass(frozen=True)
class _Found:
    """What a module has: the width in bits of each float type, and of each result that may be decorated."""

    types: dict[int, int]
    results: dict[int, int]
    preserved: frozenset[int]  # the widths for which it asks for signed zeros, infinities and NaN
    integer: int  # the first type of 32-bit integers


def with_ordered_floats(spirv: bytes) -> bytes:
    """The module with its permissions: contraction of all operations but precise ones, and nothing else."""
    words = array("I", spirv)
    found = _survey(words)
    widths = found.types.values()
    masks = {width: _ON_ALL_NUMBERS if width in found.preserved else _ON_NORMAL_NUMBERS for width in widths}
    constants = {width: words[3] + number for number, width in enumerate(sorted(masks))}
    changed = array("I", words[:HEADER_WORDS])
    changed[3] += len(constants)
    changed.extend((2 << 16 | _OP_CAPABILITY, _FLOAT_CONTROLS_2))
    awaited = _extension()  # stands behind all capabilities
    for instruction in instructions(words):
        operation = instruction[0] & 0xFFFF
        if operation != _OP_CAPABILITY and awaited:
            changed.extend(awaited)
            awaited = array("I")
        if operation == _OP_EXECUTION_MODE and instruction[2] == _SPECIAL_FLOATS:
            continue
        if operation == OP_DECORATE and instruction[2] == NO_CONTRACTION:
            if instruction[1] in found.results:
                mask = masks[found.results[instruction[1]]]
                changed.extend((4 << 16 | OP_DECORATE, instruction[1], _FAST_MATH_MODE, mask))
            continue
        changed.extend(instruction)
        if operation == _OP_ENTRY_POINT:
            for type, width in found.types.items():
                default = (instruction[2], _FAST_MATH_DEFAULT, type, constants[width])
                changed.extend((5 << 16 | _OP_EXECUTION_MODE_ID, *default))
        if operation == _OP_TYPE_INTEGER and instruction[1] == found.integer:
            for width, constant in constants.items():
                changed.extend((4 << 16 | _OP_CONSTANT, found.integer, constant, masks[width] | _CONTRACTED))
    return changed.tobytes()


def _survey(words: array[int]) -> _Found:
    types: dict[int, int] = {}
    components: dict[int, int] = {}
    results: dict[int, int] = {}
    preserved: set[int] = set()
    integer = 0
    for instruction in instructions(words):
        operation = instruction[0] & 0xFFFF
        if operation == _OP_TYPE_FLOAT and len(instruction) == 3:  # with one word more it is another encoding
            types[instruction[1]] = components[instruction[1]] = instruction[2]
        elif operation == _OP_TYPE_VECTOR and instruction[2] in components:
            components[instruction[1]] = components[instruction[2]]
        elif operation == _OP_TYPE_INTEGER and instruction[2] == 32:
            integer = integer or instruction[1]
        elif operation == _OP_EXECUTION_MODE and instruction[2] == _SPECIAL_FLOATS:
            preserved.add(instruction[3])
        elif operation in ARITHMETIC and instruction[1] in components:
            results[instruction[2]] = components[instruction[1]]
    return _Found(types, results, frozenset(preserved), integer)


def _extension() -> array[int]:
    """The instruction that names the extension."""
    name = in_words(_EXTENSION)
    return array("I", (len(name) + 1 << 16 | _OP_EXTENSION, *name))
