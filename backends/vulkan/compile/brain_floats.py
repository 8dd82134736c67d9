"""SPIR-V modules whose 16-bit floats are bfloat16.

In GLSL the type is an extension that few compilers know yet. So a shader that uses float16_t only for the elements of
cooperative matrices is compiled as it is, and its module is then changed to the bfloat16 encoding (SPV_KHR_bfloat16).
"""
from __future__ import annotations

from array import array
from collections.abc import Iterable

from lavax.backends.vulkan.compile.spirv import HEADER_WORDS, in_words, instructions

# The mark of such a shader.
BRAIN_FLOATS = "#pragma float16_t_is_bfloat16\n"
# Numbers in SPIR-V: opcodes, capabilities, an encoding.
_OP_EXTENSION, _OP_CAPABILITY, _OP_TYPE_FLOAT = 10, 17, 22
_FLOAT16, _BFLOAT16_TYPE, _BFLOAT16_MATRIX = 9, 5116, 5118
_BFLOAT16_ENCODING = 0
_EXTENSION = b"SPV_KHR_bfloat16"


def with_brain_floats(spirv: bytes) -> bytes:
    """The module with every 16-bit float replaced by bfloat16."""
    words = array("I", spirv)
    found = words[:HEADER_WORDS]
    for instruction in instructions(words):
        found.extend(_rewritten(instruction))
    return found.tobytes()


def _rewritten(instruction: array[int]) -> Iterable[int]:
    operation = instruction[0] & 0xFFFF
    if operation == _OP_CAPABILITY and instruction[1] == _FLOAT16:
        return *_instruction(_OP_CAPABILITY, _BFLOAT16_TYPE), *_instruction(_OP_CAPABILITY, _BFLOAT16_MATRIX)
    if operation == _OP_EXTENSION and instruction[1:].tobytes().rstrip(b"\0") == b"SPV_KHR_cooperative_matrix":
        return *instruction, *_instruction(_OP_EXTENSION, *in_words(_EXTENSION))
    if operation == _OP_TYPE_FLOAT and instruction[2] == 16:
        return _instruction(_OP_TYPE_FLOAT, instruction[1], 16, _BFLOAT16_ENCODING)
    return instruction


def _instruction(operation: int, *operands: int) -> tuple[int, ...]:
    return (len(operands) + 1) << 16 | operation, *operands
