"""The only intermediate representation: a graph of nodes in static single assignment form."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import count
from types import MappingProxyType
from typing import Any

from lavax.base.kept import kept
from lavax.base.often_made import often_made
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import DType, TensorType

INPUT = "input"
_NO_ATTRIBUTES: Mapping[str, Any] = MappingProxyType({})


@often_made(slots=True)
class Node:
    """One value and the operation that computes it; compared by identity.

    A graph's inputs are the nodes of the operation `input`.
    """

    op: str
    operands: tuple[Node, ...]
    attrs: Mapping[str, Any]
    type: TensorType
    name: str = ""  # of an input
    location: str | None = None  # the user's line, "file:line"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    def __repr__(self) -> str:
        return f"<{self.name or self.op} {self.type}>"


@dataclass(frozen=True, eq=False)
class Graph:
    """Inputs, nodes in topological order, and outputs."""

    inputs: tuple[Node, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Node, ...]
    _text: list[str] = field(default_factory=list, repr=False)
    _structure: list[str] = field(default_factory=list, repr=False)  # printer.structural_key

    @kept
    def users(self) -> Mapping[Node, Sequence[Node]]:
        """For each operand, the nodes that read it, each once and in order; nothing for other values."""
        users: dict[Node, list[Node]] = {}
        for node in self.nodes:
            operands: Iterable[Node] = node.operands
            if len(node.operands) > 1:
                operands = dict.fromkeys(operands)
            for operand in operands:
                readers = users.get(operand)
                if readers is None:
                    users[operand] = [node]
                else:
                    readers.append(node)
        return users

    @kept
    def position(self) -> Mapping[Node, int]:
        """The number of each node in order; none for the inputs."""
        return {node: position for position, node in enumerate(self.nodes)}

    def __str__(self) -> str:
        from lavax.ir.printer import print_graph

        if not self._text:
            self._text.append(print_graph(self))
        return self._text[0]

    def to_dot(self) -> str:
        """The graph in the language of Graphviz, with the graphs of loops and branches as clusters."""
        from lavax.ir.dot import dot_text

        return dot_text(self)

    def to_svg(self, *, graphviz: bool = False) -> str:
        """A picture of the graph as SVG, drawn by lavax, or by Graphviz if that is asked for.

        Constants stand as numbers where they are read. Raises RuntimeError if Graphviz is asked for and not installed.
        """
        from lavax.ir.dot import svg_by_graphviz
        from lavax.ir.drawing import svg_of

        return svg_by_graphviz(self) if graphviz else svg_of(self)


class LaterGraph:
    """A graph in an attribute that is built on first use, for a rule that contains itself.

    `text` is what is printed: ITSELF for the rule that it stands in, LATER for one that the text does not hold.
    """

    __slots__ = ("_found", "_make", "text")
    ITSELF, LATER = "itself", "later"

    def __init__(self, make: Callable[[], Graph], text: str) -> None:
        self._make = make
        self._found: Graph | None = None
        self.text = text

    @property
    def graph(self) -> Graph:
        if self._found is None:
            self._found = self._make()
        return self._found


def require_graph(function: str, graph: object) -> None:
    """Raises TypeError, which names `function`, if `graph` is not a Graph."""
    if not isinstance(graph, Graph):
        raise TypeError(f"{function} takes a Graph, such as lavax.trace(f)(*args), got {graph!r:.80}")


def input_node(name: str, type: TensorType) -> Node:
    return Node(INPUT, (), _NO_ATTRIBUTES, type, name)


def further_inputs(prefix: str, types: Iterable[TensorType], beside: Iterable[Node]) -> list[Node]:
    """Inputs named prefix0, prefix1, …, except names of the inputs `beside` them, because names in a graph differ."""
    taken = {node.name for node in beside}
    names = (name for number in count() if (name := f"{prefix}{number}") not in taken)
    return [input_node(next(names), type) for type in types]


def make_node(
    op: str,
    operands: Iterable[Node] = (),
    attrs: Mapping[str, Any] = _NO_ATTRIBUTES,
    type: TensorType | None = None,
    location: str | None = None,
) -> Node:
    """A node whose type follows from the operation's rule.

    `type` is given for operations whose result type is a choice (constant, iota, cast, reshape, broadcast).
    Raises ShapeError or DtypeError if the operands do not fit.
    """
    operands, operation = tuple(operands), OPERATIONS[op]
    if operation.defaults and len(attrs) < len(operation.attributes):
        attrs = {**operation.defaults, **attrs}
    return Node(op, operands, attrs, operation.infer([node.type for node in operands], attrs, type), "", location)


def with_operands(node: Node, operands: tuple[Node, ...]) -> Node:
    """The same operation on other operands of the same types."""
    if node.operands == operands:  # nodes are compared by identity
        return node
    return Node(node.op, operands, node.attrs, node.type, node.name, node.location)


def topological(outputs: Iterable[Node], stop: Iterable[Node] = ()) -> list[Node]:
    """All nodes that `outputs` depend on, operands first, without inputs, `stop` and nodes that only `stop` needs."""
    done: set[Node] = set(stop)
    order: list[Node] = []
    for output in outputs:
        if output in done or output.op == INPUT:
            continue
        path, waiting = [output], [iter(output.operands)]
        while path:
            for operand in waiting[-1]:
                if operand not in done and operand.op != INPUT:
                    path.append(operand)
                    waiting.append(iter(operand.operands))
                    break
            else:
                waiting.pop()
                done.add(path[-1])
                order.append(path.pop())
    return order


def graph_of(inputs: Iterable[Node], outputs: Iterable[Node]) -> Graph:
    """The graph from `inputs` to `outputs` with only the nodes that are needed."""
    inputs, outputs = tuple(inputs), tuple(outputs)
    return Graph(inputs, tuple(topological(outputs, stop=inputs)), outputs)


def substitute(graph: Graph, replacements: Mapping[Node, Node]) -> dict[Node, Node]:
    """Rebuilds the graph's nodes over `replacements` of its inputs; returns old node -> new node."""
    found = dict(replacements)
    for node in graph.nodes:
        found[node] = with_operands(node, tuple([found[operand] for operand in node.operands]))
    return found
