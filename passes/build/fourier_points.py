"""How many points the transform of a step has."""

from __future__ import annotations

from collections.abc import Callable

from lavax.ir.graph import Node


def _columns(node: Node) -> int:
    return int(node.attrs["columns"])


def _of_line(node: Node, length: int) -> int:
    return length // int(node.attrs["columns"] * node.attrs["rest"])


# Of steps whose operand has other extents than the points: by operation.
_POINTS: dict[str, Callable[[Node], int]] = {
    "fourier_across_from_half": lambda node: _of_line(node, node.attrs["length"]),
    "fourier_across_to_reals": _columns,
    "fourier_from_paired": lambda node: int(node.attrs["points"]),
    "fourier_padded": lambda node: int(node.attrs["points"]),
    "fourier_paired": lambda node: int(node.operands[0].shape[1] // 2),
    "fourier_from_half": lambda node: _of_line(node, 2 * node.operands[0].shape[1] - 1),
    "fourier_to_reals": _columns,
}


def points_of_step(node: Node) -> int:
    """The points of a step: by its attributes, or the second extent of what it reads."""
    return _POINTS[node.op](node) if node.op in _POINTS else node.operands[0].shape[1]
