"""Runs kernels in NumPy, one after the other, to distinguish errors of fusion from errors of shaders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lavax.ir.interpreter import interpret
from lavax.ir.types import TensorType, int32
from lavax.passes.kernels.commands import Command, Guard, Guarded, Repeat, Until
from lavax.passes.kernels.kernel import KernelStep
from lavax.passes.kernels.program import KernelProgram

_SCALAR = TensorType((), int32)


def interpret_kernels(program: KernelProgram, *arrays: Any, dtype: Any = np.float64) -> list[np.ndarray]:
    """The program's results on `arrays`, one per input of its graph, with floats held as `dtype`.

    Buffers are read and written by name; a result in the memory of a donated input overwrites that input.
    """
    machine = _Machine(program, dtype)
    for node, array in zip(program.graph.inputs, arrays, strict=True):
        machine.memory[node.name] = np.array(array).reshape(-1)
    machine.run(program.steps)
    return [machine.read(name, node.type) for name, node in zip(program.results, program.graph.outputs, strict=True)]


class _Machine:
    """The memory of a running program: the elements of each buffer as a flat array, of which views are parts."""

    def __init__(self, program: KernelProgram, dtype: Any) -> None:
        self.program, self.dtype = program, dtype
        self.memory: dict[str, np.ndarray] = {}

    def run(self, commands: Sequence[Command]) -> None:
        for command in commands:
            match command:
                case KernelStep():
                    self._step(command)
                case Guard():
                    index = min(max(int(self.read(command.index, _SCALAR)), 0), command.count - 1)
                    over = command.parent is None or self._is_set(command.parent)
                    self.memory[command.flag] = np.array([over and index == command.equals])
                case Guarded():
                    if self._is_set(command.flag):
                        self.run(command.commands)
                case Repeat():
                    for _ in range(command.count):
                        self.run(command.commands)
                case Until():
                    self.run(command.commands)
                    while self._is_set(command.flag):
                        self.run(command.commands)

    def _is_set(self, flag: str) -> bool:
        return bool(self.memory[flag][0])

    def _step(self, step: KernelStep) -> None:
        for kernel, reads, writes in zip(step.kernels, step.reads, step.writes, strict=True):
            given = [self.read(name, node.type) for name, node in zip(reads, kernel.graph.inputs, strict=True)]
            results = interpret(kernel.graph, *given, dtype=self.dtype)
            for name, node, result in zip(writes, kernel.graph.outputs, results, strict=True):
                self.write(name, node.type, result)

    def read(self, name: str, type: TensorType) -> np.ndarray:
        buffer, start = self._location(name, type)
        return self.memory[buffer][start : start + type.size].reshape(type.shape)

    def write(self, name: str, type: TensorType, value: np.ndarray) -> None:
        buffer, start = self._location(name, type)
        if buffer == name:
            self.memory[name] = value.reshape(-1).copy()
            donor = self.program.donors.get(name)
            if donor is not None:
                self.memory[donor] = self.memory[name]
            return
        if buffer not in self.memory:
            self.memory[buffer] = np.zeros(self.program.sizes[buffer] // _item_bytes(type), value.dtype)
        self.memory[buffer][start : start + type.size] = value.reshape(-1)

    def _location(self, name: str, type: TensorType) -> tuple[str, int]:
        """The buffer that a name refers to, and the element at which the named part starts now."""
        offset = 0
        while name in self.program.views:
            view = self.program.views[name]
            offset += int(self.read(view.counter, _SCALAR)) * view.stride
            name = view.buffer
        return name, offset // _item_bytes(type)


def _item_bytes(type: TensorType) -> int:
    return type.with_shape((1,)).nbytes
