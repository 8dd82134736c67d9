"""What every SPIR-V module is (SPIR-V specification, 2.3): its instructions, and what is checked of it before it is
kept or given to a driver.

Drivers need not check what they are given, and crash on what is no module.
"""
from __future__ import annotations

from array import array
from collections.abc import Iterator

_MAGIC = 0x07230203
_OLDEST, _NEWEST = 0x00010000, 0x00010600  # versions 1.0 and 1.6
_MOST_IDS = 1 << 24  # more than any compiler numbers; a universal limit of the specification is 2^22
HEADER_WORDS = 5  # before the first instruction


def instructions(words: array[int]) -> Iterator[array[int]]:
    """The words of each instruction of a module, of which the first one has the opcode and the number of them."""
    position = HEADER_WORDS
    while position < len(words):
        length = words[position] >> 16
        yield words[position : position + length]
        position += length


def in_words(text: bytes) -> array[int]:
    """A string in SPIR-V's form: terminated by a zero, and padded to whole words."""
    return array("I", text + b"\0" * (4 - len(text) % 4))


def fault_of_header(spirv: bytes) -> str | None:
    """Why these bytes cannot begin a module, from its length and five words; None if they can."""
    if len(spirv) % 4:
        return f"it has {len(spirv)} bytes, which are no whole words"
    if len(spirv) <= 4 * HEADER_WORDS:
        return f"it has {len(spirv) // 4} words, which hold no instruction"
    magic, version, _, bound, schema = array("I", spirv[: 4 * HEADER_WORDS])
    if magic != _MAGIC:
        return f"it begins with {magic:#010x}, not with {_MAGIC:#010x}"
    if not _OLDEST <= version <= _NEWEST or version & 0xFF0000FF:
        return f"its version is {version:#010x}"
    if not 0 < bound <= _MOST_IDS or schema:
        return f"its header says {bound} identifiers and schema {schema}"
    return None


def fault_of_module(spirv: bytes) -> str | None:
    """The same, and whether instructions fill it to its end. Takes time linear in their number."""
    fault = fault_of_header(spirv)
    if fault is not None:
        return fault
    words = array("I", spirv)
    position, end = HEADER_WORDS, len(words)
    while position < end:
        length = words[position] >> 16
        if not length:
            return f"the instruction at word {position} has no words"
        position += length
    return None if position == end else "its last instruction is cut short"
