"""SPIR-V modules whose 16-bit floats are bfloat16.

In GLSL the type is an extension that few compilers know yet. So a shader that uses float16_t only for the elements of
cooperative matrices is compiled as it is, and its module is then changed to the bfloat16 encoding (SPV_KHR_bfloat16).
"""
from __future__ import annotations

import struct
from collections.abc import Iterator

from lavax.backends.vulkan.compile.spirv import HEADER_WORDS

# The mark of such a shader.
BRAIN_FLOATS = "#pragma float16_t_is_bfloat16\n"
# Numbers in SPIR-V: opcodes, capabilities, an encoding.
_OP_EXTENSION, _OP_CAPABILITY, _OP_TYPE_FLOAT = 10, 17, 22
_FLOAT16, _BFLOAT16_TYPE, _BFLOAT16_MATRIX = 9, 5116, 5118
_BFLOAT16_ENCODING = 0
_EXTENSION = b"SPV_KHR_bfloat16"


def with_brain_floats(spirv: bytes) -> bytes:
    """The module with every 16-bit float replaced by bfloat16."""
    words = struct.unpack(f"<{len(spirv) // 4}I", spirv)
    found = list(words[:HEADER_WORDS])
    for instruction in _instructions(words):
        found += _rewritten(instruction)
    return struct.pack(f"<{len(found)}I", *found)


def _instructions(words: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    position = HEADER_WORDS
    while position < len(words):
        length = words[position] >> 16
        yield words[position : position + length]
        position += length


def _rewritten(instruction: tuple[int, ...]) -> tuple[int, ...]:
    operation = instruction[0] & 0xFFFF
    if operation == _OP_CAPABILITY and instruction[1] == _FLOAT16:
        return *_instruction(_OP_CAPABILITY, _BFLOAT16_TYPE), *_instruction(_OP_CAPABILITY, _BFLOAT16_MATRIX)
    if operation == _OP_EXTENSION and _text(instruction) == b"SPV_KHR_cooperative_matrix":
        return *instruction, *_instruction(_OP_EXTENSION, *_words(_EXTENSION))
    if operation == _OP_TYPE_FLOAT and instruction[2] == 16:
        return _instruction(_OP_TYPE_FLOAT, instruction[1], 16, _BFLOAT16_ENCODING)
    return instruction


def _instruction(operation: int, *operands: int) -> tuple[int, ...]:
    return (len(operands) + 1) << 16 | operation, *operands


def _text(instruction: tuple[int, ...]) -> bytes:
    return struct.pack(f"<{len(instruction) - 1}I", *instruction[1:]).rstrip(b"\0")


def _words(text: bytes) -> tuple[int, ...]:
    """A string in SPIR-V's form: terminated by a zero, and padded to whole words."""
    padded = text + b"\0" * (4 - len(text) % 4)
    return struct.unpack(f"<{len(padded) // 4}I", padded)
