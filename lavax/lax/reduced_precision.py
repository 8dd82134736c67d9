"""Numbers rounded to fewer bits, in the dtype that they have."""
from __future__ import annotations

import math

import lavax.numpy as lnp
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DType, bfloat16, float16, float32, float64, uint32, uint64
from lavax.lax.creation import bitcast_convert_type
from lavax.numpy._core.errors import dtype_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer import bind, constant
from lavax.tracer.transforms.grad import stop_gradient
from lavax.tracer.values.value import Value


@dataclass(frozen=True)
class _Layout:
    """The words that hold floats, and how many of their bits are exponent and mantissa."""

    words: DType
    exponent: int
    mantissa: int


_LAYOUTS = {float32: _Layout(uint32, 8, 23), float64: _Layout(uint64, 11, 52)}
_COMPUTED_IN = {float16: float32, bfloat16: float32, float32: float32, float64: float64}


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Value:
    """`operand` rounded to the floats with so many bits of exponent and mantissa; its dtype stays.

    Too large numbers are infinite, too small ones 0. Derivatives are those of x. Raises DtypeError for other dtypes
    than floats.
    """
    value = as_value(operand)
    dtype = value.type.dtype
    if dtype not in _COMPUTED_IN:
        raise dtype_error(f"lax.reduce_precision: operand is of a floating dtype, got {value.type}")
    held = cast(value, _COMPUTED_IN[dtype])
    rounded = stop_gradient(_rounded(held, exponent_bits, mantissa_bits))
    return cast(bind("known_value", held, rounded), dtype)


def _rounded(value: Value, exponent_bits: int, mantissa_bits: int) -> Value:
    layout = _LAYOUTS[value.type.dtype]
    words: Value = bitcast_convert_type(value, layout.words)
    if mantissa_bits < layout.mantissa:
        dropped = layout.mantissa - mantissa_bits
        half, kept = (1 << (dropped - 1)) - 1, (layout.words.highest >> dropped) << dropped
        last = bind("shift_right_logical", words, _word(dropped, words)) & _word(1, words)
        words = (words + (_word(half, words) + last)) & _word(kept, words)
    rounded: Value = lnp.where(lnp.isfinite(value), bitcast_convert_type(words, value.type.dtype), value)
    if exponent_bits < layout.exponent:
        bias = (1 << (exponent_bits - 1)) - 1
        largest, least = math.ldexp(2 - 2.0**-mantissa_bits, bias), math.ldexp(1.0, 1 - bias)
        size = lnp.abs(rounded)
        rounded = lnp.where(size > largest, lnp.sign(rounded) * lnp.inf, rounded)
        rounded = lnp.where(size < least, rounded * 0, rounded)
    return rounded


def _word(number: int, words: Value) -> Value:
    """A word everywhere."""
    return constant(number, words.type)
