"""The engine of simplification: one forward walk that builds nodes to which no rule applies."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

from lavax.ir.exact_text import exact_text
from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.ir.printer import structural_key
from lavax.passes.build.builder import located, set_location
from lavax.passes.simplify.watching import note

# rule(node): an equal value, or None if the rule does not apply. A rule looks at the node and a few operands behind it,
# never at users.
RewriteRule = Callable[[Node], Node | None]
RewriteRules = Mapping[str, tuple[RewriteRule, ...]]

COMMUTATIVE = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "xor", "equal", "not_equal"})


def _key(node: Node) -> tuple[Any, ...]:
    """Equal for nodes that compute the same from the same operands."""
    operation, operands = OPERATIONS[node.op], node.operands
    if node.op in COMMUTATIVE and id(operands[0]) > id(operands[1]):
        operands = operands[::-1]
    key: tuple[Any, ...] = (node.op, *operands)
    if operation.attributes:
        # Texts tell 0.0 from -0.0, and NaN equals NaN.
        attrs = node.attrs
        key += tuple([exact_text(attrs[name]) if name == "value" else attrs[name] for name in operation.attributes])
        if node.op in _LOOPS:
            key = tuple(_text_of(part) if isinstance(part, Graph) else part for part in key)
    return key + (node.shape, node.dtype.name) if operation.typed else key


_LOOPS = frozenset(("scan", "while"))
# In the texts of bodies that equal no others: what hosts do may have effects, and rules that contain themselves have no
# text.
_ITSELF_ALONE = ("host_call(", '"itself"')


def _text_of(body: Graph) -> str | Graph:
    """Equal for bodies that compute the same."""
    text = structural_key(body)
    return body if any(word in text for word in _ITSELF_ALONE) else text


class _Rewriter:
    """Settled nodes, to which no rule applies: one per key."""

    def __init__(self, rules: RewriteRules, inputs: Iterable[Node]) -> None:
        self._rules = rules
        self._settled = set(inputs)
        self._found: dict[tuple[Any, ...], Node] = {}

    def settle(self, node: Node) -> Node:
        """The settled node of the same value. Recursion is as deep as the nodes that rules build, not as the graph."""
        met = []
        known_settled = self._settled
        while node not in known_settled:
            if not known_settled.issuperset(node.operands):
                node = with_operands(node, tuple([self._operand(operand) for operand in node.operands]))
            key = _key(node)
            known = self._found.get(key)
            if known is not None:
                node = known
                break
            met.append(key)
            simpler = _first(self._rules[node.op], node)
            if simpler is None:
                self._settled.add(node)
            else:
                note(self._rules[node.op], node)
                node = simpler
        for key in met:
            self._found[key] = node
        return node

    def _operand(self, node: Node) -> Node:
        return node if node in self._settled else self.settle(node)


def _settled(graph: Graph, rules: RewriteRules) -> Graph:
    rewriter = _Rewriter(rules, graph.inputs)
    settled = {node: node for node in graph.inputs}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            operands = tuple([settled[operand] for operand in node.operands])
            settled[node] = rewriter.settle(with_operands(node, operands))
    return graph_of(graph.inputs, [settled[output] for output in graph.outputs])


def _first(rules: Iterable[RewriteRule], node: Node) -> Node | None:
    """The result of the first rule that applies to the node."""
    for rule in rules:
        simpler = rule(node)
        if simpler is not None:
            return simpler
    return None


def _merged(graph: Graph, merging: RewriteRules) -> Graph | None:
    """`graph` with nodes merged into operands that have no other user; None if there are none to merge."""
    uses = Counter(chain.from_iterable(node.operands for node in graph.nodes))
    uses.update(graph.outputs)
    candidates = [node for node in graph.nodes if node.op in merging and uses[node.operands[0]] == 1]
    mergeable = {node for node in candidates if _first(merging[node.op], node) is not None}
    if not mergeable:
        return None
    built = {node: node for node in graph.inputs}
    with located():
        for node in graph.nodes:
            built[node] = with_operands(node, tuple([built[operand] for operand in node.operands]))
            if node in mergeable:
                set_location(node.location)
                note(merging[node.op], built[node])
                built[node] = _first(merging[node.op], built[node]) or built[node]
    return graph_of(graph.inputs, [built[output] for output in graph.outputs])


def rewrite(graph: Graph, rules: RewriteRules, merging: RewriteRules) -> Graph:
    """`graph` with the rules applied until none applies, and without dead nodes.

    `rules` has an entry for each operation. The rules of `merging` would repeat work if the operand had other users, so
    they apply only to nodes that are the only user of their first operand, which is known when all else is done.
    """
    graph = _settled(graph, rules)
    while (merged := _merged(graph, merging)) is not None:
        graph = _settled(merged, rules)
    return graph
