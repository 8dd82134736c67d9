"""Functions on the host inside compiled functions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.experimental import io_callback

SCALAR = lx.ShapeDtypeStruct((), "float32")
X = np.linspace(0.1, 0.9, 3, dtype="f")


def host_sine(x: Any, method: str | None = None) -> Any:
    return lx.pure_callback(np.sin, lx.ShapeDtype(x.shape, x.dtype), x, vmap_method=method)


def test_trees_statics_and_dtypes() -> None:
    def act(tree: Any, name: str, *, scale: Any) -> Any:
        assert tree["i"].dtype == np.int32 and tree["x"].dtype == np.float32 and name == "name"
        return {"y": tree["x"] * scale, "n": tree["i"] + 1}

    shapes = {"y": lx.ShapeDtype((3,), "float32"), "n": lx.ShapeDtype((), "int32")}
    f = lx.jit(lambda x, i: lx.pure_callback(act, shapes, {"x": x, "i": i}, "name", scale=2.0))
    found = f(X, 4)
    np.testing.assert_allclose(np.asarray(found["y"]), 2 * X)
    assert int(found["n"]) == 5 and found["n"].dtype == np.int32


@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("sequential", [((), (2,))]),
        ("expand_dims", [((3,), (1, 2))]),
        ("broadcast_all", [((3,), (3, 2))]),
        ("legacy_vectorized", [((3,), (2,))]),
    ],
)
def test_batches(method: str, shapes: list[Any]) -> None:
    met = []

    def act(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        met.append((x.shape, y.shape))
        return x[..., None] + y

    def f(x: Any, y: Any) -> Any:
        return 2 * lx.pure_callback(act, lx.ShapeDtype((2,), "float32"), x, y, vmap_method=method)

    y = np.array([10, 20], "f")
    found = lx.vmap(f, in_axes=(0, None))(X, y)
    np.testing.assert_allclose(np.asarray(found), 2 * (X[:, None] + y), rtol=1e-6)
    assert sorted(set(met)) == shapes
    if method == "legacy_vectorized":  # with arrays of two batches, which this function does not tell apart
        return
    nested = lx.jit(lx.vmap(lx.vmap(f, in_axes=(None, 0)), in_axes=(0, None)))(X, np.stack([y, 2 * y, 3 * y, y]))
    wanted = 2 * (X[:, None, None] + np.stack([y, 2 * y, 3 * y, y]))
    np.testing.assert_allclose(np.asarray(nested), wanted, rtol=1e-6)


def test_batches_without_a_method() -> None:
    with pytest.raises(ValueError, match=r"pure_callback of sin under vmap: .*vmap_method"):
        lx.vmap(host_sine)(X)
    with pytest.raises(ValueError, match="must be one of sequential"):
        host_sine(lnp.asarray(X), "each")


def test_derivatives_need_a_rule() -> None:
    for derivative in (lx.grad(host_sine), lambda x: lx.jvp(host_sine, (x,), (1.0,))):
        with pytest.raises(lx.CustomRuleError, match="has no derivative"):
            derivative(lnp.asarray(0.5))

    @lx.custom_jvp
    def sine(x: Any) -> Any:
        return host_sine(x, "sequential")

    sine.defjvp(lambda primals, tangents: (sine(*primals), lnp.cos(primals[0]) * tangents[0]))
    gradient = lx.jit(lx.vmap(lx.grad(lambda x: 3 * sine(x) ** 2)))(X)
    np.testing.assert_allclose(np.asarray(gradient), 6 * np.sin(X) * np.cos(X), rtol=1e-5)
    held = lx.grad(lambda x: x * host_sine(lx.stop_gradient(x)))(lnp.asarray(0.5))
    np.testing.assert_allclose(float(held), np.sin(0.5), rtol=1e-6)


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda x: np.ones(2, "f"), lx.ShapeError),
        (lambda x: np.array("a"), lx.DtypeError),
        (lambda x: (x, x), lx.TreeMismatchError),
    ],
)
def test_results_are_checked(act: Callable[..., Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=r"pure_callback of .* returned"):
        lx.jit(lambda x: lx.pure_callback(act, SCALAR, x))(1.0)


def test_64_bits_that_are_not_enabled_are_32_with_a_warning() -> None:
    def widened(x: Any) -> Any:
        return np.asarray(x, np.float64) / 3

    for wanted, held in (("float64", "float32"), ("complex128", "complex64")):
        with pytest.warns(UserWarning, match=f"results of {wanted} are {held}, as 64 bits are not enabled"):
            found = lx.pure_callback(widened, lx.ShapeDtypeStruct((3,), wanted), X)
        assert found.dtype == held
        with lx.enable_x64():
            assert lx.pure_callback(widened, lx.ShapeDtypeStruct((3,), wanted), X).dtype == wanted
    with pytest.warns(UserWarning, match="io_callback: results of int64 are int32"):
        io_callback(lambda x: x.astype(np.int64), lx.ShapeDtypeStruct((3,), "int64"), X)


def test_effects_happen_once_and_in_order() -> None:
    log: list[float] = []

    def act(x: np.ndarray) -> np.ndarray:
        log.append(float(x))
        return x + 1

    @lx.jit
    def f(x: Any) -> Any:
        for factor in (1, 10, 100):
            io_callback(act, SCALAR, factor * x, ordered=True)
        assert io_callback(lambda y: log.append(float(y)), None, 7 * x) is None
        return io_callback(act, SCALAR, -x)

    assert float(f(2.0)) == -1 and log.index(2) < log.index(20) < log.index(200)
    assert sorted(log) == [-2, 2, 14, 20, 200]
    log.clear()
    assert np.asarray(lx.vmap(lambda x: io_callback(act, SCALAR, x))(X)).tolist() == (X + 1).tolist()
    assert len(log) == 3
    with pytest.raises(ValueError, match="ordered calls"):
        lx.vmap(lambda x: io_callback(act, SCALAR, x, ordered=True))(X)


def test_donated_arguments() -> None:
    x = lnp.asarray(X)
    np.testing.assert_allclose(np.asarray(lx.jit(host_sine, donate_argnums=0)(x)), np.sin(X), rtol=1e-6)
    with pytest.raises(lx.DonatedArrayError):
        lnp.sum(x)


def test_nans_are_found() -> None:
    f = lx.debug.nans(lx.jit(lambda x: lnp.log(host_sine(x))))
    with pytest.raises(lx.NaNError, match="log"):
        f(lnp.asarray(-0.5))


def test_export_refuses_it() -> None:
    with pytest.raises(lx.SideEffectError, match="pure_callback"):
        lx.export(lx.jit(host_sine), X)
