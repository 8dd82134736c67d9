"""Runs kernels in NumPy, one after the other, so that a wrong fusion and a wrong shader are told apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from lavax.ir.interpreter import interpret
from lavax.passes.kernels.kernel import KernelProgram


def interpret_kernels(program: KernelProgram, *arrays: Any, dtype: Any = np.float64) -> list[np.ndarray]:
    """The program's results on `arrays`, one an input of its graph, with floats held as `dtype`.

    Buffers are read and written by name, and a result in a donated input's memory overwrites that input.
    """
    inputs = zip(program.graph.inputs, arrays, strict=True)
    memory: dict[str, np.ndarray] = {node.name: np.asarray(array) for node, array in inputs}
    for step in program.steps:
        for kernel, reads, writes in zip(step.kernels, step.reads, step.writes, strict=True):
            results = interpret(kernel.graph, *(memory[name] for name in reads), dtype=dtype)
            for name, result in zip(writes, results, strict=True):
                memory[name] = result
                if name in program.donors:
                    memory[program.donors[name]] = result
    return [memory[name] for name in program.results]
