"""Fourier transforms of lines of p points, p prime, as convolutions of p − 1 numbers (Rader 1968).

The powers of a generator g run through all numbers below p but 0, so that X[g⁻ᵐ] = x[0] + Σ x[g^q]·w^(g^(q−m)): a
cyclic convolution of the points in the order of g^q with roots that are the same for all lines. Its length has small
factors where p − 1 does, and nothing is padded. The first transform reads points in the order of g^q; results are in
order after a last gather.
"""
from __future__ import annotations

from collections.abc import Callable

from lavax.ir.graph import Node
from lavax.ir.types import DType, TensorType, float32, int32
from lavax.passes.build.builder import (
    add,
    broadcast,
    build,
    cast,
    concatenate,
    equal,
    flip,
    gather,
    index_type,
    iota,
    less,
    multiply,
    negate,
    reshape,
    scale,
    scatter,
    slice_along,
    splat,
    subtract,
    transpose,
    where,
)
from lavax.passes.complex_parts.parts import Parts, interleaved
from lavax.passes.complex_parts.roots import unit_root
from lavax.passes.numerics.primes import generator_of, prime_factors

# Products of two numbers, each counted from −p/2, are below 2³¹.
_LARGEST = 92681

Lines = Callable[[Node, bool], Node]  # the transforms of [batch, n, 2] along n, with the sign of the exponents


def is_suited(length: int, part: DType, largest_factor: int) -> bool:
    """Whether lines of that length are transformed so: of a prime, if the factors of the convolution are small.

    A convolution whose length is no multiple of four has steps with odd numbers of columns, which read and write
    float32 number by number: those of 46 and 126 points took longer than products, that of 130 longer than Bluestein's.
    """
    if not largest_factor < length <= _LARGEST:
        return False
    if part == float32 and length % 4 != 1:
        return False
    return prime_factors(length) == [length] and max(prime_factors(length - 1)) <= largest_factor


def transformed(x: Node, reverse: bool, lines: Lines) -> Node:
    """[batch, p, 2] -> [batch, p, 2]."""
    batch, prime, _ = x.shape
    count, generator = prime - 1, generator_of(prime)
    ahead = powers(generator, prime)
    back = powers(pow(generator, -1, prime), prime)
    turned = lines(transpose(gather(x, [ahead], (1,)), (1, 0, 2)), False)
    convolved = lines(_product(turned, _spectrum(back, prime, reverse, x.dtype, lines)), True)
    first = slice_along(x, 1, 0, 1)
    others = add(broadcast(reshape(first, (batch, 2)), convolved.shape, (0, 2)), convolved)
    place = scatter("set", splat(0, index_type((prime,))), iota(index_type((count,)), 0), [back], (0,))
    found = transpose(gather(others, [place], (1,)), (1, 0, 2))
    total = add(reshape(first, (batch, 2)), reshape(slice_along(turned, 1, 0, 1), (batch, 2)))
    is_first = equal(iota(TensorType(found.shape, int32), 1), splat(0, TensorType(found.shape, int32)))
    return where(is_first, broadcast(total, found.shape, (0, 2)), found)


def _spectrum(back: Node, prime: int, reverse: bool, part: DType, lines: Lines) -> Node:
    """The transform of the roots at g⁻ᵐ, over p − 1: [p − 1, 2]."""
    roots = unit_root(back, prime, part)
    line = interleaved(roots if reverse else Parts(roots.real, -roots.imaginary))
    whole = lines(reshape(line, (1, prime - 1, 2)), False)
    return scale(reshape(whole, (prime - 1, 2)), 1 / (prime - 1))


def _product(x: Node, factors: Node) -> Node:
    """x·(a + ib) by parts that lie side by side: x·[a, a] + [x's parts exchanged]·[−b, b]."""
    real, imaginary = (slice_along(factors, 1, side, side + 1) for side in (0, 1))
    same = broadcast(concatenate([real, real], 1), x.shape, (1, 2))
    crossed = broadcast(concatenate([negate(imaginary), imaginary], 1), x.shape, (1, 2))
    return add(multiply(x, same), multiply(flip(x, (2,)), crossed))


def powers(base: int, prime: int) -> Node:
    """baseᵍ modulo the prime for q from 0 to p − 2: products of powers of two tables that are as long as its root."""
    count = prime - 1
    width = 1 << (count.bit_length() + 1) // 2
    rows = -(-count // width)
    low, high = _few_powers(base, width, prime), _few_powers(pow(base, width, prime), rows, prime)
    table = (rows, width)
    product = _times(broadcast(high, table, (0,)), broadcast(low, table, (1,)), prime)
    return slice_along(reshape(product, (rows * width,)), 0, 0, count)


def _few_powers(base: int, count: int, prime: int) -> Node:
    """The first powers, by the bits of their exponents."""
    type = index_type((count,))
    exponent, found = iota(type, 0), splat(1, type)
    for bit in range(max(count - 1, 0).bit_length()):
        digit = build("remainder", build("divide", exponent, splat(1 << bit, type)), splat(2, type))
        grown = _times(found, splat(pow(base, 1 << bit, prime), type), prime)
        found = where(equal(digit, splat(1, type)), grown, found)
    return found


def _times(x: Node, y: Node, prime: int) -> Node:
    """The product of two numbers below the prime, modulo the prime."""
    rest = build("remainder", multiply(_centred(x, prime), _centred(y, prime)), splat(prime, x.type))
    below = cast(less(rest, splat(0, x.type)), int32)
    return add(rest, multiply(below, splat(prime, x.type)))


def _centred(x: Node, prime: int) -> Node:
    """The same number modulo the prime, from −p/2 to p/2."""
    above = cast(less(splat(prime // 2, x.type), x), int32)
    return subtract(x, multiply(above, splat(prime, x.type)))
