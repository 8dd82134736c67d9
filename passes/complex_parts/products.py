"""Sums and products of many complex numbers by parts."""
from __future__ import annotations

from math import prod

from lavax.ir.graph import Node
from lavax.passes.build.builder import build, reshape, slice_along, splat, transpose
from lavax.passes.complex_parts.arithmetic import multiply
from lavax.passes.complex_parts.parts import Parts, Real, parts


def bilinear(node: Node, z: Parts, w: Parts) -> Parts:
    """A dot or convolution: four real ones, whose errors are those of each part."""

    def product(x: Real, y: Real) -> Real:
        return Real(build(node.op, x.node, y.node, **node.attrs))

    (a, b), (c, d) = z, w
    return Parts(product(a, c) - product(b, d), product(a, d) + product(b, c))


def product_over(node: Node, z: Parts) -> Parts:
    """The product over axes: halves of the line are multiplied until one element is left."""
    axes = node.attrs["axes"]
    rank = z.real.node.type.rank
    order = [axis for axis in range(rank) if axis not in axes] + list(axes)
    count = prod(z.real.node.shape[axis] for axis in axes)

    def line(part: Real, fill: float) -> Node:
        rows = reshape(transpose(part.node, order), (*node.shape, count))
        return rows if count else splat(fill, rows.type.with_shape((*node.shape, 1)))

    real, imaginary = line(z.real, 1.0), line(z.imaginary, 0.0)
    axis = len(node.shape)
    while (length := real.shape[axis]) > 1:
        half = length // 2
        first, second = (
            parts(*(slice_along(part, axis, start, start + half) for part in (real, imaginary))) for start in (0, half)
        )
        joined = multiply(first, second).nodes
        if length % 2:
            rest = [slice_along(part, axis, length - 1, length) for part in (real, imaginary)]
            joined = tuple(build("concatenate", *pair, axis=axis) for pair in zip(joined, rest, strict=True))  # type: ignore[assignment]
        real, imaginary = joined
    return parts(reshape(real, node.shape), reshape(imaginary, node.shape))


def cumulative_product(node: Node, z: Parts) -> Parts:
    """Products of all elements so far: each step multiplies by those twice as far back (Hillis and Steele 1986)."""
    axis, is_reverse = node.attrs["axis"], node.attrs["reverse"]
    length, distance = node.shape[axis], 1
    found = z
    while distance < length:
        behind = parts(
            *(
                _shifted(part.node, axis, distance, is_reverse, fill)
                for part, fill in zip(found, (1.0, 0.0), strict=True)
            )
        )
        found = multiply(found, behind)
        distance *= 2
    return found


def _shifted(x: Node, axis: int, distance: int, is_reverse: bool, fill: float) -> Node:
    """The elements `distance` away along `axis`, and `fill` where there are none."""
    length, none = x.shape[axis], [0] * x.type.rank
    width = list(none)
    width[axis] = distance
    kept = slice_along(x, axis, distance, length) if is_reverse else slice_along(x, axis, 0, length - distance)
    low, high = (none, width) if is_reverse else (width, none)
    return build("pad", kept, low=tuple(low), high=tuple(high), interior=tuple(none), value=fill)
