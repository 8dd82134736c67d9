"""Reductions, cumulative functions and statistics."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.lavax.properties.cases import (
    DTYPES,
    F32,
    I32,
    NAN,
    NUMBERS,
    Arguments,
    Case,
    Draw,
    along,
    axes_of,
    axis_of,
    named,
    numbers,
    over,
    shapes,
)

SMALL = (-1.0, 1.0)


@st.composite
def position(draw: Draw, special: tuple[float, ...] = NAN) -> Arguments:
    """An array, an axis or none, and keepdims; with ties among integers."""
    shape = draw(shapes())
    options = {"axis": axis_of(draw, len(shape), none=True), "keepdims": draw(st.booleans())}
    return Arguments((numbers(draw, shape, DTYPES, special=special),), options)


@st.composite
def fractions(draw: Draw, scale: float, special: tuple[float, ...] = ()) -> Arguments:
    shape = draw(shapes(0, 4, 1))
    options: dict[str, Any] = {"axis": axes_of(draw, len(shape)), "keepdims": draw(st.booleans())}
    options["q"] = draw(st.sampled_from([0.0, 0.25, 0.4, 1.0])) * scale
    options["method"] = draw(st.sampled_from(["linear", "lower", "higher", "midpoint"]))
    return Arguments((numbers(draw, shape, (F32,), special=special),), options)


@st.composite
def weighted(draw: Draw) -> Arguments:
    shape = draw(shapes(1, 4, 1))
    axis = axis_of(draw, len(shape))
    x, w = numbers(draw, shape, NUMBERS), numbers(draw, shape, (F32,), 0.5, 2)
    if draw(st.booleans()):
        w = w[(*[0] * (axis % len(shape)), slice(None), *[0] * (len(shape) - axis % len(shape) - 1))]
    return Arguments((x, w), {"axis": axis})


@st.composite
def variables(draw: Draw) -> Arguments:
    shape = draw(st.tuples(st.integers(1, 4), st.integers(2, 4)))
    return Arguments((numbers(draw, shape, (F32,)),), {"rowvar": True})


@st.composite
def labels(draw: Draw) -> Arguments:
    x = numbers(draw, (draw(st.integers(0, 9)),), (I32,), 0, 4)
    options = {"minlength": draw(st.integers(0, 7))}
    if not x.size or draw(st.booleans()):  # of nothing NumPy counts in integers, weights or not
        return Arguments((x,), options)
    return Arguments((x, numbers(draw, x.shape, (F32,))), options)


@st.composite
def points(draw: Draw) -> Arguments:
    shape = draw(shapes(0, 3))
    options: dict[str, Any] = {"bins": draw(st.integers(1, 5)), "range": (-2.1, 2.3)}
    return Arguments((numbers(draw, shape, (F32,)),), options)


@st.composite
def pairs_of_points(draw: Draw) -> Arguments:
    n = draw(st.integers(0, 9))
    options: dict[str, Any] = {"bins": draw(st.integers(1, 4)), "range": ((-2.1, 2.3), (-1.3, 1.1))}
    return Arguments((numbers(draw, (n,), (F32,)), numbers(draw, (n,), (F32,))), options)


@st.composite
def standard(draw: Draw, range: tuple[float, float]) -> Arguments:
    shape = draw(shapes(1))
    axis = axis_of(draw, len(shape), none=len(shape) == 1)
    return Arguments((numbers(draw, shape, NUMBERS, *range),), {"axis": axis, "include_initial": draw(st.booleans())})


def running(ufunc: np.ufunc, floats: bool = False) -> Callable[..., Any]:
    """What a ufunc accumulates along an axis, from the other end if `reverse`."""

    def function(x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
        x = x.astype(np.float64) if floats else x
        ordered = np.flip(x, axis) if reverse else x
        found = ufunc.accumulate(ordered, axis)
        return np.flip(found, axis) if reverse else found

    return function


def _histogram2d(namespace: Any) -> Callable[..., Any]:
    return lambda x, y, **options: list(namespace.histogram2d(x, y, **options))


def _histogramdd(namespace: Any) -> Callable[..., Any]:
    def function(x: Any, y: Any, **options: Any) -> list[Any]:
        counts, edges = namespace.histogramdd(namespace.stack([x, y], axis=1), **options)
        return [counts, *edges]

    return function


reverse = st.booleans()
ddof = st.integers(0, 1)
CASES: dict[str, Case] = {
    "sum": named("sum", over()),
    "prod": named("prod", over(range=SMALL)),
    "max": named("max", over(special=NAN)),
    "min": named("min", over(special=NAN)),
    "any": named("any", over(range=SMALL)),
    "all": named("all", over(range=SMALL)),
    "count_nonzero": named("count_nonzero", over(range=SMALL)),
    "mean": named("mean", over()),
    "var": named("var", over(NUMBERS, smallest=1, ddof=ddof)),
    "std": named("std", over(NUMBERS, ddof=ddof), lenient=True),
    "ptp": named("ptp", over(NUMBERS)),
    "median": named("median", over(NUMBERS, smallest=1, special=NAN)),
    "quantile": named("quantile", fractions(1, NAN)),
    "percentile": named("percentile", fractions(100)),
    "nanmedian": named("nanmedian", over((F32,), smallest=1, special=NAN)),
    "nanquantile": named("nanquantile", fractions(1, NAN)),
    "nanpercentile": named("nanpercentile", fractions(100, NAN)),
    "nansum": named("nansum", over(NUMBERS, special=NAN)),
    "nanprod": named("nanprod", over(NUMBERS, range=SMALL, special=NAN)),
    "nanmax": named("nanmax", over(NUMBERS, special=NAN)),
    "nanmin": named("nanmin", over(NUMBERS, special=NAN)),
    "nanmean": named("nanmean", over(NUMBERS, special=NAN)),
    "nanvar": named("nanvar", over((F32,), special=NAN, ddof=ddof)),
    "nanstd": named("nanstd", over((F32,), special=NAN, ddof=ddof)),
    "argmax": named("argmax", position()),
    "argmin": named("argmin", position()),
    "nanargmax": named("nanargmax", position(), lenient=True),
    "nanargmin": named("nanargmin", position(), lenient=True),
    "cumsum": named("cumsum", along(low=0, none=True)),
    "cumprod": named("cumprod", along(low=0, none=True, range=SMALL)),
    "nancumsum": named("nancumsum", along(NUMBERS, low=0, none=True, special=NAN)),
    "nancumprod": named("nancumprod", along(NUMBERS, low=0, none=True, range=SMALL, special=NAN)),
    "cumulative_sum": named("cumulative_sum", standard((-3, 3))),
    "cumulative_prod": named("cumulative_prod", standard(SMALL)),
    "cummax": named("cummax", along(NUMBERS, special=NAN, reverse=reverse), running(np.maximum)),
    "cummin": named("cummin", along(NUMBERS, special=NAN, reverse=reverse), running(np.minimum)),
    "cumlogsumexp": named("cumlogsumexp", along(NUMBERS, reverse=reverse), running(np.logaddexp, floats=True)),
    "average": named("average", weighted()),
    "cov": named("cov", variables()),
    "corrcoef": named("corrcoef", variables()),
    "bincount": named("bincount", labels(), lambda x, *w, **o: np.bincount(x, *w, **o), eager=True),
    "histogram": named("histogram", points(), lenient=True),
    "histogram_bin_edges": named("histogram_bin_edges", points()),
    "histogram2d": Case(pairs_of_points(), _histogram2d),
    "histogramdd": Case(pairs_of_points(), _histogramdd),
}
