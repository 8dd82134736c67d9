"""Short forms of functions whose results are rounded to 16 bits, against SciPy in float64.

The bounds follow from Vulkan's for exp2, 3 + 2 |x| units of float32, which is 2^-16 for the greatest |x|, and are eight
times as narrow as half a place of float16. Operands and results that are denormal in float32 may be taken for 0.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

from tests.shaders_glsl.calling import apply

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "lx_narrow_exp": np.exp,
    "lx_narrow_logistic": special.expit,
    "lx_narrow_tanh": np.tanh,
    "lx_narrow_erf": special.erf,
    "lx_narrow_erfc": special.erfc,
}
TINY = float(np.finfo(np.float32).tiny)  # the least number that is not denormal
# Where each function has its forms' ends, and beyond.
EDGES = [0.0, -0.0, 0.15, 0.7, 10.5, 88.7, 89.0, 1e4, 3e38, 1e-40, 1e-20, np.inf]


def deviations(name: str, x: np.ndarray) -> np.ndarray:
    """Relative to the exact result; NaN and infinity have to be themselves."""
    got = apply(name, 1, x, x).astype(np.float64)
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name](x.astype(np.float64))
        np.testing.assert_array_equal(np.isnan(got), np.isnan(x))
        beyond = np.abs(exact) > np.finfo(np.float32).max
        np.testing.assert_array_equal(got[beyond], np.copysign(np.inf, exact[beyond]))
        error = np.where((np.abs(exact) < TINY) & (got == 0), 0, np.abs(got - exact))
        of_zero = np.abs(got - FUNCTIONS[name](np.copysign(0.0, x.astype(np.float64))))
        error = np.where(np.abs(x) < TINY, np.minimum(error, of_zero), error)
        found = error / np.maximum(np.abs(exact), TINY / 2.0**-15)  # half of a normal number at most
    return np.where(np.isnan(x) | beyond, 0, found)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_short_form_is_within_its_bound(name: str) -> None:
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**32, 8000, dtype=np.uint32).view(np.float32)
    inside = rng.uniform(-10, 10, 8000)
    small = rng.normal(size=4000) * 10.0 ** rng.uniform(-6, 0, 4000)
    others = np.concatenate([rng.uniform(-120, 120, 8000), EDGES, np.negative(EDGES), [np.nan]])
    x = np.concatenate([bits, others.astype(np.float32)])
    near = np.concatenate([inside, small]).astype(np.float32)
    for values, bound in ((x, 2.0**-15), (near, 2.0**-17)):
        found = deviations(name, values)
        worst = int(np.argmax(found))
        assert found[worst] <= bound, f"{name}({values[worst]!r}): {found[worst]} of the result, bound {bound}"


def test_what_tanh_differs_from_its_operand_by_has_the_places_of_float16() -> None:
    """It is a third of a cube, of which a place of x is much where x is small."""
    x = np.concatenate([np.geomspace(0.02, 4, 4000), -np.geomspace(0.02, 4, 4000)]).astype(np.float32)
    exact = x.astype(np.float64) - np.tanh(x.astype(np.float64))
    found = np.abs(x - apply("lx_narrow_tanh", 1, x, x) - exact) / np.abs(exact)
    assert found.max() <= 2.0**-11, x[np.argmax(found)]


@pytest.mark.parametrize("name", ["lx_narrow_tanh", "lx_narrow_erf"])
def test_an_odd_function_keeps_the_sign_of_zero(name: str) -> None:
    x = np.float32([0.0, -0.0])
    np.testing.assert_array_equal(np.signbit(apply(name, 1, x, x)), [False, True])
