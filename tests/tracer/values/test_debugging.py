"""Prints and callbacks in compiled and transformed functions, the first NaN, and traced values that got away."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import NaNError, SideEffectError, TracerLeakError
from lavax.tracer.values.backend import register
from tests.numpy_backend import NumpyBackend

X = np.array([1.0, 2.0, 3.0], "f")


def test_prints_come_in_order_on_every_call(capsys: pytest.CaptureFixture[str]) -> None:
    @lx.compile
    def f(x: Any) -> Any:
        lx.debug.print("first {} of {name}", x[0], name="x")
        y = x * 2
        lx.debug.print("then {:.2f}", lnp.sum(y))
        return {"y": y}

    for scale in (1, 2):
        np.testing.assert_allclose(f(scale * X)["y"], 2 * scale * X)
    assert capsys.readouterr().out == "first 1.0 of x\nthen 12.00\nfirst 2.0 of x\nthen 24.00\n"
    f.lower(X).compile()(X)
    assert capsys.readouterr().out == "first 1.0 of x\nthen 12.00\n"
    lx.debug.print("outside {}", X[1])
    assert capsys.readouterr().out == "outside 2.0\n"


def seen_by(transform: Any, *args: Any) -> list[Any]:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        lx.debug.callback(lambda array: seen.append(np.asarray(array).tolist()), x)
        y = x * x
        lx.debug.callback(lambda array, note: seen.append((note, np.asarray(array).tolist())), y, "squared")
        return lnp.sum(y)

    for compiled in (lambda g: g, lx.compile):
        compiled(transform(f))(*args)
    half = len(seen) // 2
    assert seen[:half] == seen[half:]
    return seen[:half]


def test_callbacks_within_transformations() -> None:
    once = [[1.0, 2.0, 3.0], ("squared", [1.0, 4.0, 9.0])]
    for transform in (
        lx.grad,
        lx.value_and_grad,
        lx.jacfwd,
        lx.jacrev,
        lx.hessian,
        lx.checkpoint,
        lambda f: lx.grad(lx.checkpoint(f)),
        lambda f: lambda x: lx.jvp(f, (x,), (x,)),
        lambda f: lambda x: lx.vjp(f, x)[0],
        lambda f: lambda x: lx.linearize(f, x)[0],
    ):
        assert seen_by(transform, X) == once, transform
    assert seen_by(lx.vmap, np.array([1.0, 2.0], "f")) == [1.0, ("squared", 1.0), 2.0, ("squared", 4.0)]
    assert seen_by(lambda f: lx.grad(lambda x: lnp.sum(lx.vmap(f)(x))), X) == seen_by(lx.vmap, X)


@pytest.mark.parametrize("reverse", [False, True])
def test_callbacks_within_scan(reverse: bool) -> None:
    def run(f: Any) -> Any:
        return lambda x: lx.scan(lambda c, e: (c + f(e), c), 0.0, x, reverse=reverse)

    expected = [1.0, ("squared", 1.0), 2.0, ("squared", 4.0)]
    assert seen_by(run, X[:2]) == (expected[2:] + expected[:2] if reverse else expected)


def test_callbacks_in_rules_are_refused() -> None:
    def shown(x: Any) -> Any:
        lx.debug.print("{}", x)
        return x

    @lx.custom_vjp
    def f(x: Any) -> Any:
        return x * 2

    @lx.custom_jvp
    def g(x: Any) -> Any:
        return x * 2

    f.defvjp(lambda x: (x * 2, None), lambda _, t: (shown(t),))
    g.defjvp(lambda primals, tangents: (g(*primals), shown(tangents[0])))
    for function in (f, g):
        with pytest.raises(SideEffectError, match="cannot be used in rules for derivatives"):
            lx.grad(function)(1.0)


def test_shapes_without_numbers_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        lx.debug.print("{}", x)
        return x

    assert lx.eval_shape(f, X).shape == (3,)
    assert str(lx.trace(f)(X)).count("return x") == 1
    assert capsys.readouterr().out == ""


def test_the_first_nan_is_named() -> None:
    def f(x: Any, y: Any) -> Any:
        a = x * 2
        b = lnp.log(y)
        return lnp.sum(a + b)

    np.testing.assert_allclose(lx.debug.nans(f)(X, X), f(X, X), rtol=1e-6)
    with pytest.raises(NaNError, match=r"log\(f32\[3\]\) : f32\[3\], at .*test_debugging.py:\d+"):
        lx.debug.nans(f)(X, -X)
    with pytest.raises(NaNError, match=r"x .*holds NaN"):
        lx.debug.nans(f)(np.nan * X, X)
    with pytest.raises(NaNError, match=r"test_debugging\.py"):
        lx.debug.nans(lx.grad(lambda x: lnp.sqrt(x * x)))(0.0)


def test_the_first_nan_may_lie_in_a_loop() -> None:
    def f(x: Any) -> Any:
        return lx.scan(lambda c, e: (c - e, lnp.sqrt(c)), x, np.ones(3, "f"))

    lx.debug.nans(f)(5.0)
    with pytest.raises(NaNError, match=r"result of scan\(f32\[\], f32\[3\]\) : f32\[3\], at .*test_debugging\.py:\d+"):
        lx.debug.nans(f)(1.0)


def test_nans_are_refused_everywhere_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        return lnp.sum(lnp.log(x))

    negative = lnp.asarray(-X)
    assert np.isnan(lx.compile(f)(-X)) and np.isnan(lnp.log(negative)).all() and np.isnan(lx.vmap(lnp.log)(-X)).all()
    monkeypatch.setenv("LAVAX_DEBUG_NANS", "1")
    register(NumpyBackend)
    compiled = lx.compile(f, donate_argnums=0)
    given = lnp.asarray(X) + 0
    np.testing.assert_allclose(compiled(given), np.log(X).sum(), rtol=1e-6)
    with pytest.raises(lx.DonatedArrayError):
        given + 1
    for call in (
        lambda: compiled(negative + 0),
        lambda: lnp.log(negative),
        lambda: lx.vmap(lnp.log)(-X),
        lambda: lx.compile(lx.grad(lambda x: lnp.sqrt(x * 0)))(1.0),
    ):
        with pytest.raises(NaNError, match=r"NaN is a result of \w+\(.*\) : f32\[\d*\], at .*test_debugging\.py:\d+"):
            call()
    assert np.isnan(lnp.sum(lnp.asarray(np.full(3, np.nan, "f")))), "a NaN that was there before is none of its making"
    monkeypatch.setenv("LAVAX_DEBUG_NANS", "0")
    register(NumpyBackend)
    assert np.isnan(lnp.log(negative)).all()


def test_leaks_are_found() -> None:
    kept: list[Any] = []
    with lx.check_leaks():
        lx.compile(lambda x: x + 1)(X)
        lx.grad(lambda x: lnp.sum(x * x))(X)
        lx.vmap(lx.grad(lambda x: x * x))(X)
    with pytest.raises(TracerLeakError, match=r"still held .* the input x"), lx.check_leaks():
        lx.compile(lambda x: kept.append(x) or x)(X)
    kept.clear()
