"""Forward mode through branches, loops and calls: bodies compute tangents along with values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lavax.ir.graph import Graph, Node, further_inputs, graph_of, input_node
from lavax.ir.types import TensorType, int32
from lavax.passes.build.builder import splat, zeros
from lavax.passes.build.control_flow import control_flow, item, parts_of
from lavax.passes.differentiate import calls

Tangents = Sequence[Node | None]
Pushed = tuple[Node, list[Node | None]]

# rule(node, tangents of its operands, None for those without): a node whose first results are those of `node`, and for
# each result of `node` the tangent or None.
TangentRule = Callable[[Node, Tangents], Pushed]


def _body_jvp(body: Graph, wrt: Sequence[int]) -> Graph:
    """The body's outputs and the tangents of its float outputs, from its inputs and tangents of those at `wrt`."""
    from lavax.passes.differentiate.forward import jvp  # forward mode uses these rules

    return jvp(body, wrt)


def _tangent_parts(node: Node, whole: Node, first: int) -> list[Node | None]:
    """The tangents of a node's float results: the results of `whole` from `first` on, in order."""
    found: list[Node | None] = []
    for part in parts_of(node):
        found.append(item(whole, first) if part.dtype.is_inexact else None)
        first += part.dtype.is_inexact
    return found


def _switch(node: Node, tangents: Tangents) -> Pushed:
    index, *arguments = node.operands
    wrt = [position for position, tangent in enumerate(tangents[1:]) if tangent is not None]
    given = [tangent for tangent in tangents[1:] if tangent is not None]
    branches = tuple(_body_jvp(branch, wrt) for branch in node.attrs["branches"])
    types = [output.type for output in branches[0].outputs]
    whole = control_flow("switch", (index, *arguments, *given), types, branches=branches)
    return whole, _tangent_parts(node, whole, len(parts_of(node)))


def _float_carries(operands: Sequence[Node], carries: int) -> list[int]:
    return [position for position in range(carries) if operands[position].dtype.is_inexact]


def _or_zeros(operands: Sequence[Node], tangents: Tangents, positions: Sequence[int]) -> list[Node]:
    return [tangents[position] or zeros(operands[position].type) for position in positions]


def _while(node: Node, tangents: Tangents) -> Pushed:
    condition, body = node.attrs["condition"], node.attrs["body"]
    carries, operands = len(body.outputs), node.operands
    of_carry = _float_carries(operands, carries)
    of_rest = [p for p, tangent in enumerate(tangents) if p >= carries and tangent is not None]
    pushed = _body_jvp(body, (*of_carry, *of_rest))
    own, given = pushed.inputs[: len(operands)], pushed.inputs[len(operands) :]
    inputs = (*own[:carries], *given[: len(of_carry)], *own[carries:], *given[len(of_carry) :])
    step = graph_of(inputs, pushed.outputs)
    unread = further_inputs("tangent", (node.type for node in given), condition.inputs)
    asked = graph_of(
        (
            *condition.inputs[:carries],
            *unread[: len(of_carry)],
            *condition.inputs[carries:],
            *unread[len(of_carry) :],
        ),
        condition.outputs,
    )
    nodes = (
        *operands[:carries],
        *_or_zeros(operands, tangents, of_carry),
        *operands[carries:],
        *_or_zeros(operands, tangents, of_rest),
    )
    types = [output.type for output in step.outputs]
    whole = control_flow("while", nodes, types, condition=asked, body=step)
    return whole, _tangent_parts(node, whole, carries)


def _scan(node: Node, tangents: Tangents) -> Pushed:
    attrs, operands = node.attrs, node.operands
    body, carries, sequences = attrs["body"], attrs["carries"], attrs["sequences"]
    first_invariant = carries + sequences
    of_carry = _float_carries(operands, carries)
    of_sequence = [p for p in range(carries, first_invariant) if tangents[p] is not None]
    of_rest = [p for p in range(first_invariant, len(operands)) if tangents[p] is not None]
    pushed = _body_jvp(body, (*of_carry, *of_sequence, *of_rest))
    own, given = pushed.inputs[: len(operands)], pushed.inputs[len(operands) :]
    ends = (len(of_carry), len(of_carry) + len(of_sequence))
    inputs = (
        *own[:carries],
        *given[: ends[0]],
        *own[carries:first_invariant],
        *given[ends[0] : ends[1]],
        *own[first_invariant:],
        *given[ends[1] :],
    )
    count = len(body.outputs)
    values, found = pushed.outputs[:count], pushed.outputs[count:]
    outputs = (*values[:carries], *found[: len(of_carry)], *values[carries:], *found[len(of_carry) :])
    nodes = (
        *operands[:carries],
        *_or_zeros(operands, tangents, of_carry),
        *operands[carries:first_invariant],
        *_or_zeros(operands, tangents, of_sequence),
        *operands[first_invariant:],
        *_or_zeros(operands, tangents, of_rest),
    )
    step = graph_of(inputs, outputs)
    return _in_order(node, step, nodes, len(of_carry), len(of_sequence))


def _in_order(node: Node, step: Graph, operands: Sequence[Node], carried: int, gone_through: int) -> Pushed:
    """The scan with tangents, as a node whose first results are those of the original scan. This takes a call around
    it, because the first results of a scan are all carried values."""
    attrs = node.attrs
    carries, count = attrs["carries"], len(parts_of(node))
    stacked = [
        type.with_shape((attrs["length"], *type.shape)) for type in (o.type for o in step.outputs[carries + carried :])
    ]
    types: list[TensorType] = [*(output.type for output in step.outputs[: carries + carried]), *stacked]
    inputs = [input_node(f"x{number}", operand.type) for number, operand in enumerate(operands)]
    changed = {"carries": carries + carried, "sequences": attrs["sequences"] + gone_through, "body": step}
    whole = control_flow("scan", inputs, types, **{**attrs, **changed})
    stack = count - carries
    order = [
        *range(carries),
        *range(carries + carried, carries + carried + stack),
        *range(carries, carries + carried),
        *range(carries + carried + stack, len(types)),
    ]
    body = graph_of(inputs, [item(whole, index) for index in order])
    zero = splat(0, TensorType((), int32))
    call = control_flow("switch", (zero, *operands), [output.type for output in body.outputs], branches=(body,))
    return call, _tangent_parts(node, call, count)


# Operations with several results have no gradient rule to transpose, so each has a tangent rule.
TANGENT_RULES: dict[str, TangentRule] = {
    "checkpoint": calls.checkpoint_forwards,
    "custom_jvp": calls.custom_jvp_forwards,
    "custom_vjp": calls.custom_vjp_forwards,
    "custom_vmap": calls.custom_vmap_forwards,
    "host_call": calls.host_call_forwards,
    "scan": _scan,
    "switch": _switch,
    "while": _while,
}
