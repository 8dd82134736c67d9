"""Hypergeometric functions and their derivatives by every argument, against SciPy in float64 and its differences."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.device.device import get_device
from lavax.scipy import special

GENERATOR = np.random.default_rng(1)
A, B, C = GENERATOR.uniform(0.2, 4, (3, 40))
ARGUMENTS: dict[str, tuple[np.ndarray, ...]] = {
    "hyp1f1": (A, B, GENERATOR.uniform(-20, 20, 40)),
    "hyp2f1": (A, B, C, np.concatenate([GENERATOR.uniform(-4, 0.9, 36), [0.0, -0.0, 0.97, -30.0]])),
}
FAR = (A[:12], B[:12], np.linspace(-900, 60, 12))  # by the asymptotic series
ENDED: dict[str, tuple[list[float], ...]] = {
    "hyp1f1": ([-2, -3, 0, -2, 1, 2.5], [1.5, 0.5, 4, -3, 0, 2.5], [3, -4, 2, 1.5, 1, 1.5]),
    "hyp2f1": (
        *([-2, 3, 0.5, 1, -1, 1, -2], [3, -2, 0.5, 1, 2, 2, 3], [1, 2, 3, 1, -3, -3, 1]),
        [4, -5, 1, 1, 0.4, 0.4, 1],
    ),
}


def _wide(arrays: tuple[Any, ...], dtype: Any) -> list[np.ndarray]:
    return [np.asarray(each, dtype).astype(np.float64) for each in arrays]


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_and_derivatives(name: str, dtype: Any) -> None:
    double = dtype == np.float64
    if double and not get_device().profile.float64:
        pytest.skip("the device has no float64")
    function, right = getattr(special, name), getattr(scipy.special, name)
    arrays = _wide(ARGUMENTS[name], dtype)
    weights, step = np.linspace(1, 2, 40), 1e-4

    def loss(*arguments: Any) -> Any:
        return 3 * lnp.sum(weights.astype(dtype) * function(*arguments))

    places = tuple(range(len(arrays)))
    with lx.enable_x64(double):
        given = [each.astype(dtype) for each in arrays]
        value, gradient = lx.jit(lambda *given: (function(*given), lx.grad(loss, places)(*given)))(*given)
    np.testing.assert_allclose(np.asarray(value), right(*arrays), rtol=1e-12 if double else 1e-4)
    for place, found in enumerate(gradient):
        assert np.asarray(found).dtype == dtype
        moved = [[each + k * step * (place == at) for at, each in enumerate(arrays)] for k in (-2, -1, 1, 2)]
        slopes = np.dot([1 / 12, -2 / 3, 2 / 3, -1 / 12], [right(*each) for each in moved]) / step
        size = np.abs(right(*arrays))  # of what the differences round
        error = np.abs(np.asarray(found) - 3 * weights * slopes)
        assert (error <= (1e-7 if double else 2e-4) * (np.abs(slopes) + size) * 3 * weights).all(), place


def test_kummer_of_large_numbers() -> None:
    arrays = _wide(FAR, np.float32)
    found = lx.jit(special.hyp1f1)(*(each.astype(np.float32) for each in arrays))
    np.testing.assert_allclose(np.asarray(found), scipy.special.hyp1f1(*arrays), rtol=1e-4)


@pytest.mark.parametrize("name", ENDED)
def test_sums_that_end_and_poles(name: str) -> None:
    given = [np.array(each, np.float32) for each in ENDED[name]]
    found = np.asarray(lx.jit(getattr(special, name))(*given))
    wanted = getattr(scipy.special, name)(*(each.astype(np.float64) for each in given))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_special_numbers() -> None:
    nan, inf = np.nan, np.inf
    kummer: Callable[..., Any] = lx.jit(special.hyp1f1)
    found = kummer(*np.array([[0, 1, nan, 1, 1], [0, 2, 1, nan, 2], [3, nan, 1, 1, inf]], np.float32))
    np.testing.assert_array_equal(np.asarray(found), [1, nan, nan, nan, inf])
    x = np.array([nan, 1.5, -inf], np.float32)
    np.testing.assert_array_equal(np.asarray(special.hyp2f1(1.0, 1.0, 2.0, x)), [nan, inf, nan])
