"""Exponentials and logarithms."""
from __future__ import annotations

import math
from collections.abc import Callable

from lavax.numpy._core.application import real_function, together
from lavax.numpy._core.operands import ArrayLike, as_operand
from lavax.numpy.elementwise.arithmetic import add, divide, multiply, negative, subtract
from lavax.numpy.elementwise.comparison import equal, greater, less, logical_and, not_equal, where
from lavax.tracer import bind, with_weak
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = ["exp", "exp2", "expm1", "log", "log10", "log1p", "log2"]

exp = real_function("exp", "e to the power of `x`")
expm1 = real_function("expm1", "exp(x) - 1, exact for small `x`")
log = real_function("log", "The natural logarithm")
log1p = real_function("log1p", "log(1 + x), exact for small `x`")


_exp2_of_real = real_function("exp2", "2 to the power of `x`, exact for whole `x`")
_log2_of_real = real_function("log2", "The logarithm to base 2, exact for powers of 2")


def exp2(x: ArrayLike) -> Value:
    """2 to the power of `x`, elementwise; exact for whole real `x`. Integers and truth values count as floats."""
    return exp(multiply(x, math.log(2.0))) if as_operand(x).type.dtype.is_complex else _exp2_of_real(x)


def log2(x: ArrayLike) -> Value:
    """The logarithm to base 2, elementwise; exact for powers of 2. Integers and truth values count as floats."""
    return _of_complex(x, 2.0) if as_operand(x).type.dtype.is_complex else _log2_of_real(x)


def log10(x: ArrayLike) -> Value:
    """The logarithm to base 10, elementwise."""
    return _of_complex(x, 10.0) if as_operand(x).type.dtype.is_complex else divide(log(x), math.log(10.0))


@one_program("base")
def _of_complex(x: ArrayLike, base: float) -> Value:
    """Each part of the natural logarithm is divided: a complex quotient would make NaN of infinite parts."""
    natural = log(x)
    found = bind("complex", *(divide(bind(part, natural), math.log(base)) for part in ("real", "imag")))
    return with_weak(found, natural.weak)


def _logarithm_of_sum(
    name: str,
    x: ArrayLike,
    y: ArrayLike,
    exponential: Callable[[ArrayLike], Value],
    logarithm: Callable[[ArrayLike], Value],
    half_turn: float,
) -> Value:
    """The greater of `x` and `y`, and logarithm(1 + exponential(-the distance)).

    Of complex numbers, the greater real part decides, and the angle is in [-half_turn, half_turn].
    """
    (first, second), weak = together(name, x, y, real=True)
    difference, total = subtract(first, second), add(first, second)
    # Two equal infinities have no difference: there the sum is the answer.
    undefined = logical_and(not_equal(difference, difference), equal(total, total))
    # Choices, not `maximum` and `abs`: at a tie they keep derivatives of every order.
    above = greater(_real_part(first), _real_part(second))
    peak, gap = where(above, first, second), where(above, negative(difference), difference)
    softened = add(peak, logarithm(exponential(where(undefined, 0.0, gap))))
    found = where(undefined, total, softened)
    return with_weak(_principal(found, half_turn) if found.type.dtype.is_complex else found, weak)


def _real_part(value: Value) -> Value:
    return bind("real", value) if value.type.dtype.is_complex else value


def _principal(logarithm: Value, half_turn: float) -> Value:
    """The same logarithm with the angle that is nearest to 0: the sum of two is less than a turn from it."""
    real, angle = bind("real", logarithm), bind("imag", logarithm)
    raised = where(less(angle, -half_turn), add(angle, 2 * half_turn), angle)
    return bind("complex", real, where(greater(angle, half_turn), subtract(angle, 2 * half_turn), raised))


@one_program()
def logaddexp(x: ArrayLike, y: ArrayLike) -> Value:
    """log(exp(x) + exp(y)), elementwise, without overflow."""
    return _logarithm_of_sum("logaddexp", x, y, exp, log1p, math.pi)


@one_program()
def logaddexp2(x: ArrayLike, y: ArrayLike) -> Value:
    """log2(2^x + 2^y), elementwise, without overflow."""
    return _logarithm_of_sum("logaddexp2", x, y, exp2, _log2_1p, math.pi / math.log(2))


def _log2_1p(x: ArrayLike) -> Value:
    """log2(1 + x) for x in [0, 1]: exactly 1 at 1, even if a device fuses products and sums."""
    if as_operand(x).type.dtype.is_complex:
        return divide(log1p(x), math.log(2))
    small = multiply(log1p(x), 1 / math.log(2))
    return where(greater(x, 0.5), log2(add(x, 1.0)), small)
