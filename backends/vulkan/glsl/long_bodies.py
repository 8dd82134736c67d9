"""Shaders whose main is so long that a compiler for processors takes seconds for it.

LLVM orders the instructions of a block so that accesses to memory which may be of one place keep their order. In LLVM
21, which Mesa 26 uses, this takes a time that grows as the square of their number, up to the next fence. With Mesa 25
and LLVM 19 fences change nothing. Mesa 22 splits a shader at a fence as at a barrier: there it takes twice as long to
compile, and half as long again to run. It does not know float controls 2, which tells it from the newer ones.
"""
from __future__ import annotations

# The statements between two fences. A fence costs nothing that was measured.
STATEMENTS = 1500
_FENCE = "memoryBarrierBuffer();"
_MAIN = "void main() {\n"


def with_fences(source: str) -> str:
    """The shader with a fence, which changes nothing, after every so many statements of its main."""
    head, begin, main = source.partition(_MAIN)
    lines = main.split("\n")
    if len(lines) <= STATEMENTS:
        return source
    found: list[str] = []
    since = 0
    for line in lines:
        found.append(line)
        since += 1
        if since >= STATEMENTS and line.endswith(";") and line.startswith(" "):
            found.append(line[: len(line) - len(line.lstrip())] + _FENCE)
            since = 0
    return head + begin + "\n".join(found)
