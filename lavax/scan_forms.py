"""How associative scans are computed: as cumulative operations, by blocks, or by halves.

By halves, neighbours are combined, these half as many results scanned, and what is between them filled in: some
2 log2(n) maps, which wait for each other. By blocks, all blocks are scanned side by side, one element after the other,
in one loop, then the last results of all blocks likewise, and what they give is combined with the elements behind them.
Elements of many numbers are one block.
"""

from __future__ import annotations

from collections.abc import Callable

import lavax.numpy as lnp
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node
from lavax.ir.operation import OPERATIONS
from lavax.ir.ops.cumulative import CUMULATIVE
from lavax.numpy.elementwise.comparison import where
from lavax.tracer import bind
from lavax.tracer.control_flow.scan import scan
from lavax.tracer.tracing.tracing import Input, trace_function
from lavax.tracer.values.backend import active
from lavax.tracer.values.value import Value

Combine = Callable[[list[Value], list[Value]], list[Value]]


@dataclass(frozen=True)
class BlockLimits:
    """How long blocks are. docs/performance/loops_on_cpus.md and loops_on_gpus.md, "Associative scans"."""

    least_in_all: int = 1 << 11  # numbers; fewer by halves fit the registers of a loop around them
    least: int = 32  # elements of a block
    abreast: int = 1 << 11  # numbers of all blocks in one step, or as many as keep the device busy
    # So many elements are one block, if there are at most so many for each number of one.
    alone: int = 1 << 9
    steps_per_number: int = 16


_LIMITS = BlockLimits()
# What elementwise functions may hold beside operations on elements: how operands are brought to one shape.
_MOVES = frozenset(("constant", "broadcast", "reshape", "transpose"))
# The cumulative operation of each operation on two elements.
_CUMULATIVE = {monoid.join: name for name, (_, monoid) in CUMULATIVE.items() if monoid.join is not None}


def scanned(combine: Combine, values: list[Value]) -> list[Value]:
    """All partial results along the first axis."""
    count = values[0].shape[0]
    if count < 2:
        return values
    graph = _graph_of(combine, values)
    if graph is None:
        return _by_halves(combine, values)
    cumulative = _cumulative_of(graph, values)
    if cumulative is not None:
        return [bind(cumulative, values[0], axis=0)]
    is_long = count >= _LIMITS.least and count * _width(values) >= _LIMITS.least_in_all
    return (_by_blocks if is_long and _is_elementwise(graph) else _by_halves)(combine, values)


def _graph_of(combine: Combine, values: list[Value]) -> Graph | None:
    """What combines one element with another; None if it does more than to compute, as prints do."""
    kinds = [Input("x", value[:1].abstract) for value in values]

    def call(given: list[Value]) -> list[Value]:
        return combine(given[: len(values)], given[len(values) :])

    traced = trace_function(call, [*kinds, *kinds], "fn of associative_scan", keep_effects=True)
    return None if traced.effects else traced.graph


def _cumulative_of(graph: Graph, values: list[Value]) -> str | None:
    """The cumulative operation that scans with one operation on two elements, if there is such."""
    if len(values) > 1 or len(graph.inputs) != 2:
        return None
    node, moved = _moved(graph.outputs[0])
    name, operands = _CUMULATIVE.get(node.op), [_moved(operand) for operand in node.operands]
    if name is None or node.dtype.kind not in CUMULATIVE[name][0]:
        return None
    is_of_both = {operand for operand, _ in operands} == set(graph.inputs)
    is_in_place = all([axes[axis] for axis in moved] == sorted(moved) for _, axes in operands)
    return name if is_of_both and is_in_place else None


def _moved(node: Node) -> tuple[Node, list[int]]:
    """What a node is a transpose of, if it is one, and which of its axes lies along each of the node's."""
    axes = list(range(node.type.rank))
    while node.op == "transpose":
        axes = [node.attrs["axes"][axis] for axis in axes]
        node = node.operands[0]
    return node, axes


def _is_elementwise(graph: Graph) -> bool:
    return all(node.op in _MOVES or OPERATIONS[node.op].family == "elementwise" for node in graph.nodes)


