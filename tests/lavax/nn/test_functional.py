"""Activations and probabilities, against scipy's and plain formulas."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import lavax as lx
import lavax.nn as nn
import lavax.numpy as lnp
from lavax.base.errors import DtypeError, ShapeError
from tests.lavax.numpy.arrays import BOOL, DTYPES, F32, I32, NUMBERS, SHAPES, U32, check, sample

pytestmark = pytest.mark.usefixtures("reference_backend")


def single(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """`function` in float64, rounded once."""
    return lambda x: np.asarray(function(np.asarray(x, np.float64)), F32)


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_relu(dtype: np.dtype) -> None:
    for shape in SHAPES:
        check(nn.relu, lambda x: np.maximum(x, 0).astype(x.dtype), sample(shape, dtype))
    check(nn.relu, lambda x: np.maximum(x, 0), np.array([np.nan, -np.inf, np.inf, -0.0], F32))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sigmoid_softplus_tanh(dtype: np.dtype) -> None:
    for shape in SHAPES:
        x = sample(shape, dtype, -20, 20)
        check(nn.sigmoid, single(special.expit), x, atol=0)
        check(nn.softplus, single(lambda x: np.logaddexp(x, 0)), x)
        check(nn.tanh, single(np.tanh), x)
    far = np.array([-90, 90, -80, 80, np.inf, -np.inf], F32)
    check(nn.softplus, single(lambda x: np.logaddexp(x, 0)), far)
    check(nn.sigmoid, single(special.expit), far)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_softmax(name: str, dtype: np.dtype) -> None:
    for shape in SHAPES:
        x = sample(shape, dtype, -5, 5)
        if not x.size:
            check(getattr(nn, name), lambda x: x.astype(F32), x)
            continue
        for axis in [None, *range(-len(shape), len(shape)), *([(0, -1)] if len(shape) > 1 else [])]:
            check(lambda x: getattr(nn, name)(x, axis), single(lambda x: getattr(special, name)(x, axis)), x)  # noqa: B023


def test_softmax_of_chosen_elements() -> None:
    x = sample((3, 4), np.dtype(F32), -5, 5)
    mask = np.array([[True, False, True, True], [False] * 4, [True] * 4])
    minus = np.where(mask, x, -np.inf)
    with np.errstate(invalid="ignore"):
        shares, logarithms = special.softmax(minus, -1), special.log_softmax(minus, -1)
    cases: list[tuple[Callable[..., Any], np.ndarray]] = [
        (lambda x, mask: nn.softmax(x, where=mask), np.where(mask, shares, 0)),
        (lambda x, mask: nn.log_softmax(x, where=mask), np.where(mask, logarithms, -np.inf)),
        (lambda x, mask: nn.logsumexp(x, -1, where=mask), special.logsumexp(minus, -1)),
    ]
    for ours, expected in cases:
        check(ours, lambda x, mask: expected.astype(F32), x, mask)  # noqa: B023
    for function in (nn.softmax, nn.log_softmax):
        slope = lx.grad(lambda x: lnp.sum(lnp.where(mask, function(x, where=mask), 0) * x))(x)  # noqa: B023
        assert np.isfinite(np.asarray(slope)).all()
        assert not np.asarray(slope)[1].any()


@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax, nn.logsumexp])
def test_softmax_of_16_bits_is_rounded_once(function: Callable[..., Any]) -> None:
    graph = lx.trace(lambda x: function(x, axis=-1))(lx.ShapeDtype((3, 40), lnp.bfloat16))
    narrow = [node.op for node in graph.nodes if node.dtype.name == "bf16"]
    assert set(narrow) <= {"cast", "constant"} and narrow.count("cast") == 1


def test_softmax_of_large_numbers() -> None:
    check(nn.softmax, single(lambda x: special.softmax(x, -1)), np.array([[1e4, 1e4 - 1], [-1e4, -1e4 - 2]], F32))
    check(nn.log_softmax, single(lambda x: special.log_softmax(x, -1)), np.array([0.0, -100, 50], F32))
    check(nn.softmax, lambda x: np.array([0, 1, 0], F32), np.array([-np.inf, 0, -np.inf], F32))
    assert np.isnan(np.asarray(nn.softmax(np.full(3, -np.inf)))).all()
    known = [0.09003057317038046, 0.24472847105479764, 0.6652409557748218]
    np.testing.assert_allclose(np.asarray(nn.softmax([1.0, 2.0, 3.0])), known, rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp(dtype: np.dtype, keepdims: bool) -> None:
    for shape in SHAPES:
        x = sample(shape, dtype, -5, 5)
        for axis in [None, *range(-len(shape), len(shape)), *([(0, -1)] if len(shape) > 1 else [])]:
            expected = np.asarray(log_of_sum(x.astype(np.float64), axis, keepdims), F32)
            check(lambda x: nn.logsumexp(x, axis, keepdims=keepdims), lambda _: expected, x)  # noqa: B023


def log_of_sum(x: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(x).sum(axis, keepdims=keepdims)))


def test_logsumexp_of_infinities_and_with_factors() -> None:
    x = np.array([[-np.inf, -np.inf], [np.inf, 0], [1000, 1000], [-np.inf, 3]], F32)
    check(lambda x: nn.logsumexp(x, -1), lambda _: np.array([-np.inf, np.inf, 1000 + np.log(2), 3], F32), x)
    x, b = sample((2, 3)), sample((3,), low=0.1)
    check(
        lambda x, b: nn.logsumexp(x, 1, b), lambda x, b: np.asarray(special.logsumexp(x, 1, b), F32), x, b
    )


def test_logmeanexp() -> None:
    x, mask = sample((3, 4), low=-50, high=50), np.arange(12).reshape(3, 4) % 3 > 0
    for axis in (None, 0, -1, (0, 1)):
        mean = lambda x: log_of_sum(x, axis, True) - np.log(x.size / log_of_sum(x, axis, True).size)  # noqa: B023, E731
        check(lambda x: nn.logmeanexp(x, axis, keepdims=True), lambda x: np.asarray(mean(x.astype(np.float64)), F32), x)  # noqa: B023
    chosen = np.log(np.where(mask, np.exp(x.astype(np.float64)), 0).sum(1) / mask.sum(1)).astype(F32)
    check(lambda x, mask: nn.logmeanexp(x, 1, mask), lambda x, mask: chosen, x, mask)


def test_log1mexp() -> None:
    x = np.logspace(-30, 1.9, 200).astype(F32)
    wide = x.astype(np.float64)
    exact = np.where(wide < 0.5, np.log(-np.expm1(-wide)), np.log1p(-np.exp(-np.maximum(wide, 0.5))))
    check(nn.log1mexp, lambda _: exact.astype(F32), x, atol=0)
    check(nn.log1mexp, lambda _: np.array([-np.inf, 0, np.nan], F32), np.array([0, np.inf, -1], F32))
    slope = lx.grad(lambda x: lnp.sum(nn.log1mexp(x)))(x)
    np.testing.assert_allclose(np.asarray(slope), 1 / np.expm1(wide), rtol=1e-5)


def test_standardize() -> None:
    x = sample((4, 6), low=90, high=110)
    mask = np.arange(24).reshape(4, 6) % 5 > 0

    def standard(x: np.ndarray, axis: Any, where: Any = True) -> np.ndarray:
        x = x.astype(np.float64)
        mean, variance = (f(x, axis=axis, keepdims=True, where=where) for f in (np.mean, np.var))
        return np.asarray((x - mean) / np.sqrt(variance + 1e-5), F32)

    # The mean, of size 100, is rounded; elements lie 6 from it.
    for axis in (None, 0, -1, (0, 1)):
        check(lambda x: nn.standardize(x, axis), lambda x: standard(x, axis), x, atol=1e-5)  # noqa: B023
    check(lambda x, m: nn.standardize(x, 1, where=m), lambda x, m: standard(x, 1, m), x, mask, atol=1e-5)
    check(lambda x: nn.standardize(x, -1, 100.0, 24.0, 1.0), lambda x: (x - 100) / F32.type(5), x, atol=1e-5)


@pytest.mark.parametrize("dtype", [I32, U32], ids=str)
def test_one_hot(dtype: np.dtype) -> None:
    for shape in SHAPES:
        x = sample(shape, dtype, 0, 4)
        check(lambda x: nn.one_hot(x, 5), lambda x: np.eye(5, dtype=F32)[x], x)
        check(lambda x: nn.one_hot(x, 5, axis=0), lambda x: np.moveaxis(np.eye(5, dtype=F32)[x], -1, 0), x)
    check(lambda x: nn.one_hot(x, 3, dtype=BOOL), lambda x: np.eye(3, dtype=BOOL)[x], np.array([2, 0], dtype))
    check(lambda x: nn.one_hot(x, 0), lambda x: np.zeros((2, 0), F32), np.array([2, 0], dtype))


def test_classes_outside_are_all_zeros() -> None:
    np.testing.assert_array_equal(np.asarray(nn.one_hot([-1, 3, 1], 3)), [[0, 0, 0], [0, 0, 0], [0, 1, 0]])


def test_floats_name_classes() -> None:
    for dtype in ("float32", "float16", "bfloat16"):
        given = lnp.asarray([2.0, 0.5, 1.0, -1.0, lnp.nan], dtype)
        expected = [[0, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]]
        np.testing.assert_array_equal(np.asarray(nn.one_hot(given, 3)), expected)


def test_what_does_not_fit() -> None:
    with pytest.raises(DtypeError, match=r"one_hot: the classes must be numbers, got bool\[2\]"):
        nn.one_hot(lnp.ones(2, bool), 3)
    with pytest.raises(ShapeError, match="one_hot: -1"):
        nn.one_hot([1], -1)
    with pytest.raises(ShapeError, match="softmax: axis 1 is not an axis"):
        nn.softmax(lnp.ones(2), 1)
