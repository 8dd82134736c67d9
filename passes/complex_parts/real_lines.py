"""Fourier transforms of real lines of even length, as complex ones of half the length.

Neighbours are the parts of n/2 complex numbers, whose transform holds the spectra of the elements at even and at odd
positions.
"""
from __future__ import annotations

from lavax.ir.graph import Node
from lavax.ir.types import int32
from lavax.passes.build.builder import (
    broadcast,
    concatenate,
    equal,
    flip,
    iota,
    negate,
    slice_along,
    splat,
    zeros,
)
from lavax.passes.build.builder import multiply as multiply_reals
from lavax.passes.complex_parts.arithmetic import multiply
from lavax.passes.complex_parts.parts import Parts, Truth, parts
from lavax.passes.complex_parts.roots import unit_root


def taken_apart(z: Parts) -> Parts:
    """The first h + 1 numbers of the spectrum of 2h real ones, along the last axis, from the transform of the pairs."""
    last = z.real.node.type.rank - 1
    half = z.real.node.shape[last]
    ahead = parts(*(concatenate([part, slice_along(part, last, 0, 1)], last) for part in z.nodes))
    mirrored = parts(*(flip(part, (last,)) for part in ahead.nodes))
    even = Parts((ahead.real + mirrored.real) * 0.5, (ahead.imaginary - mirrored.imaginary) * 0.5)
    odd = Parts((ahead.imaginary + mirrored.imaginary) * 0.5, (mirrored.real - ahead.real) * 0.5)
    cosine, sine = _roots(ahead.real.node, half)
    turned = multiply(odd, Parts(cosine, -sine))
    return Parts(even.real + turned.real, even.imaginary + turned.imaginary)


def joined(s: Parts) -> Parts:
    """h complex numbers, whose inverse transform has 2h real ones as its parts, from the first h + 1 of a spectrum."""
    last = s.real.node.type.rank - 1
    half = s.real.node.shape[last] - 1
    s = Parts(s.real, _at_ends(s.imaginary.node, half).choose(0.0, s.imaginary))
    ahead = parts(*(slice_along(part, last, 0, half) for part in s.nodes))
    mirrored = parts(*(flip(slice_along(part, last, 1, half + 1), (last,)) for part in s.nodes))
    even = Parts(ahead.real + mirrored.real, ahead.imaginary - mirrored.imaginary)
    odd = Parts(ahead.real - mirrored.real, ahead.imaginary + mirrored.imaginary)
    turned = multiply(odd, _roots(ahead.real.node, half))
    return Parts(even.real - turned.imaginary, even.imaginary + turned.real)


def cosine_spectra(x: Node, first: float) -> Parts:
    """The spectra [b, h + 1] of `fourier_from_cosines`: (x[k] − i·x[2h − k])·exp(πi·k/4h), without an x[2h], and x[0]
    times a factor."""
    lines, length = x.shape
    if first != 1.0:
        start = multiply_reals(slice_along(x, 1, 0, 1), splat(first, x.type.with_shape((lines, 1))))
        x = concatenate([start, slice_along(x, 1, 1, length)], 1)
    ahead, behind = slice_along(x, 1, 0, length // 2 + 1), flip(slice_along(x, 1, length // 2, length), (1,))
    back = concatenate([zeros(x.type.with_shape((lines, 1))), behind], 1)
    return multiply(parts(ahead, negate(back)), _roots(ahead, 2 * length))


def _roots(like: Node, half: int) -> Parts:
    """exp(πi·k/half) for the places k of the last axis."""
    last = like.type.rank - 1
    line = iota(like.type.with_shape((like.shape[last],)).with_dtype(int32), 0)
    return parts(*(broadcast(part, like.shape, (last,)) for part in unit_root(line, 2 * half, like.dtype).nodes))


def _at_ends(like: Node, half: int) -> Truth:
    place = iota(like.type.with_dtype(int32), like.type.rank - 1)
    return Truth(equal(place, splat(0, place.type))) | Truth(equal(place, splat(half, place.type)))

