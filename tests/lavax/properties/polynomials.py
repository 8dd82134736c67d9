"""Polynomials, and windows that fade out."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.lavax.properties.cases import F32, NUMBERS, Arguments, Case, Draw, named, numbers, one
from tests.lavax.properties.creation import options

points = st.integers(0, 12)


@st.composite
def two(draw: Draw) -> Arguments:
    """Two polynomials, whose first coefficients are not 0: NumPy leaves zeros in front out."""
    found = [numbers(draw, (draw(st.integers(1, 5)),), NUMBERS) for _ in range(2)]
    for p in found:
        p[:1] = draw(st.sampled_from([1, 2]))
    return Arguments(tuple(found))


@st.composite
def repeated(draw: Draw, **others: st.SearchStrategy[Any]) -> Arguments:
    p = numbers(draw, (draw(st.integers(1, 5)),), NUMBERS)
    return Arguments((p,), {"m": draw(st.integers(1, 3)), **{name: draw(each) for name, each in others.items()}})


def _divided(u: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    """NumPy's quotient, and its remainder with the zeros in front that it leaves out."""
    quotient, _ = np.polydiv(u.astype(np.float64), v.astype(np.float64))
    rest = np.polysub(u, np.polymul(quotient, v))
    padded = np.zeros(u.size)
    kept = min(v.size - 1, u.size) if u.size >= v.size else u.size
    padded[u.size - kept :] = rest[rest.size - kept :]
    return [quotient, padded]


@st.composite
def zeros_of(draw: Draw) -> Arguments:
    n = draw(st.integers(0, 4))
    return Arguments((numbers(draw, draw(st.sampled_from([(n,), (max(n, 1),) * 2])), (F32,)),))


def _poly(x: np.ndarray) -> np.ndarray:
    """NumPy has no linear algebra in 16 bits."""
    return np.asarray(np.real(np.poly(x.astype(np.float64))), x.dtype)


@st.composite
def measured(draw: Draw) -> Arguments:
    """Points far enough apart for their polynomial to be well known."""
    n, degree = draw(st.integers(5, 8)), draw(st.integers(0, 3))
    places = (np.linspace(-1, 1, n) + 0.02 * numbers(draw, (n,), (F32,))).astype(F32)
    values = numbers(draw, draw(st.sampled_from([(n,), (n, 2)])), (F32,))
    weights = numbers(draw, (n,), (F32,), 0.5, 2)
    return Arguments((places, values, weights), {"deg": degree, "weighed": draw(st.booleans())})


def _fit(namespace: Any) -> Callable[..., Any]:
    return lambda x, y, w, deg, weighed: namespace.polyfit(x, y, deg, w=w if weighed else None)


def _fit_theirs(x: np.ndarray, y: np.ndarray, w: np.ndarray, deg: int, weighed: bool) -> np.ndarray:
    """NumPy has no linear algebra in 16 bits."""
    x, y, w = (array.astype(F32) if array.dtype == np.float16 else array for array in (x, y, w))
    return np.asarray(_fit(np)(x, y, w, deg, weighed))


CASES: dict[str, Case] = {
    "polyadd": named("polyadd", two()),
    "polysub": named("polysub", two()),
    "polymul": named("polymul", two()),
    "polydiv": named("polydiv", two(), _divided),
    "polyder": named("polyder", repeated(), lambda p, m: np.polyder(p.astype(np.float64), m)),
    "polyint": named("polyint", repeated(k=st.sampled_from([None, 2.0]))),
    "poly": named("poly", zeros_of(), _poly),
    "polyfit": Case(measured(), _fit, _fit_theirs),
    "bartlett": named("bartlett", options(M=points)),
    "blackman": named("blackman", options(M=points)),
    "hamming": named("hamming", options(M=points)),
    "hanning": named("hanning", options(M=points)),
    "kaiser": named("kaiser", options(M=points, beta=st.sampled_from([0.0, 0.5, 8.6, 14]))),
    "i0": named("i0", one((F32,), range=(-9, 9))),
}
