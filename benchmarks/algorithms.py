"""Sorting, cumulative sums and scatters against NumPy in the same run."""
from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

import lavax.numpy as lnp
from benchmarks import figure
from benchmarks.figure import Figure

ROUNDS = 7


def measure() -> Sequence[Figure]:
    """Sort 2^20 floats, cumulative sum of 2^24, and scatter-adds of a million numbers, against NumPy."""
    random = np.random.default_rng(0)
    short, long = (random.normal(size=1 << bits).astype(np.float32) for bits in (20, 24))
    few, many = (random.integers(0, count, 1_000_000).astype(np.int32) for count in (1000, 100_000))
    weights = random.normal(size=1_000_000).astype(np.float32)
    on_device = [lnp.asarray(array) for array in (short, long, few, many, weights)]
    of_short, of_long, of_few, of_many, of_weights = (array + 0 for array in on_device)
    return [
        *_against("sort of 2^20 floats", lambda: lnp.sort(of_short), lambda: np.sort(short)),
        *_against(
            "argsort of 2^20 floats", lambda: lnp.argsort(of_short), lambda: np.argsort(short, kind="stable")
        ),
        *_against("cumsum of 2^24 floats", lambda: lnp.cumsum(of_long), lambda: np.cumsum(long)),
        *_against(
            "10^6 updates of 1000 elements",
            lambda: lnp.zeros(1000).at[of_few].add(of_weights),
            lambda: np.add.at(np.zeros(1000, np.float32), few, weights),
        ),
        *_against(
            "10^6 updates of 100000 elements",
            lambda: lnp.zeros(100_000).at[of_many].add(of_weights),
            lambda: np.add.at(np.zeros(100_000, np.float32), many, weights),
        ),
        *_against(
            "10 updates of 10^6 elements",
            lambda: lnp.zeros(1_000_000).at[of_many[:10]].add(of_weights[:10]),
            lambda: np.add.at(np.zeros(1_000_000, np.float32), many[:10], weights[:10]),
        ),
    ]


def _against(name: str, ours: Callable[[], lnp.ndarray], theirs: Callable[[], object]) -> list[Figure]:
    """Both times, called in turn, and their ratio."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(ROUNDS + 1):
        for seconds, function in zip(times, (lambda: ours().block_until_ready(), theirs), strict=True):
            start = time.perf_counter()
            function()
            if number:
                seconds.append(time.perf_counter() - start)
    mine, numpys = times
    return [
        Figure(name, figure.spread(mine)),
        Figure(f"{name}, NumPy", figure.spread(numpys)),
        Figure(f"{name}, over NumPy", f"{figure.median(mine) / figure.median(numpys):.3g}"),
    ]
