"""Activations against their formulas in float64: values, derivatives, the ends of the range, 16 bits, on a device."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import special

import lavax as lx
import lavax.nn as nn
import lavax.numpy as lnp
from lavax.base.errors import ShapeError
from tests.lavax.numpy.arrays import F32, I32, SHAPES, check, sample

EPSILON = float(np.finfo(np.float32).eps)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(special.expit(x))


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, 0)


@dataclass(frozen=True)
class Activation:
    """A function of float64 numbers, where its derivative jumps, and its limits at -inf and inf."""

    formula: Callable[[np.ndarray], np.ndarray]
    bends: tuple[float, ...] = ()
    limits: tuple[float, float] = (0.0, np.inf)


def _gelu(x: np.ndarray) -> np.ndarray:
    return x * _sigmoid(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))


def _sparse_plus(x: np.ndarray) -> np.ndarray:
    return np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4))


def _elu(x: np.ndarray, alpha: float) -> np.ndarray:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _selu(x: np.ndarray) -> np.ndarray:
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    return scale * _elu(x, alpha)


ACTIVATIONS: dict[str, Activation] = {
    "identity": Activation(lambda x: x, limits=(-np.inf, np.inf)),
    "relu": Activation(lambda x: np.maximum(x, 0), (0,)),
    "relu6": Activation(lambda x: np.clip(x, 0, 6), (0, 6), (0, 6)),
    "sigmoid": Activation(_sigmoid, limits=(0, 1)),
    "log_sigmoid": Activation(lambda x: -_softplus(-x), limits=(-np.inf, 0)),
    "softplus": Activation(_softplus),
    "silu": Activation(lambda x: x * _sigmoid(x)),
    "mish": Activation(lambda x: x * np.tanh(_softplus(x))),
    "gelu": Activation(_gelu),
    "leaky_relu": Activation(lambda x: np.where(x >= 0, x, 0.01 * x), (0,), (-np.inf, np.inf)),
    "elu": Activation(lambda x: _elu(x, 1.0), limits=(-1, np.inf)),
    "celu": Activation(lambda x: _elu(x, 1.0), limits=(-1, np.inf)),
    "selu": Activation(_selu, (0,), (-1.7580993408473766, np.inf)),
    "hard_tanh": Activation(lambda x: np.clip(x, -1, 1), (-1, 1), (-1, 1)),
    "hard_sigmoid": Activation(lambda x: np.clip(x + 3, 0, 6) / 6, (-3, 3), (0, 1)),
    "hard_silu": Activation(lambda x: x * np.clip(x + 3, 0, 6) / 6, (-3, 3)),
    "soft_sign": Activation(lambda x: x / (1 + np.abs(x)), limits=(np.nan, np.nan)),
    "squareplus": Activation(lambda x: (x + np.sqrt(x * x + 4)) / 2, limits=(np.nan, np.inf)),
    "sparse_plus": Activation(_sparse_plus, (-1, 1)),
    "sparse_sigmoid": Activation(lambda x: np.clip((x + 1) / 2, 0, 1), (-1, 1), (0, 1)),
    "tanh": Activation(np.tanh, limits=(-1, 1)),
    "hard_shrink": Activation(lambda x: np.where(np.abs(x) > 0.5, x, 0), (-0.5, 0.5), (-np.inf, np.inf)),
    "soft_shrink": Activation(
        lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0), (-0.5, 0.5), (-np.inf, np.inf)
    ),
    "tanh_shrink": Activation(lambda x: x - np.tanh(x), limits=(-np.inf, np.inf)),
}
# Sums of numbers of size 3 and of their opposites, and so on, lose what they have before their last place.
CANCELLING = {"hard_sigmoid", "hard_silu", "squareplus", "soft_shrink", "sparse_plus", "sparse_sigmoid", "tanh_shrink"}
# How much more a result is off where what it is made of is rounded: the exponent of gelu's share, with a rounding each
# of a square, a product and a sum.
CONDITION: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gelu": lambda x: 4 * np.abs(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)) * (x < 0),
}


def _at(name: str) -> Callable[..., Any]:
    return getattr(nn, name)  # type: ignore[no-any-return]


def _numbers() -> np.ndarray:
    """Of all sizes, of both signs, as float64 that float32 has."""
    sizes = np.logspace(-6, 1.6, 60, dtype=np.float32)
    return np.concatenate([sizes, -sizes]).astype(np.float64)


def test_every_activation_has_its_formula() -> None:
    aliases = {"logistic": "sigmoid", "swish": "silu", "hard_swish": "hard_silu"}
    of_pytorch = ("hard_shrink", "hard_sigmoid", "hard_tanh", "log_sigmoid", "soft_shrink", "soft_sign", "tanh_shrink")
    aliases |= {"hardswish": "hard_silu"} | {name.replace("_", ""): name for name in of_pytorch}
    named = set(lx.nn.activations.__all__)
    assert named == {*ACTIVATIONS, *aliases, "glu", "prelu", "threshold"}
    assert all(_at(alias) is _at(name) for alias, name in aliases.items())


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_values(name: str) -> None:
    """As graphs in float64, of all shapes; integers are taken as floats."""
    formula = ACTIVATIONS[name].formula
    for shape in SHAPES:
        check(_at(name), lambda x: np.asarray(formula(x.astype(np.float64)), F32), sample(shape))
    if name not in ("identity", "relu", "relu6"):
        check(_at(name), lambda x: np.asarray(formula(x.astype(np.float64)), F32), sample((5,), I32))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_values_on_the_device(name: str) -> None:
    """To some units in the last place, small results included: nothing cancels that need not."""
    x = _numbers()
    found = np.asarray(lx.compile(_at(name))(x.astype(F32)), np.float64)
    lost = EPSILON if name in CANCELLING else 1e-37
    rounding = EPSILON * (16 + CONDITION.get(name, lambda x: 0 * x)(x))
    np.testing.assert_array_less(
        np.abs(found - ACTIVATIONS[name].formula(x)), rounding * np.abs(ACTIVATIONS[name].formula(x)) + 4 * lost
    )


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_ends_of_the_range(name: str) -> None:
    ends = np.array([-np.inf, np.inf, -3e38, 3e38, np.nan], F32)
    found = np.asarray(lx.compile(_at(name))(ends))
    slopes = np.asarray(lx.compile(lx.grad(lambda x: lnp.sum(_at(name)(x))))(ends[2:4]))
    np.testing.assert_allclose(found[:2], ACTIVATIONS[name].limits, rtol=1e-6)
    assert np.isnan(found[4])
    if name != "squareplus":  # its square overflows
        assert np.isfinite(slopes).all()


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_derivatives(name: str) -> None:
    """In the middle of a graph, against differences of the formula, away from bends."""
    activation = ACTIVATIONS[name]
    x = np.linspace(-7.03, 7.01, 200)
    x = x[np.all([np.abs(x - bend) > 1e-3 for bend in activation.bends], axis=0)] if activation.bends else x
    weights = np.random.default_rng(0).normal(size=x.shape)
    loss = lx.trace(lx.grad(lambda x, w: 3.0 * lnp.sum(w * _at(name)(x))))(x.astype(F32), weights.astype(F32))
    (found,) = lx.ir.interpret(loss, x, weights)
    step = 1e-5
    slopes = (activation.formula(x + step) - activation.formula(x - step)) / (2 * step)
    np.testing.assert_allclose(found, 3 * weights * slopes, rtol=1e-6, atol=1e-8)


# Those with a rule of their own for derivatives.
WITH_RULES: dict[str, Callable[[Any], Any]] = {
    "silu": lambda x: nn.silu(x),
    "gelu": lambda x: nn.gelu(x),
    "exact gelu": lambda x: nn.gelu(x, approximate=False),
}


@pytest.mark.parametrize("name", WITH_RULES)
def test_slopes_at_the_ends_of_the_range(name: str) -> None:
    """0 and 1 beyond all that is not, and NaN at NaN, by both modes."""
    function = WITH_RULES[name]
    ends = np.array([-np.inf, -3e38, -200.0, 200.0, 3e38, np.inf, np.nan], F32)
    expected = [0, 0, 0, 1, 1, 1, np.nan]
    np.testing.assert_array_equal(lx.compile(lx.grad(lambda x: lnp.sum(function(x))))(ends), expected)
    np.testing.assert_array_equal(lx.compile(lambda x: lx.jvp(function, (x,), (lnp.ones(7),))[1])(ends), expected)


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("name", WITH_RULES)
def test_second_derivatives(name: str) -> None:
    """In the middle of a graph, forward over reverse, against differences of the first ones."""
    function = WITH_RULES[name]
    x, v, w = np.random.default_rng(1).normal(size=(3, 50)) * [[3], [1], [1]]
    first = lx.grad(lambda x, w: 3.0 * lnp.sum(w * function(x)))
    types = [x.astype(F32), v.astype(F32), w.astype(F32)]
    (second,) = lx.ir.interpret(lx.trace(lambda x, v, w: lx.jvp(lambda x: first(x, w), (x,), (v,))[1])(*types), x, v, w)
    slopes = lx.trace(first)(types[0], types[2])
    (after,), (before,) = (lx.ir.interpret(slopes, x + step * v, w) for step in (1e-5, -1e-5))
    np.testing.assert_allclose(second, (after - before) / 2e-5, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bits_are_rounded_once(name: str, dtype: str) -> None:
    """The result is a neighbour of the formula's, and nearly always the nearest number."""
    kind = getattr(lnp, dtype)
    x = lnp.asarray(np.linspace(-6, 6, 301).astype(F32)).astype(kind)
    given = np.asarray(x.astype(lnp.float32), np.float64)
    found = np.asarray(lx.compile(_at(name))(x).astype(lnp.float32))
    right = np.asarray(lnp.asarray(ACTIVATIONS[name].formula(given).astype(F32)).astype(kind).astype(lnp.float32))
    np.testing.assert_allclose(found, right, rtol=2.0 ** (-10 if dtype == "float16" else -7), atol=1e-7)
    assert (found == right).mean() > 0.98


