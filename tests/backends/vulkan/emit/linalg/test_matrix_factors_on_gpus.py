"""Factors of symmetric and of any matrices by a GPU's schedules: workgroups of many invocations, with barriers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.backends.vulkan.emit.linalg.jacobi import emit_jacobi
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.passes.kernels.commands import steps_of
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.target.kernel_limits import MATRICES
from lavax.passes.target.target import Target
from tests.backends.vulkan.run.execution import run_as_gpu

# One matrix in a workgroup, and one in blocks of rows that meet in turns; an even number of rows and an odd one.
SIZES = (6, MATRICES.eigenvalues + 3)
EPSILON = float(np.finfo(np.float32).eps)


def matrix(size: int) -> np.ndarray:
    return np.random.default_rng(size).normal(size=(size, size)).astype(np.float32)


@pytest.mark.parametrize("size", SIZES)
def test_eigenvalues_and_vectors(size: int) -> None:
    x = matrix(size)
    x = x + x.T
    values, vectors = run_as_gpu(lx.trace(lambda x: tuple(lx.linalg.eigh(x)))(x), [x])
    exact = x.astype(np.float64)
    # A method that is backward stable errs by a small multiple of the size times the norm of the matrix.
    bound = size * EPSILON * np.linalg.norm(exact, 2)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(exact), rtol=0, atol=bound)
    np.testing.assert_allclose(exact @ vectors, vectors * values.astype(np.float64), rtol=0, atol=bound)
    np.testing.assert_allclose(vectors.T @ vectors.astype(np.float64), np.eye(size), rtol=0, atol=size * EPSILON)


@pytest.mark.parametrize("size", SIZES)
def test_singular_values_and_vectors(size: int) -> None:
    x = matrix(size)[:, : size - 2]
    left, values, right = run_as_gpu(lx.trace(lambda x: tuple(lx.linalg.svd(x, full_matrices=False)))(x), [x])
    exact = x.astype(np.float64)
    bound = size * EPSILON * np.linalg.norm(exact, 2)
    np.testing.assert_allclose(values, np.linalg.svd(exact, compute_uv=False), rtol=0, atol=bound)
    np.testing.assert_allclose(left.astype(np.float64) * values @ right, exact, rtol=0, atol=bound)
    unit = np.eye(size - 2)
    np.testing.assert_allclose(left.T @ left.astype(np.float64), unit, rtol=0, atol=size * EPSILON)
    np.testing.assert_allclose(right @ right.T.astype(np.float64), unit, rtol=0, atol=size * EPSILON)


def kernels_of_rounds(target: Target) -> list[Kernel]:
    size = 6 * MATRICES.eigenvalues
    prepared = prepare(lx.trace(lambda x: tuple(lx.linalg.eigh(x)))(np.zeros((size, size), np.float32)), target)
    steps = [step for step in steps_of(schedule(prepared, target=target).steps) if ".body." in step.name]
    return [kernel for step in steps for kernel in step.kernels]


def test_kernels_correct_rotations_in_place_of_products() -> None:
    """A round has three products in place of five."""
    target = target_of(GENERIC_GPU, 1 << 34, 1 << 31)
    uncorrected = replace(target, matrices=replace(target.matrices, orthonormal_rotations=False))
    for each, products in ((target, 3), (uncorrected, 5)):
        kinds = [kernel.kind for kernel in kernels_of_rounds(each)]
        assert kinds.count("contract") == products * kinds.count("routine") > 0
    (first, *_) = [kernel for kernel in kernels_of_rounds(target) if kernel.kind == "routine"]
    assert "0.5 * excess" in emit_jacobi(first, GENERIC_GPU, False).shader.source
    assert "0.5 * excess" not in emit_jacobi(first, CPU_DRIVER, False).shader.source


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("factors", [lx.linalg.svd, lx.linalg.eigh], ids=lambda function: function.__name__)
def test_nan_and_infinity_stay_in_their_matrix(factors: Callable[..., Any], bad: float) -> None:
    """Beside infinity all that is finite is as zero, and a NaN alone below a triangle would be lost with it."""
    x = np.stack([matrix(SIZES[1])] * 3)
    x[1, 20, 4] = bad
    for found in run_as_gpu(lx.trace(lambda x: tuple(factors(x)))(x), [x]):
        assert np.isnan(found[1]).all()
        assert np.isfinite(found[[0, 2]]).all()


def test_a_reflection_finds_nan_among_zeros() -> None:
    """The greatest of zeros and NaN may be either, by GLSL."""
    x = np.zeros((20, 12), np.float32)
    x[9, 4] = np.nan
    _, triangle = run_as_gpu(lx.trace(lambda x: tuple(lx.linalg.qr(x)))(x), [x])
    assert np.isnan(triangle[4:, 4:][np.triu_indices(8)]).all()
