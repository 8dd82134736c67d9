"""Values as what is computed in another order of axes, and the operations that can be computed before the movement.

An axis of a value may be several axes of what is computed, as the elements of a group norm are a few channels of all
pixels: the value has the pixels last, and what is computed has the channels last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import accumulate, pairwise
from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.types import TensorType
from lavax.passes.build.builder import broadcast, build, reduce, reshape, reshaped, transpose, transposed
from lavax.passes.build.matching import axis_groups, other_axes
from lavax.passes.simplify import movement

Axes = tuple[int, ...]


@dataclass(frozen=True)
class Moved:
    """A value as movement of what is computed: axis i of the value is the axes `axes[i]` of `x`, outermost first."""

    x: Node
    axes: tuple[Axes, ...]

    @property
    def order(self) -> Axes:
        """The axes of `x` in the order of the value."""
        return tuple(axis for group in self.axes for axis in group)

    @property
    def has_single_axes(self) -> bool:
        return all(len(group) == 1 for group in self.axes)

    @property
    def back(self) -> Axes:
        """For each axis of `x`, the place in `order`."""
        return tuple(sorted(range(len(self.order)), key=self.order.__getitem__))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(prod(self.x.shape[axis] for axis in group) for group in self.axes)

    def plain(self) -> Node:
        return reshaped(transposed(self.x, self.order), self.shape)

    def is_alike(self, other: Moved) -> bool:
        return self.axes == other.axes and self.x.shape == other.x.shape

    def in_this_order(self, value: Node) -> Node:
        """Another value of the same shape, as `x` is of this one."""
        if value.op == "cast":
            (narrow,) = value.operands
            return build("cast", self.in_this_order(narrow), type=TensorType(self.x.shape, value.dtype))
        parts = [self.x.shape[axis] for axis in self.order]
        split = value if value.shape == tuple(parts) else _simplified(reshape(value, parts))
        if self.back == tuple(range(len(parts))):
            return split
        return _simplified(transpose(split, self.back))


def by_axes(x: Node, axes: Iterable[int]) -> Moved:
    """The transposition of `x`."""
    return Moved(x, tuple((axis,) for axis in axes))


def _simplified(node: Node) -> Node:
    """The node after the first rule of simplification that applies, so that what is repeated is repeated later."""
    found = (rule(node) for rule in movement.RULES[node.op])
    return next((each for each in found if each is not None), node)


def _tidied(moved: Moved) -> Moved:
    """The same value from as few axes as possible: those of one element come first, each for an axis of the value, and
    neighbours that are neighbours in the value, too, are one."""
    shape, x = moved.shape, moved.x
    units = [place for place, extent in enumerate(shape) if extent == 1]
    long = [axis for axis in range(x.type.rank) if x.shape[axis] > 1]
    groups = [[long.index(axis) for axis in group if axis in long] for group in moved.axes]
    inner = {axis for group in groups for outer, axis in pairwise(group) if axis == outer + 1}
    starts = [axis for axis in range(len(long)) if axis not in inner]
    extents = [prod(x.shape[axis] for axis in long[start:end]) for start, end in pairwise((*starts, len(long)))]
    axes = [tuple(len(units) + starts.index(axis) for axis in group if axis in starts) for group in groups]
    for number, place in enumerate(units):
        axes[place] = (number,)
    return Moved(reshaped(x, (*(1 for _ in units), *extents)), tuple(axes))


def _reshaped(node: Node, moved: Moved) -> Moved | None:
    """Axes are split in place; those of the result may be several. None if an axis would be cut in uneven parts."""
    pairs = axis_groups(moved.shape, node.shape)
    together = [tuple(axis for place in left for axis in moved.axes[place]) for left, _ in pairs]
    whole = _tidied(Moved(moved.x, tuple(together)))
    parts: list[list[int]] = [[] for _ in whole.x.shape]
    taken: list[list[tuple[int, int]]] = [[] for _ in node.shape]
    for axes, (_, right) in zip(whole.axes, pairs, strict=True):
        waiting = [(axis, whole.x.shape[axis]) for axis in reversed(axes)]
        for place in right:
            wanted = node.shape[place]
            while wanted > 1:
                axis, extent = waiting.pop()
                part = min(extent, wanted)
                if wanted % part or extent % part:
                    return None
                taken[place].append((axis, len(parts[axis])))
                parts[axis].append(part)
                wanted //= part
                if extent > part:
                    waiting.append((axis, extent // part))
    starts = [0, *accumulate(map(len, parts))]
    x = reshaped(whole.x, [extent for extents in parts for extent in extents])
    return _tidied(Moved(x, tuple(tuple(starts[axis] + part for axis, part in group) for group in taken)))


def _reduced(node: Node, moved: Moved) -> Moved:
    gone = sorted(axis for place in node.attrs["axes"] for axis in moved.axes[place])
    left = [axis for axis in range(moved.x.type.rank) if axis not in gone]
    kept = [moved.axes[place] for place in other_axes(len(moved.axes), node.attrs["axes"])]
    return _tidied(Moved(reduce(node.op, moved.x, gone), tuple(tuple(map(left.index, group)) for group in kept)))


# rule(node, its operand as a moved value): the node as one; None if it needs the value in its own order.
MovementRule = Callable[[Node, Moved], Moved | None]


def _along_each(*names: str) -> MovementRule:
    """The rule of an operation whose attributes have a number for each axis."""

    def moved_before(node: Node, moved: Moved) -> Moved | None:
        if not moved.has_single_axes:
            return None
        attrs = dict(node.attrs)
        for name in names:
            attrs[name] = tuple(node.attrs[name][axis] for axis in moved.back)
        return Moved(build(node.op, moved.x, **attrs), moved.axes)

    return moved_before


def _flipped(node: Node, moved: Moved) -> Moved:
    axes = tuple(sorted(axis for place in node.attrs["axes"] for axis in moved.axes[place]))
    return Moved(build("flip", moved.x, axes=axes), moved.axes)


def _repeated(node: Node, moved: Moved) -> Moved:
    """An axis along which the value is repeated comes after the one that it follows in the value."""
    own = dict(zip(node.attrs["axes"], moved.axes, strict=True))
    line: list[tuple[int | None, int]] = [(None, axis) for axis in range(moved.x.type.rank)]
    last: tuple[int | None, int] | None = None
    for place in range(node.type.rank):
        if place in own:
            last = (None, own[place][-1])
        else:
            line.insert(0 if last is None else line.index(last) + 1, (place, 0))
            last = (place, 0)
    shape = [moved.x.shape[axis] if place is None else node.shape[place] for place, axis in line]
    axes = [own.get(place) for place in range(node.type.rank)]
    groups = [
        (line.index((place, 0)),) if group is None else tuple(line.index((None, axis)) for axis in group)
        for place, group in enumerate(axes)
    ]
    kept = [number for number, (place, _) in enumerate(line) if place is None]
    return Moved(broadcast(moved.x, shape, kept), tuple(groups))


def _sheared(node: Node, moved: Moved) -> Moved | None:
    if not moved.has_single_axes:
        return None
    attrs = dict(node.attrs)
    for name in ("axes", "along"):
        attrs[name] = tuple(moved.order[axis] for axis in node.attrs[name])
    shape = tuple(node.shape[axis] for axis in moved.back)
    return Moved(build(node.op, moved.x, type=TensorType(shape, node.dtype), **attrs), moved.axes)


RULES: dict[str, MovementRule] = {
    **dict.fromkeys(("sum", "prod", "max", "min"), _reduced),
    "pad": _along_each("low", "high", "interior"),
    "slice": _along_each("start", "limit", "stride"),
    "flip": _flipped,
    "broadcast": _repeated,
    "reshape": _reshaped,
    "shear": _sheared,
    "unshear": _sheared,
}
