"""Every operation under compositions of passes, in float64, against simpler ways to the same numbers."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from lavax.ir import Graph, interpret
from lavax.ir.graph import graph_of
from lavax.passes.batch import batch
from lavax.passes.build.builder import sum_over
from lavax.passes.differentiate import RULES, differentiate, jvp
from lavax.passes.simplify import simplify
from tests.compositions import PLACES_MATTER, loss_of
from tests.operation_cases import Case, all_cases

SIZE = 3
STEP = 1e-5


def differentiable(case: Case) -> bool:
    floats = any(node.dtype.is_float for node in case.graph.inputs)
    return case.op in RULES and case.node.dtype.is_float and floats and not case.special and case.only_float32


def spread(cases: Sequence[Case]) -> list[Case]:
    """A few cases of each operation: the first, the last, the largest."""
    found: list[Case] = []
    for op in sorted({case.op for case in cases}):
        own = [case for case in cases if case.op == op and case.node.type.size]
        chosen = (own[0], own[-1], max(own, key=lambda case: case.node.type.size))
        found += {str(case): case for case in chosen}.values()
    return found


CASES = spread([case for case in all_cases() if differentiable(case)])
OPERATIONS = sorted({case.op for case in CASES})


def floats_of(graph: Graph) -> list[int]:
    return [position for position, node in enumerate(graph.inputs) if node.dtype.is_float]


def in_float64(case: Case) -> list[np.ndarray]:
    return [a.astype(np.float64) if a.dtype == np.float32 else a for a in case.arrays]


def another(array: np.ndarray, number: int, op: str) -> np.ndarray:
    """Other numbers for the same operand: in other places, or where places matter larger ones."""
    if op in PLACES_MATTER:
        return np.asarray(array * (1 + number / 4))
    return np.roll(array.reshape(-1), number).reshape(array.shape)


def batches_of(case: Case, first_shared: bool) -> tuple[list[int | None], list[np.ndarray]]:
    axes: list[int | None] = [0] * len(case.arrays)
    if first_shared and len(axes) > 1:
        axes[0] = None
    stacked = [
        array if axis is None else np.stack([another(array, k, case.op) for k in range(SIZE)])
        for array, axis in zip(in_float64(case), axes, strict=True)
    ]
    return axes, stacked


def each(graph: Graph, axes: Sequence[int | None], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    pairs = list(zip(arrays, axes, strict=True))
    runs = [interpret(graph, *(a if axis is None else a[k] for a, axis in pairs)) for k in range(SIZE)]
    return [np.stack(results) for results in zip(*runs, strict=True)]


def close(found: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float, note: str) -> None:
    for got, want in zip(found, expected, strict=True):
        size = 1 + np.abs(want).max(initial=0)
        np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * size, err_msg=note)


@pytest.mark.parametrize("op", OPERATIONS)
def test_vmap_of_grad(op: str) -> None:
    for case in (case for case in CASES if case.op == op):
        loss = loss_of(case.graph)
        gradient = simplify(differentiate(loss, floats_of(loss)))
        for shared in (False, True):
            axes, arrays = batches_of(case, shared)
            batched = simplify(batch(gradient, axes, [0] * len(gradient.outputs), SIZE))
            close(interpret(batched, *arrays), each(gradient, axes, arrays), 1e-10, f"{case} {axes}")


@pytest.mark.parametrize("op", OPERATIONS)
def test_grad_of_vmap(op: str) -> None:
    """The gradient of the sum over the batch: each element's own, and for what they share the sum."""
    for case in (case for case in CASES if case.op == op):
        loss = loss_of(case.graph)
        by = floats_of(loss)
        for shared in (False, True):
            axes, arrays = batches_of(case, shared)
            total = batch(loss, axes, [0], SIZE)
            total = graph_of(total.inputs, [sum_over(total.outputs[0], (0,))])
            found = interpret(simplify(differentiate(simplify(total), by)), *arrays)[1:]
            alone = each(differentiate(loss, by), axes, arrays)[1:]
            expected = [g if axes[p] is not None else g.sum(0) for p, g in zip(by, alone, strict=True)]
            close(found, expected, 1e-10, f"{case} {axes}")


@pytest.mark.parametrize("op", OPERATIONS)
def test_vmap_of_jvp_and_jvp_of_vmap(op: str) -> None:
    for case in (case for case in CASES if case.op == op):
        by = floats_of(case.graph)
        axes, arrays = batches_of(case, False)
        random = np.random.default_rng(0)
        tangents = [random.normal(size=arrays[p].shape) for p in by]
        pushed = jvp(case.graph, by)
        expected = each(pushed, [*axes, *[0] * len(by)], [*arrays, *tangents])
        inside = batch(pushed, [*axes, *[0] * len(by)], [0, 0], SIZE)
        outside = jvp(simplify(batch(case.graph, axes, [0], SIZE)), by)
        for graph in (inside, simplify(inside), outside, simplify(outside)):
            close(interpret(graph, *arrays, *tangents), expected, 1e-10, str(case))


@pytest.mark.parametrize("op", OPERATIONS)
def test_hessian_vector_products(op: str) -> None:
    """Forward over reverse and reverse over reverse against differences of gradients."""
    for case in (case for case in CASES if case.op == op):
        loss, arrays = loss_of(case.graph), in_float64(case)
        by = floats_of(loss)
        gradient = differentiate(loss, by)
        gradient = graph_of(gradient.inputs, gradient.outputs[1:])
        random = np.random.default_rng(1)
        tangents = [random.normal(size=arrays[p].shape) for p in by]
        forward_over_reverse = interpret(simplify(jvp(simplify(gradient), by)), *arrays, *tangents)[len(by) :]
        ends = []
        for sign in (1, -1):
            moved = list(arrays)
            for position, tangent in zip(by, tangents, strict=True):
                moved[position] = moved[position] + sign * STEP * tangent
            ends.append(interpret(gradient, *moved))
        expected = [(ahead - behind) / (2 * STEP) for ahead, behind in zip(*ends, strict=True)]
        close(forward_over_reverse, expected, 2e-6, str(case))


def test_every_differentiable_operation_is_here() -> None:
    assert set(OPERATIONS) == set(RULES) - NOT_HERE


# Operations over named axes have no cases: they mean nothing outside vmap (tests/tracer/transforms/test_named_axes.py).
# The derivative of known_value is not that of its value (tests/tracer/transforms/test_checkpoint.py).
# Those of complex numbers have cases of their own (tests/lavax/numpy/complex/test_derivatives_of_complex.py).
NOT_HERE = {
    *("known_value", "axis_sum", "axis_max", "axis_min", "axis_gather"),
    *("complex", "conjugate", "fft", "imag", "irfft", "real", "rfft"),
}
