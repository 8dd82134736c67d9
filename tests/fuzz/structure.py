"""Sources, movement, reductions, positions, contractions and windows."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from lavax.ir import Node, TensorType, float32
from lavax.ir.monoids import REDUCTIONS
from lavax.ir.ops.indexing import SCATTERS, window_of
from lavax.passes.build import builder
from lavax.passes.build.builder import build
from tests.fuzz.draw import ALL, EXTENTS, NUMBERS, NotDrawnError, Source, dtype_of
from tests.random_graphs import MOVES, Step

Generator = Callable[[Source], Node]


def _constant(source: Source) -> Node:
    x = source.pick(ALL)
    value = source.number(-2 if x.dtype.kind in ("float", "int") else 0, 4)
    return builder.splat(x.dtype.number(value * (0.5 if x.dtype.is_float else 1)), x.type)


def _iota(source: Source) -> Node:
    shape = source.extents(source.number(1, 4))
    dtype = dtype_of(source.random, wide=False)
    if dtype.kind == "bool" or not all(shape):
        raise NotDrawnError("counts of nothing")
    axis = source.number(0, len(shape))
    if dtype.is_float and shape[axis] > 70:
        raise NotDrawnError("large numbers")
    return builder.iota(TensorType(shape, dtype), axis)


def _move(step: Step, source: Source) -> Node:
    found = step(source)  # type: ignore[arg-type]  # it asks for no more than both sources have
    if found is None:
        raise NotDrawnError("too large")
    return found


def _broadcast(source: Source) -> Node:
    x = source.pick(ALL, fits=lambda node: node.type.rank <= 3)
    shape = [extent if extent != 1 else source.one_of(EXTENTS) for extent in x.shape]
    axes = list(range(len(shape)))
    for _ in range(source.number(0, 4 - len(shape)) + 1):
        at = source.number(0, len(shape) + 1)
        shape.insert(at, source.extent())
        axes = [axis + (axis >= at) for axis in axes]
    return builder.broadcast(x, shape, axes)


def _slice(source: Source) -> Node:
    x = source.pick(ALL, 1)
    start = [source.number(0, extent + 1) for extent in x.shape]
    limit = [source.number(low, extent + 1) for low, extent in zip(start, x.shape, strict=True)]
    if source.chance(0.8):  # of something, mostly
        start = [min(low, max(extent - 1, 0)) for low, extent in zip(start, x.shape, strict=True)]
        limit = [max(high, min(low + 1, e)) for low, high, e in zip(start, limit, x.shape, strict=True)]
    return builder.slice_(x, start, limit, [source.number(1, 4) for _ in x.shape])


def _kinds(op: str) -> tuple[str, ...]:
    return REDUCTIONS[op].kinds


def _reduce(op: str, source: Source) -> Node:
    x = source.pick(_kinds(op), fits=lambda node: node.type.rank > 0 or source.chance(0.2))
    axes = source.axes(x)
    if op not in ("sum", "prod"):
        axes = [axis for axis in axes if x.shape[axis]]
    if op == "prod" and x.dtype.is_float:
        x = source.within(x, 0.7, 1.3)
    return builder.reduce(op, x, axes)


def _position(op: str, source: Source) -> Node:
    x = source.pick(ALL, 1)
    axis = source.axis_of(x)
    if not x.shape[axis]:
        raise NotDrawnError("of no elements")
    return build(op, x, axis=axis)


def _gather(source: Source) -> Node:
    x = source.pick(ALL, 1)
    axes = source.axes(x) or [source.axis_of(x)]
    shape = source.extents(source.number(0, 3))
    if any(not x.shape[axis] for axis in axes):
        shape = (0,)
    return builder.gather(x, [source.indices(shape, x.shape[axis]) for axis in axes], axes)


def _scatter(op: str, source: Source) -> Node:
    x = source.pick(SCATTERS[op][0], 1)
    axes = source.axes(x) or [source.axis_of(x)]
    shape = source.extents(source.number(0, 3))
    updates = source.of_type(x.type.with_shape((*shape, *window_of(x.type, axes))))
    if op == "scatter_multiply" and x.dtype.is_float:
        updates = source.within(updates, 0.7, 1.3)
    return build(op, x, updates, *(source.indices(shape, x.shape[axis]) for axis in axes), axes=tuple(axes))


def _precision(source: Source, x: Node) -> dict[str, str]:
    if x.dtype != float32 or source.chance(0.85):
        return {}
    return dict(precision=source.one_of(("f16", "bf16", "")), backward=source.one_of(("f16", "bf16", "")))


def _dot(source: Source) -> Node:
    """Of a value with another that shares some axes, in any order, with some of its own."""
    x = source.pick(NUMBERS, fits=lambda node: node.type.rank <= 4)
    shared = [axis for axis in range(x.type.rank) if source.chance(0.6)]
    summed = [axis for axis in shared if source.chance(0.7)]
    sides = [(axis, x.shape[axis]) for axis in shared]
    sides += [(-1, source.extent()) for _ in range(source.number(0, 3))]
    order = [int(number) for number in source.random.permutation(len(sides))]
    placed = [sides[number] for number in order]
    y = source.of_type(x.type.with_shape(tuple(extent for _, extent in placed)))
    places = {axis: number for number, (axis, _) in enumerate(placed) if axis >= 0}
    batch = [axis for axis in shared if axis not in summed]
    if x.dtype.is_float:
        x, y = source.within(x, -8, 8), source.within(y, -8, 8)
    attrs: dict[str, Any] = dict(
        contract=(tuple(summed), tuple(places[axis] for axis in summed)),
        batch=(tuple(batch), tuple(places[axis] for axis in batch)),
    )
    flipped = source.chance(0.3)
    if flipped:
        x, y = y, x
        attrs = {name: (right, left) for name, (left, right) in attrs.items()}
    return build("dot", x, y, **attrs, **_precision(source, x))


def _conv(source: Source) -> Node:
    """Of [images, pixels…, channels] or the same with channels first, one or two window axes, perhaps in groups."""
    dtype = source.pick(NUMBERS).dtype
    windows = source.number(1, 3)
    pixels = [source.number(1, 9) for _ in range(windows)]
    lengths = [source.number(1, min(extent, 3) + 1) for extent in pixels]
    images, channels, filters = source.number(1, 4), source.one_of((1, 3, 4, 8)), source.one_of((1, 2, 4, 17))
    if source.chance(0.5):
        left_shape, left_window, left_sum = (images, *pixels, channels), tuple(range(1, windows + 1)), windows + 1
        right_shape, right_window, right_sum = (*lengths, channels, filters), tuple(range(windows)), windows
    else:
        left_shape, left_window, left_sum = (images, channels, *pixels), tuple(range(2, windows + 2)), 1
        right_shape, right_window, right_sum = (filters, channels, *lengths), tuple(range(2, windows + 2)), 1
    x, y = (source.of_type(TensorType(shape, dtype)) for shape in (left_shape, right_shape))
    if dtype.is_float:
        x, y = source.within(x, -4, 4), source.within(y, -4, 4)

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(source.number(low, high) for _ in range(windows))

    attrs: dict[str, Any] = dict(window=(left_window, right_window), contract=((left_sum,), (right_sum,)))
    numbers = dict(stride=each(1, 3), low=each(-1, 3), high=each(-1, 3), interior=each(0, 2), dilation=each(1, 3))
    return build("conv", x, y, **attrs, **numbers, batch=((), ()), **_precision(source, x))


def _shear(op: str, source: Source) -> Node:
    x = source.pick(ALL, 2, fits=lambda node: all(node.shape))
    axis, along = (int(number) for number in source.random.permutation(x.type.rank)[:2])
    stride, dilation = source.number(1, 3), source.number(1, 3)
    reach = (x.shape[along] - 1) * dilation
    extents = list(x.shape)
    if op == "shear":
        if x.shape[axis] <= reach:
            raise NotDrawnError("no window fits")
        extents[axis] = source.number(1, (x.shape[axis] - 1 - reach) // stride + 2)
    else:
        extents[axis] = (x.shape[axis] - 1) * stride + reach + source.number(1, 3)
    attrs = dict(axes=(axis,), along=(along,), stride=(stride,), dilation=(dilation,))
    return build(op, x, type=x.type.with_shape(tuple(extents)), **attrs)


GENERATORS: dict[str, Generator] = {
    "constant": _constant,
    "iota": _iota,
    **{op: partial(_move, step) for op, step in MOVES.items()},
    "broadcast": _broadcast,
    "slice": _slice,
    **{op: partial(_reduce, op) for op in REDUCTIONS},
    **{op: partial(_position, op) for op in ("argmax", "argmin")},
    "gather": _gather,
    **{op: partial(_scatter, op) for op in SCATTERS},
    "dot": _dot,
    "conv": _conv,
    **{op: partial(_shear, op) for op in ("shear", "unshear")},
}
