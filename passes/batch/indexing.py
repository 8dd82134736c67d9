"""Batching of reads and writes at computed positions: the batch axis gets positions of its own, which count up."""
from __future__ import annotations

from collections.abc import Sequence

from lavax.ir.graph import Node
from lavax.ir.ops.indexing import SCATTERS
from lavax.passes.batch.batch_rule import Axis, BatchRule, Operand, batched_by, from_front, in_front, shifted, to_front
from lavax.passes.build.builder import build, gather, index_type, iota


def _positions(indices: Sequence[Operand], axis: Axis) -> list[Node]:
    """The positions with a batch axis; the first of them counts up along it."""
    repeated = [in_front(index, axis) for index in indices]
    return [iota(index_type(repeated[0].shape), 0), *repeated]


def _gather(node: Node, operands: Sequence[Operand], axis: Axis) -> Node:
    x, *indices = operands
    axes = node.attrs["axes"]
    if not any(index.batched for index in indices):
        read = gather(x.node, [index.node for index in indices], shifted(axes))
        return to_front(read, indices[0].node.type.rank)
    if not x.batched:
        return gather(x.node, [in_front(index, axis) for index in indices], axes)
    return gather(x.node, _positions(indices, axis), (0, *shifted(axes)))


def _scatter(node: Node, operands: Sequence[Operand], axis: Axis) -> Node:
    x, updates, *indices = operands
    axes = node.attrs["axes"]
    if any(index.batched for index in indices):
        positions = _positions(indices, axis)
        return build(node.op, in_front(x, axis), in_front(updates, axis), *positions, axes=(0, *shifted(axes)))
    moved = from_front(in_front(updates, axis), indices[0].node.type.rank)
    return build(node.op, in_front(x, axis), moved, *(index.node for index in indices), axes=shifted(axes))


RULES: dict[str, BatchRule] = {
    "gather": batched_by(_gather),
    **dict.fromkeys(SCATTERS, batched_by(_scatter)),
}
