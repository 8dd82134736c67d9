"""Common divisors and multiples of integers."""
from __future__ import annotations

from typing import Any

from lavax.ir.types import DTYPES, DType
from lavax.numpy._core.application import apply, together
from lavax.numpy._core.errors import dtype_error
from lavax.numpy._core.operands import ArrayLike, cast
from lavax.numpy.elementwise.arithmetic import abs, multiply
from lavax.numpy.elementwise.comparison import equal, not_equal, where
from lavax.numpy.reductions.reductions import any as any_of
from lavax.tracer import with_weak
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.values.value import Value

__all__ = ["gcd", "lcm"]


def _magnitudes(name: str, x: ArrayLike, y: ArrayLike) -> tuple[Value, Value, DType, bool]:
    """|x| and |y| in their common shape, in the unsigned dtype that holds them, and the dtype of the result."""
    (first, second), weak = together(name, x, y)
    held = first.type.dtype
    if not held.is_integer:
        raise dtype_error(f"{name} is not defined for {first.type}: integers only")
    unsigned = DTYPES[f"u{held.bits}"]
    return cast(abs(first), unsigned), cast(abs(second), unsigned), held, weak


def _euclid(first: Value, second: Value) -> Value:
    """Remainders until all are 0; an element whose remainder is 0 keeps its divisor."""

    def unfinished(pair: Any) -> Value:
        return any_of(not_equal(pair[1], 0))

    def step(pair: Any) -> Any:
        larger, smaller = pair
        done = equal(smaller, 0)
        rest = apply("remainder", larger, where(done, 1, smaller))
        return where(done, larger, smaller), where(done, 0, rest)

    result: Value = while_loop(unfinished, step, (first, second))[0]
    return result


def gcd(x1: ArrayLike, x2: ArrayLike) -> Value:
    """The greatest common divisor of |x1| and |x2|, elementwise, of integers: 0 where both are 0.

    Raises DtypeError for other dtypes.
    """
    first, second, held, weak = _magnitudes("gcd", x1, x2)
    return with_weak(cast(_euclid(first, second), held), weak)


def lcm(x1: ArrayLike, x2: ArrayLike) -> Value:
    """The least common multiple of |x1| and |x2|, elementwise, of integers: 0 where one is 0.

    Raises DtypeError for other dtypes.
    """
    first, second, held, weak = _magnitudes("lcm", x1, x2)
    common = _euclid(first, second)
    multiple = multiply(apply("divide", first, where(equal(common, 0), 1, common)), second)
    return with_weak(cast(multiple, held), weak)
