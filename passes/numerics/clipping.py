"""Compares the clipped value instead of the value before clipping, if the result is the same.

relu keeps x if x > 0, and its derivative tests x > 0 again. Several nodes then read x as well as relu(x), and only one
of them is stored: x, from which every product that reads relu(x) computes it again in each tile. But relu(x) > 0 is
equivalent to x > 0. If that is tested instead, only relu reads x, and relu(x) alone is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lavax.ir.graph import INPUT, Graph, Node, graph_of, with_operands
from lavax.passes.build.builder import located, set_location

# Comparisons with a bound that give the same result for max(value, bound), or min(value, bound), as for the value.
_OF_LARGER, _OF_SMALLER = frozenset(("greater", "less_equal")), frozenset(("less", "greater_equal"))
_OF_EXTREMUM = {"maximum": _OF_LARGER, "minimum": _OF_SMALLER}
# The same for `where`, by its comparison with the bound, and whether it chooses the bound if the comparison is true.
_OF_CHOICE = {
    ("less_equal", True): _OF_LARGER,
    ("greater", False): _OF_LARGER,
    ("greater_equal", True): _OF_SMALLER,
    ("less", False): _OF_SMALLER,
}


def comparing_clipped_values(graph: Graph) -> Graph:
    """The graph in which comparisons of a value with a bound use the value clipped at that bound, if nothing else
    reads the value. The results stay the same, including for NaN."""
    clips = dict(_clips(graph))
    if not clips:
        return graph
    found = {node: node for node in graph.inputs}
    asked: dict[Node, Node] = {}  # comparison -> its replacement for all readers except the clip
    with located():
        for node in graph.nodes:
            set_location(node.location)
            if node not in found:
                found[node] = with_operands(node, tuple(asked.get(x, found[x]) for x in node.operands))
            if node in clips:
                clip = clips[node]
                if clip not in found:
                    found[clip] = with_operands(clip, tuple(found[x] for x in clip.operands))
                asked[node] = with_operands(node, (found[clip], found[node.operands[1]]))
    return graph_of(graph.inputs, [asked.get(output, found[output]) for output in graph.outputs])


def _clips(graph: Graph) -> Iterator[tuple[Node, Node]]:
    """Comparisons, each with the clip of the value that it compares."""
    found = [(node, _clipped(node)) for node in graph.nodes if node.op == "where" or node.op in _OF_EXTREMUM]
    clips = [(node, clipped) for node, clipped in found if clipped is not None]
    users, outputs = graph.users if clips else {}, frozenset(graph.outputs)
    for node, (value, bound, same) in clips:
        others = [user for user in users[value] if user is not node]
        compared = all(user.op in same and user.operands == (value, bound) for user in others)
        if compared and value not in outputs and _are_asked_by_others(others, node, users, outputs):
            yield from ((other, node) for other in others)


def _clipped(node: Node) -> tuple[Node, Node, frozenset[str]] | None:
    """The value that a clip clips, the bound, and the comparisons whose result it preserves."""
    if node.op in _OF_EXTREMUM:
        value, bound = node.operands
        same = _OF_EXTREMUM[node.op]
    elif node.op == "where":
        condition, chosen, other = node.operands
        if condition.op not in _OF_LARGER | _OF_SMALLER:
            return None
        value, bound = condition.operands
        if (chosen, other) not in ((bound, value), (value, bound)):
            return None
        same = _OF_CHOICE.get((condition.op, chosen is bound), frozenset())
    else:
        return None
    if not same or bound.op != "constant" or value.op in (INPUT, "constant") or value.dtype.kind == "bool":
        return None
    return (value, bound, same) if bound.attrs["value"] == bound.attrs["value"] else None


def _are_asked_by_others(
    comparisons: Sequence[Node], clip: Node, users: Mapping[Node, Sequence[Node]], outputs: frozenset[Node]
) -> bool:
    return any(
        comparison in outputs or any(user is not clip for user in users.get(comparison, ()))
        for comparison in comparisons
    )
