"""Small triangular systems of few right sides by a GPU's subgroups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from tests.backends.vulkan.emit.linalg.test_triangular_solve_ahead import (
    HOW,
    assert_solves,
    solved,
    sources_of,
    well_conditioned,
)
from tests.backends.vulkan.run.execution import backend

RANDOM = np.random.default_rng(18)


# Rows of a subgroup of eight, and fewer; one side, two, and one less than four; systems that fill workgroups and not.
@pytest.mark.parametrize("how", HOW, ids=lambda how: "-".join(name for name, flag in how.items() if flag) or "upper")
@pytest.mark.parametrize("shape", [(1, 8, 1), (5, 7, 3), (8, 3, 2), (2, 1, 4)], ids=str)
def test_every_unknown(shape: tuple[int, int, int], how: dict[str, bool]) -> None:
    stack, rows, sides = shape
    right = RANDOM.normal(size=(stack, rows, sides)).astype(np.float32)
    assert_solves(well_conditioned(stack, rows, rows), right, how)


@pytest.mark.parametrize("how", [HOW[0], HOW[6]], ids=str)
def test_what_is_not_finite_stays_behind_its_cause(how: dict[str, bool]) -> None:
    matrix, right = well_conditioned(3, 7, 7), np.ones((3, 7, 2), np.float32)
    matrix[1, 3, 3] = 0
    found = solved(matrix, right, how)
    forwards = how["lower"] != how["transposed"]
    before = np.s_[:3] if forwards else np.s_[4:]
    assert np.isfinite(found[[0, 2]]).all() and np.isfinite(found[1][before]).all()
    assert not np.isfinite(found[1, 3]).any()


def test_doubles() -> None:
    if not backend().profile.float64:
        pytest.skip("the device has no float64")
    assert_solves(well_conditioned(3, 8, 8, dtype=np.float64), RANDOM.normal(size=(3, 8, 3)), HOW[4])


@pytest.mark.parametrize(
    ("rows", "sides", "profile", "expected"),
    [
        (32, 4, GENERIC_GPU, True),
        (33, 1, GENERIC_GPU, False),
        (16, 5, GENERIC_GPU, False),
        (16, 1, CPU_DRIVER, False),
        (16, 1, replace(GENERIC_GPU, subgroup_shuffle=False), False),
        (16, 1, replace(GENERIC_GPU, max_workgroup_invocations=64), False),
        (16, 1, replace(GENERIC_GPU, shared_memory_bytes=16384), False),
    ],
)
def test_who_has_a_subgroup(rows: int, sides: int, profile: DeviceProfile, expected: bool) -> None:
    how: dict[str, Any] = {"lower": True, "transposed": False, "unit_diagonal": False}
    found = sources_of(rows, sides, profile, **how)
    assert any("known_to_all" in source for source in found) == expected
    if expected:
        (source,) = found
        assert source.count("subgroupShuffle(") == rows and "barrier();" not in source.replace("subgroupBarrier();", "")
