"""Elementwise operations, casts, shifts and random bits."""
from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special

from lavax.ir import TensorType
from tests.ir.definitions.definition import Definition, Place

# Single elements: Python floats are float64, Python integers are wrapped to their dtype afterwards.


def or_nan(function: Callable[..., float]) -> Callable[..., float]:
    """`function`, with NaN where Python's math raises for want of a value."""

    def value(*x: float) -> float:
        try:
            return function(*x)
        except ValueError:
            return math.nan

    return value


def or_infinite(function: Callable[[float], float]) -> Callable[[float], float]:
    def value(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return math.inf

    return value


def sign(x: Any) -> Any:
    return x if math.isnan(x) else (x > 0) - (x < 0)


def log(x: float) -> float:
    return -math.inf if x == 0 else or_nan(math.log)(x)


def log1p(x: float) -> float:
    return -math.inf if x == -1 else or_nan(math.log1p)(x)


def floor(x: float) -> float:
    return float(math.floor(x)) if math.isfinite(x) else x


def rsqrt(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else 1 / or_nan(math.sqrt)(x)


def logistic(x: float) -> float:
    return math.nan if math.isnan(x) else 0.5 * (1 + math.tanh(x / 2)) if x > -30 else math.exp(x) if x > -700 else 0.0


def divide(x: Any, y: Any) -> Any:
    if isinstance(x, float):
        if y == 0:
            return math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1, y)
        return x / y
    if y == 0:
        return -1
    return abs(x) // abs(y) * sign(x) * sign(y)


def remainder(x: Any, y: Any) -> Any:
    if isinstance(x, float):
        return or_nan(math.fmod)(x, y)
    return x if y == 0 else abs(x) % abs(y) * sign(x)


def modulo(x: float, y: float) -> float:
    """Python's %, which has no remainder by zero or of infinities."""
    if y == 0 or math.isinf(x) or math.isnan(x):
        return math.nan
    return x % y


def power(x: Any, y: Any) -> Any:
    """C's pow, which Python's is but for the errors; for whole numbers by what the quotient truncates to."""
    if isinstance(x, float):
        try:
            return math.pow(x, y)
        except OverflowError:
            return -math.inf if x < 0 and y % 2 == 1 else math.inf
        except ValueError:
            if x != 0:
                return math.nan
            return -math.inf if math.copysign(1, x) < 0 and y % 2 == 1 else math.inf
    if y >= 0:
        return pow(x, y, 2**64)
    return {1: 1, -1: 1 if y % 2 == 0 else -1}.get(x, 0)


def extremum(better: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    """The better one; NaN where there is one."""

    def choose(*values: Any) -> Any:
        best = values[0]
        for value in values[1:]:
            if not math.isnan(best) and (math.isnan(value) or better(value, best)):
                best = value
        return best

    return choose


def greatest(*values: Any) -> Any:
    return extremum(lambda a, b: a > b)(*values)


def least(*values: Any) -> Any:
    return extremum(lambda a, b: a < b)(*values)


# Their edges, which are not all SciPy's, are in tests/lavax/scipy/test_special_more.py.
OF_SCIPY: dict[str, Callable[..., Any]] = {
    "factorial": lambda x: special.gamma(x + 1),
    "betainc": special.betainc,
    **{name: getattr(special, name) for name in ("beta", "boxcox", "boxcox1p", "expi", "expn", "gamma", "gammainc")},
    **{name: getattr(special, name) for name in ("gammaincc", "kl_div", "poch", "polygamma", "zeta")},
}
ELEMENTWISE: dict[str, Callable[..., Any]] = {
    **OF_SCIPY,
    "negate": lambda x: -x,
    "abs": abs,
    "sign": sign,
    "floor": floor,
    "ceil": lambda x: -floor(-x),
    "round": lambda x: math.copysign(float(round(x)), x) if math.isfinite(x) else x,
    "truncate": lambda x: math.copysign(floor(abs(x)), x),
    "exp2": or_infinite(math.exp2),
    "log2": lambda x: -math.inf if x == 0 else or_nan(math.log2)(x),
    "cbrt": math.cbrt,
    "tan": or_nan(math.tan),
    "asin": or_nan(math.asin),
    "acos": or_nan(math.acos),
    "atan": math.atan,
    "atan2": math.atan2,
    "sinh": lambda x: math.copysign(or_infinite(math.sinh)(abs(x)), x),
    "cosh": or_infinite(math.cosh),
    "asinh": math.asinh,
    "acosh": or_nan(math.acosh),
    "atanh": lambda x: math.copysign(math.inf, x) if abs(x) == 1 else or_nan(math.atanh)(x),
    "erf": math.erf,
    "erfc": math.erfc,
    "erfcx": special.erfcx,
    "erfinv": special.erfinv,
    "ndtr": special.ndtr,
    "ndtri": special.ndtri,
    "lgamma": lambda x: math.inf if x == -math.inf else special.gammaln(x),
    "digamma": special.digamma,
    "bessel_i0": lambda x: math.inf if math.isinf(x) else special.i0(x),
    "bessel_i0e": special.i0e,
    "bessel_i1": lambda x: x if math.isinf(x) else special.i1(x),
    "bessel_i1e": special.i1e,
    "exp": or_infinite(math.exp),
    "log": log,
    "expm1": or_infinite(math.expm1),
    "log1p": log1p,
    "sqrt": or_nan(math.sqrt),
    "rsqrt": rsqrt,
    "sin": or_nan(math.sin),
    "cos": or_nan(math.cos),
    "tanh": math.tanh,
    "logistic": logistic,
    "not": lambda x: not x if isinstance(x, bool) else ~x,
    "stop_gradient": lambda x: x,
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": divide,
    "remainder": remainder,
    "modulo": modulo,
    "power": power,
    "maximum": greatest,
    "minimum": least,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "where": lambda c, x, y: x if c else y,
    "barrier": lambda x, after: x,
    "known_value": lambda x, known: known,
}


def shift(arrays: Sequence[np.ndarray], place: Place) -> tuple[int, int, bool]:
    """The bits to be shifted, the distance, and whether the highest bit is set."""
    modulus = 2 ** (8 * arrays[0].itemsize)
    word, distance = (int(array[place]) % modulus for array in arrays)
    return word, distance, word >= modulus // 2


def shift_left(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> int:
    word, distance, _ = shift(arrays, place)
    return word << distance if distance < 64 else 0


def shift_right_logical(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> int:
    word, distance, _ = shift(arrays, place)
    return word >> distance


def shift_right_arithmetic(
    arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place
) -> int:
    word, distance, negative = shift(arrays, place)
    return (word - 2**type.dtype.bits if negative else word) >> distance


def bitcast(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    value = arrays[0][place].item()
    width = type.dtype.bits // 8
    form = {1: "", 2: "<e", 4: "<f", 8: "<d"}[width]
    whole = isinstance(value, int)
    packed = (value % 2**type.dtype.bits).to_bytes(width, "little") if whole else struct.pack(form, value)
    return struct.unpack(form, packed)[0] if type.dtype.is_float else int.from_bytes(packed, "little")


def threefry(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> int:
    """Threefry-2x32-20 as the paper has it: a key word is added every four rounds."""
    k0, k1, x, y = (int(array[place]) for array in arrays)
    keys, turns = [k0, k1, k0 ^ k1 ^ 0x1BD11BDA], [13, 15, 26, 6, 17, 29, 16, 24]
    x, y = (x + k0) % 2**32, (y + k1) % 2**32
    for number in range(20):
        turn = turns[number % 8]
        x = (x + y) % 2**32
        y = x ^ (y << turn | y >> 32 - turn) % 2**32
        if number % 4 == 3:
            group = number // 4 + 1
            x, y = (x + keys[group % 3]) % 2**32, (y + keys[(group + 1) % 3] + group) % 2**32
    return [x, y, x ^ y][attrs["word"]]


def elementwise(function: Callable[..., Any]) -> Definition:
    def element(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
        return function(*(array[place].item() for array in arrays))

    return element


def cast(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    x = arrays[0][place].item()
    if type.dtype.kind == "bool":
        return x != 0
    if type.dtype.is_float:
        return float(x)
    if not isinstance(x, float):
        return int(x)
    low, high = type.dtype.lowest, type.dtype.highest
    return 0 if math.isnan(x) else low if x < low else high if x > high else int(x)
