"""Elementwise functions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.lavax.properties.cases import (
    BOOL,
    DTYPES,
    F32,
    I32,
    INTEGERS,
    NUMBERS,
    Arguments,
    Case,
    Draw,
    named,
    numbers,
    one,
    several,
)

SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)


def real(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of arguments as floats, for NumPy computes truth values in float16."""
    return lambda *arrays: function(*(np.asarray(array, np.float64) for array in arrays))


# name: (from, to)
REAL = {
    "acos": (-1, 1), "acosh": (1, 5), "asin": (-1, 1), "asinh": (-3, 3), "atan": (-3, 3), "atanh": (-0.9, 0.9),
    "cbrt": (-3, 3), "cos": (-3, 3), "cosh": (-3, 3), "degrees": (-3, 3), "exp": (-3, 3), "exp2": (-3, 3),
    "expm1": (-3, 3), "fabs": (-3, 3), "log": (0.5, 5), "log10": (0.5, 5), "log1p": (-0.5, 5), "log2": (0.5, 5),
    "radians": (-3, 3), "rint": (-3, 3), "sin": (-3, 3), "sinc": (-3, 3), "sinh": (-3, 3), "sqrt": (0, 5),
    "tan": (-1, 1), "tanh": (-3, 3),
}  # fmt: skip
KEEPING = ("abs", "ceil", "floor", "negative", "positive", "sign", "square", "trunc")
TRUTHS = ("isfinite", "isinf", "isnan", "logical_not")
# name: (dtypes, ranges of the operands)
BINARY: dict[str, tuple[tuple[np.dtype, ...], tuple[tuple[float, float], ...]]] = {
    "add": (DTYPES, ((-3, 3),)),
    "bitwise_and": ((*INTEGERS, BOOL), ((-3, 3),)),
    "bitwise_left_shift": (INTEGERS, ((-3, 3), (0, 3))),
    "bitwise_or": ((*INTEGERS, BOOL), ((-3, 3),)),
    "bitwise_right_shift": (INTEGERS, ((-3, 3), (0, 3))),
    "bitwise_xor": ((*INTEGERS, BOOL), ((-3, 3),)),
    "equal": (DTYPES, ((0, 2),)),
    "floor_divide": (NUMBERS, ((-9, 9), (1, 3))),
    "fmod": (NUMBERS, ((-9, 9), (1, 3))),
    "greater": (DTYPES, ((0, 2),)),
    "greater_equal": (DTYPES, ((0, 2),)),
    "less": (DTYPES, ((0, 2),)),
    "less_equal": (DTYPES, ((0, 2),)),
    "logical_and": (DTYPES, ((-1, 1),)),
    "logical_or": (DTYPES, ((-1, 1),)),
    "logical_xor": (DTYPES, ((-1, 1),)),
    "maximum": (DTYPES, ((-3, 3),)),
    "minimum": (DTYPES, ((-3, 3),)),
    "multiply": (DTYPES, ((-3, 3),)),
    "not_equal": (DTYPES, ((0, 2),)),
    "power": (NUMBERS, ((1, 3),)),
    "remainder": (NUMBERS, ((-9, 9), (1, 3))),
    "subtract": (NUMBERS, ((-3, 3),)),
}
REAL_BINARY = {
    "atan2": (-3, 3), "copysign": (-3, 3), "divide": (1, 3), "float_power": (1, 3), "heaviside": (-3, 3),
    "hypot": (-3, 3), "logaddexp": (-3, 3), "logaddexp2": (-3, 3),
}  # fmt: skip


@st.composite
def rounded(draw: Draw) -> Arguments:
    found = draw(one(NUMBERS, range=(-99, 99)))
    return Arguments(found.arrays, {"decimals": draw(st.integers(-2, 3))})


@st.composite
def clipped(draw: Draw) -> Arguments:
    found = draw(several(3, NUMBERS, same=True, ranges=((-3, 3), (-2, 0), (0, 2))))
    return found if draw(st.booleans()) else Arguments(found.arrays[:2])


@st.composite
def chosen(draw: Draw) -> Arguments:
    found = draw(several(3, DTYPES))
    return Arguments((found.arrays[0] > 0, *found.arrays[1:]))


