"""Cosine and sine transforms of type 4 of even length n as complex transforms of half the length.

The numbers x[2j] + i·x[n − 1 − 2j] are multiplied by exp(−πi·(4j + 1)/4n), transformed, and multiplied by
2·exp(−πi·k/n); real parts belong to the places 2k, and negated imaginary ones to n − 1 − 2k. For sines x is turned
round, and what is at odd places is negated. Where the device has steps for both ends, nothing is moved beside them
(ir/ops/lowered/paired_lines.py).
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lavax.ir.graph import Node
from lavax.ir.types import int32
from lavax.passes.build.builder import (
    broadcast,
    build,
    concatenate,
    flip,
    iota,
    negate,
    reshape,
    slice_along,
    transpose,
)
from lavax.passes.complex_parts import arithmetic
from lavax.passes.complex_parts.parts import Parts, parts
from lavax.passes.complex_parts.roots import unit_root
from lavax.passes.numerics.unit_roots import unit_root as host_root


def by_steps(x: Node, axis: int, sines: bool, steps: Sequence[int]) -> Node:
    """The transform along an axis in steps of so many points."""
    lines, length, behind = prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :])
    if len(steps) == 1:
        return build("fourier_paired", reshape(x, (lines, length, behind)), type=x.type, sines=sines)
    first, *widths, last = steps
    points, ahead = length // 2 // first, first
    form = x.type.with_shape((lines, points, 1, first * behind, 2))
    z = build("fourier_from_paired", reshape(x, (lines, length, behind)), type=form, points=first, sines=sines)
    for width in widths:
        rest = points // width
        z = reshape(z, (lines, width, rest, ahead * behind, 2))
        after = x.type.with_shape((lines, rest, 1, width * ahead * behind, 2))
        z = build("fourier_step", z, type=after, reverse=False)
        points, ahead = rest, ahead * width
    return build("fourier_to_paired", reshape(z, (lines, last, ahead, behind, 2)), type=x.type, sines=sines)


def beside_each_other(x: Node, axis: int, sines: bool) -> Node:
    """The same in one step of lines that are few neighbours in memory, which are read where they are, as if they lay
    along memory, and written so."""
    length, count = x.shape[axis], prod(x.shape[axis + 1 :])
    order = [*(other for other in range(x.type.rank) if other != axis), axis]
    lines = reshape(transpose(x, order), (x.type.size // length, length, 1))
    return build("fourier_paired", lines, type=x.type, sines=sines, beside=count)


def paired(x: Node, axis: int, sines: bool) -> Parts:
    """The complex numbers of lines along an axis, times their roots."""
    length = x.shape[axis]
    both = [slice_along(line, axis, 0, length, 2) for line in (x, flip(x, (axis,)))]
    return _turned(parts(*reversed(both)) if sines else parts(*both), axis, host_root(-1, 8 * length))


def put_back(z: Parts, axis: int, sines: bool) -> Node:
    """The lines whose complex numbers, transformed, these are."""
    ahead, back = _turned(z, axis, 2.0).nodes
    shape = ahead.shape
    back = flip(back if sines else negate(back), (axis,))
    rows = [reshape(part, (*shape[: axis + 1], 1, *shape[axis + 1 :])) for part in (ahead, back)]
    return reshape(concatenate(rows, axis + 1), (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]))


def _turned(z: Parts, axis: int, factor: complex) -> Parts:
    """Numbers times exp(−πi·k/2h) for the places k of h along an axis, and times a factor."""
    like = z.real.node
    line = iota(like.type.with_shape((like.shape[axis],)).with_dtype(int32), 0)
    root = unit_root(line, 4 * like.shape[axis], like.dtype)
    (a, b), real, imaginary = root, factor.real, -factor.imag
    roots = (a * real - b * imaginary, a * imaginary + b * real) if imaginary else (a * real, b * real)
    cosine, sine = (broadcast(part.node, like.shape, (axis,)) for part in roots)
    return arithmetic.multiply(z, parts(cosine, negate(sine)))
