"""Calls of the host inside branches and loops, under derivatives and vmap, against the same in NumPy."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax
from lavax.experimental import io_callback

X = np.linspace(0.1, 0.9, 4, dtype="f")


def host_sine(x: Any) -> Any:
    return lx.pure_callback(np.sin, lx.ShapeDtype(x.shape, x.dtype), x, vmap_method="sequential")


@lx.custom_jvp
def sine(x: Any) -> Any:
    return host_sine(x)


sine.defjvp(lambda primals, tangents: (sine(*primals), lnp.cos(primals[0]) * tangents[0]))

# Each takes a sine (of the host, or of lavax) and gives arrays.
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "scan": lambda f: lax.scan(lambda c, t: (f(c) + t, c * t), 0.5, X),
    "scan backwards": lambda f: lax.scan(lambda c, t: (f(c) + t, (c, t > 0.3)), 0.5, X, reverse=True),
    "scan of nothing": lambda f: lax.scan(lambda c, t: (f(c) + t, c), 0.5, X[:0]),
    "fori_loop": lambda f: lax.fori_loop(0, 5, lambda i, c: f(c) + i, 0.5),
    "a traced bound": lambda f: lx.jit(lambda n: lax.fori_loop(0, n, lambda i, c: f(c) + i, 0.5))(5),
    "while_loop": lambda f: lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, f(c[1]) + c[0]), (0, 0.5)),
    "the condition": lambda f: lax.while_loop(lambda c: f(c) < 0.9, lambda c: c + 0.25, 0.0),
    "map": lambda f: lax.map(f, X),
    "batches": lambda f: lax.map(f, X, batch_size=2),
    "cond": lambda f: [lx.jit(lambda p: lax.cond(p, f, lambda x: x, lnp.float32(0.5)))(p) for p in (True, False)],
    "switch in scan": lambda f: lax.scan(
        lambda c, i: (lax.switch(i, [f, lambda x: x * 2, lambda x: f(f(x))], c), c), 0.5, np.arange(-1, 4)
    ),
    "scan in scan": lambda f: lax.scan(lambda c, t: lax.scan(lambda d, u: (f(d) + u * t, d), c, X), 0.5, X),
    "vmap of scan": lambda f: lx.vmap(lambda s: lax.scan(lambda c, t: (f(c) + t, c * t), s, X))(X),
    "vmap of while_loop": lambda f: lx.vmap(
        lambda n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, f(c[1]) + c[0]), (0, 0.5))
    )(np.arange(4)),
    "bfloat16": lambda f: lax.scan(lambda c, t: (f(c) * t, f(t)), lnp.bfloat16(0.5), lnp.asarray(X, lnp.bfloat16)),
    "the element of a batch": lambda f: lx.vmap(lambda p: lax.cond(p, f, lambda x: x, 0.5))(np.array([True, False])),
}
DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "grad of scan": lambda f: lx.grad(lambda s: lax.scan(lambda c, t: (f(c) * t, c), s, X)[1].sum())(0.5),
    "compiled": lambda f: lx.jit(lx.grad(lambda s: lax.scan(lambda c, t: (f(c) * t, c), s, X)[1].sum()))(0.5),
    "vmap of grad": lambda f: lx.vmap(lx.grad(lambda s: lax.scan(lambda c, t: (f(c) * t, c), s, X)[1].sum()))(X),
    "jvp of while_loop": lambda f: lx.jvp(
        lambda s: lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, f(c[1]) + c[0]), (0, s))[1], (0.5,), (1.0,)
    ),
    "hessian of fori_loop": lambda f: lx.hessian(lambda s: lax.fori_loop(0, 3, lambda i, c: f(c) * 1.5, s))(0.5),
    "checkpoint": lambda f: lx.grad(
        lambda s: lax.scan(lx.checkpoint(lambda c, t: (f(c) * t, c)), s, X)[1].sum()
    )(0.5),
}


def _agree(program: Callable[[Any], Any], called: Any) -> None:
    found, wanted = lx.tree.leaves(program(called)), lx.tree.leaves(program(lnp.sin))
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        rounding = 2**-7 if one.dtype == lnp.bfloat16 else 1e-5
        np.testing.assert_allclose(np.asarray(one, "f4"), np.asarray(other, "f4"), rounding, rounding)


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_and_branches_call_the_host(name: str) -> None:
    _agree(PROGRAMS[name], host_sine)


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_of_loops_by_the_rule_of_the_function(name: str) -> None:
    _agree(DERIVATIVES[name], sine)


def test_calls_with_effects_are_made_once_per_iteration_in_order() -> None:
    log: list[float] = []

    def note(x: Any) -> None:
        log.append(float(x))

    @lx.jit
    def f(start: Any) -> Any:
        io_callback(note, None, 100.0, ordered=True)
        last = lax.fori_loop(0, 3, lambda i, c: (io_callback(note, None, c, ordered=True), c * 2)[1], start)
        io_callback(note, None, 200.0, ordered=True)
        lax.cond(last > 3, lambda: io_callback(note, None, 300.0, ordered=True), lambda: None)
        count = lax.while_loop(lambda n: n < 2, lambda n: n + io_callback(counted, ONE, n, ordered=True), 0)
        io_callback(note, None, 400.0, ordered=True)
        return last + count

    ONE = lx.ShapeDtype((), "int32")

    def counted(n: Any) -> Any:
        log.append(float(n))
        return np.int32(1)

    for _ in range(2):
        log.clear()
        assert float(f(0.5)) == 6.0
        assert log == [100, 0.5, 1, 2, 200, 300, 0, 1, 400]


def test_a_loop_of_many_iterations_calls_in_each() -> None:
    log: list[int] = []

    def step(count: Any) -> Any:
        io_callback(log.append, None, count, ordered=True)
        return count + 1

    lx.jit(lambda n: lax.while_loop(lambda count: count < n, step, 0))(1500)
    assert [int(number) for number in log] == list(range(1500))


def test_effects_of_batches_and_derivatives() -> None:
    log: list[float] = []

    def noted(x: Any) -> Any:
        io_callback(lambda y: log.append(round(float(y), 3)), None, x)
        return x * x

    lx.vmap(noted)(X)
    assert sorted(log) == [round(float(x), 3) for x in X]
    log.clear()
    assert float(lx.grad(noted)(3.0)) == 6.0 and log == [3.0]
    log.clear()
    assert float(lx.jvp(noted, (3.0,), (1.0,))[1]) == 6.0 and log == [3.0]


def test_what_a_call_with_effects_gives_is_not_known_while_tracing() -> None:
    def f(x: Any) -> Any:
        return x if io_callback(lambda: np.float32(1), lx.ShapeDtype((), "float32")) > 0 else -x

    for transformed in (lx.jit(f), lx.grad(f)):
        with pytest.raises(lx.ConcretizationError, match="host_call"):
            transformed(1.0)
    assert float(lx.grad(lambda x: x if host_sine(lnp.float32(1)) > 0 else -x)(1.0)) == 1.0


def test_errors_of_the_function_come_out_of_the_loop() -> None:
    def fails(x: Any) -> Any:
        raise KeyError("from the host")

    shape = lx.ShapeDtype((), "float32")
    with pytest.raises(KeyError, match="from the host"):
        lx.jit(lambda: lax.fori_loop(0, 3, lambda i, c: lx.pure_callback(fails, shape, c), 0.5))()
    with pytest.raises(lx.CustomRuleError, match="pure_callback of sin has no derivative"):
        lx.grad(lambda s: lax.scan(lambda c, t: (host_sine(c), t), s, X)[0])(0.5)
