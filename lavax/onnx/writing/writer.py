"""What the rules write to: a graph of ONNX that grows node by node.

A value may be held with extents of 1 where its elements repeat, because elementwise operators repeat them anyway;
`full` gives it with all its elements.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node
from lavax.ir.types import DType, TensorType
from lavax.onnx.reading.package import onnx_package


@dataclass(frozen=True)
class Held:
    """A value in the file: its name, and its extents there; those that are 1 may stand for more."""

    name: str
    shape: tuple[int, ...]


Result = Held | str | tuple[str, ...]  # a name alone holds all elements; names are the parts of a tuple
Rule = Callable[["Writer", Node], Result]


@dataclass(eq=False)
class File:
    """What the graphs of one file share: names that are taken, weights, and constants, which no reader trains."""

    rules: Mapping[str, Rule]
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    known: dict[tuple[Any, ...], str] = field(default_factory=dict)  # the names of small tensors
    taken: set[str] = field(default_factory=set)

    def fresh(self, wanted: str) -> str:
        """A name that nothing has yet."""
        name, number = wanted, 0
        while name in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        return name


@dataclass(eq=False)
class Writer:
    """One graph of a file."""

    file: File
    nodes: list[Any] = field(default_factory=list)
    _held: dict[Node, Held | tuple[str, ...]] = field(default_factory=dict)

    def add(self, operator: str, inputs: Sequence[str], count: int = 1, **attributes: Any) -> Any:
        """Adds a node; the name of its output, or the names if it has several."""
        outputs = [self.file.fresh(operator.lower()) for _ in range(count)]
        made = onnx_package().helper.make_node(operator, list(inputs), outputs, name=outputs[0], **attributes)
        self.nodes.append(made)
        return outputs[0] if count == 1 else tuple(outputs)

    def tensor(self, numbers: Any, dtype: Any = None, name: str = "constant") -> str:
        """The name of a tensor with these numbers; equal small ones are one."""
        array = np.asarray(numbers, dtype)
        key = (array.dtype.name, array.shape, array.tobytes()) if array.size <= 64 else None
        if key is not None and key in self.file.known:
            return self.file.known[key]
        given = self.file.fresh(name)
        self.file.constants[given] = array
        if key is not None:
            self.file.known[key] = given
        return given

    def initializer(self, numbers: np.ndarray, name: str) -> str:
        """The name of a weight, which is a tensor of its own even if another has the same numbers."""
        given = self.file.fresh(name)
        self.file.weights[given] = numbers
        return given

    def integers(self, numbers: Sequence[int]) -> str:
        """The name of a list of 64-bit integers, as shapes and axes are."""
        return self.tensor(numbers, np.int64)

    def number(self, value: Any, like: DType) -> str:
        """The name of a number of rank 0."""
        return self.tensor(np.asarray(value, like.user))

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """A value of other extents."""
        made: str = self.add("Reshape", [name, self.integers(shape)], allowzero=1)
        return made

    def transpose(self, name: str, order: Sequence[int]) -> str:
        """A value with its axes in another order."""
        if list(order) == list(range(len(order))):
            return name
        made: str = self.add("Transpose", [name], perm=list(order))
        return made

    def cast(self, name: str, dtype: DType) -> str:
        """A value of another dtype."""
        made: str = self.add("Cast", [name], to=element_type(dtype))
        return made

    def held(self, node: Node) -> Held:
        """A value as it is held."""
        found = self._held[node]
        assert isinstance(found, Held), "a tuple is read by `item`"
        return found

    def parts(self, node: Node) -> tuple[str, ...]:
        """The names of a tuple's parts."""
        found = self._held[node]
        assert isinstance(found, tuple)
        return found

    def full(self, node: Node) -> str:
        """The name of a value with all its elements."""
        found = self.held(node)
        if found.shape == node.shape:
            return found.name
        name: str = self.add("Expand", [found.name, self.integers(node.shape)])
        self._held[node] = Held(name, node.shape)
        return name

    def bind(self, node: Node, name: str) -> None:
        """Says by which name a graph's input is known."""
        self._held[node] = Held(name, node.shape)

    def write(self, graph: Graph) -> list[str]:
        """Writes the nodes of a graph whose inputs are bound; the names of its outputs."""
        for node in graph.nodes:
            made = self.file.rules[node.op](self, node)
            self._held[node] = Held(made, node.shape) if isinstance(made, str) else made
        return [self.full(node) for node in graph.outputs]

    def within(self, graph: Graph, names: Sequence[str]) -> tuple[Writer, list[str]]:
        """A graph for an attribute, whose inputs are values known by `names`: its writer and its outputs."""
        inner = Writer(self.file)
        for node, name in zip(graph.inputs, names, strict=True):
            inner.bind(node, name)
        return inner, inner.write(graph)


def element_type(dtype: DType) -> int:
    """The number of an element type."""
    return int(onnx_package().helper.np_dtype_to_tensor_dtype(np.dtype(dtype.user)))


def described(name: str, type: TensorType) -> Any:
    """The description of an input or output."""
    return onnx_package().helper.make_tensor_value_info(name, element_type(type.dtype), type.shape)


def subgraph(writer: Writer, names: Sequence[tuple[str, TensorType]], outputs: Sequence[tuple[str, TensorType]]) -> Any:
    """What has been written as a graph for an attribute. An output gets a node of its own, as the checker wants it."""
    made = []
    for name, type in outputs:
        own = writer.add("Identity", [name])
        made.append(described(own, type))
    helper = onnx_package().helper
    return helper.make_graph(writer.nodes, writer.file.fresh("graph"), [described(*each) for each in names], made)
