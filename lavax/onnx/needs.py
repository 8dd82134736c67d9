"""Which values must be known before a model runs, and which nodes cannot be run: found from the graph alone."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from lavax.base.errors import ONNXError
from lavax.base.quick_dataclasses import dataclass
from lavax.onnx.library import Library
from lavax.onnx.operators.control_flow import collected_outputs, constant_condition
from lavax.onnx.operators.elementwise import unsupported_dtype
from lavax.onnx.reading.graph import Graph, Node
from lavax.onnx.table import PADDED

DEEPEST_FUNCTION = 64  # functions within functions


@dataclass(eq=False)
class Needs:
    """The names of each graph whose values must be known, and the nodes that cannot be run, with the reasons."""

    library: Library
    problems: dict[str, None] = field(default_factory=dict)  # in order, each once
    _names: dict[int, tuple[Graph, set[str]]] = field(default_factory=dict)
    _roots: dict[str, Node] = field(default_factory=dict)  # for which node a name must be known
    _refused: set[str] = field(default_factory=set)
    _depth: int = 0

    def of(self, graph: Graph) -> frozenset[str]:
        """The names in a graph, its own and those it reads around it, whose values must be known."""
        return frozenset(self._names.get(id(graph), (graph, set()))[1])

    def refuse_inputs(self, graph: Graph) -> None:
        """Notes the inputs of element types that no device holds."""
        for given in graph.inputs:
            if given.dtype is not None and (why := unsupported_dtype(given.dtype)):
                self.problems[f"input {given.name!r}: {why}"] = None

    def find(self, graph: Graph, demanded: Iterable[str] = ()) -> set[str]:
        """Goes through a graph backwards from what is demanded of it; the names it needs to know."""
        if self._depth > DEEPEST_FUNCTION:
            raise ONNXError(
                f"onnx.load: function {graph.name!r} lies more than {DEEPEST_FUNCTION} deep, or calls itself"
            )
        self._depth += 1
        names = self._names.setdefault(id(graph), (graph, set()))[1]
        names.update(demanded)
        for node in reversed(graph.nodes):
            names.update(self._of_node(node, names))
        self._depth -= 1
        return names

    def _of_node(self, node: Node, names: set[str]) -> set[str]:
        """The names that a node makes necessary, given those that are needed of its outputs."""
        demanded = [k for k, name in enumerate(node.outputs) if name in names]
        entry = self.library.entry(node)
        if entry is None:
            body = self.library.body(node)
            if body is None:
                self._problem(node, "there is no such operator here")
                return set()
            return self._of_function(node, body, demanded)
        if objection := entry.objection(node):
            self._problem(node, objection)
            return set()
        found = set(entry.known_inputs(node))
        for name in found:
            self._roots.setdefault(name, node)
        if node.operator in _REGIONS and not node.domain:
            return found | _REGIONS[node.operator](self, node, demanded)
        if demanded and not entry.of_shape:
            if not entry.folds:
                self._of_data(node, demanded)
            for name in filter(None, node.inputs):
                found.add(name)
                if (root := self._roots.get(node.outputs[demanded[0]])) is not None:
                    self._roots.setdefault(name, root)
        return found

    def _of_function(self, node: Node, body: Graph, demanded: list[int]) -> set[str]:
        names = self.find(body, [body.outputs[k].name for k in demanded])
        pairs = zip(node.inputs, body.inputs, strict=False)
        return {name for name, own in pairs if name and own.name in names}

    def outer(self, graph: Graph, names: set[str]) -> set[str]:
        """Those of the names that are defined around a graph."""
        return names - graph.own_names

    def _of_data(self, node: Node, demanded: list[int]) -> None:
        """Notes that a node's numbers must be known, but are computed; once for each node that must know them."""
        root = self._roots.get(node.outputs[demanded[0]], node)
        if root.name in self._refused:
            return
        self._refused.add(root.name)
        through = f", through {node}" if root is not node else ""
        hint = "; `load(…, padded=True)` makes it a fixed one" if (root.domain, root.operator) in PADDED else ""
        self._problem(root, f"a shape depends on data{through}{hint}")

    def _problem(self, node: Node, why: str) -> None:
        self.problems[f"{node}: {why}"] = None


def _of_branches(needs: Needs, node: Node, demanded: list[int]) -> set[str]:
    found: set[str] = set()
    for graph in node.graphs:
        names = needs.find(graph, [graph.outputs[k].name for k in demanded])
        found |= needs.outer(graph, names)
    if demanded or _differ(*node.graphs):
        found.add(node.inputs[0])
    return found


def _differ(first: Graph, second: Graph) -> bool:
    """Whether the branches give values that no array can hold both of: sequences, or shapes that differ."""
    for one, other in zip(first.outputs, second.outputs, strict=False):
        if one.is_sequence or one.is_optional or other.is_sequence or other.is_optional:
            return True
        if one.shape is None or other.shape is None:
            continue
        pairs = zip(one.shape, other.shape, strict=False)
        if len(one.shape) != len(other.shape) or any(
            isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs
        ):
            return True
    return False


def _of_loop(needs: Needs, node: Node, demanded: list[int]) -> set[str]:
    body: Graph = node.attributes["body"]
    carried = len(body.outputs) - 1 - collected_outputs(node)
    wanted = {body.outputs[1 + k].name for k in demanded}
    if collected_outputs(node) and not constant_condition(body):
        wanted.add(body.outputs[0].name)
    while True:
        names = needs.find(body, wanted)
        # A carried value that a step must know must be known at the end of the step before, too.
        more = {body.outputs[1 + k].name for k in range(carried) if body.inputs[2 + k].name in names} - wanted
        if not more:
            break
        wanted |= more
    found = needs.outer(body, names)
    found |= {node.inputs[2 + k] for k in range(carried) if body.inputs[2 + k].name in names}
    if wanted or body.inputs[0].name in names:
        found |= {name for name in node.inputs[:2] if name}
    return found


def _of_body(needs: Needs, node: Node, demanded: list[int]) -> set[str]:
    body: Graph = node.attributes["body"]
    names = needs.find(body)
    if demanded or any(given.name in names for given in body.inputs):
        needs._problem(node, "a shape depends on the data that it goes through")
    return needs.outer(body, names)


_REGIONS = {"If": _of_branches, "Loop": _of_loop, "Scan": _of_body, "SequenceMap": _of_body}
