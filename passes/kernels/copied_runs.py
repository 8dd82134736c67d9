"""Kernels that only move elements, as runs of elements that lie side by side in an array and in the result.

A slice, a concatenation or a repetition of whole lines is such runs, and so is a pad, around which a number is written
first. What a driver copies as bytes takes a processor a tenth of what a shader needs for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Node
from lavax.passes.kernels.index import strides_of


@dataclass(frozen=True)
class Run:
    """`count` elements from `source` on in an array, which the result has from `target` on."""

    source: int
    target: int
    count: int


@dataclass(frozen=True)
class Moved:
    """What a node's elements are: a number everywhere, if `around` is given, and then runs of arrays."""

    around: bool | int | float | None
    runs: Mapping[Node, Sequence[Run]]


@dataclass(frozen=True)
class _Box:
    """Elements of a node from `start` on, `extents` of them: those of an array from `offset` on, `strides` apart."""

    array: Node
    start: tuple[int, ...]
    extents: tuple[int, ...]
    offset: int
    strides: tuple[int, ...]


# More parts than this take long to find, and more runs long to record.
_MOST_BOXES, _MOST_RUNS = 256, 4096


def moved(node: Node, least: int) -> Moved | None:
    """The runs of a node that only moves elements of arrays, of `least` elements or more on average; else None."""
    while node.op == "reshape":
        (node,) = node.operands
    around = None
    if node.op == "constant":
        return Moved(node.attrs["value"], {})
    if node.op == "broadcast" and _constant_of(node) is not None:
        return Moved(_constant_of(node), {})
    if node.op == "pad" and not any(node.attrs["interior"]):
        around, low = node.attrs["value"], node.attrs["low"]
        within = _boxes(node.operands[0])
        boxes = None if within is None else [_shifted(box, low) for box in within]
    else:
        boxes = _boxes(node)
    if boxes is None:
        return None
    runs: dict[Node, list[Run]] = {}
    number = 0
    for box in boxes:
        if 0 in box.extents:
            continue
        count, axes = _split(box, strides_of(node.shape))
        number += prod(box.extents[axis] for axis in axes)
        if number * least > node.type.size or number > _MOST_RUNS:
            return None
        runs.setdefault(box.array, []).extend(_runs(box, node.shape, count, axes))
    return Moved(around, runs)


def _constant_of(node: Node) -> bool | int | float | None:
    while node.op in ("broadcast", "reshape"):
        (node,) = node.operands
    value: bool | int | float | None = node.attrs["value"] if node.op == "constant" else None
    return value


def _boxes(node: Node) -> list[_Box] | None:
    """The boxes that a node is made of, one beside the other; None if it computes, or they are too many."""
    if node.op == INPUT:
        return [_Box(node, (0,) * len(node.shape), node.shape, 0, strides_of(node.shape))]
    take = _MOVES.get(node.op)
    if take is None:
        return None
    operands = [_boxes(operand) for operand in node.operands]
    found = [boxes for boxes in operands if boxes is not None]
    if len(found) < len(operands):
        return None
    boxes = take(node, found)
    return boxes if boxes is not None and len(boxes) <= _MOST_BOXES else None


def _slice(node: Node, operands: Sequence[list[_Box]]) -> list[_Box]:
    return [box for whole in operands[0] if (box := _cut(whole, node)) is not None]