def _width(values: list[Value]) -> int:
    """The most numbers that an element has in one of the arrays."""
    return max(value.type.size // value.shape[0] for value in values)


def _steps(values: list[Value]) -> int:
    """The elements of a block: a divisor of their number, if there is one less than twice as long as need be."""
    count, width = values[0].shape[0], max(_width(values), 1)
    if count <= min(_LIMITS.alone, _LIMITS.steps_per_number * width):
        return count
    abreast = max(_LIMITS.abreast, active().busy_invocations())
    blocks = max(1, min(count // _LIMITS.least, abreast // width))
    least = count // blocks
    return next((steps for steps in range(least, 2 * least) if count % steps == 0), least)


def _by_blocks(combine: Combine, values: list[Value]) -> list[Value]:
    count, steps = values[0].shape[0], _steps(values)
    blocks = count // steps
    whole = blocks * steps
    if blocks == 1:
        return _one_by_one(combine, values)
    in_blocks = [lnp.swapaxes(lnp.reshape(v[:whole], (blocks, steps, *v.shape[1:])), 0, 1) for v in values]
    found = _in_turn(combine, in_blocks)
    found = _continued(combine, found, _by_blocks(combine, [value[-1, :-1] for value in found]))
    results = [lnp.reshape(lnp.swapaxes(v, 0, 1), (whole, *v.shape[2:])) for v in found]
    if whole == count:
        return results
    last = [value[-1:] for value in results]
    rest = [lnp.concatenate([one, value[whole:]], 0) for one, value in zip(last, values, strict=True)]
    later = _one_by_one(combine, rest)
    return [lnp.concatenate([one, more[1:]], 0) for one, more in zip(results, later, strict=True)]


def _one_by_one(combine: Combine, values: list[Value]) -> list[Value]:
    """Partial results, each from the one before."""
    lines = [lnp.reshape(value, (value.shape[0], 1, *value.shape[1:])) for value in values]
    found = _in_turn(combine, lines)
    return [lnp.reshape(line, value.shape) for line, value in zip(found, values, strict=True)]


def _in_turn(combine: Combine, values: list[Value]) -> list[Value]:
    """Partial results along the first axis; blocks lie along the second.

    The first elements have a turn, too, and stay as they are: to join results to them, these would have to be moved.
    That turn combines them with the second ones, in their order, so that derivatives, which are not chosen, are as
    finite as others.
    """

    def step(carried: list[Value], given: tuple[Value, list[Value]]) -> tuple[list[Value], list[Value]]:
        (turn, elements), pairs = given, list(zip(carried, given[1], strict=True))
        is_first = turn == 0
        before = [where(is_first, element, one) for one, element in pairs]
        behind = [where(is_first, one, element) for one, element in pairs]
        combined = combine(before, behind)
        found = [where(is_first, one, more) for one, more in zip(elements, combined, strict=True)]
        return found, found

    count = values[0].shape[0]
    if count == 1:
        return values
    results: list[Value] = scan(step, [value[1] for value in values], (lnp.arange(count), values))[1]
    return results


def _continued(combine: Combine, values: list[Value], before: list[Value]) -> list[Value]:
    """Blocks, along the second axis, from the results of those before each but the first on."""

    def in_line(value: Value) -> Value:
        return lnp.reshape(value, (-1, *value.shape[2:]))

    later = [value[:, 1:] for value in values]
    spread = [lnp.broadcast_to(one[None], value.shape) for one, value in zip(before, later, strict=True)]
    found = combine([in_line(value) for value in spread], [in_line(value) for value in later])
    shaped = [lnp.reshape(one, value.shape) for one, value in zip(found, later, strict=True)]
    return [lnp.concatenate([value[:, :1], more], 1) for value, more in zip(values, shaped, strict=True)]


def _by_halves(combine: Combine, values: list[Value]) -> list[Value]:
    """Neighbours are combined, these half as many results scanned, and the remaining positions filled in."""
    count = values[0].shape[0]
    if count < 2:
        return values
    pairs = combine([value[: count - 1 : 2] for value in values], [value[1::2] for value in values])
    odd = _by_halves(combine, pairs)
    if count == 2:
        return [_joined(value[:1], later) for value, later in zip(values, odd, strict=True)]
    before = [value[: (count - 1) // 2] for value in odd]
    between = combine(before, [value[2::2] for value in values])
    even = [_joined(value[:1], later) for value, later in zip(values, between, strict=True)]
    return [_interleaved(first, second) for first, second in zip(even, odd, strict=True)]


def _joined(first: Value, second: Value) -> Value:
    return lnp.concatenate([first, second], axis=0)


def _interleaved(even: Value, odd: Value) -> Value:
    """even[0], odd[0], even[1], …; there may be one more in `even`."""
    count = odd.shape[0]
    paired = lnp.reshape(lnp.stack([even[:count], odd], axis=1), (2 * count, *odd.shape[1:]))
    return paired if even.shape[0] == count else _joined(paired, even[count:])
