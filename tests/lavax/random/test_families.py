"""The distributions beyond the plain ones: JAX 0.10.2's numbers, how they are spread, and draws of other dtypes."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import lavax as lx
import lavax.numpy as lnp
from lavax import random
from lavax.base.errors import DtypeError, KeyReuseError, ShapeError
from lavax.ir import interpret
from lavax.random.reuse import key_reuse
from tests.lavax.numpy.arrays import F32, traced
from tests.lavax.random.test_distributions import DRAWS, FARTHEST

KEY, KEY_1, KEY_42 = (random.key(seed) for seed in (0, 1, 42))

TABLE: list[tuple[Callable[[], Any], Any]] = [
    (
        lambda: random.cauchy(KEY, (6,)),
        [6.02749443, 14.8378954, -0.58172226, -0.0987498686, 0.223159626, -1.74676538],
    ),
    (
        lambda: random.logistic(KEY, (6,)),
        [2.89637589, 3.82177162, -0.6978392, -0.125490546, 0.281397104, -1.61783957],
    ),
    (lambda: random.gamma(KEY, 2.5, (6,)), [2.07884192, 2.27277827, 1.54404235, 4.70205402, 3.60007048, 2.5200429]),
    (
        lambda: random.gamma(KEY, 0.3, (6,)),
        [0.629269719, 0.755759358, 0.00597323105, 0.00530292001, 0.0874224678, 5.03964781e-09],
    ),
    (
        lambda: random.loggamma(random.key(1), 0.3, (6,)),
        [-6.38850069, -1.12025642, -8.46130276, 0.229507387, -10.9637213, -0.272474438],
    ),
    (
        lambda: random.gamma(random.key(1), np.array([[0.5, 1.0, 3.0], [10.0, 100.0, 1e3]], F32)),
        [[0.0222767871, 0.474694073, 5.09590912], [10.7550592, 116.788445, 997.273438]],
    ),
    (
        lambda: random.beta(KEY, 2.0, 3.0, (6,)),
        [0.236273617, 0.490459561, 0.683794796, 0.542344213, 0.490237027, 0.339417517],
    ),
    (
        lambda: random.dirichlet(KEY, np.array([1.0, 2.0, 0.5], F32), (2,)),
        [[0.254993111, 0.725598872, 0.0194080286], [0.447551876, 0.55244559, 2.50847597e-06]],
    ),
    (
        lambda: random.t(KEY, 3.0, (6,)),
        [0.690224648, -3.23933649, -1.6745249, -1.81507564, -0.504291356, 0.666409671],
    ),
    (
        lambda: random.chisquare(KEY, 3.0, (6,)),
        [2.20508409, 2.48996687, 1.45571351, 6.4245348, 4.57179022, 2.86155534],
    ),
    (
        lambda: random.f(KEY, 3.0, 5.0, (6,)),
        [2.57970738, 0.192196772, 0.159776896, 0.388420284, 0.991794527, 1.06663227],
    ),
    (lambda: random.pareto(KEY, 2.0, (6,)), [4.37131596, 6.8326478, 1.22378898, 1.37188339, 1.52478838, 1.09468114]),
    (lambda: random.rayleigh(KEY, 2.0, (6,)), [0.655756652, 0.416200548, 2.96882844, 2.462291, 2.12096977, 3.793432]),
    (
        lambda: random.weibull_min(KEY, 2.0, 1.5, (6,)),
        [4.11393356, 4.9072957, 1.09281945, 1.47347832, 1.78577149, 0.639780343],
    ),
    (lambda: random.maxwell(KEY, (6,)), [2.6310966, 0.991032839, 0.964930594, 3.0782752, 1.33582091, 1.89293599]),
    (
        lambda: random.double_sided_maxwell(KEY, 1.0, 2.0, (6,)),
        [4.09144211, 4.14825535, -3.165061, 5.58483458, 5.21004248, 2.82505655],
    ),
    (
        lambda: random.lognormal(KEY, 0.5, (6,)),
        [2.25087953, 2.7528379, 0.805093229, 0.961453915, 1.0920378, 0.615054369],
    ),
    (
        lambda: random.wald(KEY, 2.0, (6,)),
        [0.533421993, 0.598115444, 0.725483894, 0.442173004, 0.623791933, 0.88937366],
    ),
    (
        lambda: random.triangular(KEY, -1.0, 0.5, 2.0, (6,)),
        [1.51471817, 1.6895318, 0.222829342, 0.452242374, 0.608777165, -0.137003124],
    ),
    (
        lambda: random.generalized_normal(KEY, 1.5, (6,)),
        [1.06039178, 0.0892082825, -1.37513375, 0.559142888, 0.680123925, 0.990301609],
    ),
    (
        lambda: random.ball(KEY, 3, 2, (2,)),
        [[0.917159736, 0.392742157, 0.0116535015], [-0.86136508, 0.316848248, -0.0628554374]],
    ),
    (lambda: random.binomial(KEY, 5.0, 0.3, (8,)), [2, 1, 1, 0, 1, 3, 3, 0]),
    (lambda: random.binomial(KEY, 100.0, 0.4, (8,)), [33, 38, 34, 45, 36, 42, 45, 39]),
    (lambda: random.multinomial(KEY, 20.0, np.array([0.2, 0.3, 0.5], F32), shape=(2, 3)), [[1, 6, 13], [8, 3, 9]]),
    (lambda: random.geometric(KEY, 0.2, (8,)), [1, 1, 5, 4, 3, 9, 6, 2]),
    (lambda: random.rademacher(KEY, (8,)), [-1, -1, 1, 1, -1, 1, 1, -1]),
    (lambda: random.poisson(KEY, 3.5, (8,)), [0, 0, 5, 4, 2, 2, 3, 6]),
]


@pytest.mark.parametrize(("draw", "expected"), TABLE)
def test_the_numbers_are_those_of_the_table(draw: Callable[[], Any], expected: Any) -> None:
    """Up to 8 units in the last place: the formulas are written in another way."""
    np.testing.assert_allclose(np.asarray(draw()), np.array(expected), rtol=8 * 2.0**-23)


# The first draws from the keys named below, of dtypes other than float32.
OTHER_DTYPES: list[tuple[str, str, list[float]]] = [
    ("float64", "uniform", [0.42672756664990907, 0.015010069515314584, 0.57414441789953519]),
    ("float64", "uniform_odd", [0.17089014799773805, 0.37225524657217796, 0.44113153469134059]),
    ("float64", "normal", [-0.18471174528191162, -2.1698245603977542, 0.18693555179382582]),
    ("float64", "exponential", [0.54207055517116032, 0.24372318502372997, 3.3616342594163338]),
    ("float64", "gumbel", [0.13790565977540292, -0.4259929367942607, 3.3440391055850229]),
    ("float64", "laplace", [0.17803369470862349, 0.83796277999044821, -2.6684870788563901]),
    ("float16", "uniform", [0.076171875, 0.190429688, 0.975585938]),
    ("float16", "uniform_odd", [0.232421875, 0.118713379, 0.524902344]),
    ("float16", "normal", [-1.4296875, -0.875488281, 1.97460938]),
    ("float16", "exponential", [0.371826172, 0.239379883, 0.0562438965]),
    ("float16", "gumbel", [-0.15612793, -0.436279297, -1.06640625]),
    ("float16", "laplace", [0.475585938, 0.852539062, 2.20898438]),
    ("bfloat16", "uniform", [0.6328125, 0.84375, 0.96875]),
    ("bfloat16", "uniform_odd", [0.52734375, 0.244140625, 0.384765625]),
    ("bfloat16", "normal", [0.34375, 1.015625, 1.890625]),
    ("bfloat16", "exponential", [1.046875, 0.84375, 0.169921875]),
    ("bfloat16", "gumbel", [0.8359375, 0.57421875, -0.62109375]),
    ("bfloat16", "laplace", [-0.357421875, -0.15625, 1.1484375]),
]
DRAWN: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "uniform": (KEY_42, lambda key, dtype: random.uniform(key, (6,), dtype)),
    "uniform_odd": (KEY_1, lambda key, dtype: random.uniform(key, (6,), dtype, 0.1, 0.7)),
    "normal": (KEY_42, lambda key, dtype: random.normal(key, (6,), dtype)),
    "exponential": (KEY, lambda key, dtype: random.exponential(key, (6,), dtype)),
    "gumbel": (KEY, lambda key, dtype: random.gumbel(key, (6,), dtype)),
    "laplace": (KEY, lambda key, dtype: random.laplace(key, (6,), dtype)),
}
EPS = {"float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}


@pytest.mark.parametrize(("dtype", "name", "expected"), OTHER_DTYPES)
def test_every_dtype_has_draws_of_its_own(dtype: str, name: str, expected: list[float]) -> None:
    """float64 by the interpreter: not every driver has it."""
    key, draw = DRAWN[name]
    held = getattr(lnp, dtype)
    if dtype == "float64":
        words = np.asarray(random.key_data(key))
        graph = traced(lambda key: draw(key, held), words)
        assert graph.outputs[0].type.dtype.numpy == np.float64
        np.testing.assert_allclose(interpret(graph, words)[0][:3], expected, rtol=8 * EPS[dtype])
        return
    found = draw(key, held)
    assert found.dtype == held
    np.testing.assert_allclose(np.asarray(found, np.float64)[:3], expected, rtol=2 * EPS[dtype])


INTEGERS: list[tuple[str, int, int, list[int]]] = [
    ("int8", -64, 126, [-58, -57, 56, -31, 124, -20]),
    ("int8", -128, 128, [124, 47, 96, -23, 32, 44]),
    ("uint8", 0, 256, [252, 175, 224, 105, 160, 172]),
    ("int16", -(2**15), 2**15, [-8452, -7249, 25312, 15209, -1632, 12972]),
    ("uint16", 3, 65534, [7229, 43197, 35900, 4957, 26088, 20206]),
    (
        "int64", -(2**62), 2**63 - 2,
        [-4372455787532602274, 4902737475271550573, -4398743378237692715, 1739216376773823357, -1294803057095764262,
         6340556766326594661],
    ),
]


@pytest.mark.parametrize(("dtype", "low", "high", "expected"), INTEGERS)
def test_integers_of_every_width(dtype: str, low: int, high: int, expected: list[int]) -> None:
    found = random.randint(KEY_1, (6,), low, high, dtype)
    assert found.dtype == np.dtype(dtype)
    assert found.tolist() == expected


def test_integers_of_64_bits_lie_in_their_range() -> None:
    for dtype, low, high in (("int64", -(2**63), 2**63), ("uint64", 2**63, 2**64), ("int64", -(2**40), 2**41)):
        numbers = [int(n) for n in np.asarray(random.randint(KEY, (4000,), low, high, dtype))]
        assert low <= min(numbers) and max(numbers) < high
        middle = sum((n - low) / (high - low) for n in numbers) / len(numbers)
        assert abs(middle - 0.5) < 5 / math.sqrt(12 * len(numbers))
    assert random.randint(KEY, (3,), 7, 7, "int64").tolist() == [7] * 3


def _ball_radius(key: Any, n: int) -> Any:
    return lnp.sum(lnp.square(random.ball(key, 3, 2, (n,))), -1) ** 0.5


# For each: draws of a number of elements, and the probability of a number up to x.
SPREAD: dict[str, tuple[Callable[[Any, int], Any], Callable[[Any], Any]]] = {
    "ball": (_ball_radius, lambda r: r**3),
    "binomial 12, 0.3": (lambda key, n: random.binomial(key, 12.0, 0.3, (n,)), stats.binom(12, 0.3).cdf),
    "binomial 80, 0.7": (lambda key, n: random.binomial(key, 80.0, 0.7, (n,)), stats.binom(80, 0.7).cdf),
    "binomial 1e5, 0.01": (lambda key, n: random.binomial(key, 1e5, 0.01, (n,)), stats.binom(100000, 0.01).cdf),
    "cauchy": (lambda key, n: random.cauchy(key, (n,)), stats.cauchy.cdf),
    "chisquare": (lambda key, n: random.chisquare(key, 3.0, (n,)), stats.chi2(3).cdf),
    "double_sided_maxwell": (
        lambda key, n: random.double_sided_maxwell(key, 1.0, 2.0, (n,)),
        lambda x: 0.5 + 0.5 * np.sign(x - 1) * stats.maxwell.cdf(np.abs(x - 1) / 2),
    ),
    "f": (lambda key, n: random.f(key, 3.0, 7.0, (n,)), stats.f(3, 7).cdf),
    "generalized_normal": (lambda key, n: random.generalized_normal(key, 1.5, (n,)), stats.gennorm(1.5).cdf),
    "geometric": (lambda key, n: random.geometric(key, 0.2, (n,)), stats.geom(0.2).cdf),
    "logistic": (lambda key, n: random.logistic(key, (n,)), stats.logistic.cdf),
    "lognormal": (lambda key, n: random.lognormal(key, 0.5, (n,)), stats.lognorm(0.5).cdf),
    "maxwell": (lambda key, n: random.maxwell(key, (n,)), stats.maxwell.cdf),
    "multinomial": (
        lambda key, n: random.multinomial(key, 20.0, np.array([0.2, 0.3, 0.5], F32), shape=(n, 3))[:, 1],
        stats.binom(20, 0.3).cdf,
    ),
    "pareto": (lambda key, n: random.pareto(key, 2.0, (n,)), stats.pareto(2).cdf),
    "poisson 1e5": (lambda key, n: random.poisson(key, 1e5, (n,)), stats.poisson(1e5).cdf),
    "rademacher": (lambda key, n: random.rademacher(key, (n,)), lambda x: np.where(x < 0, 0.5, 1.0)),
    "rayleigh": (lambda key, n: random.rayleigh(key, 2.0, (n,)), stats.rayleigh(scale=2).cdf),
    "t": (lambda key, n: random.t(key, 3.0, (n,)), stats.t(3).cdf),
    "triangular": (
        lambda key, n: random.triangular(key, -1.0, 0.5, 2.0, (n,)), stats.triang(0.5, loc=-1, scale=3).cdf
    ),
    "wald": (lambda key, n: random.wald(key, 2.0, (n,)), stats.invgauss(2.0).cdf),
    "weibull_min": (lambda key, n: random.weibull_min(key, 2.0, 1.5, (n,)), stats.weibull_min(1.5, scale=2).cdf),
}


@pytest.mark.parametrize("name", SPREAD)
def test_how_the_numbers_are_spread(name: str) -> None:
    draw, probability = SPREAD[name]
    numbers = np.sort(np.asarray(draw(random.key(23), DRAWS)).astype(np.float64))
    values, counts = np.unique(numbers, return_counts=True)
    up_to = np.cumsum(counts) / DRAWS
    assert np.abs(up_to - probability(values)).max() < FARTHEST, name


@pytest.mark.parametrize("name", ["binomial 80, 0.7", "chisquare", "multinomial", "wald", "generalized_normal"])
def test_a_compiled_draw_is_the_same(name: str) -> None:
    draw, _ = SPREAD[name]
    compiled = lx.compile(draw, static_argnums=1)(random.key(3), 40)
    np.testing.assert_allclose(np.asarray(compiled), np.asarray(draw(random.key(3), 40)), rtol=4e-6, atol=1e-6)


@pytest.mark.parametrize(
    "draw", [lambda key: random.gamma(key, 0.7, (3,)), lambda key: random.poisson(key, 11.0, (3,))]
)
def test_many_keys_draw_as_each(draw: Callable[[Any], Any]) -> None:
    keys = random.split(KEY, 4)
    together = np.asarray(lx.vmap(draw)(keys))
    np.testing.assert_allclose(together, np.stack([np.asarray(draw(key)) for key in keys]), rtol=4e-6)


def test_the_trials_are_all_counted() -> None:
    counts = np.asarray(random.multinomial(KEY, np.array([5.0, 50.0, 500.0], F32), np.full((3, 4), 0.25, F32)))
    np.testing.assert_array_equal(counts.sum(-1), [5, 50, 500])
    trials, chances = np.array([-1.0, np.nan, 5.0, 5.0, np.inf], F32), np.array([0.5, 0.5, 0, 1, 0.5], F32)
    ends = np.asarray(random.binomial(KEY, trials, chances))
    np.testing.assert_array_equal(ends, [np.nan, np.nan, 0, 5, np.inf])


def test_keys_and_their_words() -> None:
    assert random.PRNGKey(42).tolist() == [0, 42]
    assert random.key_data(KEY_42).tolist() == [0, 42]
    again = random.wrap_key_data(random.key_data(KEY_42), impl="threefry2x32")
    assert random.bits(again).tolist() == random.bits(KEY_42).tolist()
    assert random.key_impl(random.split(KEY, 3)) == "threefry2x32"
    for dtype in ("threefry2x32", again.dtype, "uint32"):
        assert random.key_data(random.key(42, dtype=dtype)).tolist() == [0, 42]
        assert random.key_data(random.wrap_key_data(random.key_data(again), dtype=dtype)).tolist() == [0, 42]

    with key_reuse():
        key = random.key(5)
        first = random.bits(key)
        assert random.bits(random.clone(key)).tolist() == first.tolist()
        with pytest.raises(KeyReuseError):
            random.bits(key)


def test_gradients_pass_to_scales() -> None:
    scale = lambda s: lnp.sum(random.rayleigh(KEY, s, (4,)))  # noqa: E731
    np.testing.assert_allclose(float(lx.grad(scale)(2.0)), float(scale(1.0)), rtol=1e-6)
    spread = lambda s: lnp.sum(lnp.log(random.lognormal(KEY, s, (4,))))  # noqa: E731
    np.testing.assert_allclose(float(lx.grad(spread)(2.0)), float(spread(1.0)), rtol=1e-5)


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: random.wrap_key_data(np.zeros(3, np.uint32)), ShapeError, "a key has two words along the last axis"),
    (lambda: random.wrap_key_data(np.zeros(2, np.int32)), DtypeError, "the words of keys are uint32, got i32[2]"),
    (lambda: random.wrap_key_data(KEY, impl="rbg"), ValueError, "impl must be 'threefry2x32', the one"),
    (lambda: random.key(1, dtype="rbg"), ValueError, "key: dtype is 'threefry2x32' or the dtype of a key, key<fry>"),
    (lambda: random.key(1, dtype="float32"), ValueError, "dtype is 'threefry2x32' or the dtype of a key, key<fry>"),
    (lambda: random.key(1, impl="threefry2x32", dtype="threefry2x32"), ValueError, "pass impl or dtype, not both"),
    (lambda: random.geometric(KEY, 0.5, (2,), F32), DtypeError, "geometric: dtype must be an integer dtype"),
    (lambda: random.binomial(KEY, 5.0, 0.5, (2,), np.int32), DtypeError, "binomial: dtype must be floating"),
    (lambda: random.multinomial(KEY, 5.0, 0.5), ShapeError, "the probabilities must have an axis"),
    (lambda: random.wald(KEY, np.ones(3), (2,)), ShapeError, "wald: a parameter of shape (3,)"),
    (lambda: random.ball(KEY, -1), ShapeError, "ball: a shape has no negative extents"),
]


@pytest.mark.parametrize(("draw", "error", "message"), REFUSED)
def test_what_is_refused(draw: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as found:
        draw()
    assert message in str(found.value)
