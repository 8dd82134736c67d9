"""Long Fourier transforms as several steps (Stockham's order: Cochran et al. 1967).

A line of n·m points is transformed along n, multiplied by twiddle factors, and transformed along m. Each step puts the
axis that it transforms behind the rest, so that the frequencies are in order at the end and nothing else is moved.
"""
from __future__ import annotations

from collections.abc import Callable

from lavax.ir.graph import Node
from lavax.passes.build.builder import build, reshape
from lavax.passes.target.target import Target


def _steps(node: Node, target: Target) -> Node:
    (x,) = node.operands
    lines, points, rest, behind, _ = x.shape
    if rest > 1:
        return node
    for width in target.transforms.steps(points, behind > 1):
        rest = points // width
        type = node.type if rest == 1 else x.type.with_shape((lines, rest, width * behind, 1, 2))
        form = reshape(x, (lines, width, rest, behind, 2))
        x = build("fourier_step", form, type=type, reverse=node.attrs["reverse"])
        points, behind = rest, behind * width
    return x


RULES: dict[str, Callable[[Node, Target], Node]] = {"fourier_step": _steps}
