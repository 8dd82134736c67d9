"""The order of complex numbers: by their real parts, equal ones by their imaginary parts, as NumPy has it.

Of numbers with NaN, those whose imaginary part alone is NaN come first, then those whose real part alone is, then those
of which both are.
"""
from __future__ import annotations

from collections.abc import Callable

from lavax.ir.graph import Node
from lavax.ir.types import int32
from lavax.passes.build.builder import (
    add,
    broadcast,
    build,
    cast,
    concatenate,
    flip,
    gather,
    iota,
    reduce,
    slice_along,
    splat,
    where,
)
from lavax.passes.build.orders import first_of_falling
from lavax.passes.complex_parts.parts import Parts, Real, Truth, parts


def _is_nan(x: Real) -> Truth:
    return Truth(build("not_equal", x.node, x.node))


def _has_nan(z: Parts) -> Truth:
    return _is_nan(z.real) | _is_nan(z.imaginary)


def _choose(condition: Truth, z: Parts, w: Parts) -> Parts:
    return Parts(condition.choose(z.real, w.real), condition.choose(z.imaginary, w.imaginary))


def less(z: Parts, w: Parts) -> Truth:
    return _compared(z, w, z.imaginary < w.imaginary)


def less_equal(z: Parts, w: Parts) -> Truth:
    return _compared(z, w, z.imaginary <= w.imaginary)


def greater(z: Parts, w: Parts) -> Truth:
    return less(w, z)


def greater_equal(z: Parts, w: Parts) -> Truth:
    return less_equal(w, z)


def _compared(z: Parts, w: Parts, by_imaginary: Truth) -> Truth:
    """Whether z comes before w; false beside NaN."""
    known = ~(_is_nan(z.imaginary) | _is_nan(w.imaginary))
    return ((z.real < w.real) & known) | (z.real.equals(w.real) & by_imaginary)


def maximum(z: Parts, w: Parts) -> Parts:
    return _choose(_has_nan(z) | greater_equal(z, w), z, w)


def minimum(z: Parts, w: Parts) -> Parts:
    return _choose(_has_nan(z) | less_equal(z, w), z, w)


def _order(z: Parts, axis: int) -> Node:
    """Sorted by the imaginary part, then by the real one, then by where NaN is; equal elements keep their order."""
    ones, twos, none = (_counts(z.real.node, count) for count in (1, 2, 0))
    of_real, of_imaginary = (_is_nan(part).node for part in z)
    place_of_nan = add(where(of_imaginary, ones, none), where(of_real, twos, none))
    order = build("sort_order", z.imaginary.node, axis=axis)
    for key in (z.real.node, place_of_nan):
        then = build("sort_order", _taken(key, order, axis), axis=axis)
        order = _taken(order, then, axis)
    return order


def _counts(like: Node, count: int) -> Node:
    return splat(count, like.type.with_dtype(int32))


def _taken(x: Node, order: Node, axis: int) -> Node:
    places = [order if d == axis else iota(order.type, d) for d in range(x.type.rank)]
    return gather(x, places, range(x.type.rank))


def sort_order(node: Node, z: Parts) -> Node:
    return _order(z, node.attrs["axis"])


def top_order(node: Node, z: Parts) -> Node:
    axis = node.attrs["axis"]
    return first_of_falling(_order(parts(*(flip(part, (axis,)) for part in z.nodes)), axis), axis, node.shape[axis])


def sort(node: Node, z: Parts) -> Parts:
    axis = node.attrs["axis"]
    order = _order(z, axis)
    return parts(*(_taken(part, order, axis) for part in z.nodes))


def unsort(node: Node, z: Parts, order: Node) -> Parts:
    return parts(*(build("unsort", part, order, axis=node.attrs["axis"]) for part in z.nodes))


def search_sorted(node: Node, rows: Parts, values: Parts) -> Node:
    """How many elements of the row come before each value when all are sorted together."""
    axis, count, right = node.type.rank - 1, rows.real.node.shape[-1], node.attrs["right"]
    first, second = (rows, values) if right else (values, rows)
    line = parts(*(concatenate([a, b], axis) for a, b in zip(first.nodes, second.nodes, strict=True)))
    order = _order(line, axis)
    ones, border = _counts(order, 1), _counts(order, count if right else node.shape[-1])
    is_row = build("less" if right else "greater_equal", order, border)
    before = build("cumulative_sum", where(is_row, ones, _counts(order, 0)), axis=axis, reverse=False)
    found = build("unsort", before, order, axis=axis)
    return slice_along(found, axis, count, order.shape[axis]) if right else slice_along(found, axis, 0, node.shape[-1])


def position(extremum: Callable[[Real, int], Real], least: float) -> Callable[[Node, Parts], Node]:
    """The rule of argmax or argmin: the first element whose parts are both extreme, or the first with NaN."""

    def rule(node: Node, z: Parts) -> Node:
        axis, has_nan = node.attrs["axis"], _has_nan(z)
        real = has_nan.choose(float("nan"), z.real)
        extreme = extremum(real, axis)
        among = real.equals(extreme)
        imaginary = among.choose(z.imaginary, least)
        chosen = has_nan | (among & imaginary.equals(extremum(imaginary, axis)))  # beside NaN none is among them
        return build("argmax", cast(chosen.node, int32), axis=axis)

    return rule


def _over(op: str) -> Callable[[Real, int], Real]:
    """The extremum along an axis, beside every element."""

    def extremum(x: Real, axis: int) -> Real:
        kept = tuple(d for d in range(x.node.type.rank) if d != axis)
        return Real(broadcast(reduce(op, x.node, (axis,)), x.node.shape, kept))

    return extremum


argmax = position(_over("max"), float("-inf"))
argmin = position(_over("min"), float("inf"))
