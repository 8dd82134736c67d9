"""Which values depend on others, seen through branches and loops result by result."""
from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from lavax.ir.graph import Graph, Node, topological
from lavax.passes.build.control_flow import parts_of

# rule(node, whether each operand depends): whether each result does.
_DependenceRule = Callable[[Node, Sequence[bool]], list[bool]]


def depends_on(results: Sequence[Node], sources: Collection[Node], stop: Collection[Node]) -> bool:
    """Whether a change of `sources` may change one of `results`; nodes in `stop` are fixed."""
    stop = set(stop) - set(sources)
    dependent = dependent_nodes(topological(results, stop=(*stop, *sources)), set(sources))
    return not dependent.isdisjoint(results)


def dependent_nodes(nodes: Sequence[Node], sources: set[Node]) -> set[Node]:
    """The nodes that depend on `sources`, which are among them."""
    found = set(sources)
    parts: dict[Node, list[bool]] = {}
    for node in nodes:
        reads = [operand in found for operand in node.operands]
        if node.op in _RULES and any(reads):
            parts[node] = _RULES[node.op](node, reads)
            reads = parts[node]
        elif node.op == "item" and node.operands[0] in parts:
            reads = [parts[node.operands[0]][node.attrs["index"]]]
        elif node.op == "barrier":  # has the value of its first operand, and only waits for the others
            reads = reads[:1]
        if any(reads):
            found.add(node)
    return found


def _outputs(body: Graph, reads: Sequence[bool]) -> list[bool]:
    found = dependent_nodes(body.nodes, {node for node, is_read in zip(body.inputs, reads, strict=True) if is_read})
    return [output in found for output in body.outputs]


def _switch(node: Node, reads: Sequence[bool]) -> list[bool]:
    if reads[0]:
        return [True] * len(parts_of(node))
    of_branches = [_outputs(branch, reads[1:]) for branch in node.attrs["branches"]]
    return [any(of_result) for of_result in zip(*of_branches, strict=True)]


def carried(body: Graph, reads: Sequence[bool], carries: int) -> list[bool]:
    """Whether the body's inputs depend in some turn."""
    while True:
        after = [*map(max, reads, _outputs(body, reads)[:carries]), *reads[carries:]]
        if after == list(reads):
            return after
        reads = after


def _while(node: Node, reads: Sequence[bool]) -> list[bool]:
    body, carries = node.attrs["body"], len(parts_of(node))
    reads = carried(body, reads, carries)
    return [True] * carries if _outputs(node.attrs["condition"], reads)[0] else reads[:carries]


def _scan(node: Node, reads: Sequence[bool]) -> list[bool]:
    body, carries = node.attrs["body"], node.attrs["carries"]
    reads = carried(body, reads, carries)
    return [*reads[:carries], *_outputs(body, reads)[carries:]]


# A loop may have no turns: what its carries start from counts in `_while` and `_scan` too.
_RULES: dict[str, _DependenceRule] = {
    "switch": _switch,
    "while": _while,
    "scan": _scan,
    "checkpoint": lambda node, reads: _outputs(node.attrs["body"], reads),
    "custom_vmap": lambda node, reads: _outputs(node.attrs["body"], reads),
}
