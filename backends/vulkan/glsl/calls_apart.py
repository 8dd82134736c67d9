"""Long shaders whose calls of functions stand in blocks of their own, because a driver puts functions in their place.

Mesa's NIR splits a call's block in front of it and joins the parts again behind the function's body, for one call after
the other (`nir_inline_functions`), and walks over all instructions of the block for each. In a block of thousands of
statements with a hundred calls this took 0.95 s of 4.0. A block behind a condition that always holds is short, and NIR
removes the condition before LLVM sees it.
"""
from __future__ import annotations

import re

# The statements of a main from which on this pays, and the calls that share a block.
LONG, CALLS = 300, 8
_MAIN = "void main() {\n"
_FUNCTION = re.compile(r"^\w+ (\w+)\(.*\) \{", re.MULTILINE)
_DECLARATION = re.compile(r"^( +)((?:precise )?\w+) (\w+) = (.*;)$")


def with_calls_apart(source: str) -> str:
    """The shader, if it is long, with the declarations that call its functions in blocks of their own."""
    head, begin, main = source.partition(_MAIN)
    lines = main.split("\n")
    names = _FUNCTION.findall(head) if len(lines) >= LONG else []
    if not names:
        return source
    calls = re.compile(rf"\b(?:{'|'.join(sorted(set(names)))})\(")
    found: list[str] = []
    together: list[re.Match[str]] = []
    for line in lines:  # the last one, the brace of main, calls nothing
        match = _DECLARATION.match(line)
        call = match if match is not None and calls.search(match[4]) is not None else None
        if together and (call is None or len(together) == CALLS or together[0][1] != call[1]):
            found += _in_a_block(together)
            together = []
        if call is None:
            found.append(line)
        else:
            together.append(call)
    return head + begin + "\n".join(found)


def _in_a_block(declarations: list[re.Match[str]]) -> list[str]:
    """The declarations without values, and a block that gives the names their values."""
    indent = declarations[0][1]
    return [
        *(f"{indent}{each[2]} {each[3]};" for each in declarations),
        f"{indent}if (true) {{",
        *(f"{indent}    {each[3]} = {each[4]}" for each in declarations),
        f"{indent}}}",
    ]
