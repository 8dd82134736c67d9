"""How reading and writing at computed positions are written."""
from __future__ import annotations

from collections.abc import Sequence

from lavax.ir.graph import Node
from lavax.ir.types import DTYPES
from lavax.onnx.writing.writer import Rule, Writer

_I64 = DTYPES["i64"]


def _clamped(writer: Writer, name: str, extent: int) -> str:
    low, high = writer.number(0, DTYPES["i32"]), writer.number(extent - 1, DTYPES["i32"])
    made: str = writer.add("Min", [writer.add("Max", [name, low]), high])
    return made


def _stacked(writer: Writer, names: Sequence[str], shape: Sequence[int]) -> str:
    """Indices of several axes as tuples along a last axis."""
    rows = [writer.reshape(writer.cast(name, _I64), (*shape, 1)) for name in names]
    made: str = rows[0] if len(rows) == 1 else writer.add("Concat", rows, axis=len(shape))
    return made


def _in_front(writer: Writer, name: str, rank: int, axes: Sequence[int]) -> tuple[str, list[int]]:
    order = [*axes, *(axis for axis in range(rank) if axis not in axes)]
    return writer.transpose(name, order), order


def _gather(writer: Writer, node: Node) -> str:
    x, *indices = node.operands
    axes = node.attrs["axes"]
    names = [_clamped(writer, writer.full(i), x.shape[a]) for i, a in zip(indices, axes, strict=True)]
    front, _ = _in_front(writer, writer.full(x), len(x.shape), axes)
    if len(axes) == 1:
        read: str = writer.add("Gather", [front, names[0]], axis=0)
        return read
    made: str = writer.add("GatherND", [front, _stacked(writer, names, indices[0].shape)])
    return made


def _scatter(reduction: str) -> Rule:
    """Updates outside the range go to one more place along the first axis, which is cut off."""

    def write(writer: Writer, node: Node) -> str:
        x, updates, *indices = node.operands
        axes, rank, shape = node.attrs["axes"], len(x.shape), indices[0].shape
        front, order = _in_front(writer, writer.full(x), rank, axes)
        zero = writer.number(0, DTYPES["i32"])
        inside, clamped = "", []
        for index, axis in zip(indices, axes, strict=True):
            name, extent = writer.full(index), writer.number(x.shape[axis], DTYPES["i32"])
            here = writer.add("And", [writer.add("GreaterOrEqual", [name, zero]), writer.add("Less", [name, extent])])
            inside = here if not inside else writer.add("And", [inside, here])
            clamped.append(_clamped(writer, name, x.shape[axis]))
        beyond = writer.number(x.shape[axes[0]], DTYPES["i32"])
        clamped[0] = writer.add("Where", [inside, clamped[0], beyond])
        widths = [0] * (2 * rank)
        widths[rank] = 1
        wide = writer.add("Pad", [front, writer.integers(widths), writer.number(0, x.dtype)])
        places = _stacked(writer, clamped, shape)
        made = writer.add("ScatterND", [wide, places, writer.full(updates)], reduction=reduction)
        cut = writer.add("Slice", [made, *map(writer.integers, ([0], [x.shape[axes[0]]], [0]))])
        return writer.transpose(cut, [order.index(axis) for axis in range(rank)])

    return write


RULES: dict[str, Rule] = {
    "gather": _gather,
    "scatter_add": _scatter("add"),
    "scatter_maximum": _scatter("max"),
    "scatter_minimum": _scatter("min"),
    "scatter_multiply": _scatter("mul"),
    "scatter_set": _scatter("none"),
}