def _cut(box: _Box, node: Node) -> _Box | None:
    """What a slice has of a box."""
    starts, extents, offset, strides = [], [], box.offset, []
    along = zip(node.attrs["start"], node.attrs["stride"], node.shape, strict=True)
    for axis, (start, step, extent) in enumerate(along):
        begin, end = box.start[axis] - start, box.start[axis] + box.extents[axis] - start
        first, last = max(0, -(-begin // step)), min(extent, -(-end // step))
        if first >= last:
            return None
        starts.append(first)
        extents.append(last - first)
        offset += (first * step - begin) * box.strides[axis]
        strides.append(step * box.strides[axis])
    return _Box(box.array, tuple(starts), tuple(extents), offset, tuple(strides))


def _concatenate(node: Node, operands: Sequence[list[_Box]]) -> list[_Box]:
    axis, begin, found = node.attrs["axis"], 0, []
    for operand, boxes in zip(node.operands, operands, strict=True):
        by = tuple(begin if other == axis else 0 for other in range(len(node.shape)))
        found += [_shifted(box, by) for box in boxes]
        begin += operand.shape[axis]
    return found


def _shifted(box: _Box, by: Sequence[int]) -> _Box:
    return replace(box, start=tuple(at + more for at, more in zip(box.start, by, strict=True)))


def _transpose(node: Node, operands: Sequence[list[_Box]]) -> list[_Box]:
    axes = node.attrs["axes"]

    def turned(numbers: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(numbers[axis] for axis in axes)

    return [
        _Box(box.array, turned(box.start), turned(box.extents), box.offset, turned(box.strides)) for box in operands[0]
    ]


def _broadcast(node: Node, operands: Sequence[list[_Box]]) -> list[_Box]:
    (operand,) = node.operands
    places = {axis: number for number, axis in enumerate(node.attrs["axes"])}
    kept = [
        places[axis] if axis in places and operand.shape[places[axis]] == extent else None
        for axis, extent in enumerate(node.shape)
    ]

    def spread(numbers: tuple[int, ...], others: Sequence[int]) -> tuple[int, ...]:
        return tuple(other if at is None else numbers[at] for at, other in zip(kept, others, strict=True))

    none = (0,) * len(node.shape)
    return [
        _Box(box.array, spread(box.start, none), spread(box.extents, node.shape), box.offset, spread(box.strides, none))
        for box in operands[0]
    ]


def _reshape(node: Node, operands: Sequence[list[_Box]]) -> list[_Box] | None:
    (operand,), (boxes,) = node.operands, operands
    if len(boxes) != 1 or boxes[0].extents != operand.shape:
        return None
    (box,) = boxes
    strides = _reshaped(box.extents, box.strides, node.shape)
    return None if strides is None else [_Box(box.array, (0,) * len(node.shape), node.shape, box.offset, strides)]


def _reshaped(extents: Sequence[int], strides: Sequence[int], shape: Sequence[int]) -> tuple[int, ...] | None:
    """The strides of the same elements in another shape; None if they have none."""
    axes: list[tuple[int, int]] = []  # from the last on, as few as possible
    for extent, stride in reversed([*zip(extents, strides, strict=True)]):
        if axes and extent > 1 and stride == axes[-1][0] * axes[-1][1]:
            axes[-1] = (axes[-1][0] * extent, axes[-1][1])
        elif extent > 1:
            axes.append((extent, stride))
    found = []
    for extent in reversed(shape):
        while axes and axes[0][0] == 1:
            axes.pop(0)
        if extent == 1 or not axes:
            found.append(0)
            continue
        whole, stride = axes[0]
        if whole % extent:
            return None
        found.append(stride)
        axes[0] = (whole // extent, stride * extent)
    return tuple(reversed(found))


_MOVES = {
    "slice": _slice,
    "concatenate": _concatenate,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "reshape": _reshape,
}


def _split(box: _Box, targets: Sequence[int]) -> tuple[int, list[int]]:
    """The elements of each of a box's runs, and the axes along which runs differ."""
    axes, count = [axis for axis, extent in enumerate(box.extents) if extent > 1], 1
    while axes and box.strides[axes[-1]] == count == targets[axes[-1]]:
        count *= box.extents[axes.pop()]
    return count, axes


def _runs(box: _Box, shape: tuple[int, ...], count: int, axes: Sequence[int]) -> Iterator[Run]:
    targets = strides_of(shape)
    first = sum(at * stride for at, stride in zip(box.start, targets, strict=True))
    for place in product(*(range(box.extents[axis]) for axis in axes)):
        source = sum(at * box.strides[axis] for at, axis in zip(place, axes, strict=True))
        target = sum(at * targets[axis] for at, axis in zip(place, axes, strict=True))
        yield Run(box.offset + source, first + target, count)


