"""A graph as boxes and arrows: what its pictures have in common."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Graph, Node
from lavax.ir.operation import OPERATIONS
from lavax.ir.printer import format_attribute, shown_attributes, value_names

_MOST_CHARACTERS = 44  # of a line; longer ones are cut


@dataclass(frozen=True, eq=False)
class Box:
    """A value: its `lines` of text, its kind (a family of operations, "input" or "output"), and its inner graphs.

    `mark` is a word at its corner, such as the kernel that computes it.
    """

    lines: tuple[str, ...]
    kind: str
    location: str = ""
    mark: str = ""
    inner: tuple[tuple[str, Picture], ...] = ()


@dataclass(frozen=True, eq=False)
class Picture:
    """Boxes in topological order, and arrows between them by their numbers."""

    boxes: tuple[Box, ...]
    arrows: tuple[tuple[int, int], ...]

    @property
    def count(self) -> int:
        """The number of boxes, with those of inner graphs."""
        return len(self.boxes) + sum(picture.count for box in self.boxes for _, picture in box.inner)


@dataclass
class _Drawn:
    """The boxes so far, and the number of each value's box."""

    boxes: list[Box] = field(default_factory=list)
    arrows: dict[tuple[int, int], None] = field(default_factory=dict)
    numbers: dict[Node, int] = field(default_factory=dict)

    def add(self, box: Box, operands: tuple[Node, ...] = (), node: Node | None = None) -> None:
        number = len(self.boxes)
        self.boxes.append(box)
        self.arrows.update(((self.numbers[operand], number), None) for operand in operands if operand in self.numbers)
        if node is not None:
            self.numbers[node] = number


def picture_of(graph: Graph, marks: Mapping[Node, str] | None = None) -> Picture:
    """The picture of a graph: inputs, operations, and a box for what it returns.

    Constants have no boxes: their numbers stand where they are read. `marks` are words for the boxes of nodes.
    """
    names, found = value_names(graph), _Drawn()
    shown = {node: _number(node) if node.op == "constant" else name for node, name in names.items()}
    for node in graph.inputs:
        found.add(Box((node.name, str(node.type)), INPUT), (), node)
    for node in graph.nodes:
        if node.op != "constant":
            mark = marks.get(node, "") if marks else ""
            found.add(_box(node, shown, mark), node.operands, node)
    outputs = ", ".join(shown[output] for output in graph.outputs)
    found.add(Box((_cut(f"return {outputs}".rstrip()),), "output"), graph.outputs)
    return Picture(tuple(found.boxes), tuple(found.arrows))


def _box(node: Node, shown: Mapping[Node, str], mark: str) -> Box:
    inner = dict(_inner_graphs(node))
    attributes = [key for key in shown_attributes(node) if not any(name.split()[0] == key for name in inner)]
    call = f"{shown[node]} = {node.op}({', '.join(shown[operand] for operand in node.operands)})"
    settings = " ".join(f"{key}={format_attribute(node.attrs[key])}" for key in attributes)
    lines = [call, *([settings] if settings else []), str(node.type)]
    pictures = tuple((name, picture_of(graph)) for name, graph in inner.items())
    kind = OPERATIONS[node.op].family
    return Box(tuple(map(_cut, lines)), kind, node.location or "", mark, pictures)


def _inner_graphs(node: Node) -> Iterator[tuple[str, Graph]]:
    """The graphs in a node's attributes, such as the body of a loop, by the attribute's name."""
    for key, value in node.attrs.items():
        if isinstance(value, Graph):
            yield key, value
        elif isinstance(value, tuple) and value and all(isinstance(part, Graph) for part in value):
            yield from ((f"{key} {number}", part) for number, part in enumerate(value))


def _number(node: Node) -> str:
    return format_attribute(node.attrs["value"])


def _cut(line: str) -> str:
    return line if len(line) <= _MOST_CHARACTERS else f"{line[: _MOST_CHARACTERS - 1]}…"
