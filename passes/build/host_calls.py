"""A graph with calls of the host, as graphs without any and the calls between them."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lavax.base.errors import SideEffectError
from lavax.ir.graph import Graph, Node, graph_of, input_node, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.passes.build.inline import inline_calls, inner_graphs

HOST_CALL = "host_call"


@dataclass(frozen=True, eq=False)
class Stage:
    """A graph for the device, what its inputs and outputs are in the whole graph, and the calls that follow it."""

    graph: Graph
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    calls: tuple[Node, ...]


def holds_host_calls(graph: Graph) -> bool:
    """Whether the graph, or a graph in it, calls the host."""
    return any(node.op == HOST_CALL or any(map(holds_host_calls, inner_graphs(node))) for node in graph.nodes)


def divided(graph: Graph) -> tuple[Graph, list[Stage]]:
    """The graph without calls of functions, and its stages in order.

    Raises SideEffectError for a call of the host inside a branch or loop, which runs on the device.
    """
    plain = inline_calls(graph)
    for node in plain.nodes:
        if any(map(holds_host_calls, inner_graphs(node))):
            where = f"\n  at {node.location}" if node.location else ""
            raise SideEffectError(
                f"pure_callback and io_callback cannot be used inside a {node.op}, which runs on the device as a whole: "
                "call them outside of it, on all elements at once, or run the loop in Python" + where
            )
    levels = _levels(plain)
    last = max(levels.values(), default=0)
    return plain, [_stage(plain, levels, number) for number in range(last + 1)]


def _is_result(node: Node) -> bool:
    return node.op == "item" and node.operands[0].op == HOST_CALL


def _levels(graph: Graph) -> dict[Node, int]:
    """How many calls, one after another, come before each value."""
    levels = dict.fromkeys(graph.inputs, 0)
    for node in graph.nodes:
        before = max((levels[operand] for operand in node.operands), default=0)
        levels[node] = before + 1 if _is_result(node) else before
    return levels


def _stage(graph: Graph, levels: dict[Node, int], number: int) -> Stage:
    calls = tuple(node for node in graph.nodes if node.op == HOST_CALL and levels[node] == number)
    computed = [
        node for node in graph.nodes if levels[node] == number and node.op != HOST_CALL and not _is_result(node)
    ]
    own = {*computed, *(node for node in graph.nodes if OPERATIONS[node.op].family == "source")}
    later = [
        operand for node in graph.nodes if node.op == HOST_CALL or levels[node] > number for operand in node.operands
    ]
    outputs = tuple(dict.fromkeys(node for node in (*later, *graph.outputs) if node in set(computed)))
    return _closed(graph, outputs, own, calls)


def _closed(graph: Graph, outputs: Sequence[Node], own: set[Node], calls: tuple[Node, ...]) -> Stage:
    """The graph that computes `outputs` by the nodes in `own`; all other values that they need are its inputs."""
    found: dict[Node, Node] = {}
    inputs: list[Node] = []
    for node in graph.nodes:
        if node not in own:
            continue
        for operand in node.operands:
            if operand not in found:
                found[operand] = input_node(f"value{len(inputs)}", operand.type)
                inputs.append(operand)
        found[node] = with_operands(node, tuple(found[operand] for operand in node.operands))
    return Stage(
        graph_of([found[node] for node in inputs], [found[node] for node in outputs]), tuple(inputs), tuple(outputs), calls
    )
