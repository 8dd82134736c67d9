"""Reverse mode through branches, loops and calls: for each, one more with the gradients of its bodies.

The gradient of a branch recomputes its forward values. A scan keeps the values that it carries into each step, and
those that sums were computed for if they are small; its gradient is a scan in the opposite direction that recomputes
the other values of each step from those. The gradient of what a scan only reads is a sum over all steps. If that sum
follows from rows that take less memory, it is computed from them after the scan (turns.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from lavax.base.errors import ReverseModeError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, further_inputs, graph_of
from lavax.ir.types import TensorType
from lavax.passes.build.builder import add, zeros
from lavax.passes.build.control_flow import control_flow, item, parts_of
from lavax.passes.differentiate import calls
from lavax.passes.differentiate.turns import SumAfterLoop, heavy_values, reading, sums_after_loop, worth_keeping

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


def keep_for_gradient(node: Node, matters: Sequence[bool]) -> Node:
    """The same scan; further results stack what its gradient needs of each step: values that sums were computed for,
    then the values that are carried into the step."""
    body, carries, length = node.attrs["body"], node.attrs["carries"], node.attrs["length"]
    known = {*body.outputs[carries:]}
    kept = [value for value in _worth_keeping(node, matters) if value not in known]
    kept += body.inputs[:carries]
    stacked = (value.type.with_shape((length, *value.shape)) for value in kept)
    attrs = {**node.attrs, "body": graph_of(body.inputs, (*body.outputs, *kept))}
    return control_flow("scan", node.operands, (*parts_of(node), *stacked), **attrs)


def _worth_keeping(node: Node, matters: Sequence[bool]) -> list[Node]:
    body = node.attrs["body"]
    if any(inner.op in CONTROL_FLOW_RULES for inner in body.nodes) or not heavy_values(body):
        return []  # what a loop or a checkpoint inside keeps is its own matter
    return worth_keeping(body, _body_gradient(body, _wrt(node, matters)), node.attrs["length"])


def _wrt(node: Node, matters: Sequence[bool]) -> list[int]:
    """A carried float always matters within the loop; a value that is only read matters if it does outside."""
    carries = node.attrs["carries"]
    return [p for p, x in enumerate(node.operands) if x.dtype.is_inexact and (p < carries or matters[p])]


def _scan(node: Node, cotangents: Sequence[Node | None], matters: Sequence[bool]) -> list[Node | None]:
    body, carries, sequences = node.attrs["body"], node.attrs["carries"], node.attrs["sequences"]
    original = len(body.outputs) - carries  # results before the carried values that were kept
    read = [*range(carries), *(p for p in range(carries, original) if cotangents[p] is not None)]
    inner = graph_of(body.inputs, [body.outputs[position] for position in read])
    wrt = _wrt(node, matters)
    types = [parts_of(node)[position] for position in read]
    given = _or_zeros([cotangents[position] for position in read], types)
    float_carries = sum(type.dtype.is_inexact for type in types[:carries])
    heavy = heavy_values(body)
    kept = {value: p for p, value in enumerate(body.outputs[:original]) if p >= carries and value in heavy}
    step = _backward_step(inner, wrt, carries, sequences, float_carries, kept)
    rows = {value: item(node, kept[value]) for value in step.kept}
    carried = [item(node, original + position) for position in range(carries)]
    gone_through = [*carried, *node.operands[carries : carries + sequences]]
    operands = [
        *given[:float_carries],
        *(zeros(part.type) for part in step.carried_sums),
        *gone_through,
        *rows.values(),
        *given[float_carries:],
        *node.operands[carries + sequences :],
    ]
    length = node.attrs["length"]
    stacked = [part.type.with_shape((length, *part.shape)) for part in (*step.of_sequences, *step.rows)]
    results = [part.type for part in (*step.of_carries, *step.carried_sums)]
    gradient = control_flow(
        "scan",
        operands,
        [*results, *stacked],
        carries=len(results),
        sequences=len(gone_through) + len(rows) + len(given) - float_carries,
        length=length,
        reverse=not node.attrs["reverse"],
        body=step.graph,
    )
    parts = [item(gradient, number) for number in range(len(results) + len(stacked))]
    sequences_of = dict(zip(step.inputs_of_rows, [*gone_through, *rows.values(), *given[float_carries:]], strict=True))
    sequences_of |= dict(zip(step.rows, parts[len(results) + len(step.of_sequences) :], strict=True))
    carried_sums = dict(zip(step.carried_sums, parts[len(step.of_carries) :], strict=False))
    totals = [
        carried_sums[part] if after is None else after.total([sequences_of[row] for row in after.rows])
        for part, after in zip(step.of_invariants, step.after, strict=True)
    ]
    of_sequences = parts[len(results) : len(results) + len(step.of_sequences)]
    found: list[Node | None] = [None] * len(node.operands)
    for position, part in zip(wrt, [*parts[: len(step.of_carries)], *of_sequences, *totals], strict=True):
        found[position] = part if matters[position] else None
    return found


@dataclass(frozen=True)
class _BackwardStep:
    """One step backwards.

    Its inputs are the carried cotangents, the sums for invariant inputs that are carried, then from sequences the
    forward step's carried values and slices, what was kept of it, and the cotangents of stacked results, and then the
    invariant inputs. Its outputs are the next carried ones, the cotangents of slices, and rows for sums after the loop.
    """

    graph: Graph
    kept: tuple[Node, ...]  # the values of the forward step that are read
    inputs_of_rows: tuple[Node, ...]  # the inputs that are taken from sequences
    of_carries: Sequence[Node]
    of_sequences: Sequence[Node]
    of_invariants: Sequence[Node]
    after: Sequence[SumAfterLoop | None]  # of those, how they follow from rows; None: their sum is carried
    rows: tuple[Node, ...]

    @property
    def carried_sums(self) -> list[Node]:
        return [part for part, after in zip(self.of_invariants, self.after, strict=True) if after is None]


def _backward_step(
    inner: Graph, wrt: Sequence[int], carries: int, sequences: int, float_carries: int, kept: Collection[Node]
) -> _BackwardStep:
    whole = _body_gradient(inner, wrt)
    used = [value for value in kept if value in {*whole.nodes}]
    inputs = further_inputs("kept", (value.type for value in used), whole.inputs)
    gradient = reading(whole, (*whole.inputs, *inputs), dict(zip(used, inputs, strict=True)))
    forward, cotangents = whole.inputs[: len(inner.inputs)], whole.inputs[len(inner.inputs) :]
    of_carries = gradient.outputs[: sum(p < carries for p in wrt)]
    of_sequences = gradient.outputs[len(of_carries) : sum(p < carries + sequences for p in wrt)]
    of_invariants = gradient.outputs[len(of_carries) + len(of_sequences) :]
    from_sequences = (*forward[: carries + sequences], *inputs, *cotangents[float_carries:])
    after, rows = sums_after_loop(of_invariants, from_sequences, forward[carries + sequences :])
    sums = [part for part, how in zip(of_invariants, after, strict=True) if how is None]
    carried = further_inputs("sum", (part.type for part in sums), gradient.inputs)
    graph = graph_of(
        (*cotangents[:float_carries], *carried, *from_sequences, *forward[carries + sequences :]),
        (*of_carries, *map(add, carried, sums), *of_sequences, *rows),
    )
    return _BackwardStep(graph, tuple(used), from_sequences, of_carries, of_sequences, of_invariants, after, rows)


CONTROL_FLOW_RULES: dict[str, ControlFlowGradientRule] = {
    "switch": _switch,
    "while": _while,
    "scan": _scan,
    "checkpoint": calls.checkpoint_backwards,
    "custom_jvp": calls.custom_jvp_backwards,
    "custom_vjp": calls.custom_vjp_backwards,
    "custom_vmap": calls.custom_vmap_backwards,
    "host_call": calls.host_call_backwards,
}
