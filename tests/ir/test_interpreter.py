"""The interpreter against definitions that go element by element, in plain Python."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lavax.base.errors import ShapeError
from lavax.ir import OPERATIONS, DType, interpret, parse
from lavax.ir.ops.integral_functions import BINARY
from tests.ir.definitions import DEFINITIONS
from tests.ir.definitions.attention import ATTENTION
from tests.ir.definitions.definition import places
from tests.ir.definitions.elementwise import OF_SCIPY
from tests.operation_cases import WITHOUT_CASES, Case, cases_of


def wrapped(value: Any, dtype: DType) -> Any:
    if not dtype.is_integer:
        return value
    value = int(value) % 2**dtype.bits
    return value - 2**dtype.bits if dtype.kind == "int" and value > dtype.highest else value


def defined(case: Case) -> np.ndarray:
    """The case's result by the definition."""
    type = case.node.type
    arrays = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in case.arrays]
    result = np.zeros(type.shape, np.float64 if type.dtype.is_float else type.dtype.numpy)
    for place in places(type.shape):
        result[place] = wrapped(DEFINITIONS[case.op](arrays, case.node.attrs, type, place), type.dtype)
    return result


FOURIER = (*(op for op in DEFINITIONS if op.startswith("fourier_")), "trigonometric_4")
# Matrices taken apart have no definition element by element; see tests/ir/test_linear_algebra.py.
OF_MATRICES = {
    "bidiagonal", "bidiagonal_svd", "cholesky", "eigh", "householder", "jacobi", "linear_solve", "lu", "qr", "svd",
    "triangular_solve", "tridiagonal", "tridiagonal_eigh",
}  # fmt: skip


def test_every_operation_has_a_definition() -> None:
    assert set(DEFINITIONS) | OF_MATRICES == set(OPERATIONS) - WITHOUT_CASES


@pytest.mark.parametrize("op", sorted(DEFINITIONS))
def test_float64(op: str) -> None:
    """Functions of libraries differ by a unit or two in the last place; sums by the order of their terms."""
    for case in cases_of(op):
        if case.node.type.size > 1000 or (case.special and op in OF_SCIPY):
            continue
        (found,) = interpret(case.graph, *case.arrays)
        expected = defined(case)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype), str(case)
        close = 2e-14 if op in (*ATTENTION, *FOURIER) else 1e-12 if op in OF_SCIPY else 4e-15  # sums, under exp
        np.testing.assert_allclose(found, expected, rtol=close, atol=close, err_msg=str(case))


# Their terms are added in another order, or cancel.
SUMS = (
    *("dot", "conv", "depthwise_conv", "sum", "cumulative_sum", "cumulative_logsumexp", "chunk_totals"),
    *("cumulative_chunks", "join_lists"),
    *FOURIER,
    *ATTENTION,
)


@pytest.mark.parametrize("op", sorted(DEFINITIONS))
def test_float32(op: str) -> None:
    """The same in float32, where values stay in range: a few of its units, in sums for as many as there are terms."""
    for case in cases_of(op):
        if not case.only_float32:
            continue
        (found,) = interpret(case.graph, *case.arrays, dtype=np.float32)
        assert found.dtype == case.node.dtype.numpy
        if not case.special and case.op not in ("remainder", "modulo"):
            (expected,) = interpret(case.graph, *case.arrays)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 if op in SUMS else 0)


def test_signed_zeros_and_division() -> None:
    graph = parse("graph (x: f32[2], y: f32[2]) {\n  %0 = divide(x, y) : f32[2]\n  return %0\n}")
    np.testing.assert_array_equal(interpret(graph, [1.0, 1.0], [0.0, -0.0])[0], [np.inf, -np.inf])


def test_a_value_may_be_returned_more_than_once_and_an_input_too() -> None:
    graph = parse("graph (x: f32[2]) {\n  %0 = sin(x) : f32[2]\n  return %0, x, %0\n}")
    results = interpret(graph, [0.5, 1.0])
    np.testing.assert_array_equal(results, [np.sin([0.5, 1.0]), [0.5, 1.0], np.sin([0.5, 1.0])])


def test_inputs_take_their_dtype() -> None:
    graph = parse("graph (i: i32[2], b: bool[2], x: f32[]) {\n  return i, b, x\n}")
    results = interpret(graph, [1.0, 2.0], [0, 2], 1)
    assert [result.dtype for result in results] == [np.int32, np.bool_, np.float64]


def test_wrong_arguments() -> None:
    graph = parse("graph (x: f32[2], y: f32[]) {\n  return x\n}")
    with pytest.raises(ShapeError, match="the graph has 2 inputs, got 1 arrays"):
        interpret(graph, [1.0, 2.0])
    with pytest.raises(ShapeError, match=r"input x is f32\[2\], got an array of shape \(3,\)"):
        interpret(graph, [1.0, 2.0, 3.0], 1.0)


def test_a_deep_graph() -> None:
    lines = ["graph (x: f32[]) {", "  %0 = sin(x) : f32[]"]
    lines += [f"  %{number} = sin(%{number - 1}) : f32[]" for number in range(1, 3000)]
    graph = parse("\n".join([*lines, "  return %2999", "}"]))
    assert 0 < interpret(graph, 1.0)[0] < 0.1


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_gamma_integrals_of_large_parameters(name: str) -> None:
    special = pytest.importorskip("scipy.special", reason="compares with SciPy")
    a, share = np.meshgrid(np.linspace(45, 400, 200), [0.7, 0.8, 0.95, 1.0, 1.05, 1.3])
    found = BINARY[name](a, a * share)
    np.testing.assert_allclose(found, getattr(special, name)(a, a * share), rtol=1e-11, atol=1e-15)
