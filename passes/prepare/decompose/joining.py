"""Concatenations of many arrays, in steps: a kernel reads every array that it joins."""
from __future__ import annotations

from collections.abc import Sequence

from lavax.ir.graph import Node
from lavax.passes.build.builder import concatenate

MOST_JOINED = 8  # operands of one concatenation


def joined(parts: Sequence[Node], axis: int) -> Node:
    """The concatenation of any number of parts along an axis."""
    while len(parts) > MOST_JOINED:
        groups = (parts[start : start + MOST_JOINED] for start in range(0, len(parts), MOST_JOINED))
        parts = [concatenate(group, axis) for group in groups]
    return concatenate(parts, axis)
