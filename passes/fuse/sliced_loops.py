"""Scans whose rows never meet: a body over some of the rows of what is carried, which need no others.

The rows of a recurrent network's states are such: each turn multiplies them by the same weights. Each workgroup can run
all turns for its own rows (emit/loop/slices.py). What a turn reads and does not change is the same for all rows, or has
an own row for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Graph, Node, graph_of, input_node, make_node
from lavax.ir.operation import OPERATIONS
from lavax.ir.ops.contraction import free_axes
from lavax.ir.types import TupleType
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS

MOST_NODES = 128  # of a body
MOST_OPERATIONS = 1 << 33  # of a dispatch: a GPU takes some tenths of a second at most


@dataclass(frozen=True)
class SlicedBody:
    """A scan's body over the rows of one slice.

    `inputs`: per input of the graph, the position of the scan's operand, and whether the input is the slice's rows of
    it, or all of it. The first ones are what is carried. `cut`: whether an output is the rows of a slice; of what is
    carried, that is so for the input, too.
    """

    graph: Graph
    inputs: tuple[tuple[int, bool], ...]
    cut: tuple[bool, ...]


def rows_of(node: Node) -> int | None:
    """How many rows all arrays have that a scan carries; None if they have different numbers or none."""
    if node.op != "scan":
        return None
    carried = node.attrs["body"].inputs[: node.attrs["carries"]]
    rows = {value.shape[0] for value in carried if value.shape}
    return rows.pop() if len(rows) == 1 else None


def sliced_body(node: Node, rows: int) -> SlicedBody | None:
    """The body over so many rows of each carried array; None if a turn needs other rows for that."""
    body, carries = node.attrs["body"], node.attrs["carries"]
    whole = rows_of(node)
    if whole is None or len(body.nodes) > MOST_NODES:
        return None
    if any(OPERATIONS[inner.op].family == "region" for inner in body.nodes):
        return None
    cutting = _Cutting(body, carries, whole, rows)
    found, cut = [], []
    for position, output in enumerate(body.outputs):
        is_cut = bool(output.shape) and output.shape[0] == whole
        if position < carries:
            is_cut = bool(body.inputs[position].shape)
        made = cutting.cut(output, 0) if is_cut else cutting.all_of(output)
        if made is None:
            return None
        found.append(made)
        cut.append(is_cut)
    assert isinstance(node.type, TupleType)
    return SlicedBody(graph_of([*cutting.inputs], found), tuple(cutting.inputs.values()), tuple(cut))


def operations_of_turn(node: Node) -> int:
    """Multiplications and additions of products in a turn of a scan, and an operation for each other element."""
    return sum(map(_operations, node.attrs["body"].nodes))


def _operations(node: Node) -> int:
    if "body" in node.attrs:
        return int(node.attrs.get("length", 1) * operations_of_turn(node))
    if node.op != "dot":
        return node.type.size
    return int(2 * node.type.size * prod(node.operands[0].shape[axis] for axis in node.attrs["contract"][0]))


def most_turns_of_slices(node: Node) -> int:
    """How many turns one dispatch takes at most."""
    return max(1, min(MAX_LOOP_ITERATIONS, MOST_OPERATIONS // (1 + operations_of_turn(node))))


class _Cutting:
    """Values of a body for the rows of a slice, made as they are asked for: recursion is as deep as a body is long."""

    def __init__(self, body: Graph, carries: int, whole: int, rows: int) -> None:
        self.whole, self.rows = whole, rows
        self.positions = {node: position for position, node in enumerate(body.inputs)}
        self.inputs: dict[Node, tuple[int, bool]] = {}
        self._known: dict[tuple[Node, int | None], Node | None] = {}
        self._carried = body.inputs[:carries]
        for position, node in enumerate(self._carried):
            axis = 0 if node.shape else None
            self._known[node, axis] = self._input(node, position, axis)

    def _input(self, node: Node, position: int, axis: int | None) -> Node:
        type = node.type if axis is None else node.type.with_shape((self.rows, *node.shape[1:]))
        made = input_node(f"s{len(self.inputs)}", type)
        self.inputs[made] = position, axis is not None
        return made

    def all_of(self, node: Node) -> Node | None:
        """The whole value, if it is the same for all slices."""
        if (node, None) not in self._known:
            self._known[node, None] = self._made(node, None)
        return self._known[node, None]

    def cut(self, node: Node, axis: int) -> Node | None:
        """The value with only the slice's rows along an axis."""
        if node.shape[axis] != self.whole:
            return None
        if (node, axis) not in self._known:
            self._known[node, axis] = self._made(node, axis)
        return self._known[node, axis]

    def _made(self, node: Node, axis: int | None) -> Node | None:
        if node.op == INPUT:
            if node in self._carried or axis not in (None, 0):
                return None
            return self._input(node, self.positions[node], axis)
        if axis is None:
            operands = [self.all_of(operand) for operand in node.operands]
            return self._like(node, operands, node.shape, node.attrs)
        rule = _RULES.get(node.op) or _OF_FAMILY.get(OPERATIONS[node.op].family)
        axes = rule(node, axis) if rule is not None else None
        if axes is None:
            return None
        pairs = zip(node.operands, axes, strict=True)
        operands = [self.all_of(x) if of is None else self.cut(x, of) for x, of in pairs]
        attrs = dict(node.attrs)
        if node.op == "slice":
            attrs["limit"] = (*attrs["limit"][:axis], self.rows, *attrs["limit"][axis + 1 :])
        return self._like(node, operands, (*node.shape[:axis], self.rows, *node.shape[axis + 1 :]), attrs)

    def _like(
        self, node: Node, operands: Sequence[Node | None], shape: tuple[int, ...], attrs: Mapping[str, Any]
    ) -> Node | None:
        given = [operand for operand in operands if operand is not None]
        if len(given) < len(operands):
            return None
        return make_node(node.op, given, attrs, node.type.with_shape(shape), node.location)


