"""Python's numbers that a transformation is not about stay what they are, and integers may be differentiated by."""
from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.errors import NonFloatArgumentError
from lavax.lax import fori_loop
from tests.numpy_backend import NumpyBackend

X = lnp.asarray(np.float32([0.5, -1.25, 2.0]))

# Each calls a function of (x, 1.5) by a derivative, or a batch, over x alone.
CALLS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda function: lx.grad(lambda x, t: lnp.sum(function(x, t)))(X, 1.5),
    "value_and_grad": lambda function: lx.value_and_grad(lambda x, t: lnp.sum(function(x, t)))(X, 1.5)[1],
    "jacrev": lambda function: lx.jacrev(function)(X, 1.5),
    "jacfwd": lambda function: lx.jacfwd(function)(X, 1.5),
    "hessian": lambda function: lx.hessian(function)(X, 1.5),
    "vmap": lambda function: lx.vmap(function, (0, None))(X, 1.5),
    "grad of grad": lambda function: lx.grad(
        lambda x, t: lnp.sum(lx.grad(lambda y, s: lnp.sum(function(y, s)))(x, t) ** 2)
    )(X, 1.5),
}


@functools.cache
def _looked_up(t: float) -> float:
    return {1.5: 3.0}[t]


def _uses_of_a_float(x: Any, t: Any) -> Any:
    assert isinstance(t, float) and not isinstance(x, float)
    assert f"{t:>7.2f}" == "   1.50" and round(t) == 2 and not t.is_integer()
    assert type(copy.deepcopy(t)) is float and math.floor(t) == 1
    scaled = lx.jit(lambda y, factor: y * factor if factor > 1 else y, static_argnums=1)(x, t)
    return (scaled * _looked_up(t) + lnp.exp(t) * x if t > 1 else x) * x


def _the_same_in_arrays(x: Any, t: Any) -> Any:
    return (x * t * 3.0 + lnp.exp(t) * x) * x


@pytest.mark.parametrize("name", CALLS)
def test_floats_that_are_not_differentiated_are_floats(name: str) -> None:
    np.testing.assert_array_equal(CALLS[name](_uses_of_a_float), CALLS[name](_the_same_in_arrays))


def test_one_program_serves_all_floats(backend: NumpyBackend) -> None:
    gradient = lx.grad(lambda x, t: lnp.sum(lnp.sin(x * t) + t))
    first = gradient(X, 0.25)
    before = len(backend.compiled)
    second = gradient(X, 0.75)
    np.testing.assert_allclose(first, 0.25 * np.cos(np.asarray(X) * 0.25), rtol=1e-5)
    np.testing.assert_allclose(second, 0.75 * np.cos(np.asarray(X) * 0.75), rtol=1e-5)
    assert len(backend.compiled) == before


def test_a_float_that_is_kept_after_the_trace_is_a_number() -> None:
    kept: list[float] = []

    def loss(x: Any, t: float) -> Any:
        kept.append(t)
        return x * t, (t, x)

    slope, (number, _) = lx.grad(loss, has_aux=True)(2.0, 3.0)
    assert float(slope) == 3.0 and type(number) is float
    assert float(lnp.sin(kept[0])) == float(lnp.sin(3.0))
    assert float(lx.grad(lambda x: x * kept[0])(1.0)) == 3.0


def test_trip_counts_and_choices_by_arguments_that_are_not_differentiated() -> None:
    def powered(x: Any, count: Any, sign: Any) -> Any:
        y = fori_loop(0, count, lambda _, value: value * x, x)
        return y if sign > 0 else -y

    for sign in (1.0, np.float32(1), lnp.asarray(1.0), np.ones(())):
        assert float(lx.grad(powered)(1.1, 5, sign)) == pytest.approx(6 * 1.1**5, rel=1e-6)
        assert float(lx.grad(powered)(1.1, 5, -sign)) == pytest.approx(-6 * 1.1**5, rel=1e-6)


def test_gradients_by_integers_have_no_numbers() -> None:
    def loss(tree: Any) -> Any:
        return lnp.sum(lnp.sin(tree["x"]) * tree["n"]) * tree["k"]

    tree = {"x": X, "n": lnp.arange(3), "k": 2}
    found = lx.grad(loss, allow_int=True)(tree)
    np.testing.assert_allclose(found["x"], 2 * np.cos(np.asarray(X)) * np.arange(3), rtol=1e-5)
    assert found["n"].dtype == found["k"].dtype == lx.float0
    assert found["n"].shape == (3,) and found["k"].shape == ()
    value, (by_flag, by_x) = lx.value_and_grad(lambda flag, x: lnp.where(flag, x, 2 * x), (0, 1), allow_int=True)(
        True, 3.0
    )
    assert float(value) == 3.0 and float(by_x) == 1.0 and by_flag.dtype == lx.float0
    whole = lx.jacrev(lambda t: t["x"] * t["n"], allow_int=True)({"x": X, "n": lnp.arange(3)})
    assert whole["n"].shape == (3, 3) and whole["n"].dtype == lx.float0
    np.testing.assert_array_equal(whole["x"], np.diag(np.arange(3, dtype=np.float32)))
    alone = lx.grad(lambda n: lnp.sum(n.astype("float32")), allow_int=True)(lnp.arange(4))
    assert alone.shape == (4,) and alone.dtype == lx.float0


