"""Operations that kernels have no form for, as others: a table, one entry per operation, node -> node.

Gradients have been taken, so stop_gradient goes and a known value takes the place of what it stands for.
"""

from __future__ import annotations

from collections.abc import Callable

from lavax.ir.graph import Graph, Node, graph_of, topological, with_operands
from lavax.ir.monoids import REDUCTIONS
from lavax.ir.ops.attention import PROJECTED
from lavax.passes.build.builder import located, set_location, zeros
from lavax.passes.prepare.attention_projections import prepare_projected
from lavax.passes.prepare.convolutions import prepare_convolution, read_channels_first
from lavax.passes.prepare.decompose import RULES as DECOMPOSE
from lavax.passes.prepare.decompose.attention_parts import RULES as PARTS
from lavax.passes.prepare.decompose.counted_places import RULES as COUNTED_PLACES
from lavax.passes.prepare.decompose.cumulative import RULES as CUMULATIVE
from lavax.passes.prepare.decompose.few_queries import prepare_attention
from lavax.passes.prepare.decompose.fourier import RULES as FOURIER
from lavax.passes.prepare.decompose.jacobi import RULES as JACOBI
from lavax.passes.prepare.decompose.joining import MOST_JOINED, joined
from lavax.passes.prepare.decompose.linear_algebra import RULES as LINEAR_ALGEBRA
from lavax.passes.prepare.decompose.scatter import RULES as SCATTER
from lavax.passes.prepare.decompose.selection import RULES as SELECTION
from lavax.passes.prepare.decompose.sorting import RULES as SORTING
from lavax.passes.prepare.decompose.strided_sums import strided_sum_in_phases
from lavax.passes.prepare.products import prepare_product, with_sum_in_parts
from lavax.passes.prepare.reductions import prepare_position, prepare_reduction
from lavax.passes.target.target import Target


def _prepare_stop_gradient(node: Node) -> Node:
    return node.operands[0]


def _prepare_known_value(node: Node) -> Node:
    return node.operands[1]


def _prepare_concatenate(node: Node) -> Node:
    return node if len(node.operands) <= MOST_JOINED else joined(node.operands, node.attrs["axis"])


def _prepare_sum(node: Node, target: Target) -> Node:
    in_phases = strided_sum_in_phases(node) or node
    return prepare_reduction(in_phases, target) if in_phases.op == "sum" else in_phases


def _with_long_sums_in_parts(rule: Callable[[Node, Target], Node]) -> Callable[[Node, Target], Node]:
    """The rule of an operation, and then the rules of the sums that it has made."""

    def rewritten(node: Node, target: Target) -> Node:
        made = rule(node, target)
        found = {node: node}
        for each in topological([made], [node, *node.operands]):
            rebuilt = with_operands(each, tuple(found.get(operand, operand) for operand in each.operands))
            found[each] = _OF_SUMS[rebuilt.op](rebuilt, target) if rebuilt.op in _OF_SUMS else rebuilt
        return found.get(made, made)

    return rewritten


_OF_SUMS: dict[str, Callable[[Node, Target], Node]] = {
    "dot": with_sum_in_parts,
    **dict.fromkeys(REDUCTIONS, prepare_reduction),
}

ON_ANY_DEVICE: dict[str, Callable[[Node], Node]] = {
    "stop_gradient": _prepare_stop_gradient,
    "known_value": _prepare_known_value,
    "concatenate": _prepare_concatenate,
    "argmax": prepare_position,
    "argmin": prepare_position,
    **DECOMPOSE,
}

# Operations whose best form depends on the device.
BY_TARGET: dict[str, Callable[[Node, Target], Node]] = {
    "attention": prepare_attention,
    **dict.fromkeys(PROJECTED, prepare_projected),
    "dot": prepare_product,
    "conv": prepare_convolution,
    **dict.fromkeys(REDUCTIONS, prepare_reduction),
    "sum": _prepare_sum,
    **COUNTED_PLACES,
    **CUMULATIVE,
    **FOURIER,
    **{op: _with_long_sums_in_parts(rule) for op, rule in {**JACOBI, **LINEAR_ALGEBRA}.items()},
    **PARTS,
    **SCATTER,
    **SELECTION,
    **SORTING,
}


def rewrite_nodes(graph: Graph, target: Target) -> Graph:
    """The graph with each node as its entry says; a value without elements becomes a constant."""
    channels_first = read_channels_first(graph)
    found = {node: node if node.type.size else zeros(node.type) for node in graph.inputs}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            if node.type.size == 0:
                found[node] = zeros(node.type)
                continue
            rebuilt = with_operands(node, tuple([found[operand] for operand in node.operands]))
            is_turned = node in channels_first
            found[node] = prepare_convolution(rebuilt, target, True) if is_turned else _rewritten(rebuilt, target)
    found.update((node, node) for node in graph.inputs)  # an input that is returned stays that input
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _rewritten(node: Node, target: Target) -> Node:
    if node.op in BY_TARGET:
        return BY_TARGET[node.op](node, target)
    return ON_ANY_DEVICE[node.op](node) if node.op in ON_ANY_DEVICE else node
