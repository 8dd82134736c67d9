"""Optimizers of complex parameters: against optax, turned in the complex plane, and by minima that are known."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import optim
from lavax.base.errors import DtypeError
from tests.lavax.optim.optimizer_cases import CASES, CONTRIB, NAMES, gradients, start

pytestmark = pytest.mark.usefixtures("reference_backend")

REAL_ONLY = {"clip", "keep_params_nonnegative"}
NOT_TURNED = REAL_ONLY | {"scale_by_lion-47"}  # tanh in place of the sign
# optax 0.2.8 refuses SM3 for complex parameters, and has g² for |g|², x xᵀ for x xᴴ or float32 in these.
OTHERWISE_IN_OPTAX = {"adadelta", "sm3", "scale_by_sm3", "adafactor-39", "muon-46"}
Case = tuple[str, dict[str, Any]]


def parameters() -> Any:
    return lx.tree.map(lambda x: (x + 1j * (x[::-1] - 0.5)).astype("complex64"), start())


def complex_gradients(step: int) -> Any:
    """Those of real parameters, with the ones of two steps later, which are 2.25 times as large, as imaginary parts."""
    return lx.tree.map(lambda x, y: (x + 1j * y).astype("complex64"), gradients(step), gradients(step + 2))


def after_three_steps(optimizer: Any, add: Any, factor: complex = 1) -> list[np.ndarray]:
    """Where three steps with gradients lead, with parameters and gradients multiplied by a number before."""
    params = lx.tree.map(lambda x: (x * factor).astype("complex64"), parameters())
    state = optimizer.init(params)
    for step in range(3):
        turned = lx.tree.map(lambda x: (x * factor).astype("complex64"), complex_gradients(step))
        updates, state = optimizer.update(turned, state, params)
        params = add(params, updates)
    return [np.asarray(params[name] if name == "a" else params["b"][name]) for name in "acd"]


def cases_without(names: set[str]) -> Any:
    return [
        pytest.param(case, id=name) for case, name in zip(CASES, NAMES, strict=True) if not {case[0], name} & names
    ]


@pytest.mark.parametrize("case", cases_without(REAL_ONLY | OTHERWISE_IN_OPTAX))
def test_steps_are_those_of_optax(case: Case) -> None:
    optax: Any = pytest.importorskip("optax", reason="optax is the oracle")
    name, arguments = case
    ours = after_three_steps(getattr(optim, name)(**arguments), optim.apply_updates)
    with pytest.importorskip("jax", reason="optax needs it").disable_jit():
        factory = getattr(optax.contrib if name in CONTRIB else optax, name)
        theirs = after_three_steps(factory(**arguments), optax.apply_updates)
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == "complex64"
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("case", cases_without(NOT_TURNED))
def test_turned_gradients_give_turned_steps(case: Case) -> None:
    """An optimizer sees sizes |g|, whatever the angles are: g² in place of |g|² would change sign."""
    name, arguments = case
    optimizer = getattr(optim, name)(**arguments)
    plain = after_three_steps(optimizer, optim.apply_updates)
    turned = after_three_steps(optimizer, optim.apply_updates, factor=1j)
    for one, other in zip(plain, turned, strict=True):
        np.testing.assert_allclose(other, 1j * one, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adadelta_is_that_of_the_paper_with_sizes_for_squares(decay: float) -> None:
    rate, rho, eps = 0.5, 0.9, 1e-6
    optimizer = optim.adadelta(rate, rho, eps, decay)
    params = np.complex64([1 + 2j, -3, 0.5j])
    state, wanted = optimizer.init(params), params.astype(complex)
    squares, steps = np.zeros(3), np.zeros(3)
    for turn in range(4):
        gradient = np.complex64([1 - 1j, 3j, -0.1]) * (turn + 1j)
        updates, state = optimizer.update(gradient, state, params)
        params = optim.apply_updates(params, updates)
        slope = gradient + decay * wanted
        squares = rho * squares + (1 - rho) * np.abs(slope) ** 2
        step = np.sqrt(steps + eps) / np.sqrt(squares + eps) * slope
        steps = rho * steps + (1 - rho) * np.abs(step) ** 2
        wanted = wanted - rate * step
        np.testing.assert_allclose(np.asarray(params), wanted, rtol=1e-5)


MATRIX = np.array([[1, -2], [3, 4], [-4 + 2j, 5 - 3j], [-2 - 2j, 6]], "complex64")
FIRST = np.array([1 - 1j, 0 + 1j], "complex64")
GOAL = np.array([0.5 + 0.25j, -1 - 2j], "complex64")


def distance(z: Any) -> Any:
    """Zero at GOAL alone, and no sum of functions of real and imaginary parts."""
    return lnp.sum(lnp.abs(MATRIX @ (z - GOAL)) ** 2) / 10


def as_reals(z: Any) -> Any:
    return distance(z[0] + 1j * z[1])


@pytest.mark.parametrize("search", ["zoom", "backtracking"])
def test_lbfgs_goes_the_way_that_it_goes_with_real_numbers(search: str) -> None:
    line = {} if search == "zoom" else {"linesearch": optim.scale_by_backtracking_linesearch(15)}
    optimizer = optim.lbfgs(**line)
    z, pair = FIRST, np.stack([FIRST.real, FIRST.imag])
    state, held = optimizer.init(z), optimizer.init(pair)
    for _ in range(4):
        value, gradient = lx.value_and_grad(distance)(z)
        uphill = gradient.conj()
        step, state = optimizer.update(uphill, state, z, value=value, grad=uphill, value_fn=distance)
        z = optim.apply_updates(z, step)
        value, gradient = lx.value_and_grad(as_reals)(pair)
        step, held = optimizer.update(gradient, held, pair, value=value, grad=gradient, value_fn=as_reals)
        pair = optim.apply_updates(pair, step)
        np.testing.assert_allclose(np.asarray(z), np.asarray(pair)[0] + 1j * np.asarray(pair)[1], atol=2e-4)
    np.testing.assert_allclose(np.asarray(optim.tree.get(state, "value")), float(distance(z)), rtol=1e-4)


def test_minimize_finds_complex_parameters() -> None:
    found = optim.minimize(distance, FIRST)
    assert bool(found.converged)
    np.testing.assert_allclose(np.asarray(found.params), GOAL, atol=1e-3)


def test_parts_are_seen_as_real_parameters() -> None:
    inner = optim.chain(optim.clip(0.5), optim.sgd(1.0))
    optimizer = optim.split_real_and_imaginary(inner)
    params = {"z": FIRST, "x": np.float32([2, -3])}
    gradient = {"z": np.complex64([3 - 0.25j, 0.1 + 7j]), "x": np.float32([0.3, 9])}
    updates, _ = optimizer.update(gradient, optimizer.init(params), params)
    np.testing.assert_array_equal(np.asarray(updates["z"]), np.complex64([-0.5 + 0.25j, -0.1 - 0.5j]))
    np.testing.assert_array_equal(np.asarray(updates["x"]), np.float32([-0.3, -0.5]))


def test_narrow_accumulators_keep_imaginary_parts() -> None:
    gradient = np.complex64([1 + 2j])
    momentum = optim.trace(0.9, accumulator_dtype="float32")
    _, state = momentum.update(gradient, momentum.init(gradient))
    assert state.trace[0] == 1 + 2j
    steps = optim.MultiSteps(optim.sgd(1.0), 1)
    updates, _ = steps.update(gradient, steps.init(gradient), gradient)
    assert updates[0] == -1 - 2j


@pytest.mark.parametrize("make", [lambda: optim.rprop(0.1), lambda: optim.sophia(0.1), lambda: optim.clip(1.0)])
def test_what_needs_real_parameters_says_so(make: Callable[[], Any]) -> None:
    optimizer = make()
    with pytest.raises(DtypeError, match="must not be complex; split_real_and_imaginary"):
        optimizer.update(FIRST, optimizer.init(FIRST), FIRST)


def test_noise_is_complex() -> None:
    noisy = optim.add_noise(1.0, 0.5, 3)
    updates, _ = noisy.update(np.zeros(1000, "complex64"), noisy.init(None))
    np.testing.assert_allclose([np.var(updates.real), np.var(updates.imag)], 0.5, atol=0.08)
