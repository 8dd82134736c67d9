"""Branches and loops over a batch.

Values that are the same for all elements, such as counters and predicates, stay unbatched if possible. If the predicate
differs between elements, a branch computes all alternatives and selects. A loop then runs until it has ended for all
elements, and an element for which it has ended keeps its values.
"""

from __future__ import annotations

from collections.abc import Sequence

from lavax.ir.graph import Graph, Node, further_inputs, graph_of, input_node
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import TensorType, bool_, int32
from lavax.passes.batch.batch_rule import Axis, BatchRule, Operand, in_front, to_front
from lavax.passes.batch.gated_branches import gated, spread, watched
from lavax.passes.build.builder import build, clamp, equal, logical_and, splat, where
from lavax.passes.build.control_flow import control_flow, item, parts_of
from lavax.passes.build.ended_lanes import asked_by_lane

_INDEX = TensorType((), int32)
# What kernels may compute in several orders, and of it what gives the same in each.
_OF_SUMS = frozenset(("reduction", "contraction", "routine", "region"))
_IN_ANY_ORDER = frozenset(("max", "min", "argmax", "argmin", "item", "sort", "sort_order", "search_sorted"))
# Elementwise operations whose results are rounded once in any kernel, if no product is followed by a sum.
_ROUNDED_ONCE = frozenset(
    ("abs", "add", "cast", "ceil", "floor", "maximum", "minimum", "multiply", "negate", "sign", "subtract", "where")
)


def as_call(graph: Graph, operands: Sequence[Node]) -> Node:
    """A node with the outputs of `graph` as its results: a switch with a single branch."""
    types = [output.type for output in graph.outputs]
    return control_flow("switch", (splat(0, _INDEX), *operands), types, branches=(graph,))


def _batched(graph: Graph, flags: Sequence[bool], outputs: Sequence[bool], axis: Axis) -> Graph:
    from lavax.passes.batch.batching import batch  # batching uses these rules

    axes = [0 if flag else None for flag in flags]
    return batch(graph, axes, [0 if flag else None for flag in outputs], axis.size, axis.name)


def _differing(graph: Graph, flags: Sequence[bool], axis: Axis) -> list[bool]:
    from lavax.passes.batch.batching import differing_outputs

    return differing_outputs(graph, [0 if flag else None for flag in flags], axis.size, axis.name)


def _switch(node: Node, operands: Sequence[Operand], axis: Axis) -> Operand:
    index, *arguments = operands
    flags = [argument.batched for argument in arguments]
    nodes = [argument.node for argument in arguments]
    if index.batched:
        return Operand(as_call(_choice(node, index.node, flags, axis), (index.node, *nodes)), True)
    every = [True] * len(parts_of(node))
    branches = tuple(_batched(branch, flags, every, axis) for branch in node.attrs["branches"])
    types = [output.type for output in branches[0].outputs]
    return Operand(control_flow("switch", (index.node, *nodes), types, branches=branches), True)


def _choice(node: Node, index: Node, flags: Sequence[bool], axis: Axis) -> Graph:
    """Computes all branches and selects, per element, the results of its own.

    Gradients pass only through the operands of the branch that is taken: in another the derivative may be infinite, and
    with a cotangent of zero gives NaN.
    """
    from lavax.passes.build.inline import inline

    branches = [gated(branch, flags) for branch in node.attrs["branches"]]
    every = [True] * len(parts_of(node))
    each = [_batched(branch.graph, [*flags, True], every, axis) for branch in branches]
    number = input_node("index", index.type)
    inputs = [input_node(f"x{position}", x.type) for position, x in enumerate(each[0].inputs[:-1])]
    within = clamp(number, 0, len(branches) - 1)
    taken = [equal(within, splat(case, number.type)) for case in range(len(branches))]
    results = []
    for branch, graph, case in zip(branches, each, taken, strict=True):
        given = zip(inputs, flags, branch.steep, strict=True)
        operands = [watched(x, case) if own else _watched_by_any(x, case) if steep else x for x, own, steep in given]
        results.append(inline(graph, [*operands, case]))
    chosen = results[-1]
    for case, found in reversed(list(zip(taken, results[:-1], strict=False))):
        chosen = [_select(case, one, other) for one, other in zip(found, chosen, strict=True)]
    return graph_of((number, *inputs), chosen)


def _watched_by_any(x: Node, taken: Node) -> Node:
    """`x`, which is the same for all elements: its gradient reaches it if any element takes the branch."""
    if not x.dtype.is_inexact or taken.type.size == 0:
        return x
    return watched(x, build("max", taken, axes=(0,)))


def _select(condition: Node, chosen: Node, other: Node) -> Node:
    """Selects per batch element; the condition has only the batch axis."""
    return where(spread(condition, chosen), chosen, other)


def _while(node: Node, operands: Sequence[Operand], axis: Axis) -> Operand:
    condition, body = node.attrs["condition"], node.attrs["body"]
    count = len(body.outputs)
    flags = [operand.batched for operand in operands]
    while True:  # a step may make further carried values differ; each pass finds at least one more
        differs = [a or b for a, b in zip(flags[:count], _differing(body, flags, axis), strict=True)]
        ends_apart = _differing(condition, flags, axis)[0]
        differs = [True] * count if ends_apart else differs
        if differs == flags[:count]:
            break
        flags = [*differs, *flags[count:]]
    nodes = [in_front(o, axis) if flag and not o.batched else o.node for o, flag in zip(operands, flags, strict=True)]
    step = _batched(body, flags, flags[:count], axis)
    by_lane = asked_by_lane(node) if ends_apart else None
    if by_lane is not None:  # its lanes keep what they have when they end, so they do in all elements
        asked = _any(_batched(graph_of(condition.inputs, [by_lane]), flags, [True], axis))
    else:
        asked = _batched(condition, flags, [ends_apart], axis)
        if ends_apart and _may_round_apart(condition):
            asked, step, started = _with_flags(asked, step, nodes)
            nodes.insert(count, started)
        elif ends_apart:
            asked, step = _until_all_end(asked, step)
    types = [output.type for output in step.outputs]
    return Operand(control_flow("while", nodes, types, condition=asked, body=step), True)


