"""The GLSL functions of float64 on the device at hand, against more exact ones.

The bound is four units in the last place of the exact result, over the whole range of float64: see
benchmarks/double_accuracy.py.
"""
from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from benchmarks.double_accuracy import CASES, Doubles, arguments_of, worst_of
from lavax.backends.vulkan.device.device import get_device
from lavax.backends.vulkan.glsl.expressions import EXPRESSIONS
from lavax.shaders_glsl import elementary_functions
from tests.ir.definitions.elementwise import OF_SCIPY
from tests.shaders_glsl.calling import apply


@pytest.fixture(autouse=True)
def _device_with_float64() -> None:
    if not get_device().profile.float64:
        pytest.skip("the device has no float64")


def assert_within_bound(name: str, x: Doubles, y: Doubles) -> None:
    case = CASES[name]
    worst = worst_of(case, partial(apply, f"lx_{name}_64", case.arity), x, y)
    assert worst.units <= case.bound, f"lx_{name}_64{worst.arguments} is {worst.units} units off"


@pytest.mark.parametrize("name", CASES)
def test_function_is_within_its_bound_over_the_whole_range(name: str) -> None:
    assert_within_bound(name, *arguments_of(CASES[name]))


def test_power_keeps_its_bound_up_to_the_ends_of_the_range() -> None:
    rng = np.random.default_rng(8)
    x = np.concatenate([np.exp(rng.uniform(-700, 700, 5000)), 1 + 0.5 * rng.uniform(-1, 1, 5000) ** 9])
    x = x[x != 1]
    assert_within_bound("pow", x, rng.uniform(-1070, 1024, len(x)) / np.log2(x))


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_are_reduced_exactly_where_that_is_hardest(name: str) -> None:
    """6381956970095103 2^797 is the double that comes nearest to a multiple of pi/2."""
    nearest = math.ldexp(6381956970095103, 797)
    x = np.array([1e6, 1e15, 1e22, 1e300, nearest, 710.0, 22.0, 355.0, 1.7976931348623157e308])
    assert_within_bound(name, x, x)


def test_every_function_of_floats_has_its_double() -> None:
    named = {f"lx_{operation}" for operation in EXPRESSIONS} | {"lx_pow", "lx_fmod", "lx_remainder"}
    named |= {"lx_add_zero", "lx_multiply_by_zero", "lx_divide_by_zero", "lx_divide_zero"}
    single = named & elementary_functions().keys() - {"lx_threefry"}
    assert "lx_exp" in single
    # These are compositions of others in float64.
    composed = {f"lx_{operation}" for operation in OF_SCIPY}
    assert {name for name in single if f"{name}_64" not in elementary_functions()} == composed
