"""Loops over little data, in lavax and, where it is installed, in JAX on the same machine's processor."""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from benchmarks import figure
from benchmarks.figure import Figure

# How many times as long as JAX's a loop may take on a CPU driver: its own bound for those that run lane by lane.
_BOUNDS = {"scalar": 10, "scan": 10, "while": 10, "rnn": 4, "rnn gradient": 4, "hmc": 5, "kalman": 5, "newton": 10}
_BOUNDS |= dict.fromkeys(("turned", "adam", "bodies", "beams"), 10)
_ROUNDS = 7
_RANDOM = np.random.default_rng(7)
_WEIGHTS = _RANDOM.normal(size=(32, 32), scale=0.1).astype("f")
_INPUTS = {
    "scalar": (np.float32(1),),
    "scan": (np.zeros(3, "f"), np.ones((20000, 3), "f")),
    "while": (np.arange(256, dtype="f"),),
    "rnn": (np.zeros((8, 32), "f"), _RANDOM.normal(size=(1000, 8, 32)).astype("f"), _WEIGHTS),
    "hmc": (_RANDOM.normal(size=(200, 8)).astype("f"),),
    "branches": (np.zeros(6, "f"), _RANDOM.normal(size=(500, 6)).astype("f")),
    "recurrence": (_RANDOM.normal(size=512).astype("f"),),
    "iteration": (_RANDOM.normal(size=(16, 16)).astype("f"), np.ones(16, "f")),
    "kalman": (np.float32(0.9) * np.eye(4, dtype="f"), np.eye(4, dtype="f"), _RANDOM.normal(size=(500, 4)).astype("f")),
    "newton": ((_RANDOM.normal(size=(8, 8), scale=0.2) + 2 * np.eye(8)).astype("f"), np.ones(8, "f")),
    "turned": (_RANDOM.normal(size=(16, 16)).astype("f"),),
    "adam": (
        _RANDOM.normal(size=(2, 16)).astype("f"),
        _RANDOM.normal(size=(32, 2)).astype("f"),
        _RANDOM.normal(size=(32, 16)).astype("f"),
    ),
    "bodies": (_RANDOM.normal(size=(16, 3)).astype("f"),),
    "beams": (_RANDOM.normal(size=(64, 64)).astype("f"),),
    "lstm": (
        np.zeros((8, 32), "f"),
        _RANDOM.normal(size=(200, 8, 128)).astype("f"),
        _RANDOM.normal(size=(32, 128), scale=0.1).astype("f"),
    ),
}


def measure() -> Sequence[Figure]:
    """Loops of many turns whose data is small: what a turn costs."""
    ours, theirs = _loops(lx, lnp, lx.compile), _jax_loops()
    figures = []
    for name in ours:
        calls = [_waiting(of[name], _INPUTS[name.split()[0]]) for of in (ours, theirs) if of]
        times = _interleaved(calls)
        figures.append(Figure(name, figure.spread(times[0])))
        if theirs:
            ratio = figure.median(times[0]) / figure.median(times[1])
            compared = f"{name}, over JAX's time"
            bound = _BOUNDS.get(name)
            plain = Figure(compared, f"{ratio:.3g}")
            figures.append(plain if bound is None else figure.at_most(compared, ratio, bound))
    return figures


def _interleaved(calls: Sequence[Callable[[], Any]]) -> list[list[float]]:
    """Seconds of each call, in turn, after a call of each that compiles."""
    times: list[list[float]] = [[] for _ in calls]
    for number in range(_ROUNDS + 1):
        for call, seconds in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            if number:
                seconds.append(time.perf_counter() - start)
    return times


def _waiting(loop: Callable[..., Any], inputs: Sequence[Any]) -> Callable[[], Any]:
    return lambda: np.asarray(loop(*inputs))


