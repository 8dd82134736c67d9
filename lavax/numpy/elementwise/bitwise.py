"""Bits of integers and truth values."""
from __future__ import annotations

from lavax.ir.types import bool_, int32, uint8
from lavax.numpy._core.application import apply
from lavax.numpy._core.errors import dtype_error
from lavax.numpy._core.operands import ArrayLike, Operand, as_operand, as_value, cast
from lavax.numpy._core.promotion import promote
from lavax.numpy.elementwise.arithmetic import abs
from lavax.tracer.values.value import Value

__all__ = [
    "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_right_shift",
]  # fmt: skip


def _bitwise(op: str, name: str, *arguments: ArrayLike) -> Value:
    operands = [as_operand(argument) for argument in arguments]
    if promote(operands)[0].is_inexact:
        types = " and ".join(str(operand.type) for operand in operands)
        raise dtype_error(f"{name} is not defined for {types}: integers and truth values only")
    return apply(op, *operands, name=name)


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Value:
    """x & y, bit by bit; of integers or truth values."""
    return _bitwise("and", "bitwise_and", x, y)


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Value:
    """x | y, bit by bit; of integers or truth values."""
    return _bitwise("or", "bitwise_or", x, y)


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Value:
    """x ^ y, bit by bit; of integers or truth values."""
    return _bitwise("xor", "bitwise_xor", x, y)


def bitwise_invert(x: ArrayLike) -> Value:
    """~x, bit by bit; of integers or truth values."""
    return _bitwise("not", "bitwise_invert", x)


def _shift(op: str, name: str, x: ArrayLike, y: ArrayLike) -> Value:
    operands: list[Operand] = [as_operand(x), as_operand(y)]
    if promote(operands)[0] == bool_:
        operands = [cast(as_value(each), int32) for each in (x, y)]
    if not promote(operands)[0].is_integer:
        raise dtype_error(f"{name} is not defined for {operands[0].type} and {operands[1].type}: integers only")
    return apply(op, *operands, name=name)


def bitwise_left_shift(x: ArrayLike, y: ArrayLike) -> Value:
    """x << y, elementwise, of integers; bits beyond the width are lost.

    A shift by the width or more, or by a negative number, gives 0. Truth values count as int32. Raises DtypeError for
    floats.
    """
    return _shift("shift_left", "bitwise_left_shift", x, y)


def bitwise_right_shift(x: ArrayLike, y: ArrayLike) -> Value:
    """x >> y, elementwise, of integers: the floor of x / 2^y.

    A shift by the width or more, or by a negative number, gives 0, and -1 for a negative `x`. Truth values count as
    int32. Raises DtypeError for floats.
    """
    is_signed = promote([as_operand(x), as_operand(y)])[0].kind == "int"
    op = "shift_right_arithmetic" if is_signed else "shift_right_logical"
    return _shift(op, "bitwise_right_shift", x, y)


def bitwise_count(x: ArrayLike) -> Value:
    """How many bits of |x| are 1, in uint8, of integers or truth values. Raises DtypeError for floats."""
    value = as_value(x)
    if value.type.dtype == bool_:
        return cast(value, uint8)
    if not value.type.dtype.is_integer:
        raise dtype_error(f"bitwise_count is not defined for {value.type}: integers and truth values only")
    return cast(apply("population_count", abs(value), name="bitwise_count"), uint8)
