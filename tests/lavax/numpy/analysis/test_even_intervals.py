"""Histograms over a range that is known: the same counts as by a search among the edges, also of their neighbours."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ShapeError
from tests import denormals

RANDOM = np.random.default_rng(51)
# The range, the number of intervals, and whether they are found by a division.
SPANS = [
    ((-4, 4), 100, True),
    ((0.1, 0.7), 11, True),
    ((np.float32(0.5), 2), 1, True),
    ((-1, 1), 100_000, True),
    ((1e3, 1e3 + 1), 100, True),
    ((1e6, 1e6 + 1), 50, False),  # eight neighbouring intervals have the same edges
    ((3, 3), 5, False),
]


def counted(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    place = np.searchsorted(edges, x, "right") - 1
    place[x == edges[-1]] = len(edges) - 2
    return np.bincount(place[(place >= 0) & (place < len(edges) - 1)], minlength=len(edges) - 1)


@pytest.mark.parametrize(("span", "count", "by_division"), SPANS, ids=str)
def test_counts(span: tuple[Any, Any], count: int, by_division: bool) -> None:
    function = lx.compile(lambda x: lnp.histogram(x, count, span))
    width = span[1] - span[0]
    x = RANDOM.uniform(span[0] - 0.2 * width, span[1] + 0.2 * width, 5000).astype(np.float32)
    edges = np.asarray(function(x)[1])
    near = [np.nextafter(edges, np.float32(side)) for side in (np.inf, -np.inf)]
    x = np.concatenate([x, edges, *near, np.array([np.nan, np.inf, -np.inf], np.float32)])
    if denormals.are_flushed():
        x = np.where(np.abs(x) < np.finfo(np.float32).tiny, np.float32(0), x)
    np.testing.assert_array_equal(function(x)[0], counted(x, edges))
    assert ("search_sorted" in function.lower(x).as_text("ir")) != by_division


def test_counts_of_integers_and_sums_of_weights() -> None:
    x, weights = RANDOM.integers(-3, 12, 3000).astype(np.int32), RANDOM.integers(0, 5, 3000).astype(np.float32)
    counts, edges = lnp.histogram(x, 5, (0, 10))
    np.testing.assert_array_equal(counts, np.histogram(x, 5, (0, 10))[0])
    np.testing.assert_array_equal(edges, [0, 2, 4, 6, 8, 10])
    sums = lx.compile(lambda x, w: lnp.histogram(x, 5, (0, 10), w)[0])(x, weights)
    np.testing.assert_array_equal(sums, np.histogram(x, 5, (0, 10), weights=weights)[0])


def test_cells_of_a_grid() -> None:
    x, y = RANDOM.normal(size=(2, 3000)).astype(np.float32)
    x[:2], y[:2] = [-4, np.nan], [3, 0.5]
    span = ((-4, 4), (-3, 3))
    function = lx.compile(lambda x, y: lnp.histogram2d(x, y, (20, 30), span))
    counts, *edges = function(x, y)
    of_finite = np.isfinite(x)
    np.testing.assert_array_equal(counts, np.histogram2d(x[of_finite], y[of_finite], (20, 30), span)[0])
    assert "search_sorted" not in function.lower(x, y).as_text("ir")
    uneven = lx.compile(lambda x, y: lnp.histogram2d(x, y, (edges[0], 30), span)[0])
    np.testing.assert_array_equal(uneven(x, y), counts)
    assert uneven.lower(x, y).as_text("ir").count("search_sorted") == 1


def test_bins_of_all_dimensions() -> None:
    x, y = np.random.default_rng(5).normal(size=(2, 300)).astype(np.float32)
    edges = np.linspace(-2, 2, 6).astype(np.float32)
    for bins in (edges, [-2.0, 0.5, 1.0, 2.0], np.int64(4), [edges, 3]):
        for found, expected in zip(lnp.histogram2d(x, y, bins), np.histogram2d(x, y, bins), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    points = np.stack([x, y, x], 1)
    with pytest.raises(ShapeError, match="bins must be 3, one a dimension, got 2"):
        lnp.histogramdd(points, [4, 5])
    with pytest.raises(ShapeError, match="range must be 3, one a dimension, got 1"):
        lnp.histogramdd(points, 4, [(0, 1)])
