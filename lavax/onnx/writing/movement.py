"""How sources and movements are written."""
from __future__ import annotations

from math import prod

import numpy as np

from lavax.ir.graph import Node
from lavax.onnx.writing.writer import Held, Rule, Writer


def _constant(writer: Writer, node: Node) -> Held:
    ones = (1,) * len(node.shape)
    return Held(writer.tensor(np.full(ones, node.attrs["value"], node.dtype.user)), ones)


def _iota(writer: Writer, node: Node) -> Held:
    shape = tuple(extent if axis == node.attrs["axis"] else 1 for axis, extent in enumerate(node.shape))
    return Held(writer.tensor(np.arange(prod(shape)).astype(node.dtype.user).reshape(shape)), shape)


def _reshape(writer: Writer, node: Node) -> str:
    return writer.reshape(writer.full(node.operands[0]), node.shape)


def _transpose(writer: Writer, node: Node) -> Held:
    found, order = writer.held(node.operands[0]), node.attrs["axes"]
    return Held(writer.transpose(found.name, order), tuple(found.shape[axis] for axis in order))


def _broadcast(writer: Writer, node: Node) -> Held:
    found = writer.held(node.operands[0])
    shape = [1] * len(node.shape)
    for axis, extent in zip(node.attrs["axes"], found.shape, strict=True):
        shape[axis] = extent
    is_same = tuple(shape) == found.shape
    return Held(found.name if is_same else writer.reshape(found.name, shape), tuple(shape))


def _slice(writer: Writer, node: Node) -> str:
    (x,) = node.operands
    cut = [
        (start, limit, stride, axis)
        for axis, (start, limit, stride, extent) in enumerate(
            zip(node.attrs["start"], node.attrs["limit"], node.attrs["stride"], x.shape, strict=True)
        )
        if (start, limit, stride) != (0, extent, 1)
    ]
    if not cut:
        return writer.full(x)
    starts, limits, strides, axes = (writer.integers(column) for column in zip(*cut, strict=True))
    made: str = writer.add("Slice", [writer.full(x), starts, limits, axes, strides])
    return made


def _flip(writer: Writer, node: Node) -> str:
    axes = node.attrs["axes"]
    if not axes:
        return writer.full(node.operands[0])
    count = len(axes)
    bounds = ([-1] * count, [np.iinfo(np.int64).min] * count, axes, [-1] * count)
    made: str = writer.add("Slice", [writer.full(node.operands[0]), *map(writer.integers, bounds)])
    return made


def _pad(writer: Writer, node: Node) -> str:
    (x,) = node.operands
    name = spread_apart(writer, writer.full(x), x.shape, node.attrs["interior"], node)
    return padded(writer, name, node.attrs["low"], node.attrs["high"], node)


def padded(writer: Writer, name: str, low: tuple[int, ...], high: tuple[int, ...], node: Node) -> str:
    """A value with elements added at its ends; they are the node's `value`, or 0."""
    if not any((*low, *high)):
        return name
    value = writer.number(node.attrs.get("value", 0), node.dtype)
    made: str = writer.add("Pad", [name, writer.integers((*low, *high)), value])
    return made


def spread_apart(
    writer: Writer, name: str, shape: tuple[int, ...], interior: tuple[int, ...], node: Node
) -> str:
    """A value with elements put between its neighbours: each becomes a row, of which the last one loses its end."""
    for axis, count in enumerate(interior):
        if not count or shape[axis] <= 1:
            continue
        rank = len(shape)
        rows = writer.reshape(name, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
        high = tuple(count if k == axis + 1 else 0 for k in range(rank + 1))
        wide = padded(writer, rows, (0,) * (rank + 1), high, node)
        extent = shape[axis] * (count + 1)
        flat = writer.reshape(wide, (*shape[:axis], extent, *shape[axis + 1 :]))
        bounds = ([0], [extent - count], [axis])
        name = writer.add("Slice", [flat, *map(writer.integers, bounds)])
        shape = (*shape[:axis], extent - count, *shape[axis + 1 :])
    return name


def _concatenate(writer: Writer, node: Node) -> str:
    made: str = writer.add("Concat", [writer.full(operand) for operand in node.operands], axis=node.attrs["axis"])
    return made


def _shear(writer: Writer, node: Node) -> Held:
    """Each sheared axis reads at positions that depend on the axis along it."""
    (x,) = node.operands
    found = writer.held(x)
    name, shape = found.name, list(found.shape)
    numbers = zip(*(node.attrs[key] for key in ("axes", "along", "stride", "dilation")), strict=True)
    for axis, along, stride, dilation in numbers:
        windows, length = node.shape[axis], node.shape[along]
        places = np.arange(windows)[:, None] * stride + np.arange(length) * dilation
        if shape[axis] == 1:  # all elements of it are equal
            continue
        if shape[along] == 1:
            name = _windows(writer, name, shape, axis, along, places)
            shape[axis], shape[along] = windows, length
        else:
            name = _read_along(writer, name, shape, axis, along, places)
            shape[axis] = windows
    return Held(name, tuple(shape))


def _windows(
    writer: Writer, name: str, shape: list[int], axis: int, along: int, places: np.ndarray
) -> str:
    """The windows of a value whose axis `along` has one element: that axis is left out, read, and put where it was."""
    squeezed = writer.reshape(name, [extent for k, extent in enumerate(shape) if k != along])
    at = axis - (along < axis)
    read = writer.add("Gather", [squeezed, writer.tensor(places, np.int64)], axis=at)
    order = [k for k in range(len(shape)) if k != at + 1]
    order.insert(along, at + 1)
    return writer.transpose(read, order)


def _read_along(writer: Writer, name: str, shape: list[int], axis: int, along: int, places: np.ndarray) -> str:
    aligned = [1] * len(shape)
    aligned[axis], aligned[along] = places.shape
    table = writer.tensor((places if axis < along else places.T).reshape(aligned), np.int64)
    wanted = [places.shape[0] if k == axis else extent for k, extent in enumerate(shape)]
    index = writer.add("Expand", [table, writer.integers(wanted)])
    made: str = writer.add("GatherElements", [name, index], axis=axis)
    return made


def _unshear(writer: Writer, node: Node) -> str:
    """Each position reads where it came from; those that came from nowhere are 0."""
    (x,) = node.operands
    name, shape = writer.full(x), list(x.shape)
    numbers = zip(*(node.attrs[key] for key in ("axes", "along", "stride", "dilation")), strict=True)
    for axis, along, stride, dilation in numbers:
        length, extent = shape[along], node.shape[axis]
        steps = np.arange(extent)[:, None] - np.arange(length) * dilation
        came = (steps >= 0) & (steps % stride == 0) & (steps // stride < shape[axis])
        name = _read_along(writer, name, shape, axis, along, np.where(came, steps // stride, 0))
        shape[axis] = extent
        aligned = [1] * len(shape)
        aligned[axis], aligned[along] = came.shape
        mask = writer.tensor((came if axis < along else came.T).reshape(aligned))
        name = writer.add("Where", [mask, name, writer.number(0, node.dtype)])
    return name


RULES: dict[str, Rule] = {
    "broadcast": _broadcast,
    "concatenate": _concatenate,
    "constant": _constant,
    "flip": _flip,
    "iota": _iota,
    "pad": _pad,
    "reshape": _reshape,
    "shear": _shear,
    "slice": _slice,
    "transpose": _transpose,
    "unshear": _unshear,
}
