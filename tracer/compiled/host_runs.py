"""What the host runs between programs of the device: functions, and the branches and loops that call them."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from lavax.ir import Graph
from lavax.ir.graph import Node
from lavax.ir.types import TensorType
from lavax.passes.build.control_flow import parts_of
from lavax.tracer.values.array import Array, from_storage

Run = Callable[[Sequence[Array]], list[Array]]


class MakesExecutable(Protocol):
    """`executable`, which itself uses this module."""

    def __call__(self, graph: Graph, weak: Sequence[bool]) -> Run: ...


class _Body:
    """A graph within a branch or loop, compiled when it first runs."""

    def __init__(self, graph: Graph, make: MakesExecutable) -> None:
        self._graph = graph
        self._make = make

    @cached_property
    def _run(self) -> Run:
        return self._make(self._graph, [False] * len(self._graph.outputs))

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        return self._run(arrays)


def run_by_host(node: Node, make: MakesExecutable) -> Run:
    """From the operands of a call of the host, or of a branch or loop that holds some, to all its results."""
    return _RUNS[node.op](node, make)


def _host_call(node: Node, make: MakesExecutable) -> Run:
    function, types = node.attrs["function"], parts_of(node)

    def run(operands: Sequence[Array]) -> list[Array]:
        results = function.call([np.asarray(operand) for operand in operands])
        return [_array(np.array(result), type) for result, type in zip(results, types, strict=True)]

    return run


def _switch(node: Node, make: MakesExecutable) -> Run:
    branches = [_Body(branch, make) for branch in node.attrs["branches"]]

    def run(operands: Sequence[Array]) -> list[Array]:
        index, *arguments = operands
        return branches[min(max(int(index), 0), len(branches) - 1)](arguments)

    return run


def _while(node: Node, make: MakesExecutable) -> Run:
    condition, body = _Body(node.attrs["condition"], make), _Body(node.attrs["body"], make)
    count = len(parts_of(node))

    def run(operands: Sequence[Array]) -> list[Array]:
        carried, invariant = list(operands[:count]), operands[count:]
        while bool(condition([*carried, *invariant])[0]):
            carried = body([*carried, *invariant])
        return carried

    return run


def _scan(node: Node, make: MakesExecutable) -> Run:
    body, types, carries = _Body(node.attrs["body"], make), parts_of(node), node.attrs["carries"]
    first_invariant = carries + node.attrs["sequences"]
    steps = range(node.attrs["length"])[:: -1 if node.attrs["reverse"] else 1]

    def run(operands: Sequence[Array]) -> list[Array]:
        carried, invariant = list(operands[:carries]), operands[first_invariant:]
        sequences = [(np.asarray(each), each.type) for each in operands[carries:first_invariant]]
        stacked = [np.zeros(type.shape, type.dtype.user) for type in types[carries:]]
        for step in steps:
            elements = [_array(numbers[step], type.with_shape(type.shape[1:])) for numbers, type in sequences]
            results = body([*carried, *elements, *invariant])
            carried = results[:carries]
            for whole, part in zip(stacked, results[carries:], strict=True):
                whole[step] = np.asarray(part)
        return [*carried, *(_array(whole, type) for whole, type in zip(stacked, types[carries:], strict=True))]

    return run


def _array(numbers: np.ndarray, type: TensorType) -> Array:
    return from_storage(type.dtype.to_storage(np.array(numbers)), type.dtype)


_RUNS: dict[str, Callable[[Node, MakesExecutable], Run]] = {
    "host_call": _host_call,
    "switch": _switch,
    "while": _while,
    "scan": _scan,
}
