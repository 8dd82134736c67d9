"""How elementwise operations are applied (promote, broadcast, bind), and array functions of one operation."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from lavax.ir.default_dtypes import default_float
from lavax.ir.location import named
from lavax.ir.types import bool_
from lavax.numpy._core.broadcasting import fit, type_together
from lavax.numpy._core.errors import dtype_error
from lavax.numpy._core.operands import ArrayLike, Splat, as_operand, as_value, cast
from lavax.numpy._core.promotion import floating, promote
from lavax.tracer import bind, with_weak
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.array import Array
from lavax.tracer.values.value import Value

# As in NumPy, a sum of truth values is their disjunction, and a product their conjunction.
_OF_TRUTH_VALUES = {"add": "or", "multiply": "and"}

_WORD_BYTES = 4
_LARGE = 1 << 12  # elements that operands of other shapes have, multiplied


def together(name: str, *arguments: ArrayLike | Splat, real: bool = False) -> tuple[list[Value], bool]:
    """`arguments` in their common shape and dtype, and whether that dtype is weak.

    `name` is what errors call the operation. With `real`, integers and truth values become floats.
    """
    operands = [as_operand(argument) for argument in arguments]
    kind = operands[0].abstract
    if not real or kind.type.dtype.is_inexact:
        alike = [operand for operand in operands if isinstance(operand, Value) and operand.abstract is kind]
        if len(alike) == len(operands):  # the usual case
            return alike, kind.weak
    dtype, weak = promote(operands)
    type = type_together(name, operands, floating(dtype) if real else dtype)
    return [fit(operand, type) for operand in operands], weak


def apply(op: str, *arguments: ArrayLike | Splat, name: str = "", real: bool = False) -> Value:
    """The elementwise operation `op` on arguments in their common shape and dtype.

    `name` is what errors call it, `op` by default. With `real`, integers and truth values are first converted to
    floats. The result is weak if all arguments are and the operation keeps the dtype.
    """
    if _widens(arguments, real) or _repeats(arguments):
        return _as_one_program(op, name or op, real, False, *arguments)
    return applied(op, *together(name or op, *arguments, real=real))


def _joined(op: str, x: ArrayLike, y: ArrayLike) -> Value:
    """As `apply`, but for truth values, which are joined by another operation."""
    values, weak = together(op, x, y)
    return applied(_OF_TRUTH_VALUES.get(op, op) if values[0].type.dtype == bool_ else op, values, weak)


@one_program("op", "name", "real", "joins")
def _as_one_program(
    op: str,
    name: str,
    real: bool,
    joins: bool,
    x: ArrayLike | Splat,
    y: ArrayLike | Splat | None = None,
    z: ArrayLike | Splat | None = None,
) -> Value:
    """An elementwise operation that reads arrays as they are: none is stored in more bits, or repeated, first."""
    arguments = [argument for argument in (x, y, z) if argument is not None]
    if joins:
        return _joined(op, *arguments)  # type: ignore[arg-type]
    return applied(op, *together(name, *arguments, real=real))


def _widens(arguments: Sequence[ArrayLike | Splat], real: bool) -> bool:
    """Whether an array outside a trace is converted to a dtype of more bits."""
    sizes = [given.type.dtype.storage.itemsize for given in arguments if type(given) is Array and given.splat is None]
    if not sizes or min(sizes) >= _WORD_BYTES:
        return False
    dtype, _ = promote([as_operand(argument) for argument in arguments])
    return (floating(dtype) if real else dtype).storage.itemsize > min(sizes)


def _repeats(arguments: Sequence[ArrayLike | Splat]) -> bool:
    """Whether arrays outside a trace are repeated along large ones; small ones take no longer one after the other."""
    shapes = [given.type.shape for given in arguments if type(given) is Array and given.splat is None]
    return len(shapes) == len(arguments) == 2 and shapes[0] != shapes[1] and prod(shapes[0] + shapes[1]) >= _LARGE


def applied(op: str, values: Sequence[Value], weak: bool) -> Value:
    """The elementwise operation `op` on the result of `together`."""
    result = bind(op, *values)
    return with_weak(result, True) if weak and result.type.dtype == values[0].type.dtype else result


def as_floating(x: ArrayLike) -> Value:
    """`x` as a value of a floating dtype."""
    value = as_value(x)
    return cast(value, floating(value.type.dtype))


def as_python_float(x: ArrayLike) -> Value:
    """`x` as a value of a floating dtype: integers and truth values in that of Python's floats."""
    value = as_value(x)
    return value if value.type.dtype.is_inexact else cast(value, default_float())


def real_numbers(name: str, x: ArrayLike) -> Value:
    """`x` as a value of a floating dtype. Raises DtypeError, which begins with `name`, for complex numbers."""
    value = as_floating(x)
    if value.type.dtype.is_complex:
        raise dtype_error(f"{name} takes real numbers, got {value.type}: take its real part, or its abs")
    return value


def as_truth(x: ArrayLike) -> Value:
    """`x` as bool: whether each element is not zero."""
    value = as_value(x)
    return value if value.type.dtype == bool_ else apply("not_equal", value, 0)


def real_function(op: str, meaning: str, name: str = "") -> Callable[[ArrayLike], Value]:
    """The array function of one operation on real numbers, under `name` or else the operation's name."""

    def function(x: ArrayLike) -> Value:
        return apply(op, x, name=name or op, real=True)

    named(function, name or op, f"{meaning}, elementwise. Integers and truth values count as floats.")
    return function


def binary_function(op: str, meaning: str) -> Callable[[ArrayLike, ArrayLike], Value]:
    """The array function of one operation on two operands in their common dtype, under the operation's name."""

    def function(x: ArrayLike, y: ArrayLike) -> Value:
        if (type(x) is Array or type(y) is Array) and (_widens((x, y), real=False) or _repeats((x, y))):
            return _as_one_program(op, op, False, True, x, y)
        return _joined(op, x, y)

    named(function, op, f"{meaning}, elementwise, in the common shape and dtype of `x` and `y`.")
    return function