def test_gradients_by_integers_are_arguments_of_programs() -> None:
    traces = []

    def step(tree: Any, found: Any, *, rate: Any) -> Any:
        traces.append(found["n"].dtype)
        return lx.tree.map(lambda x, by_x: x if by_x.dtype == lx.float0 else x - rate["x"] * by_x, tree, found), rate

    tree = {"n": lnp.arange(3), "x": X}
    found = {"n": np.zeros(3, lx.float0), "x": lnp.ones_like(X)}
    rate = {"x": 2.0, "none": np.zeros((), lx.float0)}
    compiled = lx.jit(step, donate_argnums=1)
    for _ in range(2):
        found["x"] = lnp.ones_like(X)
        moved, given = compiled(tree, found, rate=rate)
        np.testing.assert_array_equal(moved["x"], np.asarray(X) - 2)
        np.testing.assert_array_equal(moved["n"], np.arange(3))
        assert given["none"].dtype == lx.float0 and given["none"].shape == () and found["x"].is_deleted()
    assert traces == [lx.float0]
    found["x"] = lnp.ones_like(X)
    assert lx.jit(step).lower(tree, found, rate=rate).out_info[0]["x"].shape == X.shape
    outer = lx.jit(lambda found: compiled(tree, found, rate=rate)[0]["x"])
    np.testing.assert_array_equal(outer(found), np.asarray(X) - 2)


def test_gradients_by_integers_are_results_of_programs() -> None:
    def gradient(tree: Any) -> Any:
        return lx.grad(lambda t: lnp.sum(t["x"] * t["n"]), allow_int=True)(tree)

    tree = {"x": X, "n": lnp.arange(3)}
    for found in (lx.jit(gradient)(tree), lx.jit(gradient)(tree), lx.checkpoint(gradient)(tree)):
        assert found["n"].shape == (3,) and found["n"].dtype == lx.float0
        np.testing.assert_array_equal(found["x"], np.arange(3))
    assert lx.eval_shape(gradient, tree)["n"] == lx.ShapeDtype((3,), lx.float0)
    assert lx.eval_shape(gradient, tree)["x"] == lx.ShapeDtype((3,), "float32")
    rows = {"x": lnp.stack([X, X]), "n": lnp.ones((2, 3), "int32")}
    assert lx.vmap(gradient)(rows)["n"].shape == lx.jit(lx.vmap(gradient))(rows)["n"].shape == (2, 3)


def test_what_a_forward_rule_keeps_besides_values_stays() -> None:
    """Shapes among the residuals, as in JAX, and whatever else is no value, such as dtypes."""

    @lx.custom_vjp
    def entry(x: Any, place: Any) -> Any:
        return x[place]

    def forward(x: Any, place: Any) -> Any:
        return x[place], (x.shape, {"dtype": x.dtype, "place": place, "size": 2 * len(x), "how": "set"})

    def backward(residuals: Any, g: Any) -> Any:
        shape, kept = residuals
        assert kept["size"] == 6 and type(kept["size"]) is int
        return getattr(lnp.zeros(shape, kept["dtype"]).at[kept["place"]], kept["how"])(g), None

    entry.defvjp(forward, backward)
    gradient = lx.grad(lambda x, place: entry(x, place) ** 2)
    expected = np.float32([0, -2.5, 0])
    for taken in (gradient, lx.jit(gradient), lx.checkpoint(gradient)):
        np.testing.assert_array_equal(taken(X, 1), expected)
    np.testing.assert_array_equal(lx.vmap(gradient)(lnp.stack([X, X]), lnp.array([1, 1])), [expected, expected])
    np.testing.assert_array_equal(lx.jacrev(lx.grad(lambda x: entry(x, 1) ** 2))(X)[1], [0, 2, 0])


def test_integers_are_refused_without_allow_int_and_text_always() -> None:
    with pytest.raises(NonFloatArgumentError, match=r"by n, which is i32"):
        lx.grad(lambda n: n * 1.0)(3)
    with pytest.raises(NonFloatArgumentError, match="by name, which is 'a'"):
        lx.grad(lambda name: 1.0, allow_int=True)("a")


def _slopes(axes: Any, out_axes: Any) -> Any:
    slope = lx.grad(lambda x, n: x * lnp.sum(n), argnums=(0, 1), allow_int=True)
    return lx.vmap(slope, axes, out_axes)


def test_gradients_by_integers_lie_along_the_axis_of_results() -> None:
    numbers = np.ones((2, 4), np.int32)
    assert _slopes((None, 1), (0, 1))(2.0, numbers)[1].shape == (2, 4)
    assert _slopes((None, 1), -1)(2.0, numbers)[1].shape == (2, 4)
    assert _slopes((None, 1), 0)(2.0, numbers)[1].shape == (4, 2)
    assert _slopes((0, None), (0, None))(np.ones(4, np.float32), numbers)[1].shape == (2, 4)


@pytest.mark.parametrize("unroll", [1, 2, 3])
def test_gradients_by_integers_in_a_scan_are_of_all_steps(unroll: int) -> None:
    def step(total: Any, numbers: Any) -> Any:
        slopes = lx.grad(lambda x, n: x * lnp.sum(n), argnums=(0, 1), allow_int=True)(total, numbers)
        return total, slopes

    _, (slopes, nothing) = lx.lax.scan(step, 1.0, np.arange(12, dtype=np.int32).reshape(4, 3), unroll=unroll)
    np.testing.assert_array_equal(slopes, [3.0, 12.0, 21.0, 30.0])
    assert nothing.shape == (4, 3) and nothing.dtype.itemsize == 0
