"""Bits of integers and truth values."""
from __future__ import annotations

from lavax.numpy._core.application import apply
from lavax.numpy._core.errors import dtype_error
from lavax.numpy._core.operands import ArrayLike, as_operand, as_value
from lavax.numpy._core.promotion import promote
from lavax.numpy.elementwise.arithmetic import abs
from lavax.tracer.values.value import Value

__all__ = [
    "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor",
]  # fmt: skip


def _bitwise(op: str, name: str, *arguments: ArrayLike) -> Value:
    operands = [as_operand(argument) for argument in arguments]
    if promote(operands)[0].is_float:
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
    operands = as_operand(x), as_operand(y)
    if not promote(operands)[0].is_integer:
        raise dtype_error(f"{name} is not defined for {operands[0].type} and {operands[1].type}: integers only")
    return apply(op, *operands, name=name)


def bitwise_left_shift(x: ArrayLike, y: ArrayLike) -> Value:
    """x << y, elementwise, of integers; bits beyond the width are lost.

    A shift by the width or more, or by a negative number, gives 0. Raises DtypeError for other dtypes.
    """
    return _shift("shift_left", "bitwise_left_shift", x, y)


def bitwise_right_shift(x: ArrayLike, y: ArrayLike) -> Value:
    """x >> y, elementwise, of integers: the floor of x / 2^y.

    A shift by the width or more, or by a negative number, gives 0, and -1 for a negative `x`. Raises DtypeError for
    other dtypes.
    """
    is_signed = promote([as_operand(x), as_operand(y)])[0].kind == "int"
    op = "shift_right_arithmetic" if is_signed else "shift_right_logical"
    return _shift(op, "bitwise_right_shift", x, y)


def bitwise_count(x: ArrayLike) -> Value:
    """How many bits of |x| are 1, in the dtype of `x`. Raises DtypeError unless `x` holds integers."""
    value = as_value(x)
    if not value.type.dtype.is_integer:
        raise dtype_error(f"bitwise_count is not defined for {value.type}: integers only")
    return apply("population_count", abs(value), name="bitwise_count")
