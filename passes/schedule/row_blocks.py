"""Values along the turns of a loop, computed for a block of turns at a time.

A stacked result has a row for each turn along its first axis, and so has what is computed from it row by row. The rows
of a block are computed by the same operations with fewer rows. An axis of rows may hold several for each turn, such as
turns and rows of a batch in one axis.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, input_node, make_node, topological
from lavax.ir.operation import OPERATIONS
from lavax.passes.numerics.narrow_movement import is_widening


@dataclass(frozen=True)
class Rows:
    """The `wanted` values for a block of turns, as a graph.

    Its inputs are those of the values `given` that have rows, of these the rows of the block, then the `whole` ones.
    """

    graph: Graph
    given: tuple[Node, ...]
    whole: tuple[Node, ...]


@dataclass(frozen=True)
class _Reading:
    """Which operands an operation reads row by row, with its attributes for so many rows."""

    by_row: tuple[bool, ...]
    attrs: Mapping[str, Any]


def rows_of_block(wanted: Sequence[Node], made: Collection[Node], turns: int, block: int) -> Rows | None:
    """The rows of `block` of `turns` turns of the wanted values, which are among the values `made` from rows; None if
    one of these needs other rows than its own."""
    return _Block(made, turns, block).computed(wanted)


class _Block:
    """The rows of a block, as they are found."""

    def __init__(self, made: Collection[Node], turns: int, block: int) -> None:
        self.made, self.turns, self.block = made, turns, block
        self.rows: dict[Node, Node] = {}
        self.whole: dict[Node, Node] = {}
        self.given: dict[Node, Node] = {}  # what is no value of the block, with its input
        self.given_whole: dict[Node, Node] = {}

    def computed(self, wanted: Sequence[Node]) -> Rows | None:
        outside = {operand for node in self.made for operand in node.operands if operand not in self.made}
        for node in topological(wanted, stop=outside):
            found = self._made(node)
            if found is None:
                return None
            self.rows[node] = found
        inputs = (*self.given.values(), *self.given_whole.values())
        graph = graph_of(inputs, [self.rows[node] for node in wanted])
        return Rows(graph, tuple(self.given), tuple(self.given_whole))

    def _made(self, node: Node) -> Node | None:
        """The rows of a value that is made from rows."""
        rule = _RULES.get(node.op) or _OF_FAMILY.get(OPERATIONS[node.op].family)
        if rule is None or not self._has_rows(node):
            return None
        reading = rule(node, self._block_of(node) if node.op == "slice" else 0)
        if reading is None:
            return None
        operands = []
        for operand, by_row in zip(node.operands, reading.by_row, strict=True):
            if operand in self.made:
                found = self.rows[operand] if by_row else None
            else:
                found = self._row_given(operand) if by_row else self._whole(operand)
            if found is None:
                return None
            operands.append(found)
        return self._node(node, operands, reading.attrs)

    def _node(self, node: Node, operands: Sequence[Node], attrs: Mapping[str, Any]) -> Node:
        type = node.type.with_shape((self._block_of(node), *node.shape[1:]))
        return make_node(node.op, operands, attrs, type, node.location)

    def _has_rows(self, node: Node) -> bool:
        return bool(node.shape) and node.shape[0] > 0 and node.shape[0] % self.turns == 0

    def _block_of(self, node: Node) -> int:
        return node.shape[0] // self.turns * self.block

    # -- values that are not made from rows ----------------------------------------------------------------------------

    def _row_given(self, node: Node) -> Node | None:
        """The rows of another value: computed here if they are alike, and read otherwise."""
        if not self._has_rows(node):
            return None
        if node not in self.rows:
            self.rows[node] = self._alike(node) or self._input(self.given, node, self._block_of(node))
        return self.rows[node]

    def _alike(self, node: Node) -> Node | None:
        """The rows of a value whose rows are all alike; None for others."""
        if node.op == "constant":
            return self._node(node, (), node.attrs)
        if node.op == "broadcast" and 0 not in node.attrs["axes"]:
            return self._node(node, [self._whole(node.operands[0])], node.attrs)
        if node.op == "cast":
            rows = self._alike(node.operands[0])
            return None if rows is None else self._node(node, [rows], node.attrs)
        return None

    def _whole(self, node: Node) -> Node:
        """Another value; it is read from memory before it is widened."""
        if node not in self.whole:
            if node.op == "constant" or is_widening(node):
                operands = [self._whole(operand) for operand in node.operands]
                self.whole[node] = make_node(node.op, operands, node.attrs, node.type, node.location)
            else:
                self.whole[node] = self._input(self.given_whole, node, None)
        return self.whole[node]

    def _input(self, inputs: dict[Node, Node], node: Node, rows: int | None) -> Node:
        type = node.type if rows is None else node.type.with_shape((rows, *node.shape[1:]))
        inputs[node] = input_node(f"given{len(self.given) + len(self.given_whole)}", type)
        return inputs[node]


# -- which rows an operation reads -----------------------------------------------------------------------------------

_Rule = Callable[[Node, int], "_Reading | None"]  # of a value and its rows in a block


def _all_rows(node: Node, rows: int) -> _Reading:
    return _Reading((True,) * len(node.operands), node.attrs)


def _concatenate(node: Node, rows: int) -> _Reading | None:
    return _all_rows(node, rows) if node.attrs["axis"] else None


def _transpose(node: Node, rows: int) -> _Reading | None:
    return _all_rows(node, rows) if node.attrs["axes"][0] == 0 else None


def _broadcast(node: Node, rows: int) -> _Reading | None:
    stays = node.attrs["axes"][:1] == (0,) and node.operands[0].shape[0] == node.shape[0]
    return _all_rows(node, rows) if stays else None


def _pad(node: Node, rows: int) -> _Reading | None:
    grows = node.attrs["low"][0] or node.attrs["high"][0] or node.attrs["interior"][0]
    return None if grows else _all_rows(node, rows)


def _slice(node: Node, rows: int) -> _Reading | None:
    attrs = node.attrs
    if attrs["start"][0] or attrs["limit"][0] != node.operands[0].shape[0] or attrs["stride"][0] != 1:
        return None
    return _Reading((True,), {**attrs, "limit": (rows, *attrs["limit"][1:])})


def _reduction(node: Node, rows: int) -> _Reading | None:
    return None if 0 in node.attrs["axes"] else _all_rows(node, rows)


def _dot(node: Node, rows: int) -> _Reading | None:
    """Rows of the left factor, or products of a batch along rows."""
    (left, right), (contracted, _) = node.attrs["batch"], node.attrs["contract"]
    if left[:1] == (0,) and right[:1] == (0,):
        return _Reading((True, True), node.attrs)
    return None if left or 0 in contracted else _Reading((True, False), node.attrs)


_RULES: Mapping[str, _Rule] = {
    "broadcast": _broadcast,
    "concatenate": _concatenate,
    "dot": _dot,
    "max": _reduction,
    "min": _reduction,
    "pad": _pad,
    "reshape": _all_rows,  # rows of a turn lie end to end in memory
    "slice": _slice,
    "sum": _reduction,
    "transpose": _transpose,
}
_OF_FAMILY: Mapping[str, _Rule] = {"elementwise": _all_rows}

