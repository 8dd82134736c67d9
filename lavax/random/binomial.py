"""The binomial and the multinomial distribution.

Up to a mean of 10 a number is counted: how many waiting times for a success fit in the trials. Larger means use
Hörmann's transformed rejection (BTRS, 1993). Both loops run until all elements have a number; an element for which
several were accepted until then has the last one.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.ir.types import DType
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_operand, as_value, cast
from lavax.numpy._core.promotion import floating, promote
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.numpy.elementwise.comparison import where
from lavax.random.continuous import uniform_between
from lavax.random.gamma import computing
from lavax.random.keys import as_key, split
from lavax.random.parameters import drawn_shape, floating_dtype, spread_parameter
from lavax.random.reuse import consume
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.control_flow.scan import scan
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.values.value import Value

Extents = int | Sequence[int]

_COUNTED_TO = 10.0


@one_program("shape", "dtype")
def binomial(
    key: ArrayLike, n: ArrayLike, p: ArrayLike, shape: Extents | None = None, dtype: Any = None
) -> Value:
    """The number of `n` trials, each with probability `p`, that succeed, as floats; by default of their common shape.

    The whole part of `n` counts. NaN where `n` is negative, `p` is negative, or one of them is NaN.
    """
    held = floating_dtype("binomial", dtype)
    extents = drawn_shape("binomial", shape, n, p)
    kind = computing(floating(promote([as_operand(n), as_operand(p)])[0]))
    count, chance = (spread_parameter(one, extents, kind) for one in (n, p))
    checked = as_key("binomial", key)
    consume("binomial", key)
    return cast(_drawn(checked, lnp.floor(count), chance), held)


def _drawn(key: Value, count: Value, chance: Value) -> Value:
    rare = lnp.less(chance, 0.5)
    q = lnp.where(rare, chance, lnp.subtract(1.0, chance))
    valid = lnp.logical_and(lnp.greater_equal(count, 0.0), lnp.greater_equal(q, 0.0))
    finite = lnp.less(count, float("inf"))
    q = lnp.where(valid, q, 0.01)
    number = lnp.where(lnp.logical_and(valid, finite), count, 0.0)
    few = lnp.less_equal(lnp.multiply(number, q), _COUNTED_TO)
    counted = _counted(key, lnp.where(few, number, 0.0), q)
    found = lnp.where(few, counted, _proposed(key, lnp.where(few, 1e4, number), lnp.where(few, 0.5, q)))
    found = lnp.where(rare, found, lnp.subtract(number, found))
    return where(valid, lnp.where(finite, found, float("inf")), float("nan"))


def _counted(key: Value, count: Value, chance: Value) -> Value:
    """The number of waiting times for a success that fit in `count` trials."""
    failure = lnp.log1p(lnp.negative(chance))
    zero = lnp.zeros_like(chance)

    def goes_on(state: Any) -> Value:
        return lnp.any(lnp.less_equal(state[2], count))

    def wait(state: Any) -> Any:
        remaining, number, trials = state
        drawn, remaining = split(remaining)
        number = lnp.where(lnp.less_equal(trials, count), lnp.add(number, 1.0), number)
        u = uniform_between("binomial", drawn, chance.shape, dtype=chance.type.dtype)
        return remaining, number, lnp.add(trials, lnp.ceil(lnp.divide(lnp.log(u), failure)))

    number: Value = while_loop(goes_on, wait, (key, zero, zero))[1]
    return lnp.subtract(number, 1.0)


def _proposed(key: Value, count: Value, chance: Value) -> Value:
    """Hörmann's BTRS, for means from 10 on and a chance of at most 1/2."""
    deviation = lnp.sqrt(lnp.multiply(lnp.multiply(count, chance), lnp.subtract(1.0, chance)))
    b = lnp.add(1.15, lnp.multiply(2.53, deviation))
    a = lnp.add(lnp.add(-0.0873, lnp.multiply(0.0248, b)), lnp.multiply(0.01, chance))
    centre = lnp.add(lnp.multiply(count, chance), 0.5)
    certain = lnp.subtract(0.92, lnp.divide(4.2, b))
    height = lnp.multiply(lnp.add(2.83, lnp.divide(5.1, b)), deviation)
    dtype: DType = chance.type.dtype

    def is_open(state: Any) -> Value:
        return lnp.any(lnp.logical_not(state[2]))

    def propose(state: Any) -> Any:
        remaining, number, accepted = state
        remaining, for_u, for_v = split(remaining, 3)
        u = lnp.subtract(uniform_between("binomial", for_u, chance.shape, dtype=dtype), 0.5)
        v = uniform_between("binomial", for_v, chance.shape, dtype=dtype)
        margin = lnp.subtract(0.5, lnp.abs(u))
        slope = lnp.add(lnp.divide(lnp.multiply(2.0, a), margin), b)
        found = lnp.floor(lnp.add(lnp.multiply(slope, u), centre))
        area = lnp.add(lnp.divide(a, lnp.square(margin)), b)
        inside = lnp.logical_and(lnp.greater_equal(found, 0.0), lnp.less_equal(found, count))
        usable = lnp.where(inside, found, 0.0)
        under = lnp.less_equal(lnp.log(lnp.divide(lnp.multiply(v, height), area)), _log_ratio(usable, count, chance))
        squeezed = lnp.logical_and(lnp.greater_equal(margin, 0.07), lnp.less_equal(v, certain))
        fits = lnp.logical_or(squeezed, lnp.logical_and(inside, under))
        return remaining, lnp.where(fits, found, number), lnp.logical_or(accepted, fits)

    start = key, lnp.subtract(lnp.zeros_like(chance), 1.0), lnp.zeros_like(chance, bool)
    number: Value = while_loop(is_open, propose, start)[1]
    return number


