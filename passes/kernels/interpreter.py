"""Runs kernels in NumPy, one after the other, so that a wrong fusion and a wrong shader are told apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lavax.ir.interpreter import interpret
from lavax.passes.kernels.commands import Command, Guard, Guarded, Repeat, Until
from lavax.passes.kernels.kernel import Step
from lavax.passes.kernels.program import KernelProgram


def interpret_kernels(program: KernelProgram, *arrays: Any, dtype: Any = np.float64) -> list[np.ndarray]:
    """The program's results on `arrays`, one an input of its graph, with floats held as `dtype`.

    Buffers are read and written by name, and a result in a donated input's memory overwrites that input.
    """
    machine = _Machine(program, dtype)
    for node, array in zip(program.graph.inputs, arrays, strict=True):
        machine.memory[node.name] = np.asarray(array)
    machine.run(program.steps)
    return [machine.read(name) for name in program.results]


class _Machine:
    """What is in memory while a program runs. An array that is written row by row is a dict of its rows until then."""

    def __init__(self, program: KernelProgram, dtype: Any) -> None:
        self.program, self.dtype = program, dtype
        self.memory: dict[str, np.ndarray] = {}
        self.rows: dict[str, dict[int, np.ndarray]] = {}

    def run(self, commands: Sequence[Command]) -> None:
        for command in commands:
            match command:
                case Step():
                    self._step(command)
                case Guard():
                    index = min(max(int(self.read(command.index)), 0), command.count - 1)
                    over = command.parent is None or bool(self.memory[command.parent])
                    self.memory[command.flag] = np.asarray(over and index == command.equals)
                case Guarded():
                    if self.memory[command.flag]:
                        self.run(command.commands)
                case Repeat():
                    for _ in range(command.count):
                        self.run(command.commands)
                case Until():
                    self.run(command.commands)
                    while self.memory[command.flag]:
                        self.run(command.commands)

    def _step(self, step: Step) -> None:
        for kernel, reads, writes in zip(step.kernels, step.reads, step.writes, strict=True):
            results = interpret(kernel.graph, *map(self.read, reads), dtype=self.dtype)
            for name, result in zip(writes, results, strict=True):
                self.write(name, result)

    def read(self, name: str) -> np.ndarray:
        view = self.program.views.get(name)
        if view is None:
            self._gather_rows(name)
            return self.memory[name]
        return np.asarray(self.read(view.buffer)[int(self.memory[view.counter])])

    def write(self, name: str, value: np.ndarray) -> None:
        view = self.program.views.get(name)
        if view is not None:
            self._write_row(view.buffer, int(self.memory[view.counter]), value)
            return
        self.memory[name] = value
        self.rows.pop(name, None)
        donor = self.program.donors.get(name)
        if donor is not None:
            self.memory[donor] = value

    def _write_row(self, name: str, row: int, value: np.ndarray) -> None:
        """A row of an array, or of a row of another one."""
        self.rows.setdefault(name, {})[row] = value
        view = self.program.views.get(name)
        rows = self.rows[name]
        if sorted(rows) == list(range(len(rows))) and view is not None:
            self._write_row(view.buffer, int(self.memory[view.counter]), np.stack([rows[r] for r in sorted(rows)]))
        elif view is None:
            self.memory.pop(name, None)

    def _gather_rows(self, name: str) -> None:
        if name not in self.memory and name in self.rows:
            rows = self.rows[name]
            self.memory[name] = np.stack([rows[row] for row in sorted(rows)])
