"""Python's operators and the methods of arrays and traced values."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax.numpy as lnp
from lavax.numpy.methods.operators import OPERATORS
from tests.lavax.numpy.arrays import BOOL, F32, I32, check, sample

pytestmark = pytest.mark.usefixtures("reference_backend")

BINARY: list[Callable[..., Any]] = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, divmod, operator.pow,
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip
METHODS: dict[str, Callable[[Any], Any]] = {
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "all": lambda x: x.all(),
    "any": lambda x: x.any(1, keepdims=True),
    "argmax": lambda x: x.argmax(0).astype(I32),
    "argmin": lambda x: x.argmin(axis=-1).astype(I32),
    "astype": lambda x: x.astype(I32),
    "clip": lambda x: x.clip(-1, 1),
    "dot": lambda x: x.dot(x.T),
    "flatten": lambda x: x.flatten(),
    "max": lambda x: x.max(0),
    "mean": lambda x: x.mean(axis=0, keepdims=True),
    "min": lambda x: x.min(),
    "prod": lambda x: x.prod(1),
    "ravel": lambda x: x.ravel(),
    "reshape": lambda x: x.reshape(3, -1) + x.reshape((3, 2)),
    "round": lambda x: x.round(1),
    "squeeze": lambda x: x.reshape(2, 1, 3).squeeze(1),
    "std": lambda x: x.std(0, ddof=1),
    "sum": lambda x: x.sum((0, 1)),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "transpose": lambda x: x.transpose() + x.transpose(1, 0) + x.transpose((-1, 0)) + x.transpose(None),
    "var": lambda x: x.var(),
    "index": lambda x: x[1, ::-1],
    "negative": lambda x: -x,
    "positive": lambda x: +x,
    "abs": abs,
    "in a loop": lambda x: sum(row * 2 for row in x),
    "in place": lambda x: in_place(x),
}


def in_place(x: Any) -> Any:
    y = x + 0
    y += 1
    y *= x
    y -= 2
    y /= 3
    return y


@pytest.mark.parametrize("function", BINARY, ids=lambda function: function.__name__)
@pytest.mark.parametrize("other", [2, 2.5, np.float32(3), [1, 2, 3], np.array([1, 2, 3], F32)], ids=str)
def test_operators_from_both_sides(function: Callable[..., Any], other: Any) -> None:
    x = sample((2, 3), low=1, high=3)
    for dtype in (F32, I32):
        numbers = x.astype(dtype)
        result = np.asarray(function(numbers, np.asarray(other))).dtype
        weak = isinstance(other, int) or result.kind != "f"
        for call in (lambda x: function(x, other), lambda x: function(other, x)):
            expected = call(numbers.astype(np.float64) if not weak else numbers)
            found = call(lnp.array(numbers))
            for one, right in zip(*map(as_tuple, (found, expected)), strict=True):
                assert isinstance(one, lnp.ndarray)
                np.testing.assert_allclose(np.asarray(one), right, rtol=1e-5, atol=1e-5)


def as_tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("function", BINARY, ids=lambda function: function.__name__)
def test_operators_on_traced_values(function: Callable[..., Any]) -> None:
    check(function, function, sample((2, 3), low=1), sample((3,), low=1, seed=1))


@pytest.mark.parametrize("function", [operator.and_, operator.or_, operator.xor])
@pytest.mark.parametrize("dtype", [I32, BOOL], ids=str)
def test_bitwise_operators(function: Callable[..., Any], dtype: np.dtype) -> None:
    check(function, function, sample((2, 3), dtype), sample((3,), dtype, seed=1))
    check(operator.invert, operator.invert, sample((2, 3), dtype))
    scalar = True if dtype == BOOL else 1
    x = sample((4,), dtype)
    np.testing.assert_array_equal(np.asarray(function(scalar, lnp.array(x))), function(scalar, x))


def test_the_matrix_product_from_both_sides() -> None:
    x, y = sample((2, 3)), sample((3, 2))
    check(operator.matmul, operator.matmul, x, y)
    for found in (lnp.array(x) @ y, x @ lnp.array(y), lnp.array(x) @ y.tolist()):
        assert isinstance(found, lnp.ndarray)
        np.testing.assert_allclose(np.asarray(found), x @ y, rtol=1e-5)


@pytest.mark.parametrize("name", METHODS)
def test_methods(name: str) -> None:
    function = METHODS[name]
    expected = np.asarray(function(sample((2, 3))))
    np.testing.assert_allclose(np.asarray(function(lnp.array(sample((2, 3))))), expected, rtol=1e-5, atol=1e-6)
    check(lambda x: function(lnp.asarray(x)), lambda _: expected, sample((2, 3)))


def test_every_method_is_tried_here() -> None:
    methods = {name for name in OPERATORS if not name.startswith("__")}
    assert methods <= set(METHODS)


def test_operators_give_way_to_what_is_no_array() -> None:
    class Other:
        def __radd__(self, other: Any) -> str:
            return "mine"

    x = lnp.ones(2)
    assert x + Other() == "mine"
    assert (x == None) is False and (x != "a") is True  # noqa: E711
    for call in (lambda: x + None, lambda: "a" * x, lambda: x < {}):
        with pytest.raises(TypeError):
            call()


def test_out_must_be_none() -> None:
    with pytest.raises(TypeError, match=r"sum: .* out must be None"):
        np.sum(lnp.ones(2), out=np.zeros(()))


def test_a_numpy_array_stays_on_the_left_of_its_own_assignment() -> None:
    numbers = np.ones(2, F32)
    numbers += np.asarray(lnp.ones(2))
    np.testing.assert_array_equal(numbers, [2, 2])


def test_round_gives_integers_unless_places_are_asked_for() -> None:
    check(lambda x: round(x), lambda x: np.rint(x).astype(I32), np.array([2.5, -1.75, 0.2], F32))
    check(lambda x: round(x, 1), lambda x: np.round(x, 1), np.array([2.56, -1.71], F32), atol=1e-6)
    check(lambda x: round(x), lambda x: x, np.array([2, -1], I32))
