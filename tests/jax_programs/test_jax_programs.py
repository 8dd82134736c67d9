"""JAX programs run on lavax when their imports are changed: values and gradients are JAX's."""
from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.jax_programs.comparing import arrays_of, in_few_numbers
from tests.jax_programs.switch import FILES, names_in, programs_in

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded.json").read_text(encoding="utf-8"))
PROGRAMS = [(file, name) for file in FILES for name in names_in(file)]
TOLERANCE = 2e-4  # of the largest number: chains of float32 operations, in another order


@functools.cache
def ours(file: str, name: str) -> dict[str, np.ndarray]:
    return arrays_of(programs_in(file, "lavax")[name]())


@pytest.mark.parametrize(("file", "name"), PROGRAMS, ids=[f"{file}.{name}" for file, name in PROGRAMS])
def test_a_program_gives_what_jax_gives(file: str, name: str) -> None:
    found = ours(file, name)
    recorded = RECORDED[f"{file}.{name}"]
    assert set(found) == set(recorded)
    for place, (dtype, shape, size, *numbers) in recorded.items():
        assert (str(found[place].dtype), list(found[place].shape)) == (dtype, shape), place
        atol = 0 if dtype in ("bool", "int32", "uint32") else TOLERANCE * size
        np.testing.assert_allclose(in_few_numbers(found[place]), numbers, rtol=1e-6, atol=atol, err_msg=place)


@pytest.mark.parametrize(("file", "name"), PROGRAMS, ids=[f"{file}.{name}" for file, name in PROGRAMS])
def test_a_program_gives_what_jax_gives_beside_it(file: str, name: str) -> None:
    pytest.importorskip("jax", reason="runs the programs with JAX, too; without it, recorded values stand in")
    found, expected = ours(file, name), arrays_of(programs_in(file, "jax")[name]())
    assert list(found) == list(expected)
    for place, theirs in expected.items():
        assert (found[place].dtype, found[place].shape) == (theirs.dtype, theirs.shape), place
        if theirs.dtype.kind in "biu":
            np.testing.assert_array_equal(found[place], theirs, err_msg=place)
        else:
            size = np.max(np.abs(np.where(np.isfinite(theirs), theirs, 0)), initial=1e-3)
            np.testing.assert_allclose(found[place], theirs, rtol=TOLERANCE, atol=TOLERANCE * size, err_msg=place)


def test_there_are_a_hundred_programs_and_all_are_recorded() -> None:
    assert len(PROGRAMS) >= 100
    assert set(RECORDED) - {"jax"} == {f"{file}.{name}" for file, name in PROGRAMS}