@st.composite
def scaled(draw: Draw) -> Arguments:
    x, n = draw(several(2, (F32,))).arrays
    return Arguments((x, np.asarray(np.round(n), I32)))


@st.composite
def compared(draw: Draw) -> Arguments:
    found = draw(several(2, NUMBERS, ranges=((0, 2),), special=SPECIAL[:3]))
    return Arguments(found.arrays, {"rtol": 0.5, "atol": 0.1, "equal_nan": draw(st.booleans())})


@st.composite
def perhaps_equal(draw: Draw) -> Arguments:
    x = numbers(draw, draw(st.sampled_from([(), (2,), (2, 3), (0, 2)])), NUMBERS, special=SPECIAL[:2])
    y = draw(st.sampled_from([x, x[..., :1] if x.ndim else x, x + x.dtype.type(1)]))
    return Arguments((x, y))


@st.composite
def cases_of(draw: Draw) -> Arguments:
    """Two conditions and two choices."""
    found = draw(several(4, NUMBERS, high=4))
    first, second, x, y = found.arrays
    return Arguments((first > 1, second > -1, x, y), {"default": draw(st.integers(0, 9))})


@st.composite
def numbered_choices(draw: Draw) -> Arguments:
    a, x, y = draw(several(3, NUMBERS, high=4)).arrays
    return Arguments((np.asarray(np.clip(np.round(a), 0, 1), I32), x, y))


def _piecewise(namespace: Any) -> Callable[..., Any]:
    return lambda x: namespace.piecewise(x, [x < 0, x > 1], [lambda x: -x, 2, lambda x: x * x])


CASES: dict[str, Case] = {
    **{name: named(name, one(range=span), real(getattr(np, name))) for name, span in REAL.items()},
    "rsqrt": named("rsqrt", one(range=(1, 5)), real(lambda x: 1 / np.sqrt(x))),
    "reciprocal": named("reciprocal", one((F32,), range=(1, 5))),
    **{name: named(name, one(NUMBERS)) for name in KEEPING},
    "negative of special numbers": named("negative", one((F32,), special=SPECIAL)),
    **{name: named(name, one(special=SPECIAL)) for name in TRUTHS},
    **{name: named(name, one(NUMBERS, special=SPECIAL)) for name in ("isposinf", "isneginf")},
    "signbit": named("signbit", one((F32, I32), special=SPECIAL[1:])),
    "bitwise_invert": named("bitwise_invert", one((*INTEGERS, BOOL))),
    "bitwise_count": named(
        "bitwise_count", one(INTEGERS, range=(-(2**31), 2**31 - 1)), np.bitwise_count
    ),
    "nan_to_num": named("nan_to_num", one((F32,), special=(np.nan,))),
    "round": named("round", rounded(), lambda x, decimals: np.round(np.asarray(x, float), decimals).astype(x.dtype)),
    "modf": named("modf", one((F32,))),
    "frexp": named("frexp", one((F32,), special=(0.0,))),
    "nextafter": named("nextafter", several(2, (F32,), special=SPECIAL[1:]), single=True),
    "ldexp": named("ldexp", scaled()),
    **{name: named(name, several(2, dtypes, ranges=ranges)) for name, (dtypes, ranges) in BINARY.items()},
    **{name: named(name, several(2, ranges=(span,)), real(getattr(np, name))) for name, span in REAL_BINARY.items()},
    "divmod": named("divmod", several(2, NUMBERS, ranges=((-9, 9), (1, 3)))),
    "maximum of special numbers": named("maximum", several(2, (F32,), special=SPECIAL[:3])),
    "minimum of special numbers": named("minimum", several(2, (F32,), special=SPECIAL[:3])),
    "clip": named("clip", clipped(), lambda x, low, high=None: np.clip(x, low, high)),
    "where": named("where", chosen()),
    "isclose": named("isclose", compared()),
    "allclose": named("allclose", compared()),
    "array_equal": named("array_equal", perhaps_equal()),
    "array_equiv": named("array_equiv", perhaps_equal()),
    "select": Case(
        cases_of(), lambda n: lambda c, d, x, y, default: n.select([c, d], [x, y], default), lenient=True
    ),
    "choose": Case(numbered_choices(), lambda n: lambda a, x, y: n.choose(a, [x, y])),
    "piecewise": Case(one((F32,)), _piecewise),
}
