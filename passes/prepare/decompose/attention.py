"""Splits attention that would take one kernel too long."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from math import inf

from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.operation import names_of_family
from lavax.ir.ops.attention import OPERANDS, names_of
from lavax.ir.types import float32
from lavax.passes.build.attention import batch_reshaped, named_operands
from lavax.passes.build.builder import (
    add,
    broadcast_back,
    build,
    equal,
    exp,
    log,
    maximum,
    multiply,
    slice_along,
    splat,
    subtract,
    where,
    zeros,
)
from lavax.passes.target.kernel_limits import ATTENTION, MAX_LOOP_ITERATIONS

_BY_KEYS = frozenset(("attention_key_gradient", "attention_value_gradient"))
# The operands' axes of keys and of queries, counted from the end.
_KEYS: Mapping[str, int] = {"key": 2, "value": 2, "bias": 1, "mask": 1}
_QUERIES: Mapping[str, int] = {"query": 2, "cotangent": 2, "delta": 1, "logsumexp": 1, "bias": 2, "mask": 2}


def _attention(node: Node) -> Node:
    if _iterations(node) <= MAX_LOOP_ITERATIONS:
        return node
    return _IN_PARTS.get(node.op, _sum_of_parts)(node)


def has_form(node: Node) -> bool:
    """Whether kernels have a form for the node, however many of them it takes."""
    return node.operands[0].dtype == float32 and max(_heads(node)) <= ATTENTION.largest_head


def has_kernel(node: Node) -> bool:
    """Whether one kernel computes the node."""
    return has_form(node) and _iterations(node) <= MAX_LOOP_ITERATIONS


def _heads(node: Node) -> tuple[int, int]:
    """The lengths of the vectors of queries and of values."""
    operands = named_operands(node)
    of_values = operands.get("value", operands.get("cotangent", operands["query"]))
    return operands["query"].shape[-1], of_values.shape[-1]


def _columns(node: Node) -> int:
    """How many keys an invocation iterates over, or how many queries if it has keys of its own."""
    return node.operands[0 if node.op in _BY_KEYS else 1].shape[-2]


def _iterations_of_block(node: Node) -> int:
    """An upper bound for the loop iterations per block: two products along the heads, and two results to which columns
    are added four at a time, or which are updated vector by vector."""
    steps = [length // 4 if length % 4 == 0 else length for length in _heads(node)]
    return 1 + sum(count + max(count, ATTENTION.block_of_columns // 4) for count in steps)


def _iterations(node: Node) -> int:
    """An upper bound for the loop iterations of one invocation."""
    return (-(-_columns(node) // ATTENTION.block_of_columns) + 4) * _iterations_of_block(node)


# -- parts ------------------------------------------------------------------------------------------------------------


def _parts(node: Node, op: str, **changed: bool) -> Iterator[Node]:
    """`op` on the operands of `node`, for each part of the columns."""
    columns = _columns(node)
    size = (MAX_LOOP_ITERATIONS // _iterations_of_block(node) - 4) * ATTENTION.block_of_columns
    by_keys = node.op in _BY_KEYS
    for start in range(0, columns, size):
        operands = named_operands(node)
        end = min(start + size, columns)
        for name, axis in (_QUERIES if by_keys else _KEYS).items():
            if name in operands:
                operands[name] = slice_along(operands[name], operands[name].type.rank - axis, start, end)
        moved = start if by_keys else -start  # the change in distance from queries to keys
        attrs = {**node.attrs, **changed}
        attrs |= {name: node.attrs[name] + moved for name in ("lowest", "highest")}
        yield build(op, *(operands[name] for name in names_of(op, attrs)), **attrs)


def _sum_of_parts(node: Node) -> Node:
    return reduce(add, _parts(node, node.op))


def _with_peak(node: Node) -> tuple[list[Node], Node, Node]:
    """The logsumexp of each part, -inf if no key of it is visible; the logsumexp of all parts; and the greatest."""
    found = []
    for part in _parts(node, "attention_logsumexp", empty=True):
        found.append(where(equal(part, splat(inf, part.type)), splat(-inf, part.type), part))
    peak = reduce(maximum, found)
    shift = where(equal(peak, splat(-inf, peak.type)), zeros(peak.type), peak)
    total = add(log(reduce(add, (exp(subtract(part, shift)) for part in found))), shift)
    return found, total, peak


def _attention_of_parts(node: Node) -> Node:
    """The sum of the parts' results, each scaled by its share of the weights."""
    statistics, total, peak = _with_peak(node)
    last = (node.type.rank - 1,)
    terms = [
        multiply(part, broadcast_back(exp(subtract(statistic, total)), part.shape, last))
        for part, statistic in zip(_parts(node, "attention", empty=True), statistics, strict=True)
    ]
    whole = reduce(add, terms)
    nothing = broadcast_back(equal(peak, splat(-inf, peak.type)), whole.shape, last)
    return where(nothing, zeros(whole.type), whole) if node.attrs["empty"] else whole


def _logsumexp_of_parts(node: Node) -> Node:
    _, total, peak = _with_peak(node)
    nothing = equal(peak, splat(-inf, peak.type))
    return where(nothing, splat(inf, total.type), total) if node.attrs["empty"] else total


_IN_PARTS: dict[str, Callable[[Node], Node]] = {
    "attention": _attention_of_parts,
    "attention_logsumexp": _logsumexp_of_parts,
}


# -- shapes -----------------------------------------------------------------------------------------------------------


def with_read_shapes(graph: Graph) -> Graph:
    """Attention whose result is read only after a reshape computes that shape directly, which saves a copy.

    If the graph has gradients, attention stays as it is, so that it is computed together with its logsumexp.
    """
    ops = {node.op for node in graph.nodes}
    if "attention" not in ops or "attention_logsumexp" in ops:
        return graph
    users, outputs = graph.users, frozenset(graph.outputs)
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    for node in graph.nodes:
        found[node] = with_operands(node, tuple(found[operand] for operand in node.operands))
        if node.op == "reshape":
            (result,) = node.operands
            alone = result.op == "attention" and len(users[result]) == 1 and result not in outputs
            if alone and node.shape[-2:] == result.shape[-2:]:
                found[node] = batch_reshaped(found[result], node.shape[:-2])
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


_LOWERED = names_of_family("lowered")
RULES: dict[str, Callable[[Node], Node]] = {op: _attention for op in OPERANDS if op not in _LOWERED}
