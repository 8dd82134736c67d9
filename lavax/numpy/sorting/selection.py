"""The positions of elements along an axis, from the greatest to the least: of all, or of the greatest alone."""
from __future__ import annotations

from lavax.numpy.elementwise.arithmetic import subtract
from lavax.tracer import bind
from lavax.tracer.values.value import Value


def order_of_greatest(value: Value, count: int, axis: int, signed_zeros: bool = False) -> Value:
    """The int32 positions along `axis` of the `count` greatest elements, greatest first: NaN, then the numbers.

    Equal elements are in the order of their positions. With `signed_zeros` zero is greater than minus zero.
    """
    return bind("top_order", value, axis=axis, count=count, signed_zeros=signed_zeros)


def falling_order(value: Value, axis: int) -> Value:
    """The int32 positions along `axis` that put a value in falling order, NaN first, equal elements as they came."""
    backwards = bind("sort_order", bind("flip", value, axes=(axis,)), axis=axis)
    return subtract(value.shape[axis] - 1, bind("flip", backwards, axes=(axis,)))
