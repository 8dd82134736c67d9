"""Functions of the library that run as one program outside a trace."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.tracer.compiled.one_program import one_program

X = np.arange(6, dtype="f").reshape(2, 3)


@one_program("axis", "shape")
def shifted(x: Any, shift: Any = 0.0, axis: Any = None, shape: Any = (2, 3)) -> Any:
    """`x` of mean zero, and `shift` added."""
    if axis == 7:
        raise ValueError("axis 7")
    return lnp.reshape(lnp.subtract(x, lnp.mean(x, axis=axis, keepdims=True)) + shift, shape)


def test_a_call_is_one_submission(counted: Callable[[str], int]) -> None:
    x = lx.device_put(X)
    for number in range(5):
        found = shifted(x, float(number), axis=1)
    assert counted("submits") == 5 and counted("traces") == 1
    np.testing.assert_allclose(np.asarray(found), X - X.mean(1, keepdims=True) + 4)


@pytest.mark.parametrize(
    "args, kwargs",
    [
        ((X,), {}),
        ((X, 1), {}),
        ((X, np.float32(1)), {"axis": 0}),
        ((X, 2**40), {"axis": None}),  # 32 bits do not hold the number
        ((X,), {"shape": [3, 2]}),
        ((X,), {"shape": np.array([3, 2])}),
        ((X,), {"shape": lnp.array([3, 2])}),
        (([[1.0, 2.0, 3.0]] * 2,), {}),
    ],
)
def test_every_kind_of_argument_is_taken(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with lx.disable_jit():
        expected = shifted(*args, **kwargs)
    found = shifted(*args, **kwargs)
    assert (found.dtype, found.weak) == (expected.dtype, expected.weak)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-6)


@pytest.mark.parametrize(
    "args, kwargs, error",
    [
        ((X, 0, 7), {}, ValueError),
        ((X, 0, 1, (2, 3), 1), {}, TypeError),
        ((X,), {"x": X}, TypeError),
        ((X,), {"other": 1}, TypeError),
        ((X, "text"), {}, TypeError),
        ((), {}, TypeError),
        ((X, 0, {}), {}, Exception),
    ],
)
def test_errors_are_those_of_the_function(args: tuple[Any, ...], kwargs: dict[str, Any], error: type) -> None:
    for _ in range(2):
        with pytest.raises(error):
            shifted(*args, **kwargs)


def test_it_is_part_of_the_trace_that_calls_it() -> None:
    text = lx.compile(shifted).lower(X).as_text()
    assert " sum(x) axes=[0,1]" in text
    gradient = lx.grad(lambda x: lnp.sum(shifted(x) ** 2))(X)
    np.testing.assert_allclose(np.asarray(gradient), 2 * (X - X.mean()), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(lx.vmap(lambda x: shifted(x, shape=(3,)))(X)), X - X.mean(1, keepdims=True))


def test_a_draw_is_one_submission(counted: Callable[[str], int]) -> None:
    key = lx.random.key(0)
    for _ in range(3):
        lx.random.normal(key, (10,))
    assert counted("submits") == 3 and counted("traces") <= 1


def test_numbers_keep_64_bits() -> None:
    with lx.enable_x64():
        x = lnp.asarray(np.array([1.0]))
        assert float(lnp.logaddexp(x, 0.1)[0]) == pytest.approx(np.logaddexp(1.0, 0.1), rel=1e-14)
        found = lx.random.uniform(lx.random.key(0), (3,), "float64", minval=0.1, maxval=0.1)
        assert np.asarray(found).tolist() == [0.1] * 3


@pytest.mark.parametrize("low, high", [(0.0, 1.0), (-1, 1), (0.25, 0.7), (-3e4, 1e-3)])
def test_bounds_as_numbers_give_the_same_bits(low: float, high: float) -> None:
    key = lx.random.key(3)
    found = lx.random.uniform(key, (1000,), minval=low, maxval=high)
    with lx.disable_jit():
        expected = lx.random.uniform(key, (1000,), minval=low, maxval=high)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_numbers_that_are_part_of_the_kind_are_seen_as_they_are() -> None:
    np.testing.assert_array_equal(np.signbit(np.asarray(lnp.copysign(lnp.asarray(X), 0.0))), False)
    np.testing.assert_array_equal(np.signbit(np.asarray(lnp.copysign(lnp.asarray(X), -0.0))), True)
    small = lnp.asarray(X, "uint8")
    with lx.disable_jit(), pytest.raises(lx.DtypeError) as expected:
        lnp.fmax(small, 300)
    with pytest.raises(lx.DtypeError) as found:
        lnp.fmax(small, 300)
    assert str(found.value).splitlines()[0] == str(expected.value).splitlines()[0]


def test_other_bounds_of_floats_compile_nothing(counted: Callable[[str], int]) -> None:
    x = lx.device_put(X)
    for bound in range(1, 5):
        np.testing.assert_array_equal(np.asarray(lnp.clip(x, -bound, bound / 2)), np.clip(X, -bound, bound / 2))
    assert counted("traces") == 1 and counted("submits") == 4


@pytest.mark.parametrize(
    "function",
    [lnp.isclose, lnp.copysign, lnp.hypot, lnp.fmax, lnp.fmin, lx.nn.hard_tanh],
    ids=lambda function: function.__name__,
)
def test_other_floats_compile_nothing(function: Callable[..., Any], counted: Callable[[str], int]) -> None:
    x = lx.device_put(X)
    function(x, 0.5)
    before = counted("traces")
    for number in (0.25, 1.5, -0.0):
        function(x, number)
    assert counted("traces") == before


@pytest.mark.parametrize("name", ["isclose", "copysign", "hypot", "fmax", "fmin"])
def test_elementwise_functions_of_several_operations_are_one_submission(
    name: str, counted: Callable[[str], int]
) -> None:
    x, y = lx.device_put(X), lx.device_put(X - 1)
    getattr(lnp, name)(x, y)
    before = counted("submits")
    found = getattr(lnp, name)(x, y)
    assert counted("submits") == before + 1
    np.testing.assert_allclose(np.asarray(found), getattr(np, name)(X, X - 1), rtol=1e-6)


def test_other_shifts_compile_nothing(counted: Callable[[str], int]) -> None:
    x = lx.device_put(X)
    lnp.roll(x, 1, 1), lnp.roll(x, (1, 1), (0, 1))
    before = counted("pipelines"), counted("traces")
    for shift in (2, -4, 0):
        np.testing.assert_array_equal(np.asarray(lnp.roll(x, shift, 1)), np.roll(X, shift, 1))
    np.testing.assert_array_equal(np.asarray(lnp.roll(x, [2, -1], (0, 1))), np.roll(X, [2, -1], (0, 1)))
    assert (counted("pipelines"), counted("traces")) == before


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-3e38, 3e38), (5, 2)])
def test_equal_distances_are_one_submission(ends: tuple[float, float], counted: Callable[[str], int]) -> None:
    found = np.asarray(lnp.linspace(*ends, 7))
    assert counted("submits") == 1
    np.testing.assert_allclose(found, np.linspace(*ends, 7), rtol=1e-6, atol=1e30 if ends[1] > 1e38 else 0)
