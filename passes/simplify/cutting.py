"""Slices, padding, concatenation and reversal."""
from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable
from itertools import groupby

from lavax.ir.exact_text import exact_text
from lavax.ir.graph import Node
from lavax.ir.ops.cumulative import CUMULATIVE
from lavax.passes.build.builder import broadcast, build, concatenate, flip, pad, slice_, splat, transpose, zeros
from lavax.passes.build.matching import ends_of_parts, is_splat, splat_value
from lavax.passes.simplify import folding
from lavax.passes.simplify.rewriting import RewriteRule

# Without a limit, a value that a loop extends part by part would be written out at every length.
_SHORT_CONCATENATION = 32
# Long in code, and lanes of a kernel that are in different parts wait for the functions of all parts.
_FUNCTIONS = frozenset(
    ("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "tanh", "logistic", "erf", "erfc")
)


def iota_of_one(node: Node) -> Node | None:
    """iota along an axis of extent 1 -> 0."""
    return zeros(node.type) if node.shape[node.attrs["axis"]] == 1 else None


def _slice_of_all(node: Node) -> Node | None:
    (x,) = node.operands
    return x if x.shape == node.shape else None


def _slice_in_form(node: Node) -> Node | None:
    """Normal form: the limit is one past the last element taken; an axis of which one element is taken has stride 1."""
    start, limit, stride = (node.attrs[name] for name in ("start", "limit", "stride"))
    steps = tuple(step if taken > 1 else 1 for step, taken in zip(stride, node.shape, strict=True))
    ends = tuple(first + (taken - 1) * step + 1 for first, taken, step in zip(start, node.shape, steps, strict=True))
    return None if (ends, steps) == (limit, stride) else slice_(node.operands[0], start, ends, steps)


def _slice_twice(node: Node) -> Node | None:
    (x,) = node.operands
    if x.op != "slice":
        return None
    steps = x.attrs["stride"]
    start, limit, stride = (node.attrs[name] for name in ("start", "limit", "stride"))
    lows = [base + first * step for base, first, step in zip(x.attrs["start"], start, steps, strict=True)]
    highs = [base + (end - 1) * step + 1 for base, end, step in zip(x.attrs["start"], limit, steps, strict=True)]
    return slice_(x.operands[0], lows, highs, [a * b for a, b in zip(stride, steps, strict=True)])


def _slice_of_broadcast(node: Node) -> Node | None:
    """slice(broadcast(x)) -> broadcast(slice(x))."""
    (x,) = node.operands
    if x.op != "broadcast":
        return None
    axes = x.attrs["axes"]
    start, limit, stride = ([node.attrs[name][axis] for axis in axes] for name in ("start", "limit", "stride"))
    return broadcast(slice_(x.operands[0], start, limit, stride), node.shape, axes)


def _before_transpose(node: Node) -> Node | None:
    """slice(transpose(x)) -> transpose(slice(x)); the same for pad and flip."""
    (x,) = node.operands
    if x.op != "transpose":
        return None
    axes, source = x.attrs["axes"], x.operands[0]
    if node.op == "flip":
        moved = flip(source, [axes[axis] for axis in node.attrs["axes"]])
        return transpose(moved, axes)
    back = sorted(range(len(axes)), key=axes.__getitem__)

    def placed(name: str) -> list[int]:
        return [node.attrs[name][axis] for axis in back]

    if node.op == "slice":
        return transpose(slice_(source, placed("start"), placed("limit"), placed("stride")), axes)
    return transpose(pad(source, placed("low"), placed("high"), placed("interior"), node.attrs["value"]), axes)


def _slice_of_concatenate(node: Node) -> Node | None:
    """A slice that lies inside one part -> a slice of that part."""
    (x,) = node.operands
    if x.op != "concatenate":
        return None
    axis = x.attrs["axis"]
    start, limit, ends = node.attrs["start"], node.attrs["limit"], ends_of_parts(x)
    place = bisect_left(ends, limit[axis])
    part = x.operands[place]
    begin = ends[place] - part.shape[axis]
    if start[axis] < begin:
        return None
    lows, highs = list(start), list(limit)
    lows[axis], highs[axis] = start[axis] - begin, limit[axis] - begin
    return slice_(part, lows, highs, node.attrs["stride"])


def _slice_of_pad(node: Node) -> Node | None:
    """slice(pad(x)) -> pad(slice(x)) without the elements cut away, if the slice's strides are those of the padding.

    On each axis, element k of x is at position low + k·step of the padded value and (low − start)/step + k of the
    result. If that is no whole number, the slice contains only padding.
    """
    (x,) = node.operands
    if x.op != "pad":
        return None
    source, value = x.operands[0], x.attrs["value"]
    first, last, low, high = [], [], [], []
    for axis, (taken, step) in enumerate(zip(node.shape, node.attrs["stride"], strict=True)):
        between, extent = x.attrs["interior"][axis] + 1, source.shape[axis]
        if step != between and taken > 1 and extent > 1:
            return None
        step = between if taken == 1 else step
        shift, rest = divmod(x.attrs["low"][axis] - node.attrs["start"][axis], step)
        first.append(max(0, -shift))
        last.append(min(extent, taken - shift))
        if rest or first[-1] >= last[-1]:
            return splat(value, node.type)
        low.append(max(0, shift))
        high.append(taken - low[-1] - (last[-1] - first[-1]))
    units = [1] * len(first)
    return pad(slice_(source, first, last, units), low, high, [0] * len(first), value)


def _pad_of_nothing(node: Node) -> Node | None:
    """pad(x) by nothing -> x; a splat padded with its own value -> a splat; pad of no elements -> a splat."""
    (x,) = node.operands
    if x.shape == node.shape:
        return x
    padded_alike = is_splat(x) and exact_text(splat_value(x)) == exact_text(node.attrs["value"])
    return splat(node.attrs["value"], node.type) if padded_alike or x.type.size == 0 else None


def _pad_in_form(node: Node) -> Node | None:
    """An axis of one element needs no interior padding."""
    (x,) = node.operands
    interior = node.attrs["interior"]
    between = tuple(width if extent > 1 else 0 for width, extent in zip(interior, x.shape, strict=True))
    if between == interior:
        return None
    return pad(x, node.attrs["low"], node.attrs["high"], between, node.attrs["value"])


def _pad_twice(node: Node) -> Node | None:
    """pad(pad(x)) -> pad(x) if both pad with the same value."""
    (inner,) = node.operands
    if inner.op != "pad" or exact_text(inner.attrs["value"]) != exact_text(node.attrs["value"]):
        return None
    (x,) = inner.operands
    low, high, interior = [], [], []
    for axis, extent in enumerate(x.shape):
        step = node.attrs["interior"][axis] + 1
        low.append(node.attrs["low"][axis] + inner.attrs["low"][axis] * step)
        interior.append((inner.attrs["interior"][axis] + 1) * step - 1)
        high.append(node.shape[axis] - low[-1] - ((extent - 1) * (interior[-1] + 1) + 1))
    return pad(x, low, high, interior, node.attrs["value"])


def _concatenate_parts(node: Node) -> Node | None:
    """One part -> that part; drops parts without elements; inlines short concatenations along the same axis."""
    axis = node.attrs["axis"]
    parts: list[Node] = []
    for part in node.operands:
        short = part.op == "concatenate" and len(part.operands) <= _SHORT_CONCATENATION
        nested = short and part.attrs["axis"] == axis
        parts += part.operands if nested else [part] if part.shape[axis] else []
    if len(parts) == 1:
        return parts[0]
    return None if tuple(parts) == node.operands else concatenate(parts, axis)


def _concatenate_neighbours(node: Node) -> Node | None:
    """Joins adjacent equal splats, and adjacent slices of the same value."""
    axis, parts = node.attrs["axis"], list(node.operands[:1])
    for part in node.operands[1:]:
        joined = _joined(parts[-1], part, axis)
        parts[-1:] = [joined] if joined is not None else [parts[-1], part]
    if len(parts) == 1:
        return parts[0]
    return None if len(parts) == len(node.operands) else concatenate(parts, axis)


def _concatenate_functions(node: Node) -> Node | None:
    """Equal functions of adjacent parts -> the function of the parts together: a kernel then has it once.

    Not of others: cheap operations are as well computed in each part, where more can follow them.
    """
    axis, parts = node.attrs["axis"], []
    for _, run in groupby(node.operands, key=_function_of):
        alike = list(run)
        if len(alike) > 1 and _function_of(alike[0]) is not alike[0]:
            together = concatenate([part.operands[0] for part in alike], axis)
            alike = [build(alike[0].op, together, **alike[0].attrs)]
        parts += alike
    if len(parts) == 1:
        return parts[0]
    return None if len(parts) == len(node.operands) else concatenate(parts, axis)


def _function_of(part: Node) -> Hashable:
    """What parts of one function have in common; the part itself if it is no such function."""
    if part.op not in _FUNCTIONS:
        return part
    return part.op, repr(part.attrs), part.dtype, part.operands[0].dtype


def _joined(left: Node, right: Node, axis: int) -> Node | None:
    if left.op != right.op:
        return None
    if is_splat(left) and exact_text(splat_value(left)) == exact_text(splat_value(right)):
        shape = list(left.shape)
        shape[axis] += right.shape[axis]
        return splat(splat_value(left), left.type.with_shape(tuple(shape)))
    if left.op == "slice" and left.operands == right.operands:
        return _joined_slices(left, right, axis)
    return None


def _joined_slices(left: Node, right: Node, axis: int) -> Node | None:
    lows, highs, steps = (dict(enumerate(left.attrs[name])) for name in ("start", "limit", "stride"))
    other = [dict(enumerate(right.attrs[name])) for name in ("start", "limit", "stride")]
    follows = highs[axis] == other[0][axis] and steps[axis] == other[2][axis] == 1
    highs[axis] = other[1][axis]
    other[0][axis] = lows[axis]
    if not follows or [lows, highs, steps] != other:
        return None
    return slice_(left.operands[0], list(lows.values()), list(highs.values()), list(steps.values()))


def _flip_in_form(node: Node) -> Node | None:
    """Drops axes of one element; flip along no axes -> x."""
    (x,) = node.operands
    axes = tuple(axis for axis in node.attrs["axes"] if node.shape[axis] > 1)
    if not axes:
        return x
    return None if axes == node.attrs["axes"] else flip(x, axes)


def _flip_twice(node: Node) -> Node | None:
    (x,) = node.operands
    if x.op != "flip":
        return None
    return flip(x.operands[0], sorted(set(x.attrs["axes"]) ^ set(node.attrs["axes"])))


def _flip_of_broadcast(node: Node) -> Node | None:
    """flip(broadcast(x)) -> broadcast(flip(x))."""
    (x,) = node.operands
    if x.op != "broadcast":
        return None
    axes = x.attrs["axes"]
    own = [axes.index(axis) for axis in node.attrs["axes"] if axis in axes]
    return broadcast(flip(x.operands[0], own), x.shape, axes)


def _flip_of_cumulative(node: Node) -> Node | None:
    """flip(cumulative(flip(x))) -> the cumulative operation in the other direction."""
    (x,) = node.operands
    if x.op not in CUMULATIVE or x.operands[0].op != "flip":
        return None
    axis = x.attrs["axis"]
    if axis not in node.attrs["axes"] or axis not in x.operands[0].attrs["axes"]:
        return None
    folded = build(x.op, flip(x.operands[0], (axis,)), axis=axis, reverse=not x.attrs["reverse"])
    return flip(folded, [other for other in node.attrs["axes"] if other != axis])


RULES: dict[str, tuple[RewriteRule, ...]] = {
    "slice": (
        _slice_of_all,
        folding.movement,
        _slice_in_form,
        _slice_twice,
        _slice_of_broadcast,
        _slice_of_concatenate,
        _slice_of_pad,
        _before_transpose,
    ),
    "pad": (_pad_of_nothing, _pad_in_form, _pad_twice, _before_transpose),
    "concatenate": (_concatenate_parts, _concatenate_neighbours, _concatenate_functions),
    "flip": (_flip_in_form, folding.movement, _flip_twice, _flip_of_broadcast, _flip_of_cumulative, _before_transpose),
}
