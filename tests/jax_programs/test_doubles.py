"""JAX programs that need float64 run on lavax when their imports are changed: dtypes and digits are JAX's."""
from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.backends.vulkan.device.device import get_device
from tests.jax_programs.comparing import arrays_of, in_few_numbers
from tests.jax_programs.switch import DOUBLES, names_in, programs_in

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded_doubles.json").read_text(encoding="utf-8"))
PROGRAMS = names_in("doubles", DOUBLES)
TOLERANCE = 1e-12  # of the largest number: chains of float64 operations, in another order


@pytest.fixture(autouse=True)
def _device_with_float64() -> None:
    if not get_device().profile.float64:
        pytest.skip("the device has no float64")


@functools.cache
def ours(name: str) -> dict[str, np.ndarray]:
    with lx.enable_x64():
        return arrays_of(programs_in("doubles", "lavax", DOUBLES)[name]())


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_jax_gives(name: str) -> None:
    found, recorded = ours(name), RECORDED[name]
    assert set(found) == set(recorded)
    for place, (dtype, shape, size, *numbers) in recorded.items():
        assert (str(found[place].dtype), list(found[place].shape)) == (dtype, shape), place
        atol = TOLERANCE * size if dtype.startswith("float") else 0
        np.testing.assert_allclose(in_few_numbers(found[place], 17), numbers, rtol=1e-13, atol=atol, err_msg=place)


def test_all_programs_are_recorded() -> None:
    assert set(RECORDED) == set(PROGRAMS)
