"""The bits of elements as those of another dtype, of any width."""
from __future__ import annotations

from lavax.ir.types import DTYPES, DType, bfloat16, float32, uint16, uint32
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.movement import cut, reshaped
from lavax.numpy._core.operands import cast, join_along_new_axis
from lavax.numpy.elementwise.bitwise import bitwise_and, bitwise_left_shift, bitwise_or, bitwise_right_shift
from lavax.tracer import bind
from lavax.tracer.values.value import Value


def reinterpreted(name: str, value: Value, dtype: DType) -> Value:
    """The bits of each element as those of `dtype`.

    Of a narrower dtype there are several for each element, along a new last axis, the lowest bits first. Of a wider one
    the last axis, of that extent, becomes one element. Raises DtypeError for truth values as numbers and numbers as
    truth values, and ShapeError for a last axis of another extent.
    """
    held = value.type.dtype
    if held != dtype and (held.is_complex or dtype.is_complex):
        return _of_parts(name, value, dtype)
    if held != dtype and "bool" in (held.kind, dtype.kind):
        raise dtype_error(f"{name}: truth values have no bits to read, got {value.type} and {dtype.user_name}")
    if held.bits == dtype.bits:
        return _of_one_width(value, dtype)
    return (_divided if held.bits > dtype.bits else _united)(name, value, dtype)


def _of_one_width(value: Value, dtype: DType) -> Value:
    held = value.type.dtype
    if held == dtype:
        return value
    if held == bfloat16:
        return _of_one_width(_upper_half(value), dtype)
    if dtype == bfloat16:
        return _with_upper_half(_of_one_width(value, uint16))
    return bind("bitcast", value, type=value.type.with_dtype(dtype))


def _upper_half(value: Value) -> Value:
    """The bits of bfloat16, which are the upper half of those of the same float32."""
    words = _of_one_width(cast(value, float32), uint32)
    return cast(bitwise_right_shift(words, 16), uint16)


def _with_upper_half(bits: Value) -> Value:
    return cast(_of_one_width(bitwise_left_shift(cast(bits, uint32), 16), float32), bfloat16)


def _of_parts(name: str, value: Value, dtype: DType) -> Value:
    """Complex numbers as their parts, real ones first, or numbers by two as complex ones."""
    held, last = value.type.dtype, value.ndim - 1
    if held.is_complex and not dtype.is_complex and dtype.bits <= held.part.bits:
        parts = join_along_new_axis(name, [bind("real", value), bind("imag", value)], value.ndim)
        found = reinterpreted(name, parts, dtype)
        return reshaped(found, (*value.shape, 2 * (held.part.bits // dtype.bits)))
    if held.bits == dtype.part.bits and value.ndim and value.shape[-1] == 2:
        pairs = _of_one_width(value, dtype.part)
        return bind("complex", *(reshaped(cut(pairs, last, k, k + 1), value.shape[:-1]) for k in (0, 1)))
    raise dtype_error(f"{name}: the bits of {value.type} are not read as {dtype.user_name}: take those of its parts")


def _word(bits: int) -> DType:
    return DTYPES[f"u{bits}"]


def _divided(name: str, value: Value, dtype: DType) -> Value:
    words = _of_one_width(value, _word(value.type.dtype.bits))
    mask = (1 << dtype.bits) - 1
    parts = [
        cast(bitwise_and(bitwise_right_shift(words, shift), mask), _word(dtype.bits))
        for shift in range(0, value.type.dtype.bits, dtype.bits)
    ]
    return _of_one_width(join_along_new_axis(name, parts, value.ndim), dtype)


def _united(name: str, value: Value, dtype: DType) -> Value:
    bits = value.type.dtype.bits
    count = dtype.bits // bits
    if not value.ndim or value.shape[-1] != count:
        raise shape_error(f"{name}: {count} elements of {value.type}, along its last axis, make one {dtype.user_name}")
    words = cast(_of_one_width(value, _word(bits)), _word(dtype.bits))
    whole = words[..., 0]
    for place in range(1, count):
        whole = bitwise_or(whole, bitwise_left_shift(words[..., place], place * bits))
    return _of_one_width(whole, dtype)
