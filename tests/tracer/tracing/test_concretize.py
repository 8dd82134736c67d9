from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.counters import snapshot
from lavax.base.errors import ConcretizationError
from lavax.tracer.tracing import tracer
from tests.numpy_backend import NumpyBackend


def grow(x: Any) -> Any:
    total = x
    while float(total) < 100:
        total = total * x if total > 10 else total + x
    return total


def test_python_control_flow_on_data() -> None:
    assert float(lx.grad(grow)(3.0)) == 108  # 3 -> 6 -> 9 -> 12 -> 36 -> 108 = 4 x³
    assert float(lx.grad(lx.grad(grow))(3.0)) == 72
    assert float(lx.vjp(grow, 3.0)[1](1.0)[0]) == 108


def test_every_way_to_ask() -> None:
    def f(x: Any, n: Any) -> Any:
        assert int(n) == 3 and n == 3 and bool(n)
        assert [10, 20, 30, 40][n] == 40
        assert list(range(n)) == [0, 1, 2]
        assert np.asarray(lx.stop_gradient(x)).tolist() == x.tolist() == [1, 2]
        assert np.asarray(x > 1).tolist() == [False, True]
        assert f"{x[0]:.1f}" == "1.0"
        assert x[1].item() == 2
        return lnp.sum(x) * sum(1 for _ in range(n))

    assert lx.grad(f)(np.array([1.0, 2.0]), 3).tolist() == [3, 3]


def test_through_outer_traces() -> None:
    def inner(y: Any) -> Any:
        return y * y if float(y) > 1 else y

    def f(x):
        return lx.grad(inner)(x * 2)
    assert float(lx.grad(f)(1.0)) == 4
    assert float(lx.grad(f)(0.1)) == 0
    assert float(lx.grad(lambda x: lx.grad(lambda y: y * x if x > 0 else y)(x))(2.0)) == 1


def test_iteration_keeps_gradients() -> None:
    def f(x: Any) -> Any:
        a, b = x
        return a * b

    assert lx.grad(f)(np.array([2.0, 3.0])).tolist() == [3, 2]
    assert lx.compile(f)(np.array([2.0, 3.0])).item() == 6


def test_what_has_run_is_not_run_again() -> None:
    def f(x: Any, steps: Any) -> Any:
        for _ in range(steps):
            x = x + 1
            assert float(x) > 0
        return x

    def spent(steps: int) -> int:
        before = snapshot()["submits"]
        lx.grad(f)(1.0, steps)
        return snapshot()["submits"] - before

    assert [spent(steps) for steps in (10, 20, 40)] == [10, 20, 40]  # the gradient is a constant


@pytest.mark.parametrize("transform", [lx.compile, lx.trace, lambda f: lx.compile(lx.grad(f))])
@pytest.mark.parametrize(
    "ask", [float, int, bool, np.asarray, lambda x: range(x.astype(int)), lambda x: x.tolist(), lambda x: f"{x:.2f}"]
)
def test_under_compile_it_is_an_error_with_line_and_fixes(transform: Any, ask: Any) -> None:
    def f(first: Any, x: Any) -> Any:
        ask(lnp.sin(x))  # this line is named
        return first

    with pytest.raises(ConcretizationError, match=rf"^{re.escape(__file__)}:\d+: ") as caught:
        transform(f)(1.0, 2.0)
    message = str(caught.value)
    line = int(re.findall(r":(\d+): ", message)[0])
    assert line == f.__code__.co_firstlineno + 1 or "lambda" in repr(ask)
    advice = ("function of NumPy", "lavax.numpy") if ask is np.asarray else ("where", "cond")
    assert all(word in message for word in ("argument x", "static_argnames", "made by ", *advice))
    assert len(message) > 80


@pytest.mark.parametrize(
    "derivative",
    [
        lambda f, x: lx.grad(f)(x),
        lambda f, x: lx.vjp(f, x),
        lambda f, x: lx.jvp(f, (x,), (x,)),
        lambda f, x: lx.linearize(f, x),
        lambda f, x: lx.jacrev(f)(x),
        lambda f, x: lx.grad(lx.checkpoint(f))(x),
        lambda f, x: lx.grad(lambda y: lx.grad(lambda z: f(y) * z)(2.0))(x),
        lambda f, x: lx.compile(lx.grad(f))(x),
    ],
)
def test_numpy_does_not_lose_derivatives(derivative: Any) -> None:
    x = np.array([1.0, 2.0], np.float32)
    for function in (np.sin, np.asarray, lambda y: np.concatenate([y, y]), lambda y: np.array([y[0], 1.0])):
        with pytest.raises(ConcretizationError, match=r"derivative(?s:.*)lavax\.numpy(?s:.*)stop_gradient"):
            derivative(lambda y, function=function: lnp.sum(y * function(lnp.exp(y))[0]), x)


def test_numpy_takes_what_no_derivative_depends_on() -> None:
    x, y = np.array([1.0, 2.0], np.float32), np.array([3.0, 5.0], np.float32)
    assert lx.grad(lambda x, y: lnp.sum(x * np.square(y)))(x, y).tolist() == [9, 25]
    assert lx.jacfwd(lambda x, y: lnp.sum(np.square(x) * y), argnums=1)(x, y).tolist() == [1, 4]


def test_a_function_with_a_rule_of_its_own_may_ask_numpy() -> None:
    @lx.custom_vjp
    def sine(x: Any) -> Any:
        return lnp.asarray(np.sin(x))

    sine.defvjp(lambda x: (sine(x), x), lambda x, cotangent: (cotangent * lnp.cos(x),))
    x = np.array([1.0, 2.0], np.float32)
    np.testing.assert_allclose(lx.grad(lambda x: lnp.sum(sine(2 * x)))(x), 2 * np.cos(2 * x), rtol=1e-6)


def test_lower_does_not_concretize_either() -> None:
    with pytest.raises(ConcretizationError):
        lx.compile(grow).lower(3.0)
    with pytest.raises(ConcretizationError):
        lx.eval_shape(grow, 3.0)


def test_what_depends_on_no_argument_is_known_under_compile() -> None:
    table = lx.device_put(np.arange(4))
    assert lx.compile(lambda x: x * int(lnp.max(table)))(2.0).item() == 6


def test_the_graph_outside_compile_holds_only_what_the_result_needs(backend: NumpyBackend) -> None:
    lx.grad(lambda x: x * 2 if lnp.exp(x) > 1 else x)(1.0)
    assert "exp" not in str(backend.compiled[-1])


def test_a_program_that_asks_again_and_again_walks_its_graph_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(tracer, "has_effects", asked.append)  # None: it has none

    def conditions(x: Any) -> Any:
        for _ in range(50):
            x = lx.cond(lnp.sum(x) > 0, lnp.sin, lnp.cos, x)
        return x

    lx.trace(conditions)(np.ones(3, np.float32))
    assert 50 <= len(asked) <= 400


def test_what_depends_on_an_abstract_value_does_so_when_asked_again() -> None:
    messages: list[str] = []

    def asking(x: Any) -> Any:
        y = lnp.sin(x) + lnp.exp(x)
        for value in (y, y * 2.0, y):
            with pytest.raises(ConcretizationError) as caught:
                bool(value > 0)
            messages.append(str(caught.value))
        assert float(lnp.asarray(2.0) * 3.0) == 6.0
        return y

    lx.trace(asking)(np.float32(1.0))
    assert all("abstract" in message for message in messages), messages
