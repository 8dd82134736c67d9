"""Continuous distributions that take one uniform draw per element.

Every dtype has its own draws, with its own number of bits: a float32 draw is not a rounded float64 draw.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DTYPES, DType, bfloat16, float16, float32, float64
from lavax.numpy._core.application import apply
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.operands import ArrayLike, cast
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.numpy.elementwise.comparison import where
from lavax.random.bits import drawn_bits
from lavax.random.keys import split
from lavax.random.parameters import drawn_shape, floating_dtype, spread_parameter
from lavax.tracer import bind
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

Extents = int | Sequence[int]


@dataclass(frozen=True)
class Format:
    """The properties of a floating dtype that draws depend on.

    A unit draw is a multiple of 2^-mantissa, from the upper bits of a word of `word` bits. `mask` keeps the bits of a
    float that form a number of half the digits.
    """

    mantissa: int
    word: int
    tiny: float
    mask: int = 0

    @property
    def eps(self) -> float:
        return 2.0**-self.mantissa

    @property
    def above_minus_one(self) -> float:
        """The next number above -1."""
        return -1.0 + self.eps / 2


FORMATS: dict[DType, Format] = {
    float64: Format(52, 64, 2.0**-1022, 0xFFFFFFFFF8000000),
    float32: Format(23, 32, 2.0**-126, 0xFFFFF000),
    float16: Format(10, 16, 2.0**-14),
    bfloat16: Format(7, 8, 2.0**-126),
}


@one_program("shape", "dtype")
def uniform(
    key: ArrayLike,
    shape: Extents = (),
    dtype: Any = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: Any = None,
) -> Value:
    """Floats of `shape`, uniform over [minval, maxval), to which arrays broadcast.

    Rounding may give maxval itself if the range is not [0, 1).
    """
    held = floating_dtype("uniform", dtype)
    return uniform_between("uniform", key, drawn_shape("uniform", shape, minval, maxval), minval, maxval, held)


def uniform_between(
    name: str,
    key: ArrayLike,
    shape: tuple[int, ...],
    low: ArrayLike = 0.0,
    high: ArrayLike = 1.0,
    dtype: DType = float32,
) -> Value:
    """The draws of `uniform`, for the function `name`."""
    word = DTYPES[f"u{FORMATS[dtype].word}"]
    return uniform_of(drawn_bits(name, key, shape, word), low, high, dtype)


def uniform_of(bits: Value, low: ArrayLike, high: ArrayLike, dtype: DType) -> Value:
    """Uniform bits, of the dtype's word, as floats that are uniform over [low, high)."""
    form = FORMATS[dtype]
    unit = lnp.multiply(cast(apply("shift_right_logical", bits, form.word - form.mantissa), dtype), form.eps)
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        if (low, high) == (0, 1):
            return unit
        least, span = _rounded(low, dtype), _rounded(_rounded(high, dtype) - _rounded(low, dtype), dtype)
        if math.frexp(span)[0] == 0.5:  # the product is exact
            return lnp.maximum(least, lnp.add(lnp.multiply(unit, span), least))
    first = spread_parameter(low, unit.shape, dtype)
    length = lnp.subtract(spread_parameter(high, unit.shape, dtype), first)
    return lnp.maximum(first, _product_and_sum(unit, length, first))


def _rounded(number: float, dtype: DType) -> float:
    """`number` rounded to the dtype."""
    return float(dtype.rounded(np.asarray(number, np.float64)))


def _product_and_sum(x: Value, y: Value, z: Value) -> Value:
    """x y + z, rounded once except for rare ties, whether or not the driver contracts products and sums."""
    dtype = x.type.dtype
    if not FORMATS[dtype].mask:  # float32 holds the product of two of these
        wide = lnp.add(lnp.multiply(cast(x, float32), cast(y, float32)), cast(z, float32))
        return cast(wide, dtype)
    (x_high, x_low), (y_high, y_low) = _halves(x), _halves(y)
    product = lnp.multiply(x, y)
    rest = lnp.subtract(lnp.multiply(x_high, y_high), product)
    rest = lnp.add(rest, lnp.add(lnp.multiply(x_high, y_low), lnp.multiply(x_low, y_high)))
    rest = lnp.add(rest, lnp.multiply(x_low, y_low))
    total = lnp.add(product, z)
    part = lnp.subtract(total, product)
    lost = lnp.add(lnp.subtract(product, lnp.subtract(total, part)), lnp.subtract(z, part))
    return lnp.add(total, lnp.add(lost, rest))


def _halves(x: Value) -> tuple[Value, Value]:
    """Two numbers of at most half the digits whose sum is `x`: products of two such numbers are exact."""
    form = FORMATS[x.type.dtype]
    bits = bind("bitcast", x, type=x.type.with_dtype(DTYPES[f"u{form.word}"]))
    high = bind("bitcast", apply("and", bits, form.mask), type=x.type)
    return high, lnp.subtract(x, high)


