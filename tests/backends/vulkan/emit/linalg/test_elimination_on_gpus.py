"""Cholesky's factor, elimination and triangular systems by a GPU's workgroups, which keep matrices in fast memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.emit.linalg.lu_in_registers import most_columns
from lavax.backends.vulkan.emit.linalg.triangular_solve_in_shared_memory import most_solved
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.plan import Dispatch
from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, interpret
from lavax.ir.types import float32, float64
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.tracer import bind
from tests.backends.vulkan.emit.linalg.test_lu import assert_factors
from tests.backends.vulkan.run.execution import backend, backend_with, run
from tests.backends.vulkan.test_decompositions import graph

RANDOM = np.random.default_rng(15)
# Without exchanges between lanes, and with as few invocations of a workgroup as any device has.
SMALL = {"subgroup_shuffle": False, "max_workgroup_invocations": 128}
DEVICES: list[dict[str, Any]] = [{}, SMALL]


def gpu(changes: dict[str, Any]) -> VulkanBackend:
    return backend_with(kind="gpu", **changes)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray:
    matrix = normal(*shape)
    return matrix @ np.swapaxes(matrix, -1, -2) / shape[-1] + np.eye(shape[-1], dtype=np.float32)


def factor_of(matrix: np.ndarray, changes: dict[str, Any]) -> np.ndarray:
    (found,) = run(graph("cholesky", [matrix]), [matrix], device=gpu(changes))
    return found


def assert_factored(matrix: np.ndarray, changes: dict[str, Any]) -> None:
    found, size = factor_of(matrix, changes).astype(np.float64), matrix.shape[-1]
    exact = np.tril(matrix).astype(np.float64)
    exact += np.swapaxes(np.tril(exact, -1), -1, -2)
    rounding = (size + 1) * np.finfo(matrix.dtype).eps * np.abs(exact).max()
    np.testing.assert_allclose(found @ np.swapaxes(found, -1, -2), exact, rtol=0, atol=rounding)
    assert (np.triu(found, 1) == 0).all()


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 16, 16), (2, 17, 17), (33, 33), (64, 64), (65, 65), (130, 130)])
def test_cholesky(shape: tuple[int, ...]) -> None:
    assert_factored(positive(*shape), {})


@pytest.mark.parametrize("size", [3, 31, 64])
def test_cholesky_on_a_small_device(size: int) -> None:
    assert_factored(positive(size, size), SMALL)


def test_what_lies_above_the_diagonal_is_not_read() -> None:
    matrix = positive(41, 41)
    matrix[np.triu_indices(41, 1)] = np.nan
    assert_factored(matrix, {})


@pytest.mark.parametrize("size", [1, 20, 64, 100])
@pytest.mark.parametrize("bad", [-1.0, 0.0, np.nan])
def test_a_matrix_without_factor_is_nan_in_its_triangle(size: int, bad: float) -> None:
    matrices = positive(3, size, size)
    matrices[1, size // 2, :] = matrices[1, :, size // 2] = bad if np.isnan(bad) else 0.0
    matrices[1, size // 2, size // 2] = bad
    found, below = factor_of(matrices, {}), np.tril(np.ones((size, size), bool))
    assert np.isnan(found[1][below]).all() and (found[:, ~below] == 0).all()
    assert np.isfinite(found[[0, 2]]).all()


def eliminated(matrix: np.ndarray, changes: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, columns = matrix.shape[-2:]
    (packed,) = run(graph("lu", [matrix]), [matrix], device=gpu(changes))
    factors = packed[..., : rows * columns].reshape(matrix.shape)
    return factors, packed[..., rows * columns : -1].astype(int), packed[..., -1]


def assert_eliminated(matrix: np.ndarray, changes: dict[str, Any]) -> None:
    assert_factors(matrix, *eliminated(matrix, changes))


# One workgroup's, with several columns in turn or one more, and in panels; more rows than invocations.
SHAPES = [(1, 1), (2, 2), (3, 16, 16), (17, 17), (2, 33, 33), (64, 64), (70, 5), (90, 66), (1100, 9)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_elimination(shape: tuple[int, ...]) -> None:
    assert_eliminated(normal(*shape), {})


@pytest.mark.parametrize("shape", [(3, 3), (31, 31), (300, 20)], ids=str)
def test_elimination_on_a_small_device(shape: tuple[int, ...]) -> None:
    assert_eliminated(normal(*shape), SMALL)


@pytest.mark.parametrize("changes", DEVICES, ids=["shuffles", "small"])
def test_the_first_of_equal_pivots_is_taken(changes: dict[str, Any]) -> None:
    matrix = np.array([[1, 5, 2], [-2, 1, 0], [2, 3, 1], [2, 0, 7]], np.float32)
    assert eliminated(matrix, changes)[1][0] == 1
    np.testing.assert_array_equal(eliminated(np.ones((140, 6), np.float32), changes)[1], np.arange(140))


def test_the_first_of_equal_pivots_is_the_first_after_exchanges() -> None:
    """The row of number 0 goes to place 3 first, behind its equal in the second column."""
    matrix = np.array([[0, 5, 1, 0], [0, 5, 3, 2], [0, 1, 1, 1], [9, 0, 0, 0]], np.float32)
    np.testing.assert_array_equal(eliminated(matrix, {})[1][:2], [3, 1])


@pytest.mark.parametrize("changes", DEVICES, ids=["shuffles", "small"])
@pytest.mark.parametrize("column", [0, 7, 8, 19])
def test_columns_of_zeros(column: int, changes: dict[str, Any]) -> None:
    matrix = normal(20, 20)
    matrix[:, column] = 0
    assert eliminated(matrix, changes)[0][column, column] == 0
    assert_eliminated(matrix, changes)


def test_nan_and_infinity_stay_where_elimination_takes_them() -> None:
    matrices = normal(3, 12, 12)
    matrices[1, 5, 3] = np.nan
    factors = eliminated(matrices, {})[0]
    assert np.isnan(factors[1, -1, -1]) and np.isfinite(factors[[0, 2]]).all()
    upper = np.array([[1, np.inf], [0, 1]], np.float32)
    np.testing.assert_array_equal(eliminated(upper, {})[0][0], [1, np.inf])


def solved(matrix: np.ndarray, right: np.ndarray, changes: dict[str, Any], **how: bool) -> np.ndarray:
    (found,) = run(
        lx.trace(lambda matrix, right: bind("triangular_solve", matrix, right, **how))(matrix, right),
        [matrix, right],
        device=gpu(changes),
    )
    return found


# Rows in one workgroup, with blocks that are full or not, and in parts; sides in one tile, or several.
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (7, 2), (16, 33), (17, 130), (64, 40), (65, 3)])
def test_triangular_systems(shape: tuple[int, int], lower: bool, transposed: bool) -> None:
    rows, sides = shape
    matrices, right = positive(2, rows, rows), normal(2, rows, sides)
    for unit in (False, True):
        given = (np.tril if lower else np.triu)(matrices).astype(np.float64)
        if unit:
            given = given - np.einsum("bij,ij->bij", given, np.eye(rows)) + np.eye(rows)
        exact = np.linalg.solve(np.swapaxes(given, -1, -2) if transposed else given, right.astype(np.float64))
        found = solved(matrices, right, {}, lower=lower, transposed=transposed, unit_diagonal=unit)
        bound = rows * np.finfo(np.float32).eps * np.abs(exact).max() * np.linalg.cond(given).max()
        np.testing.assert_allclose(found, exact, rtol=0, atol=bound)


def test_doubles() -> None:
    if not backend().profile.float64:
        pytest.skip("the device has no float64")
    matrix = np.random.default_rng(4).normal(size=(2, 45, 45))
    square = matrix @ np.swapaxes(matrix, -1, -2) / 45 + np.eye(45)
    assert_factored(square, {})
    assert_eliminated(matrix, {})
    assert_eliminated(matrix, SMALL)
    triangle = np.tril(square)
    solve = graph("triangular_solve", [triangle, matrix], lower=True, transposed=False, unit_diagonal=False)
    (found,) = run(solve, [triangle, matrix], device=gpu({}))
    np.testing.assert_allclose(triangle @ found, matrix, rtol=0, atol=1e-13 * np.abs(found).max() * 45)


def test_eager_programs() -> None:
    matrix = positive(20, 20)
    for op in ("cholesky", "lu"):
        for found, expected in zip(
            run(graph(op, [matrix]), [matrix], eager=True, device=gpu({})),
            run(graph(op, [matrix]), [matrix], device=gpu({})),
            strict=True,
        ):
            np.testing.assert_array_equal(found, expected)


def test_systems_and_their_gradients() -> None:
    matrix, right = normal(70, 70) / 8 + 2 * np.eye(70, dtype=np.float32), normal(70, 3)
    traced: Graph = lx.trace(lx.grad(lambda a, b: lnp.sum(lnp.linalg.solve(a, b) ** 2), (0, 1)))(matrix, right)
    by_matrix, by_right = run(traced, [matrix, right], device=gpu({}))
    x = np.linalg.solve(matrix.astype(np.float64), right)
    of_right = np.linalg.solve(matrix.astype(np.float64).T, 2 * x)
    np.testing.assert_allclose(by_right, of_right, rtol=0, atol=1e-4 * np.abs(of_right).max())
    of_matrix = -of_right @ x.T
    np.testing.assert_allclose(by_matrix, of_matrix, rtol=0, atol=1e-4 * np.abs(of_matrix).max())


def text_of(traced: Graph) -> str:
    """All shaders of a program for a GPU."""
    target = target_of(GENERIC_GPU, 1 << 34, 1 << 31)
    program = emit_program(schedule(prepare(traced, target), target=target), GENERIC_GPU)
    return "".join(step.shader.source for step in program.commands if isinstance(step, Dispatch))


def test_one_workgroup_keeps_fewer_columns_of_more_rows() -> None:
    found = {rows: most_columns(rows, float32, GENERIC_GPU) for rows in (3, 512, 513, 1024, 2048, 5000, 8193)}
    assert found == {3: 64, 512: 64, 513: 32, 1024: 32, 2048: 16, 5000: 6, 8193: 0}
    assert most_columns(512, float64, GENERIC_GPU) == 32
    assert most_solved(float32, GENERIC_GPU) == 64 and most_solved(float64, GENERIC_GPU) == 32
    assert most_solved(float32, replace(GENERIC_GPU, shared_memory_bytes=16384)) == 32


def test_columns_take_few_barriers() -> None:
    """Of loops over columns: one for Cholesky's factor; of elimination one for the pivot, and one for its row."""
    square = positive(64, 64)
    assert text_of(graph("cholesky", [square])).count("meet_shared();") == 4
    panel = text_of(graph("lu", [normal(512, 16)]))
    loops = panel[panel.index("real sign") : panel.index("x.data[permutation")]
    assert loops.count("barrier();") == loops.count("pivot_of(") == 2
    assert "subgroupShuffleXor" in panel and "a0_0 = a0_1 - factor0 * row0.y;" in panel


