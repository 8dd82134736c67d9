"""Batching: every operation with every operand batched or not, against one run for each element of the batch."""
from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from lavax.ir import OPERATIONS, Graph, interpret, parse, verify
from lavax.passes.batch import NEVER_BATCHED, RULES, batch
from lavax.passes.simplify import simplify
from tests.operation_cases import Case, all_cases
from tests.random_graphs import random_graph

SIZE = 3


def element_by_element(graph: Graph, arrays: Sequence[np.ndarray], axes: Sequence[int | None]) -> list[np.ndarray]:
    """What batching has to give, by a run of `graph` for each element; the batch axis in front."""
    runs = []
    for element in range(SIZE):
        taken = zip(arrays, axes, strict=True)
        own = [array if axis is None else np.take(array, element, axis) for array, axis in taken]
        runs.append(interpret(graph, *own))
    return [np.stack(results) for results in zip(*runs, strict=True)]


def batched_arrays(case: Case, axes: Sequence[int | None]) -> list[np.ndarray]:
    """Another version of each batched operand for each element: its values rolled round."""
    return [
        array
        if axis is None
        else np.stack([np.roll(array.reshape(-1), k).reshape(array.shape) for k in range(SIZE)], axis)
        for array, axis in zip(case.arrays, axes, strict=True)
    ]


def choices(case: Case) -> list[tuple[int | None, ...]]:
    """Where each operand has the batch axis: in front, at the end, or nowhere, at least one somewhere."""
    places = [(None, 0, array.ndim) for array in case.arrays]
    if len(places) > 3:
        return [tuple([0] * len(places))] + [
            tuple(0 if k == other else None for other in range(len(places))) for k in range(len(places))
        ]
    found = [choice for choice in itertools.product(*places) if any(place is not None for place in choice)]
    return list(dict.fromkeys(found))


def test_every_operation_has_a_rule_or_is_the_same_for_all_elements() -> None:
    assert set(RULES) | NEVER_BATCHED == set(OPERATIONS) - {"input"}
    assert not set(RULES) & NEVER_BATCHED


OF_CASES = [case for case in all_cases() if case.arrays and case.op not in NEVER_BATCHED]


@pytest.mark.parametrize("op", sorted({case.op for case in OF_CASES}))
def test_agrees_with_one_run_for_each_element(op: str) -> None:
    """Every third choice of axes for each case, so that each choice meets several shapes and dtypes. Cases of special
    values alone differ in what no axis depends on, and have many of them: one choice."""
    chosen = [case for case in OF_CASES if case.op == op and (case.special or case.node.dtype.is_float)]
    for number, case in enumerate(chosen or [case for case in OF_CASES if case.op == op]):
        several = choices(case)[number % 3 :: 3] or choices(case)
        for axes in several[:1] if case.special else several:
            arrays = batched_arrays(case, axes)
            graph = batch(case.graph, axes, [0], SIZE)
            verify(graph)
            expected = element_by_element(case.graph, arrays, axes)
            simple = simplify(graph)
            for what in (graph,) if str(simple) == str(graph) else (graph, simple):
                found = interpret(what, *arrays)
                for got, want in zip(found, expected, strict=True):
                    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12, err_msg=f"{case} {axes}\n{what}")


@pytest.mark.parametrize("op", sorted({case.op for case in OF_CASES}))
def test_an_empty_batch_has_empty_results(op: str) -> None:
    for case in [case for case in OF_CASES if case.op == op and not case.special][:4]:
        axes = [0] * len(case.arrays)
        graph = batch(case.graph, axes, [0], 0)
        verify(graph)
        arrays = [np.zeros((0, *array.shape), array.dtype) for array in case.arrays]
        for what in (graph, simplify(graph)):
            (found,) = interpret(what, *arrays)
            assert found.shape == (0, *case.node.shape), f"{case}\n{what}"


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(seed: int) -> None:
    graph, arrays = random_graph(seed)
    axes = [(0, None, 0)[k % 3] for k in range(len(arrays))]
    pairs = zip(arrays, axes, strict=True)
    stacked = [a if axis is None else np.stack([a, a[::-1] if a.ndim else a, a]) for a, axis in pairs]
    found = interpret(batch(graph, axes, [0] * len(graph.outputs), SIZE), *stacked)
    for got, want in zip(found, element_by_element(graph, stacked, axes), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def test_outputs_go_where_they_are_asked_for() -> None:
    graph = parse("graph (x: f32[2,3], y: f32[]) {\n  %0 = exp(x) : f32[2,3]\n  return %0, y\n}")
    x = np.random.default_rng(0).normal(size=(2, 3, 5))
    first, second, third = interpret(
        batch(parse(str(graph).replace("%0, y", "%0, y, y")), [2, None], [1, 0, None], 5), x, 2.0
    )
    np.testing.assert_allclose(first, np.moveaxis(np.exp(x), 2, 1))
    assert second.tolist() == [2.0] * 5 and third.tolist() == 2.0
    with pytest.raises(ValueError, match="differs between"):
        batch(graph, [2, None], [None, None], 5)


def test_dots_stay_one_dot() -> None:
    """A batch of matrix products with shared weights is one larger matrix product."""
    graph = parse(
        "graph (x: f32[4], w: f32[4,5]) {\n  %0 = dot(x, w) contract=[0]x[0] : f32[5]\n  return %0\n}"
    )
    assert str(simplify(batch(graph, [0, None], [0], 7))) == (
        "graph (x: f32[7,4], w: f32[4,5]) {\n  %0 = dot(x, w) contract=[1]x[0] : f32[7,5]\n  return %0\n}"
    )


NAMED = """
graph (x: f32[2]) {
  %0 = axis_sum(x) name="i" : f32[2]
  %1 = axis_index() name="i" : i32[]
  %2 = axis_gather(x) name="i" size=3 : f32[3,2]
  %3 = axis_max(x) name="j" : f32[2]
  return %0, %1, %2, %3
}
"""


def test_named_axes_are_reduced_where_they_are_the_batch() -> None:
    graph = parse(NAMED)
    assert str(parse(str(graph))) == str(graph)
    over_i = batch(graph, [0], [None, 0, None, 0], 3, "i")
    over_both = batch(over_i, [0], [0, None, 0, None], 5, "j")
    x = np.random.default_rng(0).normal(size=(5, 3, 2))
    total, index, gathered, greatest = interpret(over_both, x)
    np.testing.assert_allclose(total, x.sum(1))
    assert index.tolist() == [0, 1, 2]
    np.testing.assert_allclose(gathered, x)
    np.testing.assert_allclose(greatest, x.max(0))


def test_named_axes_of_what_is_not_batched() -> None:
    over_i = batch(parse(NAMED), [None], [None, 0, None, None], 3, "i")
    over_both = batch(over_i, [0], [0, None, 0, None], 5, "j")
    x = np.random.default_rng(0).normal(size=(5, 2))
    total, _, gathered, greatest = interpret(over_both, x)
    np.testing.assert_allclose(total, 3 * x)
    np.testing.assert_allclose(gathered, np.repeat(x[:, None], 3, 1))
    np.testing.assert_allclose(greatest, x.max(0))