# rule(node, axis): per operand the axis that is cut if this one of the result is, None if all of it is read. None: the
# rows of the result need others.
_Rule = Callable[[Node, int], "list[int | None] | None"]


def _same(node: Node, axis: int) -> list[int | None]:
    return [axis] * len(node.operands)


def _source(node: Node, axis: int) -> list[int | None] | None:
    return [] if node.op == "constant" or (node.op == "iota" and node.attrs["axis"] != axis) else None


def _broadcast(node: Node, axis: int) -> list[int | None]:
    axes, (operand,) = list(node.attrs["axes"]), node.operands
    source = axes.index(axis) if axis in axes else None
    return [None if source is None or operand.shape[source] != node.shape[axis] else source]


def _reshape(node: Node, axis: int) -> list[int | None] | None:
    (operand,) = node.operands
    for source, extent in enumerate(operand.shape):
        if extent == node.shape[axis] and prod(operand.shape[:source]) == prod(node.shape[:axis]):
            return [source]
    return None


def _transpose(node: Node, axis: int) -> list[int | None]:
    return [node.attrs["axes"][axis]]


def _slice(node: Node, axis: int) -> list[int | None] | None:
    (operand,) = node.operands
    start, limit, stride = (node.attrs[name][axis] for name in ("start", "limit", "stride"))
    return [axis] if (start, limit, stride) == (0, operand.shape[axis], 1) else None


def _pad(node: Node, axis: int) -> list[int | None] | None:
    return [axis] if not any(node.attrs[name][axis] for name in ("low", "high", "interior")) else None


def _concatenate(node: Node, axis: int) -> list[int | None] | None:
    return [axis] * len(node.operands) if node.attrs["axis"] != axis else None


def _flip(node: Node, axis: int) -> list[int | None] | None:
    return [axis] if axis not in node.attrs["axes"] else None


def _dot(node: Node, axis: int) -> list[int | None]:
    batch, contract = node.attrs["batch"], node.attrs["contract"]
    count = len(batch[0])
    if axis < count:
        return [batch[0][axis], batch[1][axis]]
    free = [free_axes(node.operands[side].type, batch[side], contract[side]) for side in range(2)]
    if axis < count + len(free[0]):
        return [free[0][axis - count], None]
    return [None, free[1][axis - count - len(free[0])]]


_OF_FAMILY: Mapping[str, _Rule] = {"elementwise": _same, "source": _source}
_RULES: Mapping[str, _Rule] = {
    "broadcast": _broadcast,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "pad": _pad,
    "flip": _flip,
    "concatenate": _concatenate,
    "dot": _dot,
}
