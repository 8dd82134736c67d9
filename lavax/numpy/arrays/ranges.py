"""Numbers at equal distances, or at equal ratios."""
from __future__ import annotations

import math
import operator
from typing import Any, Literal, overload

import numpy as np

from lavax.ir.default_dtypes import default_float, default_integer
from lavax.ir.types import DType, TensorType, bool_, complex_of, float32, float64, int32
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.broadcasting import fit
from lavax.numpy._core.devices import require_device
from lavax.numpy._core.dropped_parts import tell_dropped_parts
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import dtype_error, shape_error, zero_step_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, Operand, RealScalar, Splat, as_operand, cast
from lavax.numpy._core.promotion import floating, promote
from lavax.numpy._core.shape_arguments import MOST_ELEMENTS, checked_shape
from lavax.numpy.arrays.creation import asarray, iota
from lavax.numpy.arrays.manipulation import moveaxis
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply, sign, subtract
from lavax.numpy.elementwise.comparison import equal, where
from lavax.numpy.elementwise.exponential import exp, log
from lavax.numpy.elementwise.powers import power
from lavax.numpy.elementwise.rounding import floor
from lavax.tracer import with_weak
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = ["arange", "geomspace", "linspace", "logspace"]


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    dtype: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Value:
    """start, start + step, … below `stop`; with one argument, from 0 below it.

    Integers if all arguments are, else floats, unless `dtype` is given. The arguments are Python numbers,
    because they determine the shape. Raises ZeroStepError for a step of 0, ShapeError for infinitely many numbers,
    DtypeError for anything but numbers and for bool.
    """
    require_device("arange", device)
    given = (0, start, step) if stop is None else (start, stop, step)
    first, end, by = map(_number, given)
    if not by:
        raise zero_step_error("arange: the step must not be 0")
    held = _common(given) if dtype is None else canonical_dtype(dtype)
    if held == bool_:
        raise dtype_error("arange counts in numbers, not in bool")
    return _counted(_count(first, end, by), first, by, held)


def _common(given: tuple[Any, ...]) -> DType:
    """The dtype of numbers that are counted from, to and by others: 32 bits if these have them, else the default."""
    kind = promote([as_operand(number) for number in given])[0]
    if kind in (int32, float32):
        return kind
    return default_float() if kind.is_float else default_integer()


def _count(first: RealScalar, end: RealScalar, step: RealScalar) -> int:
    """How many numbers `arange` has, from numbers that may be too large for a float. Raises ShapeError."""
    if not all(map(math.isfinite, (first, end, step))):
        raise shape_error(f"arange: start, stop and step must be finite, got {first}, {end} and {step}")
    if all(isinstance(number, int) for number in (first, end, step)):
        count = -((first - end) // step)
    else:
        steps = (end - first) / step
        count = math.ceil(steps) if math.isfinite(steps) else MOST_ELEMENTS + 1
    return checked_shape("arange", (max(int(count), 0),))[0]


def _number(x: Value | np.ndarray | np.generic | RealScalar) -> RealScalar:
    """The Python number behind `x`, which determines a shape. Raises ConcretizationError if there is none."""
    if isinstance(x, (Value, np.generic, np.ndarray)):
        x = x.item()
    if not isinstance(x, (int, float)):
        raise dtype_error(f"arange: start, stop and step must be numbers, got {x!r:.40} of type {type(x).__name__}")
    return operator.index(x) if isinstance(x, int) else float(x)


def _counted(count: int, first: float, step: float, dtype: DType) -> Value:
    """first + i * step; in floats if `dtype` is an integer dtype and one of them is not whole."""
    exact = not dtype.is_integer or (first == int(first) and step == int(step))
    line = iota(TensorType((count,), dtype if exact else default_float()), 0)
    if step != 1:
        line = multiply(line, int(step) if dtype.is_integer and exact else float(step))
    if first != 0:
        line = add(line, int(first) if dtype.is_integer and exact else float(first))
    return cast(line, dtype)


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Value: ...


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: Any = None,
    axis: int = 0,
    device: Any = None,
) -> tuple[Value, Value]: ...


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Value | tuple[Value, Value]:
    """`num` numbers at equal distances from `start` to `stop`, which is the last if `endpoint`.

    `start` and `stop` may be arrays, which broadcast; the numbers lie along the new axis `axis`. Floats, if no `dtype`
    is given; an integer dtype takes their floor. With `retstep` also returns the distance: NaN if there is none.
    Raises ShapeError for a negative `num`, DtypeError for one that is not an integer.
    """
    if retstep:
        numbers = linspace(start, stop, num, endpoint, False, dtype, axis, device=device)
        steps = num - bool(endpoint)
        return numbers, divide(subtract(stop, start), float(steps) if steps > 0 else math.nan)
    require_device("linspace", device)
    num = whole_number("num", num)
    if num < 0:
        raise shape_error(f"linspace: {num} is not a number of elements")
    checked_shape("linspace", (num,))
    low, high = as_operand(start), as_operand(stop)
    kind = floating(promote([low, high])[0])
    wanted = kind if dtype is None else canonical_dtype(dtype)
    tell_dropped_parts("linspace", kind, wanted)
    # Positions count up to `num`, beyond the precision of 16-bit floats.
    held = float64 if float64 in (kind.part, wanted.part) else float32
    first, last, distance = _span(low, high, complex_of(held) if kind.is_complex else held)
    line = _line_of_floats if held == float32 else _line
    halves = False
    if isinstance(first, float) and isinstance(last, float) and _is_far(first, last, held):
        halves, distance = True, last / 2 - first / 2
    between = line(first, last, distance, num, bool(endpoint), halves)
    result = moveaxis(between, 0, normal_axis("linspace", axis, between.type))
    return with_weak(cast(floor(result) if wanted.is_integer else result, wanted), False)