def _until_all_end(condition: Graph, body: Graph) -> tuple[Graph, Graph]:
    """A loop that runs while it does for any element; an element for which it has ended keeps its carried values."""
    from lavax.passes.build.inline import inline

    (runs,) = inline(condition, body.inputs)
    pairs = zip(body.outputs, body.inputs, strict=False)
    return _any(condition), graph_of(body.inputs, [_select(runs, output, before) for output, before in pairs])


def _may_round_apart(condition: Graph) -> bool:
    """Whether two kernels may round the condition in different ways: it has sums, or what is more than they, float
    products that may be one operation with a sum, or functions whose steps may be."""
    nodes = [node for node in condition.nodes if node.op not in _IN_ANY_ORDER]
    kinds = {OPERATIONS[node.op].family for node in nodes}
    computed = {node.op for node in nodes if node.dtype.is_inexact and OPERATIONS[node.op].family == "elementwise"}
    has_sums_of_products = "multiply" in computed and not computed.isdisjoint(("add", "subtract"))
    return not kinds.isdisjoint(_OF_SUMS) or not computed <= _ROUNDED_ONCE or has_sums_of_products


def _with_flags(condition: Graph, body: Graph, operands: Sequence[Node]) -> tuple[Graph, Graph, Node]:
    """`_until_all_end` with a further carried value, behind the others: for which elements the loop runs.

    So the condition is computed once a turn. Computed twice, by kernels that round differently, it might hold for the
    loop and not for the element, whose values would stay the same for ever. Also the flags before the first turn.
    """
    from lavax.passes.build.inline import inline

    count = len(body.outputs)
    (started,) = inline(condition, operands)
    (runs,) = further_inputs("runs", [started.type], body.inputs)
    carried = [_select(runs, output, before) for output, before in zip(body.outputs, body.inputs, strict=False)]
    (goes_on,) = inline(condition, [*carried, *body.inputs[count:]])
    step = graph_of([*body.inputs[:count], runs, *body.inputs[count:]], [*carried, logical_and(runs, goes_on)])
    inputs = [input_node(node.name, node.type) for node in step.inputs]
    return _any(graph_of(inputs, [inputs[count]])), step, started


def _any(condition: Graph) -> Graph:
    """Whether any element of the condition holds: none of an empty batch does."""
    (asked,) = condition.outputs
    if asked.type.size == 0:
        return graph_of(condition.inputs, [splat(False, TensorType((), bool_))])
    return graph_of(condition.inputs, [build("max", asked, axes=tuple(range(asked.type.rank)))])


def _scan(node: Node, operands: Sequence[Operand], axis: Axis) -> Operand:
    attrs = node.attrs
    body, carries, sequences = attrs["body"], attrs["carries"], attrs["sequences"]
    flags = [operand.batched for operand in operands]
    while True:
        differs = [a or b for a, b in zip(flags, _differing(body, flags, axis)[:carries], strict=False)]
        if differs == flags[:carries]:
            break
        flags = [*differs, *flags[carries:]]
    nodes = []
    for position, (operand, flag) in enumerate(zip(operands, flags, strict=True)):
        value = in_front(operand, axis) if flag and not operand.batched else operand.node
        gone_through = carries <= position < carries + sequences
        nodes.append(to_front(value, 1) if flag and gone_through else value)
    outputs = [*flags[:carries], *[True] * (len(body.outputs) - carries)]
    step = _batched(body, flags, outputs, axis)
    stacked = [type.with_shape((attrs["length"], *type.shape)) for type in (o.type for o in step.outputs[carries:])]
    types = [*(output.type for output in step.outputs[:carries]), *stacked]
    return Operand(control_flow("scan", nodes, types, **{**attrs, "body": step}), True)


def _item(node: Node, operands: Sequence[Operand], axis: Axis) -> Operand:
    """An unbatched result keeps its type; a stacked result of a scan has the batch axis second."""
    (whole,) = operands
    index = node.attrs["index"]
    part = item(whole.node, index)
    if part.type == node.type:
        return Operand(part, False)
    is_stacked = whole.node.op == "scan" and index >= whole.node.attrs["carries"]
    return Operand(to_front(part, 1) if is_stacked else part, True)


def _host_call(node: Node, operands: Sequence[Operand], axis: Axis) -> Operand:
    """One call for the whole batch; the function says how, if it does not take batches as they are."""
    flags = [operand.batched for operand in operands]
    types = [type.with_shape((axis.size, *type.shape)) for type in parts_of(node)]
    function = node.attrs["function"]
    nodes = [operand.node if function.batched else in_front(operand, axis) for operand in operands]
    if function.batched:
        function = function.batched(axis.size, flags)
    return Operand(control_flow("host_call", nodes, types, function=function), True)


RULES: dict[str, BatchRule] = {
    "switch": _switch,
    "while": _while,
    "scan": _scan,
    "item": _item,
    "host_call": _host_call,
}