def _log_ratio(k: Value, count: Value, chance: Value) -> Value:
    """The logarithm of the probability of `k` over that of the most probable number."""
    odds = lnp.divide(chance, lnp.subtract(1.0, chance))
    mode = lnp.floor(lnp.multiply(lnp.add(count, 1.0), chance))
    above, below = lnp.add(lnp.subtract(count, mode), 1.0), lnp.add(lnp.subtract(count, k), 1.0)
    terms = [
        lnp.multiply(lnp.add(mode, 0.5), lnp.log(lnp.divide(lnp.add(mode, 1.0), lnp.multiply(odds, above)))),
        lnp.multiply(lnp.add(count, 1.0), lnp.log(lnp.divide(above, below))),
        lnp.multiply(lnp.add(k, 0.5), lnp.log(lnp.divide(lnp.multiply(odds, below), lnp.add(k, 1.0)))),
        lnp.add(_stirling_rest(mode), _stirling_rest(lnp.subtract(count, mode))),
        lnp.negative(lnp.add(_stirling_rest(k), _stirling_rest(lnp.subtract(count, k)))),
    ]
    return sum(terms[1:], terms[0])


def _stirling_rest(k: Value) -> Value:
    """log k! less Stirling's formula at k + 1; from 10 terms on, to 1e-8 at 0 too."""
    # Shifted by eight: the rest at k is that at k + 8 plus the steps between, each log1p(1/x) (x + 1/2) - 1.
    x = lnp.add(k, 1.0)
    total = lnp.zeros_like(k)
    for number in range(8):
        step = lnp.add(x, float(number))
        inverse = lnp.divide(1.0, step)
        total = lnp.add(total, lnp.subtract(lnp.multiply(lnp.log1p(inverse), lnp.add(step, 0.5)), 1.0))
    inverse = lnp.divide(1.0, lnp.add(x, 8.0))
    square = lnp.square(inverse)
    series = lnp.add(1 / 12, lnp.multiply(square, lnp.add(-1 / 360, lnp.multiply(square, 1 / 1260))))
    return lnp.add(total, lnp.multiply(inverse, series))


@one_program("shape", "dtype")
def multinomial(
    key: ArrayLike, n: ArrayLike, p: ArrayLike, *, shape: Extents | None = None, dtype: Any = None,
    unroll: int | bool = 1,
) -> Value:  # fmt: skip
    """The number of `n` [...] trials with each outcome, of probabilities `p` [..., k], as floats [..., k].

    The default shape is that of `p`; the probabilities of a row are divided by their sum. `unroll` changes nothing.
    Raises ShapeError if `p` has no axis or the shapes do not fit.
    """
    held = floating_dtype("multinomial", dtype)
    weights = as_operand(p).shape
    extents = weights if shape is None else checked_shape("multinomial", shape)
    if not weights or not extents:
        raise shape_error("multinomial: the probabilities must have an axis, along which the outcomes are")
    drawn_shape("multinomial", extents, p)
    drawn_shape("multinomial", extents[:-1], n)
    kind = computing(floating(promote([as_operand(n), as_operand(p)])[0]))
    trials = spread_parameter(n, extents[:-1], kind)
    shares = lnp.moveaxis(spread_parameter(p, extents, kind), -1, 0)
    left = lnp.flip(lnp.cumsum(lnp.flip(shares, 0), 0), 0)
    ratios = lnp.clip(lnp.divide(shares, lnp.where(lnp.equal(left, 0.0), 1.0, left)), 0.0, 1.0)

    def outcome(remaining: Value, given: Any) -> tuple[Value, Value]:
        ratio, drawn = given
        count = _drawn(drawn, remaining, ratio)
        return lnp.subtract(remaining, count), count

    keys = split(as_value(key), ratios.shape[0])
    counts = scan(outcome, trials, (ratios, keys))[1]
    return cast(lnp.moveaxis(counts, 0, -1), held)
