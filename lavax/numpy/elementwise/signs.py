"""The sign bits of numbers."""
from __future__ import annotations

from lavax.ir.types import bfloat16, float16, float32, float64, int16, int32, int64
from lavax.numpy._core.application import together
from lavax.numpy._core.errors import dtype_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy.elementwise.arithmetic import negative
from lavax.numpy.elementwise.comparison import equal, less, where
from lavax.tracer import bind, with_weak
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = ["copysign", "signbit"]


# The integers of a float's width. A conversion of a NaN to another float may lose its sign.
_INTEGERS = {float16: int16, float32: int32, float64: int64}


def signbit(x: ArrayLike) -> Value:
    """Whether each element is below 0, or is -0.0 or a NaN with its sign set; as bool."""
    value = as_value(x)
    if value.type.dtype.is_complex:
        raise dtype_error(f"signbit is not defined for {value.type}: complex numbers have no sign")
    if not value.type.dtype.is_float:
        return less(value, 0)
    held = cast(value, float32) if value.type.dtype == bfloat16 else value  # its bits are the upper ones of float32
    return less(bind("bitcast", held, type=held.type.with_dtype(_INTEGERS[held.type.dtype])), 0)


@one_program(integers=True)
def copysign(x: ArrayLike, y: ArrayLike) -> Value:
    """The size of `x` with the sign of `y`, elementwise, as a float; signs of zeros count."""
    (size, sign), weak = together("copysign", x, y, real=True)
    return with_weak(where(equal(signbit(size), signbit(sign)), size, negative(size)), weak)
