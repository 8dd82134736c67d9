"""Programs with calls of the host between their kernels, on the device."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.experimental import io_callback

X = np.linspace(0.1, 0.9, 3, dtype="f")


def host_sine(x: Any) -> Any:
    return lx.pure_callback(np.sin, lx.ShapeDtype(x.shape, x.dtype), x)


def chained(x: Any, y: Any) -> Any:
    a = host_sine(2 * x)
    b = host_sine(a + y)
    return {"a": a * b, "x": x, "sum": lnp.sum(b), "one": lnp.ones(2)}


def test_a_chain_of_calls_on_the_device() -> None:
    a = np.sin(2 * X)
    b = np.sin(a + 0.5)
    compiled = lx.compile(chained)
    for found in (compiled(X, 0.5), compiled(X, 0.5), chained(lnp.asarray(X), 0.5)):
        np.testing.assert_allclose(np.asarray(found["a"]), a * b, rtol=1e-6)
        np.testing.assert_allclose(float(found["sum"]), b.sum(), rtol=1e-6)
        assert np.array_equal(np.asarray(found["x"]), X) and np.asarray(found["one"]).tolist() == [1, 1]
    lowered = compiled.lower(X, 0.5)
    assert lowered.as_text("ir").count("host_call") == 2 and "host_call" not in lowered.as_text("kernels")
    assert lowered.as_text("kernels").count("program (") == 3
    np.testing.assert_allclose(np.asarray(lowered.compile()(X, 0.5)["a"]), a * b, rtol=1e-6)
    with pytest.raises(ValueError, match="several programs"):
        lowered.compile().cost()


def test_calls_outside_of_compile() -> None:
    x = lnp.arange(3.0)
    given: list[np.ndarray] = []

    def tripled(y: np.ndarray) -> np.ndarray:
        given.append(y)
        return y * 3

    kind = lx.ShapeDtype(x.shape, x.dtype)
    assert lx.pure_callback(tripled, kind, x).tolist() == [0, 3, 6]
    assert io_callback(tripled, kind, x, ordered=True).tolist() == [0, 3, 6]
    each = lx.vmap(lambda y: lx.pure_callback(tripled, lx.ShapeDtype((), y.dtype), y, vmap_method="sequential"))
    assert each(x).tolist() == [0, 3, 6]
    assert x.tolist() == [0, 1, 2] and len(given) == 5


def test_outside_compiled_functions() -> None:
    np.testing.assert_allclose(np.asarray(host_sine(lnp.asarray(X))), np.sin(X), rtol=1e-6)
    narrow = lnp.asarray(X, dtype=lnp.bfloat16)
    doubled = lx.compile(lambda x: lx.pure_callback(lambda a: 2 * a, lx.ShapeDtype(x.shape, x.dtype), x))(narrow)
    assert doubled.dtype == narrow.dtype and np.array_equal(doubled.astype("float32"), 2 * narrow.astype("float32"))

    def branching(x: Any) -> Any:
        return 2 * x if float(host_sine(lx.stop_gradient(x))) > 0 else x

    assert (float(lx.grad(branching)(1.0)), float(lx.grad(branching)(-1.0))) == (2, 1)
    chosen = lx.cond(True, host_sine, lambda x: x, lnp.asarray(1.0))
    np.testing.assert_allclose(float(chosen), np.sin(1), rtol=1e-6)


def test_a_loop_that_calls_the_host() -> None:
    def step(carry: Any, t: Any) -> Any:
        shape = lx.ShapeDtype((2,), "float32")
        return lx.pure_callback(lambda x, y: np.sin(x) * y, shape, carry, t), lnp.sum(carry) > t

    last, flags = lx.jit(lambda x: lx.scan(step, x, lnp.arange(1.0, 4.0), reverse=True))(lnp.asarray([0.5, 2.0]))
    wanted, above = np.float32([0.5, 2.0]), []
    for t in (3, 2, 1):
        above.append(wanted.sum() > t)
        wanted = np.sin(wanted) * np.float32(t)
    np.testing.assert_allclose(np.asarray(last), wanted, rtol=1e-5)
    assert flags.tolist() == above[::-1]
