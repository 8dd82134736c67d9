"""A backend that runs graphs with the reference interpreter: what the tracer's tests stand on."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from lavax.base.counters import count
from lavax.base.errors import DeviceError
from lavax.ir import Graph, TensorType, complex128, float64, interpret
from lavax.passes.reports import Memory


@dataclass(eq=False)
class NumpyBuffer:
    numbers: np.ndarray | None  # None once it has been given away

    @property
    def nbytes(self) -> int:
        return self.read().nbytes

    def read(self) -> np.ndarray:
        if self.numbers is None:
            raise DeviceError("a buffer that was donated is read again")
        return self.numbers


@dataclass(eq=False)
class NumpyProgram:
    graph: Graph
    donated: tuple[int, ...]

    def __call__(self, *buffers: NumpyBuffer) -> list[NumpyBuffer]:
        return self.run(buffers)

    def memory(self) -> Memory:
        return Memory()

    def run(
        self, buffers: Sequence[NumpyBuffer], claim: Callable[[], None] | None = None
    ) -> list[NumpyBuffer]:
        if claim is not None:
            claim()
        arrays = [buffer.read() for buffer in buffers]
        for node, array in zip(self.graph.inputs, arrays, strict=True):
            assert array.shape == node.shape and array.dtype == node.dtype.storage, (node, array.shape, array.dtype)
        nodes = (*self.graph.inputs, *self.graph.nodes)
        is_wide = any(getattr(node.type, "dtype", None) in (float64, complex128) for node in nodes)
        widest = np.float64 if is_wide else np.float32
        numbers = [node.dtype.from_storage(array) for node, array in zip(self.graph.inputs, arrays, strict=True)]
        results = interpret(self.graph, *numbers, dtype=widest)
        for position in self.donated:
            buffers[position].numbers = None
        count("submits")
        types = [output.type for output in self.graph.outputs]
        return [
            NumpyBuffer(type.dtype.to_storage(np.array(result, order="C", copy=True)))
            for result, type in zip(results, types, strict=True)
        ]


@dataclass
class NumpyLowered:
    graph: Graph
    donated: tuple[int, ...]
    backend: NumpyBackend

    def as_text(self, stage: str) -> str:
        return f"{stage} of\n{self.graph}"

    def compile(self) -> NumpyProgram:
        self.backend.compiled.append(self.graph)
        return NumpyProgram(self.graph, self.donated)


@dataclass
class NumpyBackend:
    compiled: list[Graph] = field(default_factory=list)
    uploads: int = 0

    def lower(
        self, graph: Graph, donated: tuple[int, ...] = (), eager: bool = False, tune: bool = False
    ) -> NumpyLowered:
        return NumpyLowered(graph, donated, self)

    def upload(self, array: np.ndarray) -> NumpyBuffer:
        self.uploads += 1
        assert array.flags.c_contiguous
        return NumpyBuffer(array.copy())

    def download(self, buffer: NumpyBuffer, type: TensorType) -> np.ndarray:
        return type.dtype.from_storage(buffer.read().reshape(type.shape).copy())

    def wait(self, buffer: NumpyBuffer) -> None:
        buffer.read()

    def devices(self) -> Sequence[str]:
        return ["numpy"]

    def default_device(self) -> str:
        return "numpy"

    def busy_invocations(self) -> int:
        return 1

    def bytes_in_use(self) -> int:
        return 0

    def release_memory(self) -> None:
        pass
