"""Numbers drawn from distributions: known values, how they are spread, and that `compile` changes nothing.

How far an empirical distribution of n draws may lie from the true one is bounded by Dvoretzky, Kiefer and Wolfowitz:
by sqrt(log(2 / chance) / 2n), but for that chance, whatever the distribution.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax import random
from lavax.base.errors import DtypeError, ShapeError

KEY, KEY_42 = (random.key(seed) for seed in (0, 42))
DRAWS, CHANCE = 20_000, 1e-6
FARTHEST = math.sqrt(math.log(2 / CHANCE) / (2 * DRAWS))

FLOATS: list[tuple[Callable[[], Any], list[float]]] = [
    (
        lambda: random.uniform(KEY_42, (4,)),
        [0.48870956897735596, 0.6797971725463867, 0.6162714958190918, 0.5610160827636719],
    ),
    (
        lambda: random.uniform(KEY, (3,), minval=-1, maxval=3),
        [2.79066801071167, 2.9143195152282715, 0.3291659355163574],
    ),
    (
        lambda: random.uniform(random.key(5), (3,), minval=2, maxval=np.array([3.0, 4.0, 5.0])),
        [2.4663798809051514, 3.841762065887451, 4.207430362701416],
    ),
    (
        lambda: random.normal(KEY_42, (4,)),
        [-0.02830461598932743, 0.4671318531036377, 0.2957029640674591, 0.15354591608047485],
    ),
    (
        lambda: random.normal(random.key(5), (2, 3))[1],
        [-1.310097336769104, 1.368931531906128, 0.46135851740837097],
    ),
    (lambda: random.truncated_normal(KEY, -2, 2, (3,)), [1.4559592008590698, 1.714748740196228, -0.4126753509044647]),
    (lambda: random.exponential(KEY, (3,)), [2.9501280784606934, 3.8434245586395264, 0.4039035439491272]),
    (lambda: random.gumbel(KEY, (3,)), [2.923372507095337, 3.83261775970459, -0.09689324349164963]),
    (lambda: random.laplace(KEY, (3,)), [-2.256981611251831, -3.1502788066864014, 0.4085954427719116]),
]
LOGITS = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]], np.float32)
WHOLE: list[tuple[Callable[[], Any], Any]] = [
    (lambda: random.randint(KEY, (6,), 0, 100), [89, 0, 12, 73, 71, 47]),
    (lambda: random.randint(random.key(1), (5,), -10, 10), [6, -3, -10, 3, -2]),
    (
        lambda: random.randint(random.key(1), (5,), -(2**31), 2**31 - 1),
        [-413835524, 210002863, -1191255328, -1392002199, 1638955424],
    ),
    (lambda: random.randint(random.key(1), (5,), 5, 5), [5] * 5),
    (lambda: random.randint(random.key(1), (5,), 5, -5), [5] * 5),
    (
        lambda: random.randint(random.key(1), (2, 3), np.array([0, 10, 20]), np.array([5, 20, 1000])),
        [[1, 17, 620], [3, 18, 964]],
    ),
    (lambda: random.bernoulli(KEY, 0.3, (8,)), [False] * 5 + [True] + [False] * 2),
    (lambda: random.categorical(KEY, [0, 1, 2], shape=(8,)), [1, 1, 2, 1, 2, 2, 2, 2]),
    (lambda: random.categorical(random.key(1), LOGITS, shape=(4, 2)), [[2, 0], [0, 0], [2, 0], [2, 0]]),
    (lambda: random.categorical(random.key(1), LOGITS, axis=0), [1, 1, 0]),
]


@pytest.mark.parametrize(("draw", "expected"), FLOATS)
def test_floats_of_the_table(draw: Callable[[], Any], expected: list[float]) -> None:
    found, exact = np.asarray(draw()), np.array(expected, np.float32)
    assert found.dtype == np.float32
    assert (np.abs(found - exact) <= 2 * np.spacing(np.abs(exact))).all(), found - exact


@pytest.mark.parametrize(("draw", "expected"), WHOLE)
def test_whole_numbers_of_the_table(draw: Callable[[], Any], expected: Any) -> None:
    np.testing.assert_array_equal(np.asarray(draw()), expected)


def erlang(shape: int) -> Callable[[float], float]:
    """The integral of the gamma density of a whole shape parameter."""
    return lambda x: 1 - math.exp(-x) * sum(x**k / math.factorial(k) for k in range(shape))


def poisson(rate: float) -> Callable[[float], float]:
    def below(x: float) -> float:
        steps = (k * math.log(rate) - rate - math.lgamma(k + 1) for k in range(int(x) + 1))
        return math.fsum(map(math.exp, steps))

    return below


def bell(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


# For each: draws of a number of elements, and the probability of a number up to x.
SPREAD: dict[str, tuple[Callable[[Any, int], Any], Callable[[float], float]]] = {
    "uniform": (lambda key, n: random.uniform(key, (n,), minval=-2, maxval=0.5), lambda x: (x + 2) / 2.5),
    "normal": (lambda key, n: random.normal(key, (n,)), bell),
    "truncated_normal": (
        lambda key, n: random.truncated_normal(key, -1.0, 2.5, (n,)),
        lambda x: (bell(x) - bell(-1)) / (bell(2.5) - bell(-1)),
    ),
    "exponential": (lambda key, n: random.exponential(key, (n,)), lambda x: -math.expm1(-x)),
    "gumbel": (lambda key, n: random.gumbel(key, (n,)), lambda x: math.exp(-math.exp(-x))),
    "laplace": (
        lambda key, n: random.laplace(key, (n,)),
        lambda x: 0.5 * math.exp(x) if x < 0 else 1 - 0.5 * math.exp(-x),
    ),
    "gamma 0.5": (lambda key, n: random.gamma(key, 0.5, (n,)), lambda x: math.erf(math.sqrt(x))),
    "gamma 1": (lambda key, n: random.gamma(key, 1.0, (n,)), erlang(1)),
    "gamma 3": (lambda key, n: random.gamma(key, np.full(n, 3.0)), erlang(3)),
    "gamma 60": (lambda key, n: random.gamma(key, 60.0, (n,)), erlang(60)),
    "loggamma 0.5": (
        lambda key, n: lx.numpy.exp(random.loggamma(key, 0.5, (n,))),
        lambda x: math.erf(math.sqrt(x)),
    ),
    "beta": (lambda key, n: random.beta(key, 2.0, 3.0, (n,)), lambda x: 6 * x**2 - 8 * x**3 + 3 * x**4),
    "beta of small parameters": (lambda key, n: random.beta(key, 0.1, 1.0, (n,)), lambda x: x**0.1),
    "dirichlet": (
        lambda key, n: random.dirichlet(key, np.array([1.0, 0.5, 1.5]), (n,))[:, 0],
        lambda x: 1 - (1 - x) ** 2,
    ),
    "poisson 0.3": (lambda key, n: random.poisson(key, 0.3, (n,)), poisson(0.3)),
    "poisson 9.9": (lambda key, n: random.poisson(key, 9.9, (n,)), poisson(9.9)),
    "poisson 10": (lambda key, n: random.poisson(key, 10.0, (n,)), poisson(10)),
    "poisson 500": (lambda key, n: random.poisson(key, 500.0, (n,)), poisson(500)),
    "randint": (lambda key, n: random.randint(key, (n,), -3, 4), lambda x: (math.floor(x) + 4) / 7),
}


@pytest.mark.parametrize("name", SPREAD)
def test_how_the_numbers_are_spread(name: str) -> None:
    draw, probability = SPREAD[name]
    numbers = np.sort(np.asarray(draw(random.key(17), DRAWS)).astype(np.float64))
    values, last = np.unique(numbers, return_index=False, return_counts=True)
    up_to = np.cumsum(last) / DRAWS
    exact = np.array([probability(value) for value in values])
    assert np.abs(up_to - exact).max() < FARTHEST, name


@pytest.mark.parametrize("name", SPREAD)
def test_a_compiled_draw_is_the_same(name: str) -> None:
    draw, _ = SPREAD[name]
    compiled = lx.compile(draw, static_argnums=1)(random.key(3), 64)
    at_once = np.asarray(draw(random.key(3), 64))
    # A driver may contract a product and a sum in one program and not in the other.
    np.testing.assert_allclose(np.asarray(compiled), at_once, rtol=4e-6, atol=1e-6)
    again = np.asarray(draw(random.key(3), 64))
    np.testing.assert_array_equal(at_once, again)
    assert not np.array_equal(at_once, np.asarray(draw(random.key(4), 64)))


def test_parameters_decide_the_shape() -> None:
    rates = np.array([[0.5], [20.0]], np.float32)
    assert random.gamma(KEY, rates).shape == (2, 1)
    assert random.gamma(KEY, rates, (3, 2, 5)).shape == (3, 2, 5)
    assert random.beta(KEY, rates, np.ones(4, np.float32)).shape == (2, 4)
    assert random.poisson(KEY, rates).shape == (2, 1)
    assert random.bernoulli(KEY, rates / 20).shape == (2, 1)
    assert random.truncated_normal(KEY, rates, rates + np.ones(3, np.float32)).shape == (2, 3)
    assert random.dirichlet(KEY, np.ones((2, 3), np.float32)).shape == (2, 3)
    assert random.dirichlet(KEY, np.ones(3, np.float32), (4, 5)).shape == (4, 5, 3)
    assert random.categorical(KEY, LOGITS).shape == (2,)
    assert random.uniform(KEY, 3).shape == (3,)
    assert random.normal(KEY, (0, 2)).shape == (0, 2)


def test_each_parameter_has_numbers_of_its_own() -> None:
    rates = np.array([0.0, 2.0, 9.0, 11.0, 300.0, 1e6], np.float32)
    for draw in (random.poisson, random.gamma):
        numbers = np.asarray(draw(KEY, rates, (4000, 6))).astype(np.float64)
        # The variance is the mean, for both.
        assert (np.abs(numbers.mean(axis=0) - rates) <= 5 * np.sqrt(rates / 4000)).all()
        # That of a sample variance is at most (2 + 1/rate) rate^2 / n for Poisson, (2 + 6/a) a^2 / n for gamma.
        spread = np.sqrt((2 * rates**2 + 6 * rates) / 4000)
        assert (np.abs(numbers.var(axis=0) - rates) <= 5 * spread).all()


def test_the_ends_of_the_parameters() -> None:
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.asarray(random.poisson(KEY, np.array([0.0, -1.0, np.nan]))), [0, -1, -1])
        np.testing.assert_array_equal(np.asarray(random.gamma(KEY, np.array([0.0, -1.0, np.nan]))), [0, np.nan, np.nan])
    np.testing.assert_array_equal(np.asarray(random.bernoulli(KEY, np.array([0.0, 1.0]), (50, 2))), [[0, 1]] * 50)
    whole = np.asarray(random.randint(KEY, (4000,), 0, 2**32, np.uint32)).astype(np.float64)
    assert whole.dtype == np.float64 and whole.max() > 2**31 and abs(whole.mean() / 2**32 - 0.5) < 5 / math.sqrt(48000)
    signed = np.asarray(random.randint(KEY, (4000,), -(2**31), 2**31))
    assert signed.min() < 0 < signed.max()


def test_draws_stay_within_their_bounds() -> None:
    inside = np.asarray(random.uniform(KEY, (100_000,)))
    assert inside.min() >= 0 and inside.max() < 1
    cut = np.asarray(random.truncated_normal(KEY, -0.5, 0.25, (100_000,)))
    assert cut.min() > -0.5 and cut.max() < 0.25
    tail = np.asarray(random.truncated_normal(KEY, 3.0, math.inf, (100_000,)))
    assert tail.min() > 3 and np.isfinite(tail).all()
    integers = np.asarray(random.randint(KEY, (100_000,), 7, 1007))
    assert integers.min() == 7 and integers.max() == 1006
    assert np.isfinite(np.asarray(random.normal(KEY, (100_000,)))).all()
    assert np.isfinite(np.asarray(random.gumbel(KEY, (100_000,)))).all()


def test_categories_come_up_as_their_logits_say() -> None:
    logits = np.array([0.0, -math.inf, 1.0, 2.0], np.float32)
    share = np.exp(logits) / np.exp(logits).sum()
    counted = np.bincount(np.asarray(random.categorical(random.key(8), logits, shape=(DRAWS,))), minlength=4) / DRAWS
    assert (np.abs(counted - share) <= 5 * np.sqrt(share * (1 - share) / DRAWS)).all()


def test_a_gradient_passes_to_the_bounds_of_uniform() -> None:
    def mean(bound: Any) -> Any:
        return lx.numpy.mean(random.uniform(KEY, (64,), minval=0.0, maxval=bound))

    expected = np.asarray(random.uniform(KEY, (64,))).mean()
    np.testing.assert_allclose(float(lx.grad(mean)(2.0)), expected, rtol=1e-5)


def test_a_gradient_passes_to_the_parameters_of_gamma() -> None:
    """JAX 0.10.2's; and the mean of all is the derivative of the mean."""
    a = np.array([0.3, 0.9, 2.5, 12.0, 80.0], np.float32)
    slope = np.asarray(lx.grad(lambda a: lx.numpy.sum(random.gamma(KEY, a)))(a))
    np.testing.assert_allclose(slope, [2.22582364, 1.52395165, 0.83078825, 1.19073343, 1.045645], rtol=2e-5)
    slope = np.asarray(lx.grad(lambda a: lx.numpy.sum(random.loggamma(random.key(1), a)))(a))
    np.testing.assert_allclose(slope, [20.7611752, 1.28133404, 0.31758955, 0.0816141963, 0.0114761554], rtol=2e-5)
    mean = lx.grad(lambda a: lx.numpy.mean(random.beta(random.key(3), a, 3.0, (DRAWS,))))
    assert abs(float(mean(2.0)) - 3 / 25) < 2e-3


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: random.normal(KEY, (3,), np.int32), DtypeError, "normal: dtype must be floating, got int32"),
    (lambda: random.uniform(7, (3,)), DtypeError, "uniform: a key is an array from lavax.random.key"),
    (
        lambda: random.uniform(KEY, (3,), minval=np.zeros(2)),
        ShapeError,
        "uniform: a parameter of shape (2,) does not broadcast to the shape (3,)",
    ),
    (lambda: random.gamma(KEY, np.ones((2, 3)), (3,)), ShapeError, "gamma: a parameter of shape (2, 3)"),
    (lambda: random.beta(KEY, np.ones(2), np.ones(3)), ShapeError, "beta: shapes (2,) and (3,) do not broadcast"),
    (lambda: random.dirichlet(KEY, 1.0), ShapeError, "dirichlet: alpha must have at least one axis"),
    (lambda: random.poisson(KEY, 1.0, (2,), np.float32), DtypeError, "poisson: dtype must be an integer dtype"),
    (lambda: random.randint(KEY, (2,), 0.5j, 3), DtypeError, "randint: minval must be an integer, got c64[]"),
    (lambda: random.randint(KEY, (2,), 0, 2**31 + 1), DtypeError, "2147483649 is outside int32"),
    (lambda: random.randint(KEY, (2,), 0, 5, np.float32), DtypeError, "randint: dtype must be an integer dtype"),
    (lambda: random.categorical(KEY, LOGITS, axis=2), ShapeError, "categorical: axis 2 is not an axis of f32[2,3]"),
    (lambda: random.categorical(KEY, LOGITS, shape=(3,)), ShapeError, "categorical: a parameter of shape (2,)"),
    (
        lambda: random.categorical(KEY, LOGITS, shape=(4, 2), replace=False),
        ShapeError,
        "there are 3 categories",
    ),
]


@pytest.mark.parametrize(("draw", "error", "message"), REFUSED)
def test_what_is_refused(draw: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as found:
        draw()
    assert message in str(found.value)
    assert "test_distributions.py:" in str(found.value)
