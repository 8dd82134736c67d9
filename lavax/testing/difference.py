"""Two texts of IR, side by side: lines that differ, matched by what they compute."""
from __future__ import annotations

import difflib
import re

_NUMBER = re.compile(r"%\d+")


def difference(wanted: str, found: str) -> str:
    """All lines of `found`, with "+" before those that are new, and with "-" those of `wanted` that are gone.

    Lines that differ only in the numbers of values, because others came or went before them, count as equal.
    """
    old, new = wanted.splitlines(), found.splitlines()
    old_keys, new_keys = ([_NUMBER.sub("%", line).strip() for line in lines] for lines in (old, new))
    if old_keys == new_keys:  # so the numbers are what differs
        old_keys, new_keys = old, new
    lines = []
    matcher = difflib.SequenceMatcher(None, old_keys, new_keys, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            lines += [f"  {line}" for line in new[j1:j2]]
        else:
            lines += [f"- {line}" for line in old[i1:i2]]
            lines += [f"+ {line}" for line in new[j1:j2]]
    return "\n".join(lines)
