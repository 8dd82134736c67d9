"""Products of complex numbers at positions: the factors of one position are multiplied with each other first.

A scatter joins each part on its own, which sums allow and products do not. So the updates are sorted by their
positions, and those of one position, which are neighbours then, are multiplied in steps that double.
"""
from __future__ import annotations

from lavax.ir.graph import Node
from lavax.passes.build.builder import (
    add,
    build,
    concatenate,
    equal,
    gather,
    greater,
    less,
    logical_and,
    logical_not,
    reshape,
    scatter_add,
    slice_along,
    splat,
    where,
    zeros,
)
from lavax.passes.complex_parts.arithmetic import multiply
from lavax.passes.complex_parts.parts import Parts, Truth, parts


def scatter_multiply(node: Node, z: Parts, updates: Parts, *indices: Node) -> Parts:
    """z with the products of the updates of each position multiplied to it; updates outside are dropped."""
    axes, count = node.attrs["axes"], indices[0].type.size
    if not count or not node.type.size:
        return z
    window = updates.real.node.shape[indices[0].type.rank :]
    places = [reshape(index, (count,)) for index in indices]
    key = _joined(places, [node.shape[axis] for axis in axes])
    order = build("sort_order", key, axis=0)
    key, *places = (gather(row, [order], (0,)) for row in (key, *places))
    factors = parts(*(gather(reshape(part, (count, *window)), [order], (0,)) for part in updates.nodes))
    products = _products_of_runs(key, factors, window)
    is_end = _beside_window(_ends_of_runs(key), window)

    def collected(part: Node) -> Node:
        return scatter_add(zeros(z.real.node.type), where(is_end, part, zeros(part.type)), places, axes)

    one = splat(1, products.real.node.type)
    is_met = Truth(greater(collected(one), zeros(z.real.node.type)))
    real, imaginary = (collected(part) for part in products.nodes)
    found = multiply(z, parts(real, imaginary))
    return Parts(is_met.choose(found.real, z.real), is_met.choose(found.imaginary, z.imaginary))


def _ends_of_runs(key: Node) -> Node:
    """Whether the next key is another, or there is none."""
    count = key.shape[0]
    differs = logical_not(equal(slice_along(key, 0, 1, count), slice_along(key, 0, 0, count - 1)))
    return concatenate([differs, splat(True, differs.type.with_shape((1,)))], 0)


def _joined(places: list[Node], extents: list[int]) -> Node:
    """One number for each position, -1 for all outside."""
    found, outside = zeros(places[0].type), splat(-1, places[0].type)
    for place, extent in zip(places, extents, strict=True):
        width = splat(extent, place.type)
        is_inside = logical_and(greater(found, outside), logical_and(greater(place, outside), less(place, width)))
        found = where(is_inside, add(build("multiply", found, width), place), outside)
    return found


def _products_of_runs(key: Node, factors: Parts, window: tuple[int, ...]) -> Parts:
    """At each place the product of the factors from the first with that key to this one (Hillis and Steele 1986)."""
    count, distance = key.shape[0], 1
    while distance < count:
        rest = count - distance
        same = equal(slice_along(key, 0, distance, count), slice_along(key, 0, 0, rest))
        chosen = Truth(_beside_window(same, window))
        later, earlier = (
            parts(*(slice_along(part, 0, start, start + rest) for part in factors.nodes)) for start in (distance, 0)
        )
        joined = multiply(later, earlier)
        kept = (chosen.choose(new, old).node for new, old in zip(joined, later, strict=True))
        firsts = (slice_along(part, 0, 0, distance) for part in factors.nodes)
        factors = parts(*(concatenate([first, part], 0) for first, part in zip(firsts, kept, strict=True)))
        distance *= 2
    return factors


def _beside_window(row: Node, window: tuple[int, ...]) -> Node:
    return build("broadcast", row, type=row.type.with_shape((row.shape[0], *window)), axes=(0,))
