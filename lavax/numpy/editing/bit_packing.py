"""Truth values as the bits of bytes, and back."""
from __future__ import annotations

from typing import Literal

from lavax.ir.types import TensorType, uint8
from lavax.numpy._core.application import as_truth
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.errors import dtype_error
from lavax.numpy._core.movement import cut, reshaped
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy.arrays.creation import iota
from lavax.numpy.arrays.manipulation import moveaxis, ravel
from lavax.numpy.editing.padding import pad
from lavax.numpy.elementwise.arithmetic import subtract
from lavax.numpy.elementwise.bitwise import bitwise_and, bitwise_left_shift, bitwise_right_shift
from lavax.numpy.reductions.reductions import sum as sum_over
from lavax.tracer.values.value import Value

__all__ = ["packbits", "unpackbits"]

Order = Literal["big", "little"]


def _shifts(name: str, order: Order) -> Value:
    """The position in a byte of each of eight bits."""
    if order not in ("big", "little"):
        raise ValueError(f"{name}: bitorder is 'big' or 'little', got {order!r}")
    line = iota(TensorType((8,), uint8), 0)
    return subtract(7, line) if order == "big" else line


def packbits(a: ArrayLike, axis: int | None = None, bitorder: Order = "big") -> Value:
    """Whether elements are true (not zero), eight in a byte along `axis` (None: flattened), as uint8.

    The last byte is filled up with zeros. `bitorder` "big" puts the first of eight at the top. Raises DtypeError
    unless `a` holds integers or truth values.
    """
    value = as_value(a)
    if value.type.dtype.is_inexact:
        raise dtype_error(f"packbits is not defined for {value.type}: integers and truth values only")
    if axis is None:
        value, axis = ravel(value), 0
    along = normal_axis("packbits", axis, value.type)
    shifts = _shifts("packbits", bitorder)
    bits = moveaxis(cast(as_truth(value), uint8), along, -1)
    count = -(-bits.shape[-1] // 8)
    padded = pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, 8 * count - bits.shape[-1])])
    grouped = reshaped(padded, (*bits.shape[:-1], count, 8))
    return moveaxis(sum_over(bitwise_left_shift(grouped, shifts), -1, uint8), -1, along)


def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: Order = "big"
) -> Value:
    """The bits of bytes along `axis` (None: flattened), as uint8 0 and 1.

    `count` is the number of bits kept: missing ones are zeros, a negative number is cut off the end. Raises
    DtypeError unless `a` is uint8.
    """
    value = as_value(a)
    if value.type.dtype != uint8:
        raise dtype_error(f"unpackbits is not defined for {value.type}: uint8 only")
    if axis is None:
        value, axis = ravel(value), 0
    along = normal_axis("unpackbits", axis, value.type)
    shifts = _shifts("unpackbits", bitorder)
    moved = moveaxis(value, along, -1)
    bits = bitwise_and(bitwise_right_shift(reshaped(moved, (*moved.shape, 1)), shifts), 1)
    flat = reshaped(bits, (*moved.shape[:-1], 8 * moved.shape[-1]))
    return moveaxis(_of_length(flat, count), -1, along)


def _of_length(bits: Value, count: int | None) -> Value:
    extent = bits.shape[-1]
    if count is None:
        return bits
    number = whole_number("count", count)
    wanted = number if number >= 0 else max(extent + number, 0)
    if wanted > extent:
        return pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, wanted - extent)])
    return cut(bits, bits.ndim - 1, 0, wanted)
