"""Forward mode: a walk over a graph that computes the tangent of each value.

There is no second table of derivatives: the gradient rule of an operation is linear in the cotangent, and its
transpose is the tangent rule. Operations that are linear, or linear in each operand, do not need even that.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from lavax.ir.graph import Graph, Node, further_inputs, graph_of, input_node, topological, with_operands
from lavax.ir.ops.attention import OPERANDS as ATTENTION
from lavax.passes.build.attention import composition
from lavax.passes.build.builder import add, add_to, build, is_zero, located, precision_of_gradient, set_location, zeros
from lavax.passes.differentiate.forward_control_flow import TANGENT_RULES
from lavax.passes.differentiate.reverse import backward, chosen_inputs, with_kept_values
from lavax.passes.differentiate.rules import NOT_DIFFERENTIABLE, RULES
from lavax.passes.differentiate.values_of_rules import has_rules, with_values_of_rules

Tangents = Sequence[Node | None]  # of a node's operands; None if an operand has none

# Linear in all float operands together; other operands are fixed.
_LINEAR = frozenset(
    {
        "add",
        "axis_gather",
        "axis_sum",
        "broadcast",
        "cast",
        "complex",
        "concatenate",
        "conjugate",
        "cumulative_sum",
        "fft",
        "flip",
        "gather",
        "imag",
        "irfft",
        "negate",
        "real",
        "reshape",
        "rfft",
        "shear",
        "scatter_add",
        "slice",
        "subtract",
        "sum",
        "transpose",
        "trigonometric_4",
        "unshear",
        "where",
    }
)
# Linear in each of two operands.
_BILINEAR = frozenset({"conv", "dot", "multiply"})
# The tangent is that of the first operand.
_OF_FIRST = frozenset({"barrier", "known_value"})


def jvp(graph: Graph, wrt: Sequence[int]) -> Graph:
    """The graph of `graph`'s outputs, followed by the tangents of its float outputs.

    It has one more input for each of the inputs at `wrt`, after those of `graph`: that input's tangent. They are
    called tangent0, tangent1, …, skipping names that are taken. The tangents of the outputs are linear in them.
    Raises DtypeError for an input in `wrt` that is not a float, IndexError for one that does not exist.
    """
    sources = chosen_inputs(graph, wrt)
    given = further_inputs("tangent", (source.type for source in sources), graph.inputs)
    taken: set[Node] = set()
    with located():
        outputs, tangents = push_forward(graph, graph.inputs, dict(zip(sources, given, strict=True)), taken)
        pushed = [
            zeros(output.type) if tangent is None else tangent
            for output, tangent in zip(outputs, tangents, strict=True)
            if output.dtype.is_inexact
        ]
    return with_values_of_rules(graph_of((*graph.inputs, *given), (*outputs, *pushed)), taken)


def push_forward(
    graph: Graph, operands: Sequence[Node], tangents: Mapping[Node, Node], taken: set[Node]
) -> tuple[list[Node], list[Node | None]]:
    """The outputs of `graph` on `operands`, one per input, and their tangents, given those of some operands.

    `taken` gets the functions whose own rules gave tangents.
    """
    found: dict[Node, Node] = dict(zip(graph.inputs, operands, strict=True))
    known = dict(tangents)
    parts: dict[Node, list[Node | None]] = {}
    for node in graph.nodes:
        rebuilt = found[node] = with_operands(node, tuple(found[operand] for operand in node.operands))
        if rebuilt.op == "item":
            tangent = parts[rebuilt.operands[0]][rebuilt.attrs["index"]] if rebuilt.operands[0] in parts else None
        else:
            own = [known.get(operand) for operand in rebuilt.operands]
            if rebuilt.op in NOT_DIFFERENTIABLE or all(one is None for one in own):
                continue
            set_location(node.location)
            if rebuilt.op in ATTENTION:
                rebuilt, tangent = _through_composition(rebuilt, own)
                found[node] = rebuilt
            elif rebuilt.op in TANGENT_RULES:
                found[node], results = TANGENT_RULES[rebuilt.op](rebuilt, own)
                parts[found[node]] = results
                if found[node] is rebuilt and has_rules(rebuilt):
                    taken.add(rebuilt)
                continue
            else:
                tangent = _tangent(rebuilt, own) if rebuilt.dtype.is_inexact else None
        if tangent is not None and not is_zero(tangent):
            known[rebuilt] = tangent
    outputs = [found[output] for output in graph.outputs]
    return outputs, [known.get(output) for output in outputs]


def _through_composition(node: Node, tangents: Tangents) -> tuple[Node, Node | None]:
    """Attention and its tangent, from the same weights, which are then stored in memory."""
    body = graph_of(node.operands, (composition(node),))
    known = {operand: tangent for operand, tangent in zip(node.operands, tangents, strict=True) if tangent is not None}
    (value,), (tangent,) = push_forward(body, node.operands, known, set())
    return value, tangent


def _tangent(node: Node, tangents: Tangents) -> Node:
    if node.op in _LINEAR:
        return _of_linear(node, tangents)
    if node.op in _OF_FIRST:
        return tangents[0] or zeros(node.type)
    terms = []
    for position, tangent in enumerate(tangents):
        if tangent is None:
            continue
        if node.op in _BILINEAR:
            operands = [tangent if k == position else operand for k, operand in enumerate(node.operands)]
            rounding = {} if node.op == "multiply" else precision_of_gradient(node)
            terms.append(build(node.op, *operands, **{**node.attrs, **rounding}))
        elif node.op == "pad":
            terms.append(build("pad", tangent, **{**node.attrs, "value": node.dtype.number(0)}))
        else:
            terms.append(_transposed_rule(node, position, tangent))
    return _sum(terms)


def _of_linear(node: Node, tangents: Tangents) -> Node:
    """The operation itself on the tangents, with zeros for missing ones."""
    if node.op in ("add", "subtract") and None in tangents:
        left, right = tangents
        if right is None:
            assert left is not None
            return left
        return right if node.op == "add" else build("negate", right)
    operands = [
        tangent or (zeros(operand.type) if operand.dtype.is_inexact else operand)
        for operand, tangent in zip(node.operands, tangents, strict=True)
    ]
    return build(node.op, *operands, type=node.type, **node.attrs)


def _transposed_rule(node: Node, position: int, tangent: Node) -> Node:
    """The contribution of the tangent of the operand at `position` to that of `node`."""
    cotangent = input_node("cotangent", node.type)
    pulled = RULES[node.op](node, cotangent, position)
    return transpose_linear([pulled], [cotangent], [tangent], (node, *node.operands))[0]


def transpose_linear(
    results: Sequence[Node], sources: Sequence[Node], seeds: Sequence[Node | None], stop: Sequence[Node]
) -> list[Node]:
    """The cotangents of `sources`, given those of `results`, which are linear in them; nodes in `stop` are fixed."""
    body = Graph((*sources, *stop), tuple(topological(results, stop=stop)), tuple(results))
    body = with_kept_values(body, sources)
    given: dict[Node, Node] = {}
    for result, seed in zip(body.outputs, seeds, strict=True):
        if seed is not None:
            given[result] = add_to(given.get(result), seed)
    return backward(body, sources, given)


def _sum(terms: Sequence[Node]) -> Node:
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total