@one_program("shape", "dtype")
def normal(key: ArrayLike, shape: Extents = (), dtype: Any = None, *, out_sharding: Any = None) -> Value:
    """Floats of `shape` from the normal distribution of mean 0 and variance 1, by the inverse of its integral.

    Complex numbers have parts of variance 1/2.
    """
    if dtype is not None and canonical_dtype(dtype).is_complex:
        part = canonical_dtype(dtype).part
        draws = (normal(own, shape, part) for own in split(key))
        return lnp.multiply(bind("complex", *draws), math.sqrt(0.5))
    held = floating_dtype("normal", dtype)
    return standard_normal("normal", key, checked_shape("normal", shape), held)


def standard_normal(name: str, key: ArrayLike, shape: tuple[int, ...], dtype: DType = float32) -> Value:
    """The draws of `normal`, for the function `name`."""
    word = DTYPES[f"u{FORMATS[dtype].word}"]
    return normal_of(drawn_bits(name, key, shape, word), dtype)


def normal_of(bits: Value, dtype: DType) -> Value:
    """Uniform bits, of the dtype's word, as standard normal numbers."""
    u = uniform_of(bits, FORMATS[dtype].above_minus_one, 1.0, dtype)
    return lnp.multiply(bind("erfinv", u), math.sqrt(2))


@one_program("shape", "dtype")
def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Extents | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """Standard normal numbers between `lower` and `upper`; by default of their common shape.

    By the inverse of the integral, so bounds beyond about 5 standard deviations on one side lose resolution.
    """
    held = floating_dtype("truncated_normal", dtype)
    extents = drawn_shape("truncated_normal", shape, lower, upper)
    low, high = (spread_parameter(bound, extents, held) for bound in (lower, upper))
    first, last = (bind("erf", lnp.multiply(bound, math.sqrt(0.5))) for bound in (low, high))
    u = uniform_between("truncated_normal", key, extents, first, last, held)
    drawn = lnp.multiply(bind("erfinv", u), math.sqrt(2))
    return lnp.clip(drawn, _inward(low, 1.0), _inward(high, -1.0))


def _inward(bound: Value, direction: float) -> Value:
    """The next number above or below `bound`; for dtypes other than float32 within two units of the last place."""
    if bound.type.dtype == float32:
        return lnp.nextafter(bound, direction * math.inf)
    form = FORMATS[bound.type.dtype]
    step = lnp.maximum(lnp.multiply(lnp.abs(bound), form.eps), form.tiny)
    return where(lnp.isinf(bound), bound, lnp.add(bound, lnp.multiply(step, direction)))


@one_program("shape", "dtype")
def exponential(key: ArrayLike, shape: Extents = (), dtype: Any = None, *, out_sharding: Any = None) -> Value:
    """Floats of `shape` from the exponential distribution of mean 1."""
    held = floating_dtype("exponential", dtype)
    return standard_exponential("exponential", key, checked_shape("exponential", shape), held)


def standard_exponential(name: str, key: ArrayLike, shape: tuple[int, ...], dtype: DType = float32) -> Value:
    """The draws of `exponential`, for the function `name`."""
    return lnp.negative(lnp.log1p(lnp.negative(uniform_between(name, key, shape, dtype=dtype))))


@one_program("shape", "dtype", "mode")
def gumbel(
    key: ArrayLike, shape: Extents = (), dtype: Any = None, mode: str | None = None, *, out_sharding: Any = None
) -> Value:
    """Floats of `shape` from the Gumbel distribution of location 0 and scale 1: -log(-log(u)).

    With `mode` "high" two draws each make large floats finer, and they do not end at 15.9; None is "low". Raises
    ValueError for another mode.
    """
    held = floating_dtype("gumbel", dtype)
    return standard_gumbel("gumbel", key, checked_shape("gumbel", shape), held, mode)


def require_mode(name: str, mode: str) -> None:
    """Raises ValueError unless draws can have that precision."""
    if mode not in ("low", "high"):
        raise ValueError(f"{name}: mode must be 'low' or 'high', got {mode!r}")


def standard_gumbel(
    name: str, key: ArrayLike, shape: tuple[int, ...], dtype: DType = float32, mode: str | None = None
) -> Value:
    """The draws of `gumbel`, for the function `name`."""
    require_mode(name, "low" if mode is None else mode)
    if mode == "high":
        form = FORMATS[dtype]
        draws = uniform_between(name, key, (2, *shape), dtype=dtype)
        fine = lnp.add(lnp.add(draws[0], lnp.multiply(draws[1], form.eps)), form.tiny)
        x = lnp.where(lnp.greater_equal(draws[0], 0.5), draws[0], fine)
        return lnp.negative(lnp.log(lnp.negative(lnp.log1p(lnp.negative(x)))))
    u = uniform_between(name, key, shape, FORMATS[dtype].tiny, 1.0, dtype)
    return lnp.negative(lnp.log(lnp.negative(lnp.log(u))))


@one_program("shape", "dtype")
def laplace(key: ArrayLike, shape: Extents = (), dtype: Any = None, *, out_sharding: Any = None) -> Value:
    """Floats of `shape` from the Laplace distribution of location 0 and scale 1."""
    held = floating_dtype("laplace", dtype)
    u = uniform_between("laplace", key, checked_shape("laplace", shape), FORMATS[held].above_minus_one, 1.0, held)
    return lnp.multiply(lnp.sign(u), lnp.log1p(lnp.negative(lnp.abs(u))))
