"""How matrix products and convolutions are written."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lavax.ir.graph import Node
from lavax.ir.ops.contraction import free_axes
from lavax.ir.types import DTYPES
from lavax.onnx.writing.movement import spread_apart
from lavax.onnx.writing.writer import Rule, Writer


def _extents(node: Node, axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(node.shape[axis] for axis in axes)


def _operands(writer: Writer, node: Node) -> list[str]:
    """The operands, rounded as `precision` says."""
    names = [writer.full(operand) for operand in node.operands]
    rounding = node.attrs.get("precision", "")
    if rounding:
        names = [writer.cast(writer.cast(name, DTYPES[rounding]), node.dtype) for name in names]
    return names


def _dot(writer: Writer, node: Node) -> str:
    left, right = node.operands
    (left_batch, right_batch), (left_sum, right_sum) = node.attrs.get("batch", ((), ())), node.attrs["contract"]
    left_free = free_axes(left.type, left_batch, left_sum)
    right_free = free_axes(right.type, right_batch, right_sum)
    a, b = _operands(writer, node)
    a = writer.transpose(a, (*left_batch, *left_free, *left_sum))
    b = writer.transpose(b, (*right_batch, *right_sum, *right_free))
    batch, contracted = _extents(left, left_batch), prod(_extents(left, left_sum))
    rows, columns = _extents(left, left_free), _extents(right, right_free)
    if not left_batch and len(left_sum) == 1 and len(right_free) == 1 and left_free:
        plain: str = writer.add("MatMul", [a, b])
        return plain
    a = _reshaped(writer, a, (*batch, *rows, *_extents(left, left_sum)), (*batch, prod(rows), contracted))
    b = _reshaped(writer, b, (*batch, *_extents(right, right_sum), *columns), (*batch, contracted, prod(columns)))
    return _reshaped(writer, writer.add("MatMul", [a, b]), (*batch, prod(rows), prod(columns)), node.shape)


def _reshaped(writer: Writer, name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    return name if shape == wanted else writer.reshape(name, wanted)


def _conv(writer: Writer, node: Node) -> str:
    """[others, groups · channels, window axes] with [groups · results, channels, window axes]."""
    left, right = node.operands
    (left_batch, right_batch), (left_sum, right_sum) = node.attrs.get("batch", ((), ())), node.attrs["contract"]
    left_window, right_window = node.attrs["window"]
    others = free_axes(left.type, (*left_batch, *left_window), left_sum)
    free = free_axes(right.type, (*right_batch, *right_window), right_sum)
    a, b = _operands(writer, node)
    a = writer.transpose(a, (*others, *left_batch, *left_sum, *left_window))
    b = writer.transpose(b, (*right_batch, *free, *right_sum, *right_window))
    channels, groups = prod(_extents(left, left_sum)), prod(_extents(left, left_batch))
    a = writer.reshape(a, (prod(_extents(left, others)), groups * channels, *_extents(left, left_window)))
    size = _extents(right, right_window)
    b = writer.reshape(b, (groups * prod(_extents(right, free)), channels, *size))
    a, low, high = _widened(writer, node, a, groups * channels)
    made = writer.add(
        "Conv", [a, b], kernel_shape=list(size), strides=list(node.attrs["stride"]), pads=[*low, *high],
        dilations=list(node.attrs["dilation"]), group=groups,
    )  # fmt: skip
    return _in_order(writer, node, made, others, free)


def _widened(
    writer: Writer, node: Node, name: str, channels: int
) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """The left side with zeros between its elements, less what negative padding cuts; and the padding that is left."""
    left, axes = node.operands[0], node.attrs["window"][0]
    low, high, interior = (node.attrs[key] for key in ("low", "high", "interior"))
    extents = _extents(left, axes)
    count = left.type.size // max(channels * prod(extents), 1)
    name = spread_apart(writer, name, (count, channels, *extents), (0, 0, *interior), node)
    wide = [extent + max(extent - 1, 0) * between for extent, between in zip(extents, interior, strict=True)]
    cut = [(-min(a, 0), n + min(b, 0), k + 2) for k, (a, b, n) in enumerate(zip(low, high, wide, strict=True))]
    if any((start, end) != (0, wide[axis - 2]) for start, end, axis in cut):
        name = writer.add("Slice", [name, *(writer.integers(column) for column in zip(*cut, strict=True))])
    return name, tuple(max(a, 0) for a in low), tuple(max(b, 0) for b in high)


def _in_order(writer: Writer, node: Node, name: str, others: Sequence[int], free: Sequence[int]) -> str:
    """The convolution's result with the axes of the operation: groups, others and window axes in order, results."""
    left, right = node.operands
    batch, window = node.attrs.get("batch", ((), ()))[0], node.attrs["window"][0]
    kept = free_axes(left.type, batch, node.attrs["contract"][0])
    positions = {axis: node.shape[len(batch) + k] for k, axis in enumerate(kept)}
    held = [*others, *batch, *(("result", axis) for axis in free), *window]
    extents = {
        **positions, **{axis: left.shape[axis] for axis in batch},
        **{("result", axis): right.shape[axis] for axis in free},
    }  # fmt: skip
    apart = writer.reshape(name, [extents[axis] for axis in held])
    wanted = [*batch, *kept, *(("result", axis) for axis in free)]
    return writer.transpose(apart, [held.index(axis) for axis in wanted])


RULES: dict[str, Rule] = {"conv": _conv, "dot": _dot}

