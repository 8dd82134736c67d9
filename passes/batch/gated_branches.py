"""Branches of which some elements of a batch ask nothing: their gradients stay those of the elements that do.

Where a predicate differs between the elements, all branches are computed and results selected. An element that does not
take a branch gives it a cotangent of zero; an infinite derivative makes NaN of it, and in an array that is the same for
all elements, such as weights, this one NaN would be the sum's. So a branch gets one more input, whether it is taken,
and values that are the same for all are watched by it where they meet those that differ. Only gradients are: arrays get
no copy for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, further_inputs, graph_of, make_node, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import TensorType, TupleType, bool_
from lavax.passes.build.builder import broadcast, build, where, zeros

_FLAG = TensorType((), bool_)
# Operations with large operands, whose gradients are sums of products of cotangents and other operands: these stay as
# they are, and the cotangents and the other operands have none of elements that do not take the branch.
_KEPT = frozenset(("attention", "conv", "dot", "gather"))
_SOLVES = frozenset(("linear_solve", "triangular_solve"))
_SOURCES = frozenset(("constant", "iota"))
# What gives a cotangent of zero if it gets one, whatever its operand.
_KEEPS_ZEROS = frozenset(("add", "barrier", "cast", "gather", "item", "negate", "stop_gradient", "subtract", "sum"))


@dataclass(frozen=True)
class Gated:
    """A branch with one more input, whether the element takes it. `steep` says for each other input whether it is the
    same for all elements, and computed with before it meets values that differ: its gradient must be watched by
    whether any element takes the branch."""

    graph: Graph
    steep: tuple[bool, ...]


@dataclass(frozen=True, eq=False)
class _Walk:
    taken: Node
    found: dict[Node, Node]
    differing: set[Node]  # nodes of the old graph
    steep: set[Node] = field(default_factory=set)  # of the old graph: read by what may make NaN of zero
    carried: dict[Node, list[bool]] = field(default_factory=dict)  # by loop: which carried values differ


def gated(graph: Graph, differs: Sequence[bool], results: Sequence[bool] | None = None) -> Gated:
    """`graph`, whose inputs differ between elements as said, with gradients of elements that take it alone.

    `results` says which outputs of a graph within a branch differ where they are used: an output that is the same for
    all is then watched, and otherwise may get a cotangent that is no number from what is computed of it, as that of a
    loop's next turn. Those of a branch itself are selected.
    """
    (taken,) = further_inputs("taken", [_FLAG], graph.inputs)
    differing = {node for node, flag in zip(graph.inputs, differs, strict=True) if flag}
    walk = _Walk(taken, {node: node for node in graph.inputs}, differing)
    for node in graph.nodes:
        operands = [walk.found[operand] for operand in node.operands]
        flags = [operand in differing for operand in node.operands]
        if any(flags):
            walk.found[node] = _RULES.get(node.op, _operation)(node, operands, flags, walk)
            if _differs(node, walk):
                differing.add(node)
        else:
            walk.found[node] = with_operands(node, tuple(operands))
    outputs = [walk.found[output] for output in graph.outputs]
    for number, (output, used) in enumerate(zip(graph.outputs, results or [], strict=False)):
        if output not in differing and used:
            outputs[number] = watched(outputs[number], taken)
        elif output not in differing:
            walk.steep.add(output)
    for node in reversed(graph.nodes):
        if node not in differing and (node in walk.steep or not _keeps_zeros(node)):
            walk.steep.update(node.operands)
    steep = tuple(node in walk.steep and not flag for node, flag in zip(graph.inputs, differs, strict=True))
    return Gated(graph_of([*graph.inputs, taken], outputs), steep)


def _differs(node: Node, walk: _Walk) -> bool:
    """Whether a node with an operand that differs does, too: all do but results of loops."""
    carried = walk.carried.get(node.operands[0], []) if node.op == "item" else []
    index = node.attrs["index"] if carried else 0
    return index >= len(carried) or carried[index]


def watched(x: Node, taken: Node) -> Node:
    """`x`, whose gradient reaches it where `taken` holds, which has the first axes of `x`."""
    if not x.dtype.is_inexact:
        return x
    return where(spread(taken, x), x, build("stop_gradient", x))


def spread(taken: Node, x: Node) -> Node:
    """The flags of `taken`, which has the first axes of `x`, for each element of `x`."""
    rank = taken.type.rank
    return taken if x.type.rank == rank else broadcast(taken, x.shape, range(rank))


def _keeps_zeros(node: Node) -> bool:
    return node.op in _KEEPS_ZEROS or OPERATIONS[node.op].family == "movement"


def _operation(node: Node, operands: list[Node], flags: list[bool], walk: _Walk) -> Node:
    if not isinstance(node.type, TupleType) and not node.dtype.is_inexact:
        return with_operands(node, tuple(operands))
    if node.op not in _KEPT and (node.op not in _SOLVES or flags[0]):
        return with_operands(node, tuple(_own(operands, flags, walk.taken)))
    if all(flag or not operand.dtype.is_inexact for operand, flag in zip(operands, flags, strict=True)):
        return with_operands(node, tuple(operands))
    others = [_or_zero(x, walk.taken) if flag else x for x, flag in zip(operands, flags, strict=True)]
    return watched(with_operands(node, tuple(others)), walk.taken)


def _own(operands: Sequence[Node], flags: Sequence[bool], taken: Node) -> list[Node]:
    """The operands, of which those that are the same for all are watched for each element."""
    return [x if flag or x.op in _SOURCES else watched(x, taken) for x, flag in zip(operands, flags, strict=True)]


def _or_zero(x: Node, taken: Node) -> Node:
    return where(spread(taken, x), x, zeros(x.type)) if x.dtype.is_inexact else x


def _as_it_is(node: Node, operands: list[Node], flags: list[bool], walk: _Walk) -> Node:
    return with_operands(node, tuple(operands))


def _switch(node: Node, operands: list[Node], flags: list[bool], walk: _Walk) -> Node:
    """An element that does not take the branch may choose any branch within: what is steep in one of them is watched
    for each element, because whether any element takes both is known in neither."""
    found = [gated(branch, flags[1:], _all_of(branch)) for branch in node.attrs["branches"]]
    steep = [False, *(any(column) for column in zip(*(branch.steep for branch in found), strict=True))]
    if flags[0] and any(steep):
        own = _own(operands, [not flag for flag in steep], walk.taken)
        return _switch(node, own, [a or b for a, b in zip(flags, steep, strict=True)], walk)
    return _holding(node, operands, walk, {"branches": tuple(branch.graph for branch in found)}, steep)


def _checkpoint(node: Node, operands: list[Node], flags: list[bool], walk: _Walk) -> Node:
    body = gated(node.attrs["body"], flags, _all_of(node.attrs["body"]))
    return _holding(node, operands, walk, {"body": body.graph}, body.steep)


def _scan(node: Node, operands: list[Node], flags: list[bool], walk: _Walk) -> Node:
    body, carries = node.attrs["body"], node.attrs["carries"]
    walk.carried[node] = carried = _differing_carries(body, flags, carries)
    keep = [flag or not later for flag, later in zip(flags, carried, strict=False)]
    before = _own(operands[:carries], keep, walk.taken)
    step = gated(body, [*carried, *flags[carries:]], [*carried, *_all_of(body)[carries:]])
    steep = [*(not flag for flag in carried), *step.steep[carries:]]
    return _holding(node, [*before, *operands[carries:]], walk, {"body": step.graph}, steep)


def _all_of(graph: Graph) -> list[bool]:
    return [True] * len(graph.outputs)


def _while(node: Node, operands: list[Node], flags: list[bool], walk: _Walk) -> Node:
    """As it is: it has no gradients but in the direction of the computation, where nothing is added up."""
    body = node.attrs["body"]
    walk.carried[node] = _differing_carries(body, flags, len(body.outputs))
    return with_operands(node, tuple(operands))


def _holding(
    node: Node, operands: Sequence[Node], walk: _Walk, graphs: dict[str, object], steep: Sequence[bool]
) -> Node:
    """The node with gated graphs, which get whether the branch is taken as the last operand."""
    walk.steep.update(operand for operand, flag in zip(node.operands, steep, strict=True) if flag)
    return make_node(node.op, (*operands, walk.taken), {**node.attrs, **graphs}, node.type, node.location)


def _differing_carries(body: Graph, flags: Sequence[bool], carries: int) -> list[bool]:
    """Which carried values differ between elements after some turn, if the operands do as said."""
    found = list(flags)
    while True:
        differing = {node for node, flag in zip(body.inputs, found, strict=True) if flag}
        for node in body.nodes:
            if not differing.isdisjoint(node.operands):
                differing.add(node)
        after = [flag or output in differing for flag, output in zip(found, body.outputs[:carries], strict=False)]
        if after == found[:carries]:
            return after
        found[:carries] = after


_RULES: dict[str, Callable[[Node, list[Node], list[bool], _Walk], Node]] = {
    "item": _as_it_is,
    "switch": _switch,
    "while": _while,
    "checkpoint": _checkpoint,
    "scan": _scan,
}