@pytest.mark.usefixtures("reference_backend")
def test_arguments_of_activations() -> None:
    x = sample((4, 6))
    check(lambda x: nn.leaky_relu(x, 0.2), lambda x: np.where(x >= 0, x, F32.type(0.2) * x), x)
    check(lambda x: nn.elu(x, 0.5), lambda x: _elu(x, 0.5).astype(F32), x)
    check(lambda x: nn.celu(x, 2.0), lambda x: np.where(x > 0, x, 2 * np.expm1(np.minimum(x, 0) / 2)).astype(F32), x)
    check(lambda x: nn.squareplus(x, 1.0), lambda x: ((x + np.sqrt(x * x + 1)) / 2).astype(F32), x)
    check(lambda x: nn.gelu(x, approximate=False), lambda x: (x * special.ndtr(x)).astype(F32), x)
    for axis in (0, 1, -1):
        halves = lambda x: np.split(x.astype(np.float64), 2, axis)  # noqa: B023, E731
        check(lambda x: nn.glu(x, axis), lambda x: (halves(x)[0] * _sigmoid(halves(x)[1])).astype(F32), x)  # noqa: B023


def test_exact_gelu_has_its_digits_far_below_zero() -> None:
    x = np.linspace(-9, -1, 50).astype(F32).astype(np.float64)
    found = np.asarray(lx.compile(lambda x: nn.gelu(x, approximate=False))(x.astype(F32)), np.float64)
    # The condition of the normal distribution's tail is x², and x · sqrt(1/2) is rounded.
    np.testing.assert_array_less(np.abs(found / (x * special.ndtr(x)) - 1), (8 + x * x) * EPSILON)


def test_halves_need_an_even_length() -> None:
    with pytest.raises(ShapeError, match=r"glu: axis 1 of f32\[2,3\] has an odd length"):
        nn.glu(lnp.ones((2, 3)), 1)
