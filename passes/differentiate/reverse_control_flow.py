"""Reverse mode through branches, loops and calls: for each, one more with the gradients of its bodies.

The gradient of a branch recomputes its forward values. A scan keeps the values that it carries into each step; its
gradient is a scan in the opposite direction that recomputes the values of each step from those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lavax.base.errors import ReverseModeError
from lavax.ir.graph import Graph, Node, further_inputs, graph_of
from lavax.ir.types import TensorType
from lavax.passes.build.builder import add, zeros
from lavax.passes.build.control_flow import control_flow, item, parts_of
from lavax.passes.differentiate import calls

# rule(node, cotangent or None per result, whether each operand matters): cotangent or None per operand.
ControlFlowGradientRule = Callable[[Node, Sequence[Node | None], Sequence[bool]], list[Node | None]]


def _body_gradient(body: Graph, wrt: Sequence[int]) -> Graph:
    """The cotangents of the inputs at `wrt`, from the body's inputs and one cotangent per float output."""
    from lavax.passes.differentiate.reverse import vjp  # reverse mode uses these rules

    whole = vjp(body, wrt)
    return graph_of(whole.inputs, whole.outputs[len(body.outputs) :])


def _or_zeros(cotangents: Sequence[Node | None], types: Sequence[TensorType]) -> list[Node]:
    """The cotangents of the float results; zeros for those that do not matter."""
    pairs = zip(cotangents, types, strict=True)
    return [zeros(type) if cotangent is None else cotangent for cotangent, type in pairs if type.dtype.is_inexact]


def _switch(node: Node, cotangents: Sequence[Node | None], matters: Sequence[bool]) -> list[Node | None]:
    index, *arguments = node.operands
    wrt = [position for position, needed in enumerate(matters[1:]) if needed]
    given = _or_zeros(cotangents, parts_of(node))
    branches = tuple(_body_gradient(branch, wrt) for branch in node.attrs["branches"])
    types = [arguments[position].type for position in wrt]
    gradient = control_flow("switch", (index, *arguments, *given), types, branches=branches)
    found: list[Node | None] = [None] * len(node.operands)
    for number, position in enumerate(wrt):
        found[position + 1] = item(gradient, number)
    return found


def _while(node: Node, cotangents: Sequence[Node | None], matters: Sequence[bool]) -> list[Node | None]:
    raise ReverseModeError(
        "reverse-mode differentiation of a while_loop, or of a fori_loop whose bounds are traced, is not defined: how "
        "often it runs is known only when it runs, so what its steps computed cannot be kept. Make the bounds of a "
        "fori_loop static (Python integers; static_argnums of compile), or use scan, or forward mode (jvp, jacfwd)"
        + (f"\n  at {node.location}" if node.location else "")
    )


def keep_carried(node: Node) -> Node:
    """The same scan; further results stack the values that it carries into each step."""
    body, carries = node.attrs["body"], node.attrs["carries"]
    kept = graph_of(body.inputs, (*body.outputs, *body.inputs[:carries]))
    stacked = (part.with_shape((node.attrs["length"], *part.shape)) for part in parts_of(node)[:carries])
    return control_flow("scan", node.operands, (*parts_of(node), *stacked), **{**node.attrs, "body": kept})


def _scan(node: Node, cotangents: Sequence[Node | None], matters: Sequence[bool]) -> list[Node | None]:
    body, carries, sequences = node.attrs["body"], node.attrs["carries"], node.attrs["sequences"]
    original = len(body.outputs) - carries  # results before keep_carried
    inner = graph_of(body.inputs, body.outputs[:original])
    carried = [item(node, original + position) for position in range(carries)]
    gone_through = node.operands[carries : carries + sequences]
    invariant = node.operands[carries + sequences :]
    # A carried float always matters within the loop; a value that is only read matters if it does outside.
    wrt = [p for p, operand in enumerate(node.operands) if operand.dtype.is_inexact and (p < carries or matters[p])]
    of_carry = [p for p in wrt if p < carries]
    of_sequence = [p for p in wrt if carries <= p < carries + sequences]
    of_invariant = [p for p in wrt if p >= carries + sequences]
    types = parts_of(node)[:original]
    given = _or_zeros(cotangents[:original], types)
    float_carries = sum(type.dtype.is_inexact for type in types[:carries])
    step = _backward_step(inner, wrt, carries + sequences, float_carries, [len(of_carry), len(of_sequence)])
    operands = [
        *given[:float_carries],
        *(zeros(node.operands[p].type) for p in of_invariant),
        *carried,
        *gone_through,
        *given[float_carries:],
        *invariant,
    ]
    results = [node.operands[p].type for p in (*of_carry, *of_invariant, *of_sequence)]
    gradient = control_flow(
        "scan",
        operands,
        results,
        carries=float_carries + len(of_invariant),
        sequences=carries + sequences + len(given) - float_carries,
        length=node.attrs["length"],
        reverse=not node.attrs["reverse"],
        body=step,
    )
    found: list[Node | None] = [None] * len(node.operands)
    for number, position in enumerate((*of_carry, *of_invariant, *of_sequence)):
        found[position] = item(gradient, number) if matters[position] else None
    return found


def _backward_step(
    inner: Graph, wrt: Sequence[int], first_invariant: int, float_carries: int, counts: Sequence[int]
) -> Graph:
    """One step backwards. Its inputs are the carried cotangents, the sums for invariant inputs, the forward step's
    carried values and slices, the cotangents of stacked results, and the invariant inputs."""
    gradient = _body_gradient(inner, wrt)
    carry, sequence = counts
    forward, cotangents = gradient.inputs[: len(inner.inputs)], gradient.inputs[len(inner.inputs) :]
    parts, found = gradient.outputs[carry + sequence :], gradient.outputs[: carry + sequence]
    sums = further_inputs("sum", (part.type for part in parts), gradient.inputs)
    inputs = (
        *cotangents[:float_carries],
        *sums,
        *forward[:first_invariant],
        *cotangents[float_carries:],
        *forward[first_invariant:],
    )
    return graph_of(inputs, (*found[:carry], *map(add, sums, parts), *found[carry:]))


CONTROL_FLOW_RULES: dict[str, ControlFlowGradientRule] = {
    "switch": _switch,
    "while": _while,
    "scan": _scan,
    "checkpoint": calls.checkpoint_backwards,
    "custom_jvp": calls.custom_jvp_backwards,
    "custom_vjp": calls.custom_vjp_backwards,
    "host_call": calls.host_call_backwards,
}