def _line(
    first: ArrayLike,
    last: ArrayLike,
    distance: ArrayLike,
    num: int,
    endpoint: bool,
    halves: bool,
    held: DType = float64,
) -> Value:
    """`num` numbers from `first` on, over `distance`, or twice over it if it is one of the `halves` of a long way."""
    rank = distance.ndim if isinstance(distance, Value) else 0
    places = reshaped(iota(TensorType((num,), held), 0), (num, *(1,) * rank))
    way = multiply(divide(places, float(max(num - endpoint, 1))), distance)
    between = add(add(first, way), way) if halves else add(first, way)
    return where(equal(places, num - 1), last, between) if endpoint and num > 1 else between


@one_program("num", "endpoint", "halves")
def _line_of_floats(
    first: ArrayLike, last: ArrayLike, distance: ArrayLike, num: int, endpoint: bool, halves: bool
) -> Value:
    return _line(first, last, distance, num, endpoint, halves, float32)


def _span(low: Operand, high: Operand, dtype: DType) -> tuple[ArrayLike, ArrayLike, ArrayLike]:
    """`low` and `high` as floats, and the distance between them; Python scalars stay Python scalars."""
    if isinstance(low, Splat) and isinstance(high, Splat) and not dtype.is_complex:
        return _float(low), _float(high), _float(high) - _float(low)
    first, last = (fit(operand, operand.type.with_dtype(dtype)) for operand in (low, high))
    return first, last, subtract(last, first)


def _float(scalar: Splat) -> float:
    return float(scalar.value.real)


def _is_far(first: float, last: float, dtype: DType) -> bool:
    """Whether both ends are floats of a dtype, but not the distance between them."""
    largest = float(np.finfo(dtype.numpy).max)
    return max(math.fabs(first), math.fabs(last)) <= largest < math.fabs(last - first)


def logspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, base: ArrayLike = 10.0,
    dtype: Any = None, axis: int = 0,
) -> Value:
    """Powers of `base` with exponents at equal distances from `start` to `stop`; as `linspace`."""
    held = float(base) if isinstance(base, int) else base
    result = power(held, linspace(start, stop, num, endpoint, dtype=_exponents(dtype), axis=axis))
    return _as_wanted("logspace", result, dtype)


def _as_wanted(name: str, numbers: Value, dtype: Any) -> Value:
    if dtype is None:
        return numbers
    held = canonical_dtype(dtype)
    tell_dropped_parts(name, numbers.type.dtype, held)
    return cast(numbers, held)


def _exponents(dtype: Any) -> Any:
    """The dtype of exponents: float64 if that is wanted, else that of their ends."""
    return dtype if dtype is not None and canonical_dtype(dtype) == float64 else None


def geomspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Value:
    """`num` numbers at equal ratios from `start` to `stop`, both of one sign and not 0; as `linspace`.

    Complex numbers lie on a logarithmic spiral, whose angles take the short way round.
    """
    if _exponents(dtype) is not None:
        low, high = (asarray(end, dtype) for end in (start, stop))
    else:
        low, high = as_floating(start), as_floating(stop)
    num = whole_number("num", num)
    if low.type.dtype.is_complex or high.type.dtype.is_complex:
        result = multiply(exp(linspace(0.0, log(divide(high, low)), num, endpoint)), low)
    else:
        exponents = linspace(log(abs(low)), log(abs(high)), num, endpoint)
        result = multiply(exp(exponents), sign(low))
    place = iota(TensorType((num, *(1,) * (result.ndim - 1)), int32), 0)
    result = where(equal(place, 0), low, result)
    if endpoint and num > 1:
        result = where(equal(place, num - 1), high, result)
    result = moveaxis(result, 0, normal_axis("geomspace", axis, result.type))
    return with_weak(_as_wanted("geomspace", result, dtype), False)
