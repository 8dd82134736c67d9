"""Takes complex values apart into their real and imaginary parts, so that later passes and kernels see floats only.

Within a graph each part is a node of its own, in bodies of loops and branches, too. At the ends of a program the parts
are interleaved, as NumPy holds them: an argument or result c64[n] becomes f32[n,2].
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lavax.base.errors import DtypeError
from lavax.ir.graph import Graph, Node, graph_of, input_node, make_node, with_operands
from lavax.ir.types import NUMBERS, TensorType, TupleType, tuple_of
from lavax.passes.build.builder import build, located, set_location
from lavax.passes.build.inline import inner_graphs
from lavax.passes.complex_parts.cosine_lines import with_cosine_lines
from lavax.passes.complex_parts.cosine_spectra import with_cosine_spectra
from lavax.passes.complex_parts.cosines_across import with_cosines_across
from lavax.passes.complex_parts.elementwise import RULES, Value
from lavax.passes.complex_parts.folded_lines import with_folded_lines
from lavax.passes.complex_parts.fourier import TRANSFORMS
from lavax.passes.complex_parts.parts import Parts, interleaved, parts, separated
from lavax.passes.complex_parts.real_spectra import with_real_spectra
from lavax.passes.complex_parts.spectrum_parts import with_spectrum_parts
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.target import Transforms

_REAL = frozenset((*NUMBERS, "bool"))  # kinds of dtypes


def in_real_parts(graph: Graph, transforms: Transforms | None = None) -> Graph:
    """The graph with complex inputs and outputs interleaved and no complex values; itself if it has none."""
    if not holds_complex(graph):
        return graph
    with located():
        ways = transforms or Transforms()
        graph = with_cosine_lines(with_real_spectra(graph, ways), ways)
        graph = with_cosine_spectra(with_spectrum_parts(graph, ways), ways)
    inputs = [_interleaved_input(node) for node in graph.inputs]
    with located():
        given = [
            separated(whole) if node.dtype.is_complex else whole
            for node, whole in zip(graph.inputs, inputs, strict=True)
        ]
        found = _Walk(graph, given, transforms or Transforms())
        whole_of = dict(zip(graph.inputs, inputs, strict=True))
        outputs = [whole_of[output] if output in whole_of else _interleaved(found[output]) for output in graph.outputs]
        whole = remove_stop_gradient(graph_of(inputs, outputs))
        if transforms is None or not transforms.cosines:
            return whole
        return with_cosines_across(with_folded_lines(whole), transforms)


def holds_complex(graph: Graph) -> bool:
    """Whether a value of the graph, or of a graph in it, is complex, or is computed by complex ones."""
    if any(node.op in TRANSFORMS for node in graph.nodes):  # of which one has real lines at both ends
        return True
    values = (*graph.inputs, *graph.nodes)
    are_real = _REAL.issuperset([value.type.dtype.kind for value in values])
    if not are_real and any(_is_complex(value.type) for value in values):
        return True
    return any(holds_complex(inner) for node in graph.nodes if node.attrs for inner in inner_graphs(node))


def _is_complex(type: TensorType) -> bool:
    if isinstance(type, TupleType):
        return any(map(_is_complex, type.parts))
    return type.dtype.is_complex


def _interleaved_input(node: Node) -> Node:
    if not node.dtype.is_complex:
        return node
    return input_node(node.name, TensorType((*node.shape, 2), node.dtype.part))


def _interleaved(value: Value) -> Node:
    if isinstance(value, Node):
        return value
    return interleaved(value)


def _flat(values: Iterable[Value]) -> list[Node]:
    """Both parts of each complex value."""
    return [node for value in values for node in (value.nodes if isinstance(value, Parts) else (value,))]


def _flat_types(types: Iterable[TensorType]) -> list[TensorType]:
    return [
        type.with_dtype(type.dtype.part) for type in types for _ in range(2 if type.dtype.is_complex else 1)
    ]


def _width(types: Iterable[TensorType]) -> int:
    return len(_flat_types(types))


class _Walk:
    """The values of a graph by parts, given those of its inputs."""

    def __init__(self, graph: Graph, given: Sequence[Value], transforms: Transforms) -> None:
        self._transforms = transforms
        self._found: dict[Node, Value] = dict(zip(graph.inputs, given, strict=True))
        self._regions: dict[Node, Node] = {}  # loops and branches, rebuilt
        for node in graph.nodes:
            set_location(node.location)
            if isinstance(node.type, TupleType):
                self._regions[node] = self._region(node)
            else:
                self._found[node] = self._value(node)

    def __getitem__(self, node: Node) -> Value:
        return self._found[node]

    def _value(self, node: Node) -> Value:
        if node.op == "item":
            return self._item(node)
        operands = [self._found[operand] for operand in node.operands]
        if node.op in TRANSFORMS:
            return TRANSFORMS[node.op](node, operands, self._transforms)
        if not node.dtype.is_complex and not any(isinstance(operand, Parts) for operand in operands):
            return with_operands(node, tuple(_flat(operands)))
        if node.op not in RULES:
            where = f" (from {node.location})" if node.location else ""
            given = ", ".join(str(operand.type) for operand in node.operands)
            raise DtypeError(f"{node.op}({given}) is not defined for complex numbers{where}")
        return RULES[node.op](node, operands)

    def _item(self, node: Node) -> Value:
        (whole,) = node.operands
        assert isinstance(whole.type, TupleType)
        index = node.attrs["index"]
        first = _width(whole.type.parts[:index])
        found = [build("item", self._regions[whole], index=first + side) for side in range(_width([node.type]))]
        return parts(*found) if node.dtype.is_complex else found[0]

    def _region(self, node: Node) -> Node:
        assert isinstance(node.type, TupleType)
        operands = _flat(self._found[operand] for operand in node.operands)
        attrs = {name: _without_complex(value, self._transforms) for name, value in node.attrs.items()}
        if node.op == "scan":
            carries, sequences = node.attrs["carries"], node.attrs["sequences"]
            types = [operand.type for operand in node.operands]
            attrs["carries"] = _width(types[:carries])
            attrs["sequences"] = _width(types[carries : carries + sequences])
        return make_node(node.op, operands, attrs, tuple_of(_flat_types(node.type.parts)), node.location)


def _without_complex(value: Any, transforms: Transforms) -> Any:
    """An attribute, with graphs that take and give the parts one after the other."""
    if isinstance(value, Graph):
        return _body(value, transforms)
    if isinstance(value, tuple):
        return tuple(_without_complex(each, transforms) for each in value)
    return value


def _body(graph: Graph, transforms: Transforms) -> Graph:
    if not holds_complex(graph):
        return graph
    inputs, given = _inputs_by_part(graph)
    found = _Walk(graph, given, transforms)
    return graph_of(inputs, _flat(found[output] for output in graph.outputs))


def _inputs_by_part(graph: Graph) -> tuple[list[Node], list[Value]]:
    """Inputs for both parts of each complex one, named x.real and x.imag, and the values that they make."""
    inputs: list[Node] = []
    given: list[Value] = []
    for node in graph.inputs:
        if node.dtype.is_complex:
            type = node.type.with_dtype(node.dtype.part)
            pair = [input_node(f"{node.name}.{side}", type) for side in ("real", "imag")]
            given.append(parts(*pair))
            inputs += pair
        else:
            given.append(node)
            inputs.append(node)
    return inputs, given