def shaders_of(op: str, shapes: list[list[tuple[int, ...]]], **how: bool) -> set[str]:
    return {text_of(graph(op, [np.zeros(each, np.float32) for each in given], **how)) for given in shapes}


def test_parts_of_a_matrix_share_shaders() -> None:
    systems = [[(64, 64), (64, 300)], [(64, 64), (64, 170)]]
    assert len(shaders_of("triangular_solve", systems, lower=True, transposed=False, unit_diagonal=True)) == 1


@pytest.mark.parametrize("op", ["cholesky", "householder"])
def test_more_sizes_than_push_constants_hold(op: str) -> None:
    """The kernel reads sums of shifted slices, each with places of its own."""
    arrays = [normal(12 + number, 13 + 2 * number, 17 + number) for number in range(6)]

    def shifted(*arrays: Any) -> Any:
        slices = [x[number : number + 2, number : number + 6, :6] for number, x in enumerate(arrays)]
        return bind(op, sum(slices, 9 * lnp.eye(6)))

    traced = lx.trace(shifted)(*arrays)
    (found,) = run(traced, arrays, device=gpu({}))
    np.testing.assert_allclose(found, interpret(traced, *arrays)[0], rtol=0, atol=1e-4)


def test_shared_memory_holds_a_triangle_and_its_sides() -> None:
    traced = lx.trace(
        lambda a, b: bind("triangular_solve", a, b, lower=True, transposed=False, unit_diagonal=True)
    )(positive(20, 20), normal(20, 200))
    text = text_of(traced)
    assert "shared real triangle[600];" in text and "shared real unknowns[768];" in text
