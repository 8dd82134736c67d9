"""Functions of complex numbers at zeros of either sign, infinities and NaN: in kernels of every kind, as in NumPy."""
from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from lavax.ir import Graph, parse
from tests.fuzz.engines import ENGINES, applies

_ENDS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan]
_PAIRS = np.array(list(product(_ENDS, _ENDS)))
_COUNT = len(_PAIRS)
_FOURS = np.array(list(product([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan], repeat=4)))

_TURNED = ("sin", "cos", "tan", "sinh", "cosh", "tanh")
_ARCS = {f"a{name}": f"arc{name}" for name in _TURNED}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in _TURNED},
    **{name: getattr(np, theirs) for name, theirs in _ARCS.items()},
    **{name: getattr(np, name) for name in ("exp", "expm1", "log", "log1p", "sqrt", "abs", "conjugate")},
    "negate": np.negative,
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "logistic": lambda z: 1 / (1 + np.exp(-z)),
}
# Where C99 (annex G) leaves the sign of a zero or infinity open, all beside infinite or NaN parts.
_OPEN = frozenset(("exp", "sinh", "cosh", "tanh", "sin", "cos", "tan"))
# The array API standard has numbers for parts of these, where NumPy has NaN.
_OTHERS = frozenset(("expm1",))
# Functions of two numbers.
_OF_TWO: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(np, name) for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum")},
    **{name: getattr(np, name) for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")},
}
_TOLERANCES = {"f32": 1e-5, "f64": 1e-13}
_KINDS = {"f32": ("c64", np.float32), "f64": ("c128", np.float64)}


def _columns(dtype: str, rows: np.ndarray) -> list[np.ndarray]:
    return list(np.ascontiguousarray(rows.T.astype(_KINDS[dtype][1])))


def _wide(real: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    z = np.empty(real.shape, np.complex128)
    z.real, z.imag = real, imaginary
    return z


def _same(got: np.ndarray, wanted: np.ndarray, signed: np.ndarray, bound: float) -> np.ndarray:
    """Both NaN, equal or close; the sign of zeros and infinities counts where `signed` says so.

    A driver that joins a product and a sum has a rounding error of either sign where the exact result is a zero.
    """
    size = np.where(signed, got, np.abs(got)), np.where(signed, wanted, np.abs(wanted))
    close = (size[0] == size[1]) | (np.abs(size[0] - size[1]) <= bound * np.maximum(1, np.abs(wanted)))
    same_sign = (np.signbit(got) == np.signbit(wanted)) | ((got != 0) & (wanted == 0))
    return (np.isnan(got) & np.isnan(wanted)) | (close & (~signed | same_sign))


def _check(engine: str, graph: Graph, arrays: list[np.ndarray], wanted: np.ndarray, signed: np.ndarray) -> None:
    (found,) = ENGINES[engine](graph, arrays)
    for part in ("real", "imag"):
        got, right = (np.asarray(getattr(np.asarray(value), part), np.float64) for value in (found, wanted))
        same = _same(got, right, signed, _TOLERANCES[graph.inputs[0].dtype.name])
        assert same.all(), (engine, part, [array[~same] for array in arrays], got[~same], right[~same])


@pytest.mark.parametrize("dtype", _KINDS)
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in _OTHERS])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_at_special_values_in_kernels_of_every_kind(name: str, dtype: str) -> None:
    kind = _KINDS[dtype][0]
    result = dtype if name == "abs" else kind
    graph = parse(f"""
        graph (x: {dtype}[{_COUNT}], y: {dtype}[{_COUNT}]) {{
          %0 = complex(x, y) : {kind}[{_COUNT}]
          %1 = {name}(%0) : {result}[{_COUNT}]
          return %1
        }}
    """)
    x, y = _columns(dtype, _PAIRS)
    wanted = FUNCTIONS[name](_wide(x, y))
    signed = np.isfinite(x) & np.isfinite(y) | (name not in _OPEN)
    if name in ("asin", "atan"):  # casinh and catanh of NaN + ∞i; asin and atan are turned by i
        signed &= ~(np.isinf(x) & np.isnan(y))
    for engine in ENGINES:
        if applies(engine, graph):
            _check(engine, graph, [x, y], wanted, signed)


@pytest.mark.parametrize("dtype", _KINDS)
@pytest.mark.parametrize("name", _OF_TWO)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_of_two_numbers_at_special_values_in_kernels_of_every_kind(name: str, dtype: str) -> None:
    kind, count = _KINDS[dtype][0], len(_FOURS)
    parts = _columns(dtype, _FOURS)
    wanted = np.asarray(_OF_TWO[name](_wide(*parts[:2]), _wide(*parts[2:])))
    inputs = ", ".join(f"{part}: {dtype}[{count}]" for part in "abcd")
    graph = parse(f"""
        graph ({inputs}) {{
          %0 = complex(a, b) : {kind}[{count}]
          %1 = complex(c, d) : {kind}[{count}]
          %2 = {name}(%0, %1) : {kind if wanted.dtype == complex else "bool"}[{count}]
          return %2
        }}
    """)
    for engine in ENGINES:
        if applies(engine, graph):
            _check(engine, graph, parts, wanted, np.full(count, True))
