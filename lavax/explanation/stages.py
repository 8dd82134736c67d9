"""The graph of a function before and after each pass, with the lines that the pass changed."""
from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from lavax.backends.vulkan.backend import LoweredGraph
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node
from lavax.ir.printer import format_node, value_names
from lavax.passes.prepare.pipeline import PASSES, stages

_SUMMARIES = {
    "traced": "as the function wrote it, with its derivatives",
    "optimized": "simplified: constants folded, equal values merged, identities applied",
    **{step.name: step.summary for step in PASSES},
}

_NUMBER = re.compile(r"%\d+")  # of values inside loops and branches
_MOST_PAIRS = 1 << 20  # of lines that are compared in order


@dataclass(frozen=True)
class Line:
    """A line of a graph's text: kept (" "), new ("+"), or one that the pass removed ("-")."""

    sign: str
    text: str


@dataclass(frozen=True, eq=False)
class Stage:
    """The graph after a pass; `lines` compare it with the graph before."""

    name: str
    summary: str
    graph: Graph
    lines: tuple[Line, ...]

    @property
    def added(self) -> int:
        """The number of new lines."""
        return sum(line.sign == "+" for line in self.lines)

    @property
    def removed(self) -> int:
        """The number of lines that are gone."""
        return sum(line.sign == "-" for line in self.lines)

    @property
    def changes(self) -> str:
        """What the pass did, in a few words."""
        return f"+{self.added} −{self.removed}" if self.added or self.removed else "no change"


def stages_of(traced: Graph, program: LoweredGraph) -> tuple[Stage, ...]:
    """The graph as traced, simplified, and after each pass that prepares it for kernels."""
    graphs = [("traced", traced), *stages(program.graph, program.target)]
    found = [Stage("traced", _SUMMARIES["traced"], traced, tuple(Line(" ", line) for line in _texts(traced)))]
    for (_, before), (name, after) in pairwise(graphs):
        found.append(Stage(name, _SUMMARIES[name], after, tuple(_compared(before, after))))
    return tuple(found)


def _compared(before: Graph, after: Graph) -> Iterator[Line]:
    """The lines of both graphs, matched by what they compute from what: their numbers change with every pass."""
    old, new, old_keys, new_keys = _texts(before), _texts(after), _keys(before), _keys(after)
    if old_keys == new_keys:
        return (Line(" ", line) for line in new)
    compared = _in_order if len(old) * len(new) <= _MOST_PAIRS else _by_counts
    return compared(old, new, old_keys, new_keys)


def _in_order(old: list[str], new: list[str], old_keys: list[str], new_keys: list[str]) -> Iterator[Line]:
    matcher = difflib.SequenceMatcher(None, old_keys, new_keys, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            yield from (Line(" ", line) for line in new[j1:j2])
        else:
            yield from (Line("-", line) for line in old[i1:i2])
            yield from (Line("+", line) for line in new[j1:j2])


def _by_counts(old: list[str], new: list[str], old_keys: list[str], new_keys: list[str]) -> Iterator[Line]:
    """For long graphs, in linear time: lines are matched wherever they stand; removed ones come last."""
    left = Counter(old_keys)
    for line, key in zip(new, new_keys, strict=True):
        yield Line(" " if left[key] > 0 else "+", line)
        left[key] -= 1
    for line, key in zip(reversed(old), reversed(old_keys), strict=True):
        if left[key] > 0:
            left[key] -= 1
            yield Line("-", line)


def _texts(graph: Graph) -> list[str]:
    """The lines of the graph's text, also those of the graphs inside loops and branches."""
    names = value_names(graph)
    outputs = ", ".join(names[output] for output in graph.outputs)
    return [*_lines_of_nodes(graph, names), f"return {outputs}".rstrip()]


def _keys(graph: Graph) -> list[str]:
    """Each line with the operations of its operands in place of their numbers."""
    names = {node: node.name or node.op for node in (*graph.inputs, *graph.nodes)}
    return [*(_NUMBER.sub("%", line) for line in _lines_of_nodes(graph, names)), f"return {_operations(graph.outputs)}"]


def _lines_of_nodes(graph: Graph, names: dict[Node, str]) -> Iterator[str]:
    for node in graph.nodes:
        yield from format_node(node, names).split("\n")


def _operations(nodes: Sequence[Node]) -> str:
    return ", ".join(node.name or node.op for node in nodes)
