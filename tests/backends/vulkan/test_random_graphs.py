"""Random graphs on the device against the interpreter: what fusion, scheduling and code generation do together."""

from __future__ import annotations

import numpy as np
import pytest

from lavax.ir import interpret
from lavax.passes.batch import batch
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from tests.backends.vulkan.run.execution import run
from tests.passes.program_checks import check_sizes
from tests.random_graphs import WITH_REGIONS, random_graph

# Those above 300 failed once: each found a mistake of its own in fusion.
SEEDS = (*range(80), 274, 675, 774, 886, 1056, 4882)


@pytest.mark.parametrize("seed", [*SEEDS, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(80, 600))])
def test_a_random_graph_computes_what_the_interpreter_computes(seed: int) -> None:
    graph, arrays = random_graph(seed)
    expected = interpret(graph, *arrays)
    for version in (graph, simplify(graph)):
        for got, want in zip(run(version, arrays), expected, strict=True):
            np.testing.assert_array_equal(got, want.astype(got.dtype), err_msg=str(version))


def long(seeds: range) -> list[object]:
    return [pytest.param(seed, marks=pytest.mark.long) for seed in seeds]


@pytest.mark.parametrize("seed", [*range(15), *long(range(15, 300))])
def test_a_random_graph_of_branches_and_loops(seed: int) -> None:
    """As it is, simplified, and for a batch of two: on the device and in the interpreter of kernels."""
    graph, arrays = random_graph(seed, operations=WITH_REGIONS)
    expected = interpret(graph, *arrays)
    stacked = [np.stack([array, array[::-1] if array.ndim else array + 1]).astype(array.dtype) for array in arrays]
    mapped = batch(graph, [0] * len(arrays), [0] * len(graph.outputs), 2)
    each = [interpret(graph, *(array[k] for array in stacked)) for k in range(2)]
    pairs = [np.stack(results) for results in zip(*each, strict=True)]
    for version, given, wanted in (
        (graph, arrays, expected),
        (simplify(graph), arrays, expected),
        (simplify(mapped), stacked, pairs),
    ):
        program = schedule(prepare(version), ())
        check_sizes(program)
        in_numpy = interpret_kernels(program, *given)
        for found in (in_numpy, run(version, given)):
            for got, want in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(got, want.astype(got.dtype), err_msg=str(version))
