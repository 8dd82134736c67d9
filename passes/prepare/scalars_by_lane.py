"""Loops of lanes that also count: what all lanes have in common, each lane has for itself.

A loop that goes on while any lane is open and perhaps a scalar condition holds, such as `(turn < 100) & any(open)`,
keeps the values of lanes that have ended, but a counter goes on. With a counter of its own a lane ends by itself, and
the loop can be one kernel (passes/fuse/lane_loops.py). What the scalars are at the end is what they are in the lane
that ran for the most turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, further_inputs, graph_of, input_node, make_node, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import TensorType, bool_, int32
from lavax.passes.build.builder import add, broadcast, build, gather, logical_and, reshape, splat, where
from lavax.passes.build.control_flow import control_flow, item, parts_of
from lavax.passes.build.ended_lanes import asked_by_lane, keeps_ended
from lavax.passes.fuse.lane_loops import lanes_of, shape_of_lanes

Shape = tuple[int, ...]
_LEAST_LANES = 64  # fewer meet within a subgroup or two


def with_scalars_by_lane(graph: Graph) -> Graph:
    """The graph with such loops changed so; the same object if there are none."""
    changed = {node: found for node in graph.nodes if node.op == "while" and (found := _Lanes.of(node))}
    if not changed:
        return graph
    used: dict[Node, set[int]] = {node: set() for node in changed}
    for node in graph.nodes:
        if node.op == "item" and node.operands[0] in used:
            used[node.operands[0]].add(node.attrs["index"])
    renamed: dict[Node, Node] = {node: node for node in graph.inputs}
    results: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        operands = tuple(renamed[operand] for operand in node.operands if operand not in results)
        if node in changed:
            results[node] = changed[node].loop(operands, used[node])
        elif node.op == "item" and node.operands[0] in results:
            renamed[node] = results[node.operands[0]][node.attrs["index"]]
        else:
            renamed[node] = with_operands(node, operands)
    return graph_of(graph.inputs, [renamed[output] for output in graph.outputs])


@dataclass(frozen=True)
class _Lanes:
    """A loop whose lanes keep what they have once they are not `open`, a value of its condition of their shape."""

    node: Node
    shape: Shape
    open: Node
    terms: tuple[Node, ...]  # the other parts of the condition, which are scalars

    @staticmethod
    def of(node: Node) -> _Lanes | None:
        """The lanes of a loop that can be changed; None of others."""
        condition, body = node.attrs["condition"], node.attrs["body"]
        shape = shape_of_lanes(node)
        terms = _terms(condition.outputs[0])
        maxima = [term for term in terms if term.op == "max"]
        if not shape or len(maxima) != 1 or prod(shape) < _LEAST_LANES or asked_by_lane(node) is not None:
            return None
        (asked,) = maxima
        lanes = [place for place, before in enumerate(body.outputs) if before.shape]
        if asked.operands[0].shape != shape or asked.type.rank or not keeps_ended(node, asked.operands[0], lanes):
            return None
        found = _Lanes(node, shape, asked.operands[0], tuple(term for term in terms if term is not asked))
        counters = {given for given, after in zip(condition.inputs, body.outputs, strict=False) if not after.shape}
        if _reaches(found.open, counters) or not found._is_lifted():
            return None
        return found if lanes_of(found._changed(node.operands)) is not None else None

    def _is_lifted(self) -> bool:
        condition, body = self.node.attrs["condition"], self.node.attrs["body"]
        count = len(body.outputs)
        return all(
            _may_be_lifted(graph, graph.inputs[:count], self.shape)
            for graph in (graph_of(condition.inputs, [*self.terms, self.open]), body)
        )

    def loop(self, operands: Sequence[Node], used: set[int]) -> list[Node]:
        """The results of the loop on these operands."""
        whole = self._changed(operands)
        kinds = parts_of(self.node)
        if all(kind.shape for place, kind in enumerate(kinds) if place in used):
            return [item(whole, place) for place in range(len(kinds))]
        turns = item(whole, len(kinds))
        flat = reshape(turns, (turns.type.size,))
        longest = build("argmax", flat, axis=0)
        return [
            item(whole, place)
            if kind.shape
            else gather(reshape(item(whole, place), (turns.type.size,)), (longest,), (0,))
            for place, kind in enumerate(kinds)
        ]

    def _changed(self, operands: Sequence[Node]) -> Node:
        """The loop whose scalars have the shape of the lanes. Behind its results are each lane's turns and flag."""
        body = self.node.attrs["body"]
        count = len(body.outputs)
        carried = [self._spread(operand) for operand in operands[:count]]
        others = list(operands[count:])
        inputs = [input_node(f"x{place}", node.type) for place, node in enumerate([*carried, *others])]
        turns, runs = further_inputs("lane", [TensorType(self.shape, int32), TensorType(self.shape, bool_)], inputs)
        stepped = self._lifted(body, inputs)
        after = [where(runs, new, old) for new, old in zip(stepped, inputs, strict=False)]
        still = logical_and(runs, self._goes_on([*after, *inputs[count:]]))
        more = [where(runs, add(turns, splat(1, turns.type)), turns), still]
        within = [*inputs[:count], turns, runs, *inputs[count:]]
        step = graph_of(within, [*after, *more])
        given = [input_node(node.name, node.type) for node in within]
        ends = graph_of(given, [build("max", given[count + 1], axes=tuple(range(len(self.shape))))])
        start = [*carried, splat(0, turns.type), self._goes_on([*carried, *others]), *others]
        return control_flow("while", start, [node.type for node in step.outputs], condition=ends, body=step)

    def _goes_on(self, values: Sequence[Node]) -> Node:
        """Whether each lane does, asked of what the loop has, whose scalars have the shape of the lanes."""
        found, *more = self._lifted(graph_of(self.node.attrs["condition"].inputs, [*self.terms, self.open]), values)
        for term in more:
            found = logical_and(found, term)
        return found

    def _spread(self, node: Node) -> Node:
        return node if node.shape else broadcast(node, self.shape, ())

    def _lifted(self, graph: Graph, operands: Sequence[Node]) -> list[Node]:
        """The outputs of a graph, of which those that were scalars have the shape of the lanes."""
        found: dict[Node, Node] = dict(zip(graph.inputs, operands, strict=True))
        lifted = {given for given, operand in found.items() if given.shape != operand.shape}
        for node in graph.nodes:
            if lifted.isdisjoint(node.operands):
                found[node] = with_operands(node, tuple(found[operand] for operand in node.operands))
            elif node.op == "broadcast":
                found[node] = found[node.operands[0]]
            else:
                own = tuple(self._spread(found[operand]) for operand in node.operands)
                found[node] = make_node(node.op, own, node.attrs, node.type.with_shape(self.shape), node.location)
                lifted.add(node)
        return [self._spread(found[output]) for output in graph.outputs]


def _terms(condition: Node) -> list[Node]:
    """The parts of a conjunction."""
    if condition.op != "and" or condition.shape:
        return [condition]
    return [term for operand in condition.operands for term in _terms(operand)]


def _reaches(node: Node, inputs: set[Node]) -> bool:
    stack, seen = [node], set()
    while stack:
        at = stack.pop()
        if at not in seen:
            seen.add(at)
            stack += at.operands
    return not seen.isdisjoint(inputs)


def _may_be_lifted(graph: Graph, carried: Sequence[Node], shape: Shape) -> bool:
    """Whether all that is made of carried scalars is elementwise, or spread over the lanes."""
    lifted = {node for node in carried if not node.shape}
    for node in graph.nodes:
        if lifted.isdisjoint(node.operands):
            continue
        if node.op == "broadcast" and node.shape == shape:
            continue
        if node.shape or OPERATIONS[node.op].family != "elementwise":
            return False
        lifted.add(node)
    return True
