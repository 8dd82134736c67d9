"""Triangular systems of a few right sides by a GPU's workgroups, which prepare unknowns while they find others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lavax.backends.vulkan.emit.linalg import triangular_solve_ahead
from lavax.backends.vulkan.emit.linalg.triangular_solve_ahead import AHEAD, most_solved_ahead
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.plan import Dispatch
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.ir.types import DType, TensorType, float32, float64
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from tests.backends.vulkan.run.execution import backend, backend_with, run
from tests.backends.vulkan.test_decompositions import graph

RANDOM = np.random.default_rng(17)
MOST_GROUPS = AHEAD.groups * GENERIC_GPU.processors
HOW = [
    {"lower": lower, "transposed": transposed, "unit_diagonal": unit}
    for lower in (False, True)
    for transposed in (False, True)
    for unit in (False, True)
]


def triangle_of(matrix: np.ndarray, *, lower: bool, transposed: bool, unit_diagonal: bool) -> np.ndarray:
    """The triangle that is solved, in float64."""
    exact = (np.tril if lower else np.triu)(matrix).astype(np.float64)
    if unit_diagonal:
        places = np.arange(exact.shape[-1])
        exact[..., places, places] = 1
    return np.swapaxes(exact, -1, -2) if transposed else exact


def solved(matrix: np.ndarray, right: np.ndarray, how: dict[str, bool], **changes: Any) -> np.ndarray:
    (found,) = run(
        graph("triangular_solve", [matrix, right], **how), [matrix, right], device=backend_with(kind="gpu", **changes)
    )
    return found


def assert_solves(matrix: np.ndarray, right: np.ndarray, how: dict[str, bool], **changes: Any) -> None:
    """Each unknown's equation holds to the rounding of its sum, whatever the condition; what is not of the triangle may
    be anything."""
    unread = np.array(matrix)
    size = matrix.shape[-1]
    above = np.triu_indices(size, 1) if how["lower"] else np.tril_indices(size, -1)
    unread[..., above[0], above[1]] = np.nan
    if how["unit_diagonal"]:
        unread[..., np.arange(size), np.arange(size)] = np.nan
    found = solved(unread, right, how, **changes).astype(np.float64)
    exact = triangle_of(matrix, **how)
    summands = np.abs(exact) @ np.abs(found) + np.abs(right)
    assert (np.abs(exact @ found - right) <= 4 * np.sqrt(size) * np.finfo(matrix.dtype).eps * summands).all()


def well_conditioned(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return (RANDOM.normal(size=shape) / shape[-1] ** 0.5 + 2 * np.eye(shape[-1])).astype(dtype)


# Whole blocks and others, one side, two, and more than one workgroup's; rows of more than one kernel.
@pytest.mark.parametrize("how", HOW, ids=lambda how: "-".join(name for name, flag in how.items() if flag) or "upper")
@pytest.mark.parametrize("shape", [(2, 65, 1), (1, 72, 2), (2, 100, 7), (1, 520, 3)], ids=str)
def test_every_unknown(shape: tuple[int, int, int], how: dict[str, bool]) -> None:
    stack, rows, sides = shape
    right = RANDOM.normal(size=(stack, rows, sides)).astype(np.float32)
    assert_solves(well_conditioned(stack, rows, rows), right, how, told_processors=1)


@pytest.mark.parametrize("how", [HOW[1], HOW[6]], ids=str)
def test_badly_conditioned_triangles(how: dict[str, bool]) -> None:
    """Unknowns grow by factors of two and three a row: of inverted blocks the equations would not hold."""
    matrix = RANDOM.uniform(-1, 1, size=(90, 90)).astype(np.float32)
    assert_solves(matrix, np.ones((90, 2), np.float32), how)


@pytest.mark.parametrize("how", [HOW[0], HOW[2]], ids=str)
def test_a_small_workgroup(how: dict[str, bool]) -> None:
    """One subgroup prepares: its lanes have the columns of eight rows, or the rows of eight columns."""
    right = RANDOM.normal(size=(70, 3)).astype(np.float32)
    assert_solves(well_conditioned(70, 70), right, how, max_workgroup_invocations=16)


@pytest.mark.parametrize("how", [HOW[0], HOW[4], HOW[6]], ids=str)
def test_what_is_not_finite_stays_behind_its_cause(how: dict[str, bool]) -> None:
    matrix, right = well_conditioned(80, 80), np.ones((80, 2), np.float32)
    matrix[41, 41] = 0
    found = solved(matrix, right, how)
    forwards = how["lower"] != how["transposed"]
    before, behind = (np.s_[:41], np.s_[41:]) if forwards else (np.s_[42:], np.s_[:42])
    assert np.isfinite(found[before]).all() and not np.isfinite(found[41]).any()
    assert not np.isfinite(found[behind]).all()


def test_doubles() -> None:
    if not backend().profile.float64:
        pytest.skip("the device has no float64")
    for how in (HOW[0], HOW[6]):
        right = RANDOM.normal(size=(70, 2))
        assert_solves(well_conditioned(70, 70, dtype=np.float64), right, how)


def sources_of(rows: int, sides: int, profile: DeviceProfile = GENERIC_GPU, **how: bool) -> set[str]:
    arrays = [np.zeros((rows, rows), np.float32), np.zeros((rows, sides), np.float32)]
    target = target_of(profile, 1 << 34, 1 << 31)
    program = emit_program(
        schedule(prepare(graph("triangular_solve", arrays, **how), target), target=target), profile
    )
    return {step.shader.source for step in program.commands if isinstance(step, Dispatch)}


@pytest.mark.parametrize(
    ("sides", "changes", "rows"),
    [
        ((1,), {}, 512),
        ((4 * MOST_GROUPS,), {"shared_memory_bytes": 49152}, 512),
        ((4 * MOST_GROUPS + 1,), {"shared_memory_bytes": 49152}, 0),
        ((100, 1), {}, 512),
        ((MOST_GROUPS + 1, 1), {}, 0),
        ((1,), {"subgroup_shuffle": False}, 0),
        ((1,), {"names_subgroup_size": False, "min_subgroup_size": 8}, 0),
        ((1,), {"max_workgroup_invocations": 32}, 0),
        ((1,), {"shared_memory_bytes": 16384}, 0),
        ((1,), {"kind": "cpu"}, 0),
    ],
)
def test_who_solves_ahead(sides: tuple[int, ...], changes: dict[str, Any], rows: int) -> None:
    *stack, count = sides
    right = TensorType((*stack, 1000, count), float32)
    assert most_solved_ahead(right, replace(GENERIC_GPU, **changes)) == rows


@pytest.mark.parametrize(
    ("sides", "dtype", "bytes", "width"),
    [
        (1, float32, 49152, 1),
        (132, float32, 49152, 1),
        (133, float32, 49152, 2),
        (265, float32, 49152, 4),
        (9000, float32, 49152, 4),
        (9000, float32, 32768, 2),
        (9000, float64, 49152, 1),
    ],
)
def test_a_workgroup_has_several_sides_if_there_are_more_than_processors(
    sides: int, dtype: DType, bytes: int, width: int
) -> None:
    profile = replace(GENERIC_GPU, shared_memory_bytes=bytes, told_processors=132)
    assert triangular_solve_ahead._sides(TensorType((600, sides), dtype), True, profile) == width
    assert triangular_solve_ahead._sides(TensorType((500, 600, 1), dtype), True, profile) == 1


def test_parts_of_a_triangle_share_a_shader() -> None:
    how = {"lower": True, "transposed": False, "unit_diagonal": True}
    # One reads right sides as they were given, one what is left of them.
    ahead = [source for source in sources_of(2500, 1, **how) if "known[" in source]
    assert len(ahead) == 2 and all(source.count("barrier();") == 1 for source in ahead)
    assert not any("known[" in source for source in sources_of(100, 1, CPU_DRIVER, **how))
