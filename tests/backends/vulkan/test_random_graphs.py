"""Random graphs on the device against the interpreter: what fusion, scheduling and code generation do together."""

from __future__ import annotations

import numpy as np
import pytest

from lavax.ir import interpret
from lavax.passes.simplify import simplify
from tests.backends.vulkan.execution import run
from tests.random_graphs import random_graph


@pytest.mark.parametrize("seed", range(300))
def test_a_random_graph_computes_what_the_interpreter_computes(seed: int) -> None:
    graph, arrays = random_graph(seed)
    expected = interpret(graph, *arrays)
    for version in (graph, simplify(graph)):
        for got, want in zip(run(version, arrays), expected, strict=True):
            np.testing.assert_array_equal(got, want.astype(got.dtype), err_msg=str(version))
