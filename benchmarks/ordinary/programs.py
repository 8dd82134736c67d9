"""Ordinary programs of arrays, in lavax and in JAX on the same processor, by processor time.

JAX's threads wait in a loop for the next call, and what they have used counts late, so batches of calls are timed, by
turns with lavax's, and the least of several is taken.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
import lavax.ops
from benchmarks import figure
from benchmarks.figure import Figure

_BOUND = 5  # times JAX's processor time
_BATCHES, _SECONDS = 8, 0.012  # and how long a batch of calls takes, at least
# Rows, their elements, and segments.
_SEGMENTS = ((100_000, 16, 10), (100_000, 16, 1000), (100_000, 16, 50_000), (100_000, 15, 1000), (20_000, 64, 1000))

Call = Callable[[], Any]


def measure() -> Sequence[Figure]:
    """Sums of segments, ways in graphs, iterations and rows: lavax's processor time over JAX's."""
    libraries = [_programs(lx, lnp, lx, lx.compile), *_jax_programs()]
    figures = []
    for name in libraries[0]:
        mine, *others = _least_of_batches([programs[name] for programs in libraries])
        figures.append(Figure(name, f"{mine * 1e3:.3g} ms"))
        for other in others:
            text = f"{mine / other:.3g} ({other * 1e3:.3g} ms)"
            figures.append(figure.at_most(f"{name}, over JAX's", mine / other, _BOUND, text))
    return figures


def _least_of_batches(calls: Sequence[Call]) -> list[float]:
    """Processor seconds of each call, in the least of its batches."""
    lengths = []
    for call in calls:
        call()
        start = time.perf_counter()
        call()
        lengths.append(max(1, int(_SECONDS / max(time.perf_counter() - start, 1e-6))))
    least = [float("inf")] * len(calls)
    for _ in range(_BATCHES):
        for number, (call, length) in enumerate(zip(calls, lengths, strict=True)):
            start = time.process_time()
            for _ in range(length):
                call()
            least[number] = min(least[number], (time.process_time() - start) / length)
    return least


def _jax_programs() -> list[Mapping[str, Call]]:
    try:
        import jax
        import jax.numpy as jnp
        import jax.ops
    except ImportError:
        return []
    return [_programs(jax, jnp, jax.lax, jax.jit)]


def _programs(library: Any, xp: Any, flow: Any, compile: Callable[..., Any]) -> Mapping[str, Call]:
    """Each program, written once for both libraries, called with arrays on the library's device."""
    random = np.random.default_rng(7)

    def uniform(*shape: int) -> np.ndarray:
        return random.uniform(size=shape).astype("f")

    def turns(count: int, step: Callable[..., Any]) -> Callable[..., Any]:
        return compile(lambda state, *rest: flow.fori_loop(0, count, lambda i, state: step(i, state, *rest), state))

    def logistic(i: Any, w: Any, x: Any, y: Any) -> Any:
        return w - 0.1 * x.T @ (library.nn.sigmoid(x @ w) - y) / 500

    def sinkhorn(i: Any, v: Any, k: Any) -> Any:
        return 1 / (k.T @ (1 / (k @ v)))

    def eliminated(k: Any, a: Any) -> Any:
        factors = xp.where(xp.arange(64) > k, a[:, k] / a[k, k], 0)
        return a - factors[:, None] * a[k][None]

    def valued(i: Any, v: Any, moves: Any, gains: Any) -> Any:
        return xp.max(gains + 0.9 * xp.einsum("ast,t->as", moves, v), axis=0)

    def separated(i: Any, w: Any, x: Any) -> Any:
        return w - 0.1 * (xp.where((x @ w < 1)[:, None], -x, 0).mean(0) + 0.01 * w)

    def heat(i: Any, u: Any) -> Any:
        return 0.25 * (xp.roll(u, 1, 0) + xp.roll(u, -1, 0) + xp.roll(u, 1, 1) + xp.roll(u, -1, 1))

    def normed(x: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) / xp.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def greatest(x: Any, i: Any) -> Any:
        return library.ops.segment_max(x, i, num_segments=50_000)

    def waiting(function: Callable[..., Any], *arrays: np.ndarray) -> Call:
        held = [xp.asarray(array) for array in arrays]
        return lambda: function(*held).block_until_ready()

    programs: dict[str, Call] = {}
    for rows, width, count in _SEGMENTS:
        summed = compile(lambda x, i, count=count: library.ops.segment_sum(x, i, num_segments=count))
        x, i = uniform(rows, width), random.integers(0, count, rows).astype(np.int32)
        name = f"sums of {count:,} segments of {rows:,} rows of {width}"
        programs |= {name: waiting(summed, x, i), f"{name}, sorted": waiting(summed, x, np.sort(i))}
    many = random.integers(0, 50_000, 100_000).astype(np.int32)
    matrices = 2 * np.eye(2, dtype="f") * uniform(1000, 1, 1)
    return programs | {
        "maxima of 50,000 segments of 100,000 numbers": waiting(compile(greatest), uniform(100_000), many),
        "Floyd and Warshall's ways between 128 places": waiting(
            turns(128, lambda k, d: xp.minimum(d, d[:, k][:, None] + d[k][None])), uniform(128, 128)
        ),
        "Gauss' elimination of 64 × 65, a turn a row": waiting(
            turns(63, eliminated), uniform(64, 65) + 8 * np.eye(64, 65, dtype="f")
        ),
        "value iteration, 100 states, 4 actions, 100 turns": waiting(
            turns(100, valued), np.zeros(100, "f"), uniform(4, 100, 100) / 50, uniform(4, 100)
        ),
        "subgradients of a support vector machine, 400 × 20, 100 turns": waiting(
            turns(100, separated), np.zeros(20, "f"), uniform(400, 20) - 0.5
        ),
        "sums of 8 rows of 100,001": waiting(compile(lambda x: x.sum(1)), uniform(8, 100_001)),
        "PageRank of 300 places by a product, 30 turns": waiting(
            turns(30, lambda i, v, p: 0.0005 + 0.85 * (p @ v)), uniform(300) / 300, uniform(300, 300) / 150
        ),
        "100 steps of a logistic regression, 500 × 20": waiting(
            turns(100, logistic), np.zeros(20, "f"), uniform(500, 20), uniform(500)
        ),
        "heat by `roll`, 63 × 63, 50 turns": waiting(turns(50, heat), uniform(63, 63)),
        "`associative_scan` of 1,000 products of 2 × 2": waiting(
            compile(lambda a: library.lax.associative_scan(xp.matmul, a)), matrices
        ),
        "50 steps of Sinkhorn's iteration, [64, 64]": waiting(turns(50, sinkhorn), np.ones(64, "f"), uniform(64, 64)),
        "layer norm of 1000 × 999": waiting(compile(normed), uniform(1000, 999)),
        "softmax of 1000 × 999": waiting(compile(lambda x: library.nn.softmax(x, -1)), uniform(1000, 999)),
    }
