"""Selection, scatters, pads, cumulative sums and small linear algebra, beside JAX and NumPy on the same processor."""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from benchmarks import figure
from benchmarks.figure import Figure

# How many times as long as the faster of JAX and NumPy a function may take on a CPU driver.
_BOUND, _BOUND_OF_LINEAR_ALGEBRA = 5, 15
_ROUNDS = 9
_BATCH = 0.01  # seconds of calls that are timed together
_COUNT, _FEW, _MANY = 1_000_000, 1000, 100_000
_SIZES = (16, 64, 128)
_PAD_WIDTHS = ((0, 0), (0, 0), (3, 3), (3, 3))


def measure() -> Sequence[Figure]:
    """Selection, scatters, pads and small linear algebra: lavax's time over the faster of JAX's and NumPy's."""
    inputs = _inputs()
    ours = _functions(lx, lnp, lx.compile, _sum_by_segment)
    jaxs, numpys = _jax_functions(), _numpy_functions()
    figures = []
    for name, (function, operands) in ours.items():
        arrays = [inputs[operand] for operand in operands]
        calls = [_waiting(function, [lnp.asarray(array) for array in arrays])]
        if name in jaxs:
            calls.append(_waiting(jaxs[name][0], arrays))
        if name in numpys:
            calls.append(_called(numpys[name], arrays))
        mine, *theirs = _interleaved(calls)
        figures.append(Figure(name, figure.spread([call.clock for call in mine])))
        if theirs:
            bound = _BOUND_OF_LINEAR_ALGEBRA if name.split()[0] in _LINEAR_ALGEBRA else _BOUND
            ratios = [_ratios(mine, their) for their in theirs]
            middle, least, processor = (max(ratio) for ratio in zip(*ratios, strict=True))
            text = f"{middle:.3g} (of minima {least:.3g}, of processor time {processor:.3g})"
            figures.append(figure.at_most(f"{name}, ratio", middle, bound, text))
    return figures


def _inputs() -> Mapping[str, np.ndarray]:
    random = np.random.default_rng(7)
    few, many = (random.integers(0, count, _COUNT).astype(np.int32) for count in (_FEW, _MANY))
    arrays = {
        "long": random.normal(size=_COUNT).astype("f"),
        "rows": random.normal(size=(1024, 1024)).astype("f"),
        "few": few,
        "few in order": np.sort(few),
        "many": many,
        "many in order": np.sort(many),
        "each once": random.permutation(_COUNT).astype(np.int32),
        "vectors": random.normal(size=(65536, 16)).astype("f"),
        "rows of vectors": random.integers(0, _FEW, 65536).astype(np.int32),
        "rows of many vectors": random.integers(0, 20_000, 65536).astype(np.int32),
        "embeddings": random.normal(size=(50_000, 64)).astype("f"),
        "gradients": random.normal(size=(4096, 64)).astype("f"),
        "tokens": random.integers(0, 50_000, 4096).astype(np.int32),
        "places in rows": random.integers(0, 1024, (1024, 1024)).astype(np.int32),
        "a third": random.random(_COUNT) < 0.3,
        "images": random.normal(size=(8, 16, 128, 128)).astype("f"),
    }
    for batch, size in [((), size) for size in _SIZES] + [((64,), 16)]:
        matrix = random.normal(size=(*batch, size, size)).astype("f")
        definite = matrix @ matrix.swapaxes(-1, -2) / size + np.eye(size, dtype="f")
        name = " of ".join(map(str, (*batch, size)))
        arrays |= {f"matrix {name}": matrix, f"definite {name}": definite}
        arrays[f"right {name}"] = random.normal(size=(*batch, size, 4)).astype("f")
    return arrays


def _sum_by_segment(values: Any, segments: Any, count: int) -> Any:
    return lnp.zeros((count, *values.shape[1:])).at[segments].add(values)


_LINEAR_ALGEBRA = {
    "eigh": ("definite",),
    "svd": ("matrix",),
    "qr": ("matrix",),
    "cholesky": ("definite",),
    "solve": ("matrix", "right"),
    "det": ("matrix",),
    "inv": ("matrix",),
}


