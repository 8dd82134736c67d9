"""How reductions, cumulative operations and sorting are written."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lavax.ir.graph import Node
from lavax.ir.types import DTYPES, DType
from lavax.onnx.writing.elementwise import SIGNED, in_order, out_of_order
from lavax.onnx.writing.writer import Rule, Writer

_I32, _I64 = DTYPES["i32"], DTYPES["i64"]
# What runtimes reduce and sort; other integers and truth values pass through 32 bits, unsigned ones through 64, where
# sums do not overflow.
_PLAIN = frozenset(("f16", "bf16", "f32", "f64", "i32", "i64"))


def _numbers(dtype: DType) -> DType:
    if dtype.name in _PLAIN:
        return dtype
    return _I64 if dtype.name in ("u32", "u64") else _I32


def in_numbers(writer: Writer, name: str, dtype: DType, make: Callable[[str, DType], str]) -> str:
    """What `make` gives for a value in a dtype that runtimes compute in, back in its own."""
    wider = _numbers(dtype)
    if wider is dtype:
        return make(name, dtype)
    return writer.cast(make(writer.cast(name, wider), wider), dtype)


def _comparable(writer: Writer, x: Node) -> str:
    """A value in a dtype that runtimes sort, with its elements in the same order."""
    name = writer.full(x)
    if x.dtype in SIGNED:
        return in_order(writer, name, x.dtype)
    return name if x.dtype.name in _PLAIN else writer.cast(name, _numbers(x.dtype))


def _reduction(operator: str, is_order: bool = False) -> Rule:
    """`is_order` says that the result depends on the order of numbers, as extrema do."""

    def write(writer: Writer, node: Node) -> str:
        if pooled := _pool(writer, node):
            return pooled
        (x,) = node.operands
        axes = writer.integers(node.attrs["axes"])

        def reduce(name: str, dtype: DType) -> str:
            made: str = writer.add(operator, [name, axes], keepdims=0, noop_with_empty_axes=1)
            return made

        if is_order and x.dtype in SIGNED:
            ordered = in_order(writer, writer.full(x), x.dtype)
            return out_of_order(writer, reduce(ordered, SIGNED[x.dtype]), x.dtype)
        return in_numbers(writer, writer.full(x), x.dtype, reduce)

    return write


def _pool(writer: Writer, node: Node) -> str | None:
    """A reduction of windows as a pool, if it is one."""
    (x,) = node.operands
    if x.op != "shear" or node.op not in ("sum", "max") or not x.dtype.is_float or node.dtype.bits < 32:
        return None
    axes, along = x.attrs["axes"], x.attrs["along"]
    repeated = x.operands[0]
    held = writer.held(repeated)
    is_window = tuple(node.attrs["axes"]) == tuple(sorted(along)) and len(axes) <= 3
    if not is_window or any(held.shape[axis] != 1 for axis in along) or any(held.shape[axis] == 1 for axis in axes):
        return None
    if node.op == "sum" and any(step != 1 for step in x.attrs["dilation"]):
        return None
    others = [axis for axis in range(len(held.shape)) if axis not in (*axes, *along)]
    order = [*others, *axes, *along]
    moved = writer.transpose(held.name, order)
    extents = [held.shape[axis] for axis in axes]
    flat = writer.reshape(moved, (-1, 1, *extents))
    size = [x.shape[axis] for axis in along]
    dilated: dict[str, Any] = {"dilations": list(x.attrs["dilation"])} if node.op == "max" else {}
    made = writer.add(
        "MaxPool" if node.op == "max" else "AveragePool", [flat], kernel_shape=size, strides=list(x.attrs["stride"]),
        **dilated,
    )  # fmt: skip
    if node.op == "sum":
        made = writer.add("Mul", [made, writer.number(float(np.prod(size)), node.dtype)])
    kept = [axis for axis in range(len(x.shape)) if axis not in along]
    back = writer.reshape(made, [*(held.shape[axis] for axis in others), *(x.shape[axis] for axis in axes)])
    placed = writer.transpose(back, [[*others, *axes].index(axis) for axis in kept])
    is_whole = all(held.shape[axis] == x.shape[axis] for axis in others)
    if is_whole:
        return placed
    whole: str = writer.add("Expand", [placed, writer.integers(node.shape)])
    return whole


def _position(operator: str) -> Rule:
    def write(writer: Writer, node: Node) -> str:
        (x,) = node.operands
        name = _comparable(writer, x)
        return writer.cast(writer.add(operator, [name], axis=node.attrs["axis"], keepdims=0), node.dtype)

    return write


def _cumulative_sum(writer: Writer, node: Node) -> str:
    def total(name: str, dtype: DType) -> str:
        axis = writer.tensor(np.int64(node.attrs["axis"]))
        made: str = writer.add("CumSum", [name, axis], reverse=int(node.attrs.get("reverse", False)))
        return made

    return in_numbers(writer, writer.full(node.operands[0]), node.dtype, total)


def _cumulative(operator: str, identity: Callable[[DType], object]) -> Rule:
    """A fold by doubling: after step k each element holds the fold of 2^k elements up to it."""

    def write(writer: Writer, node: Node) -> str:
        axis, extent, rank = node.attrs["axis"], node.shape[node.attrs["axis"]], len(node.shape)
        reverse = node.attrs.get("reverse", False)

        def fold(name: str, dtype: DType) -> str:
            start, step = writer.number(identity(dtype), dtype), 1
            while step < extent:
                widths = [0] * (2 * rank)
                widths[axis if not reverse else rank + axis] = step
                wide = writer.add("Pad", [name, writer.integers(widths), start])
                first, last = (step, extent + step) if reverse else (0, extent)
                moved = writer.add("Slice", [wide, *map(writer.integers, ([first], [last], [axis]))])
                name = writer.add(operator, [name, moved])
                step *= 2
            return name

        name = writer.full(node.operands[0])
        if node.dtype in SIGNED and operator in ("Max", "Min"):
            ordered = in_order(writer, name, node.dtype)
            return out_of_order(writer, fold(ordered, SIGNED[node.dtype]), node.dtype)
        return in_numbers(writer, name, node.dtype, fold)

    return write


def _sorted(writer: Writer, node: Node) -> tuple[str, str]:
    """The sorted elements and their places: all of them are the smallest."""
    (x,) = node.operands
    name = _comparable(writer, x)
    count = writer.integers([x.shape[node.attrs["axis"]]])
    values, places = writer.add("TopK", [name, count], 2, axis=node.attrs["axis"], largest=0, sorted=1)
    return values, places


def _sort(writer: Writer, node: Node) -> str:
    values, _ = _sorted(writer, node)
    if node.dtype in SIGNED:
        return out_of_order(writer, values, node.dtype)
    return values if node.dtype.name in _PLAIN else writer.cast(values, node.dtype)


def _sort_order(writer: Writer, node: Node) -> str:
    return writer.cast(_sorted(writer, node)[1], node.dtype)


def _top_order(writer: Writer, node: Node) -> str:
    (x,), axis = node.operands, node.attrs["axis"]
    taken = [_comparable(writer, x), writer.integers([node.shape[axis]])]
    return writer.cast(writer.add("TopK", taken, 2, axis=axis, largest=1, sorted=1)[1], node.dtype)


def _unsort(writer: Writer, node: Node) -> str:
    x, order = (writer.full(operand) for operand in node.operands)
    made: str = writer.add("ScatterElements", [x, order, x], axis=node.attrs["axis"])
    return made


def _search_sorted(writer: Writer, node: Node) -> str:
    """How many elements of the row lie before each value."""
    rows, values = node.operands
    row = writer.reshape(writer.full(rows), (*rows.shape[:-1], 1, rows.shape[-1]))
    value = writer.reshape(writer.full(values), (*values.shape, 1))
    before = writer.add("LessOrEqual" if node.attrs["right"] else "Less", [row, value])
    counted = writer.cast(before, _I32)
    made: str = writer.add("ReduceSum", [counted, writer.integers([-1])], keepdims=0)
    return made


RULES: dict[str, Rule] = {
    "argmax": _position("ArgMax"),
    "argmin": _position("ArgMin"),
    "cumulative_max": _cumulative("Max", lambda dtype: dtype.lowest),
    "cumulative_min": _cumulative("Min", lambda dtype: dtype.highest),
    "cumulative_prod": _cumulative("Mul", lambda dtype: dtype.number(1)),
    "cumulative_sum": _cumulative_sum,
    "max": _reduction("ReduceMax", is_order=True),
    "min": _reduction("ReduceMin", is_order=True),
    "prod": _reduction("ReduceProd"),
    "search_sorted": _search_sorted,
    "sort": _sort,
    "sort_order": _sort_order,
    "sum": _reduction("ReduceSum"),
    "top_order": _top_order,
    "unsort": _unsort,
}
