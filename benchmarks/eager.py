"""What calls outside `compile` cost, in lavax and, where it is installed, in JAX on the same machine's processor."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import lavax as lx
import lavax.numpy as lnp
from benchmarks import figure
from benchmarks.figure import Figure
from benchmarks.overhead import interleaved, microseconds


def measure() -> Sequence[Figure]:
    """Small calls one after another, not waited for, as in a user's session, and calls over large arrays, waited for.
    """
    calls = _calls(lx, lnp)
    peers = _jax_calls()
    times = interleaved(*[function for name in calls for function in (calls[name], *_of(peers, name))])
    step = 1 + bool(peers)
    figures = []
    for name, ours in zip(calls, times[::step], strict=True):
        figures.append(Figure(name, figure.spread(ours)))
        if peers:
            jax = times[times.index(ours) + 1]
            figures.append(figure.at_most(f"{name}, over JAX's time", microseconds(ours) / microseconds(jax), 5))
    return figures


def _calls(library: Any, numpy: Any) -> dict[str, Callable[[], Any]]:
    """The calls; `library` and `numpy` are those of lavax or of JAX."""
    key, x, large = library.random.key(0), numpy.arange(10.0), numpy.ones((1000, 999))

    def doubled(x: Any) -> Any:
        return numpy.sin(x) * 2 + 1

    return {
        "x + 1": lambda: x + 1,
        "x[3]": lambda: x[3],
        "sum": lambda: numpy.sum(x),
        "random.normal of 10 numbers": lambda: library.random.normal(key, (10,)),
        "random.split": lambda: library.random.split(key),
        "random.randint of 10 numbers": lambda: library.random.randint(key, (10,), 0, 5),
        "a fresh jit of a function": lambda: library.jit(doubled)(x),
        "x * x of 1000 by 999": lambda: (large * large).block_until_ready(),
        "x + row of 1000 by 999": lambda: (large + large[0]).block_until_ready(),
        "x[1:, 1:] of 1000 by 999": lambda: large[1:, 1:].block_until_ready(),
        "isclose of 1000 by 999": lambda: numpy.isclose(large, large).block_until_ready(),
    }


@functools.cache
def _jax_calls() -> dict[str, Callable[[], Any]]:
    """JAX's calls; none where it is not installed."""
    try:
        import jax
    except ImportError:
        return {}
    jax.config.update("jax_platforms", "cpu")
    return _calls(jax, jax.numpy)


def _of(peers: dict[str, Callable[[], Any]], name: str) -> list[Callable[[], Any]]:
    return [peers[name]] if name in peers else []