def _loops(library: Any, numpy: Any, compile: Callable[..., Any]) -> Mapping[str, Callable[..., Any]]:
    """Each loop, written once for both libraries; each gives one array."""
    flow = library if library is lx else library.lax

    def rnn(h: Any, xs: Any, w: Any) -> Any:
        return numpy.sum(flow.scan(lambda h, x: (numpy.tanh(h @ w + x), h), h, xs)[1])

    def growth(x: Any) -> Any:
        return flow.while_loop(lambda c: c[0] < 100, lambda c: (c[0] * 1.1 + 1, c[1] + 1), (x, 0))[1]

    def energy(q: Any) -> Any:
        return numpy.sum(q * q) / 2 + numpy.sum(numpy.cos(q))

    def leapfrog(_: Any, state: Any) -> Any:
        q, p = state
        p = p - 0.05 * library.grad(energy)(q)
        q = q + 0.1 * p
        return q, p - 0.05 * library.grad(energy)(q)

    def draw(q: Any, p: Any) -> Any:
        new, end = flow.fori_loop(0, 10, leapfrog, (q, p))
        gain = energy(q) + numpy.sum(p * p) / 2 - energy(new) - numpy.sum(end * end) / 2
        q = numpy.where(gain > -1, new, q)
        return q, q

    def branch(c: Any, x: Any) -> Any:
        taken = flow.cond(numpy.sum(c) > 0, lambda v: v * 0.9 + x, lambda v: numpy.cos(v[::-1]) - x, c)
        return taken, c[0]

    def power(state: Any, a: Any) -> Any:
        v, turn = state
        w = a @ v
        return w / numpy.sqrt(numpy.sum(w * w)), turn + 1

    def kalman(f: Any, p: Any, ys: Any) -> Any:
        def step(state: Any, y: Any) -> Any:
            x, p = state
            x, p = f @ x, f @ p @ f.T + 0.1 * numpy.eye(4)
            gain = numpy.linalg.solve(p + 0.5 * numpy.eye(4), p).T
            x = x + gain @ (y - x)
            return (x, p - gain @ p), x

        return flow.scan(step, (numpy.zeros(4, "float32"), p), ys)[1]

    def newton(a: Any, b: Any) -> Any:
        def rest(x: Any) -> Any:
            return a @ x + 0.3 * numpy.tanh(x) ** 3 - b

        def turn(state: Any) -> Any:
            x, n = state
            return x - numpy.linalg.solve(library.jacfwd(rest)(x), rest(x)), n + 1

        return flow.while_loop(lambda s: s[1] < 20, turn, (numpy.zeros(8, "float32"), 0))[0]

    def adam(w: Any, x: Any, y: Any) -> Any:
        def loss(w: Any) -> Any:
            return numpy.mean((numpy.tanh(x @ w) - y) ** 2)

        def step(state: Any, _: Any) -> Any:
            w, mean, square = state
            value, slope = library.value_and_grad(loss)(w)
            mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope * slope
            return (w - 0.01 * mean / (numpy.sqrt(square) + 1e-8), mean, square), value

        return flow.scan(step, (w, w * 0, w * 0), None, length=1000)[1]

    def bodies(x: Any) -> Any:
        def pull(x: Any) -> Any:
            apart = x[None] - x[:, None]
            return numpy.sum(apart / (numpy.sum(apart * apart, -1) + 0.1)[..., None] ** 1.5, 1)

        def step(_: Any, state: Any) -> Any:
            x, v = state
            v = v + 0.01 * pull(x)
            return x + 0.01 * v, v

        return flow.fori_loop(0, 200, step, (x, x * 0))[0]

    def beams(costs: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            score, token = state
            best, place = library.lax.top_k(numpy.reshape(score[:, None] + costs[token], -1), 4)
            return best, place % 64

        return flow.fori_loop(0, 32, step, (numpy.zeros(4, "float32"), numpy.arange(4)))[0]

    def lstm(h: Any, xs: Any, w: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            h, c = state
            i, f, o, u = numpy.split(h @ w + x, 4, axis=-1)
            c = library.nn.sigmoid(f) * c + library.nn.sigmoid(i) * numpy.tanh(u)
            return (library.nn.sigmoid(o) * numpy.tanh(c), c), h

        return numpy.sum(flow.scan(step, (h, h), xs)[1])

    return {
        "scalar": compile(lambda x: flow.fori_loop(0, 20000, lambda i, s: s * 0.999 + 1, x)),
        "scan": compile(lambda c, xs: flow.scan(lambda c, x: (c * 0.9 + x, c), c, xs)[1]),
        "while": compile(library.vmap(growth)),
        "rnn": compile(rnn),
        "rnn gradient": compile(library.grad(rnn, argnums=2)),
        "hmc": compile(lambda ps: flow.scan(draw, numpy.zeros(8, "float32"), ps)[1]),
        "branches": compile(lambda c, xs: flow.scan(branch, c, xs)[1]),
        "recurrence": compile(
            lambda x: flow.fori_loop(
                2, 500, lambda i, c: c.at[i].set(c[i - 1] * 0.5 + numpy.sin(c[i - 2])), x
            )
        ),
        "iteration": compile(
            lambda a, v: flow.while_loop(lambda s: s[1] < 300, lambda s: power(s, a), (v, 0))[0]
        ),
        "kalman": compile(kalman),
        "newton": compile(newton),
        "turned": compile(lambda c: flow.fori_loop(0, 200, lambda i, c: numpy.tanh(c.T * 0.9 + c), c)),
        "adam": compile(adam),
        "bodies": compile(bodies),
        "beams": compile(beams),
        "lstm": compile(lstm),
        "lstm gradient": compile(library.grad(lstm, argnums=2)),
    }


def _jax_loops() -> Mapping[str, Callable[..., Any]]:
    """JAX's, on the CPU; none if it is not installed."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return {}
    return _loops(jax, jnp, jax.jit)
