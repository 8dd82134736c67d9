"""Random graphs on the device against the interpreter: what fusion, scheduling and code generation do together."""

from __future__ import annotations

import numpy as np
import pytest

from lavax.ir import interpret
from lavax.passes.simplify import simplify
from tests.backends.vulkan.execution import run
from tests.random_graphs import random_graph

# Those above 300 failed once: each found a mistake of its own in fusion.
SEEDS = (*range(80), 274, 675, 774, 886, 1056, 4882)


@pytest.mark.parametrize("seed", [*SEEDS, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(80, 600))])
def test_a_random_graph_computes_what_the_interpreter_computes(seed: int) -> None:
    graph, arrays = random_graph(seed)
    expected = interpret(graph, *arrays)
    for version in (graph, simplify(graph)):
        for got, want in zip(run(version, arrays), expected, strict=True):
            np.testing.assert_array_equal(got, want.astype(got.dtype), err_msg=str(version))
