"""Sums of what strided windows add to their elements, without the elements that a stride leaves out.

    sum over k of unshear(x)[…i…k…]    is the sum of x[…o…k…] over the o and k with o·stride + k = i

Of the elements k of a window, only every stride-th one meets i, so a kernel that goes through all of them reads most
numbers for nothing: 19 of 27 for windows of 3³ and strides of 2. With i = q·stride + r and k = t·stride + r, an element
of the phase r is the sum over t of x[…q - t…t·stride + r…]: an unshear of stride 1 of the windows' elements apart in
their phases, which are then interleaved. All of it is movement ahead of the same sum. Derivatives of strided
convolutions are of this kind, and transposed convolutions that write few channels. In derivatives of pools each element
of a window is chosen by a comparison of what is moved alike, or is 0.
"""

from __future__ import annotations

from collections.abc import Hashable

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.ops.elementwise import COMPARISONS
from lavax.passes.build.builder import (
    build,
    cast,
    pad,
    reshape,
    reshaped,
    slice_,
    splat,
    sum_over,
    transpose,
    where,
)
from lavax.passes.build.matching import is_value


@dataclass(frozen=True)
class _Windows:
    """A strided unshear that is summed over the elements of its windows, and the part of it that is kept."""

    node: Node
    start: tuple[int, ...]
    limit: tuple[int, ...]


def strided_sum_in_phases(node: Node) -> Node | None:
    """The sum without terms that a stride leaves out; None for another sum."""
    terms = _terms_of(node.operands[0], node.attrs["axes"])
    if terms is None:
        return None
    if terms.dtype != node.dtype:
        terms = cast(terms, node.dtype)
    is_single = all(terms.shape[axis] == 1 for axis in node.attrs["axes"])
    return reshaped(terms, node.shape) if is_single else sum_over(terms, node.attrs["axes"])


def _terms_of(x: Node, axes: tuple[int, ...]) -> Node | None:
    """The terms of the sum of `x` over these axes that its stride meets, perhaps before a cast."""
    if x.op == "cast":
        (x,) = x.operands
    windows = _windows_of(x, axes)
    return _chosen_terms(x, axes) if windows is None else _terms(windows)


def _chosen_terms(x: Node, axes: tuple[int, ...]) -> Node | None:
    """The same if what is chosen, or 0, and what is compared for it are moved alike."""
    choice = x.operands[0] if x.op == "slice" else x
    if choice.op != "where" or not is_value(choice.operands[2], 0) or choice.operands[0].op not in COMPARISONS:
        return None
    condition, chosen, _ = choice.operands
    moved = (*condition.operands, chosen)
    parts = [build("slice", part, **x.attrs) for part in moved] if x.op == "slice" else moved
    found = [windows for windows in (_windows_of(part, axes) for part in parts) if windows is not None]
    if len(found) < len(parts) or len(set(map(_movement, found))) > 1:
        return None
    first, second, terms = map(_terms, found)  # where windows have no element, `terms` has 0
    return where(build(condition.op, first, second), terms, splat(0, terms.type))


def _movement(windows: _Windows) -> tuple[Hashable, ...]:
    node = windows.node
    return node.shape, *sorted(node.attrs.items()), windows.start, windows.limit


def _windows_of(x: Node, axes: tuple[int, ...]) -> _Windows | None:
    start, limit = (0,) * x.type.rank, x.shape
    if x.op == "slice" and max(x.attrs["stride"]) == 1:
        start, limit = x.attrs["start"], x.attrs["limit"]
        (x,) = x.operands
    if x.op != "unshear" or max(x.attrs["stride"]) == 1 or max(x.attrs["dilation"]) > 1:
        return None
    along = x.attrs["along"]
    is_whole = all(limit[axis] - start[axis] == x.shape[axis] for axis in along)
    return _Windows(x, start, limit) if is_whole and sorted(along) == sorted(axes) else None


def _terms(windows: _Windows) -> Node:
    """Axes as those of the part that is kept, but for the elements of windows, of which only t is left."""
    (x,), attrs, rank = windows.node.operands, windows.node.attrs, windows.node.type.rank
    stride_of = dict(zip(attrs["along"], attrs["stride"], strict=True))
    missing = [-x.shape[axis] % stride_of.get(axis, 1) for axis in range(rank)]
    if any(missing):
        x = pad(x, [0] * rank, missing, [0] * rank, x.dtype.number(0))
    shape: list[int] = []
    place = []  # of each axis; the phase r of a window's elements is behind t
    for axis, extent in enumerate(x.shape):
        place.append(len(shape))
        shape += [extent // stride_of[axis], stride_of[axis]] if axis in stride_of else [extent]
    x = reshape(x, shape)
    whole = list(windows.node.shape)
    phase_of = {}
    for axis, other, stride in zip(attrs["axes"], attrs["along"], attrs["stride"], strict=True):
        count = max(shape[place[axis]] + shape[place[other]] - 1, -(-whole[axis] // stride))
        shape[place[axis]], whole[axis] = count, count * stride
        whole[other] = shape[place[other]]
        phase_of[axis] = place[other] + 1
    ones = (1,) * len(phase_of)
    axes, along = (tuple(place[axis] for axis in attrs[name]) for name in ("axes", "along"))
    kind = x.type.with_shape(tuple(shape))
    spread = build("unshear", x, type=kind, axes=axes, along=along, stride=ones, dilation=ones)
    order = [[place[axis], *([phase_of[axis]] if axis in phase_of else [])] for axis in range(rank)]
    interleaved = reshape(transpose(spread, [each for pair in order for each in pair]), whole)
    limit = [whole[axis] if axis in attrs["along"] else windows.limit[axis] for axis in range(rank)]
    return slice_(interleaved, windows.start, limit, [1] * rank)
