"""From a Python function or the text of a graph to its kernels, as a backend gets them."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import dedent
from typing import Any

import numpy as np

import lavax as lx
from lavax.ir import Graph, interpret, parse
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient
from tests.passes.program_checks import check_program


def program_of(graph: Graph | str, donated: Sequence[int] = ()) -> KernelProgram:
    """The kernels of a graph, which is not simplified; checked."""
    found = parse(dedent(graph)) if isinstance(graph, str) else graph
    program = schedule(prepare(found), donated)
    check_program(program, donated)
    return program


def program_of_function(function: Callable[..., Any], *arguments: Any, donated: Sequence[int] = ()) -> KernelProgram:
    """The kernels of a function of arrays."""
    return program_of(remove_stop_gradient(lx.trace(function)(*arguments)), donated)


def f32(*shape: int) -> np.ndarray:
    """An argument to trace with."""
    return np.zeros(shape, np.float32)


def i32(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.int32)


def assert_computes(program: KernelProgram, graph: Graph, arrays: Sequence[np.ndarray], tolerance: float = 0.0) -> None:
    """The kernels, in NumPy, give what the graph gives."""
    found, expected = interpret_kernels(program, *arrays), interpret(graph, *arrays)
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=0)