def _functions(
    library: Any, xp: Any, compile: Callable[..., Any], segment_sum: Callable[..., Any]
) -> Mapping[str, tuple[Callable[..., Any], Sequence[str]]]:
    """Each function, written once for both libraries, and the names of its inputs."""
    accumulate = library.lax
    tasks: dict[str, tuple[Callable[..., Any], Sequence[str]]] = {
        "top 10 of 1024 rows": (lambda x: accumulate.top_k(x, 10)[0], ["rows"]),
        "argmax of 1024 rows": (lambda x: xp.argmax(x, 1), ["rows"]),
        "argmax of 10^6": (lambda x: xp.argmax(x), ["long"]),
        "sort of 10^6": (lambda x: xp.sort(x), ["long"]),
        "sort of 1024 rows": (lambda x: xp.sort(x, 1), ["rows"]),
        "sort of 10^6 integers": (lambda x: xp.sort(x), ["many"]),
        "argsort of 10^6": (lambda x: xp.argsort(x), ["long"]),
        "sort of 10^6 by two keys": (lambda x, y: xp.lexsort((x, y)), ["long", "few"]),
        "different of 10^6 in 1000": (lambda x: xp.unique(x, size=_FEW), ["few"]),
        "search of 10^6 in 10^5": (lambda x, y: xp.searchsorted(x, y), ["many in order", "many"]),
        "places of a third of 10^6": (lambda x: xp.nonzero(x, size=_COUNT // 2)[0], ["a third"]),
        "taken from 10^6": (lambda x, i: x[i], ["long", "each once"]),
        "taken along rows": (lambda x, i: xp.take_along_axis(x, i, 1), ["rows", "places in rows"]),
        "taken rows of embeddings": (lambda x, i: x[i], ["embeddings", "tokens"]),
        "roll of 10^6": (lambda x: xp.roll(x, 12_345), ["long"]),
        "flip of rows": (lambda x: xp.flip(x, 1), ["rows"]),
        "computed parts joined": (lambda x, y: xp.concatenate([x * k + y for k in range(8)]), ["rows", "rows"]),
        "add rows to embeddings": (lambda x, i, y: x.at[i].add(y), ["embeddings", "tokens", "gradients"]),
        "set rows of embeddings": (lambda x, i, y: x.at[i].set(y), ["embeddings", "tokens", "gradients"]),
        "add 10^6 to 1000": (lambda i, x: xp.zeros(_FEW).at[i].add(x), ["few", "long"]),
        "add 10^6 to 10^5": (lambda i, x: xp.zeros(_MANY).at[i].add(x), ["many", "long"]),
        "add 10^6 to 10^6, each once": (lambda i, x: xp.zeros(_COUNT).at[i].add(x), ["each once", "long"]),
        "set 10^6, each once": (lambda i, x: xp.zeros(_COUNT).at[i].set(x), ["each once", "long"]),
        "maximum of 10^6 in 1000": (lambda i, x: xp.zeros(_FEW).at[i].max(x), ["few", "long"]),
        "bincount of 10^6 in 1000": (lambda i: xp.bincount(i, length=_FEW), ["few"]),
        "bincount of 10^6 in 10^5": (lambda i: xp.bincount(i, length=_MANY), ["many"]),
        "histogram of 10^6": (lambda x: xp.histogram(x, bins=64)[0], ["long"]),
        "sums of 1000 segments": (lambda x, i: segment_sum(x, i, _FEW), ["long", "few"]),
        "sums of 1000 segments in order": (lambda x, i: segment_sum(x, i, _FEW), ["long", "few in order"]),
        "sums of 10^5 segments in order": (lambda x, i: segment_sum(x, i, _MANY), ["long", "many in order"]),
        "sums of 1000 segments of vectors": (lambda x, i: segment_sum(x, i, _FEW), ["vectors", "rows of vectors"]),
        "sums of 20,000 segments of vectors": (
            lambda x, i: segment_sum(x, i, 20_000), ["vectors", "rows of many vectors"],
        ),
        "cumsum of 10^6": (lambda x: xp.cumsum(x), ["long"]),
        "cumsum of 1024 rows": (lambda x: xp.cumsum(x, 1), ["rows"]),
        "cumsum of 1024 columns": (lambda x: xp.cumsum(x, 0), ["rows"]),
        "cumprod of 1024 rows": (lambda x: xp.cumprod(x, 1), ["rows"]),
        "cummax of 1024 rows": (lambda x: accumulate.cummax(x, axis=1), ["rows"]),
    }
    for mode in ("reflect", "symmetric", "edge", "wrap"):
        tasks[f"{mode} pad of images"] = (lambda x, m=mode: xp.pad(x, _PAD_WIDTHS, mode=m), ["images"])
        tasks[f"{mode} pad of rows"] = (lambda x, m=mode: xp.pad(x, 8, mode=m), ["rows"])
    linalg = xp.linalg
    for name, operands in _LINEAR_ALGEBRA.items():
        for size in (*map(str, _SIZES), "64 of 16"):
            function = getattr(linalg, name)
            tasks[f"{name} of {size}"] = (
                lambda *given, f=function: _last(f(*given)),
                [f"{operand} {size}" for operand in operands],
            )
    return {name: (compile(function), operands) for name, (function, operands) in tasks.items()}


def _last(result: Any) -> Any:
    """One array of a result that may be several, which are computed together."""
    return result[-1] if isinstance(result, tuple) else result


def _jax_functions() -> Mapping[str, tuple[Callable[..., Any], Sequence[str]]]:
    """JAX's, on the CPU; none if it is not installed."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return {}
    return _functions(jax, jnp, jax.jit, lambda x, i, count: jax.ops.segment_sum(x, i, count))


def _numpy_functions() -> Mapping[str, Callable[..., Any]]:
    """What NumPy has a function for."""

    def added(count: int) -> Callable[..., Any]:
        return lambda i, x: np.bincount(i, weights=x, minlength=count).astype("f")

    def put(i: np.ndarray, x: np.ndarray) -> np.ndarray:
        result = np.zeros(_COUNT, "f")
        result[i] = x
        return result

    tasks: dict[str, Callable[..., Any]] = {
        "top 10 of 1024 rows": lambda x: np.sort(np.partition(x, -10, 1)[:, -10:], 1),
        "argmax of 1024 rows": lambda x: np.argmax(x, 1),
        "argmax of 10^6": np.argmax,
        "sort of 10^6": np.sort,
        "sort of 1024 rows": lambda x: np.sort(x, 1),
        "sort of 10^6 integers": np.sort,
        "argsort of 10^6": np.argsort,
        "sort of 10^6 by two keys": lambda x, y: np.lexsort((x, y)),
        "different of 10^6 in 1000": np.unique,
        "search of 10^6 in 10^5": np.searchsorted,
        "places of a third of 10^6": np.nonzero,
        "taken from 10^6": lambda x, i: x[i],
        "taken along rows": lambda x, i: np.take_along_axis(x, i, 1),
        "taken rows of embeddings": lambda x, i: x[i],
        "roll of 10^6": lambda x: np.roll(x, 12_345),
        "flip of rows": lambda x: np.flip(x, 1).copy(),
        "add 10^6 to 1000": added(_FEW),
        "add 10^6 to 10^5": added(_MANY),
        "add 10^6 to 10^6, each once": added(_COUNT),
        "set 10^6, each once": put,
        "bincount of 10^6 in 1000": lambda i: np.bincount(i, minlength=_FEW),
        "bincount of 10^6 in 10^5": lambda i: np.bincount(i, minlength=_MANY),
        "histogram of 10^6": lambda x: np.histogram(x, bins=64)[0],
        "sums of 1000 segments": lambda x, i: np.bincount(i, x, _FEW).astype("f"),
        "sums of 1000 segments in order": lambda x, i: np.bincount(i, x, _FEW).astype("f"),
        "sums of 10^5 segments in order": lambda x, i: np.bincount(i, x, _MANY).astype("f"),
        "cumsum of 10^6": np.cumsum,
        "cumsum of 1024 rows": lambda x: np.cumsum(x, 1),
        "cumsum of 1024 columns": lambda x: np.cumsum(x, 0),
        "cumprod of 1024 rows": lambda x: np.cumprod(x, 1),
        "cummax of 1024 rows": lambda x: np.maximum.accumulate(x, 1),
    }
    for mode in ("reflect", "symmetric", "edge", "wrap"):
        tasks[f"{mode} pad of images"] = lambda x, m=mode: np.pad(x, _PAD_WIDTHS, mode=m)
        tasks[f"{mode} pad of rows"] = lambda x, m=mode: np.pad(x, 8, mode=m)
    for name in _LINEAR_ALGEBRA:
        for size in (*map(str, _SIZES), "64 of 16"):
            tasks[f"{name} of {size}"] = getattr(np.linalg, name)
    return tasks


def _waiting(function: Callable[..., Any], arrays: Sequence[Any]) -> Callable[[], Any]:
    return lambda: function(*arrays).block_until_ready()


def _called(function: Callable[..., Any], arrays: Sequence[Any]) -> Callable[[], Any]:
    return lambda: function(*arrays)


@dataclass(frozen=True)
class _Seconds:
    """How long a call took, by the clock and on all processors together."""

    clock: float
    processor: float


def _ratios(mine: Sequence[_Seconds], theirs: Sequence[_Seconds]) -> tuple[float, float, float]:
    """Of the medians, of the least times, and of the least processor times."""
    (clock, processor), (their_clock, their_processor) = (
        ([call.clock for call in calls], [call.processor for call in calls]) for calls in (mine, theirs)
    )
    medians = figure.median(clock) / figure.median(their_clock)
    return medians, min(clock) / min(their_clock), min(processor) / min(their_processor)


def _interleaved(calls: Sequence[Callable[[], Any]]) -> list[list[_Seconds]]:
    """Times of each call, in turn, after a call of each that compiles.

    They are of batches, because JAX's threads wait in a loop for the next call, and what they used counts late.
    """
    counts = []
    for call in calls:
        call()
        counts.append(max(int(_BATCH / _seconds(call, 1).clock), 1))
    times: list[list[_Seconds]] = [[] for _ in calls]
    for _ in range(_ROUNDS):
        for call, count, seconds in zip(calls, counts, times, strict=True):
            seconds.append(_seconds(call, count))
    return times


def _seconds(call: Callable[[], Any], count: int) -> _Seconds:
    """What a call takes, of so many."""
    clock, processor = time.perf_counter(), time.process_time()
    for _ in range(count):
        call()
    return _Seconds((time.perf_counter() - clock) / count, (time.process_time() - processor) / count)
