"""A graph with calls of the host, as graphs without any and the calls between them."""
from __future__ import annotations

from collections.abc import Sequence
from lavax.base.quick_dataclasses import dataclass

from lavax.ir.graph import Graph, Node, graph_of, input_node, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.passes.build.inline import inline_calls, inner_graphs

HOST_CALL = "host_call"


@dataclass(frozen=True, eq=False)
class Stage:
    """A graph for the device, what its inputs and outputs are in the whole graph, and the calls that follow it.

    A branch or loop that calls the host counts as a call.
    """

    graph: Graph
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    calls: tuple[Node, ...]


def holds_host_calls(graph: Graph) -> bool:
    """Whether the graph, or a graph in it, calls the host."""
    return any(map(_calls_host, graph.nodes))


def _calls_host(node: Node) -> bool:
    return node.op == HOST_CALL or any(map(holds_host_calls, inner_graphs(node)))


def calls_python(graph: Graph) -> bool:
    """Whether the graph, or a graph in it, calls a function on the host that is not a routine of lavax."""
    return any(
        node.attrs["function"].results is None if node.op == HOST_CALL else any(map(calls_python, inner_graphs(node)))
        for node in graph.nodes
    )


def has_effects(node: Node) -> bool:
    """Whether the node calls the host, itself or in a graph that it holds, for more than a result."""
    if node.op == HOST_CALL:
        return bool(node.attrs["function"].has_effects)
    return any(has_effects(inner) for graph in inner_graphs(node) for inner in graph.nodes)


def divided(graph: Graph) -> tuple[Graph, list[Stage]]:
    """The graph without calls of functions, and its stages in order."""
    plain = inline_calls(graph)
    calls = set(filter(_calls_host, plain.nodes))
    results = {node for node in plain.nodes if node.op == "item" and node.operands[0] in calls}
    levels = _levels(plain, results)
    last = max(levels.values(), default=0)
    return plain, [_stage(plain, calls, results, levels, number) for number in range(last + 1)]


def _levels(graph: Graph, results: set[Node]) -> dict[Node, int]:
    """How many calls, one after another, come before each value."""
    levels = dict.fromkeys(graph.inputs, 0)
    for node in graph.nodes:
        before = max((levels[operand] for operand in node.operands), default=0)
        levels[node] = before + 1 if node in results else before
    return levels


def _stage(graph: Graph, calls: set[Node], results: set[Node], levels: dict[Node, int], number: int) -> Stage:
    following = tuple(node for node in graph.nodes if node in calls and levels[node] == number)
    computed = [node for node in graph.nodes if levels[node] == number and node not in calls and node not in results]
    own = {*computed, *(node for node in graph.nodes if OPERATIONS[node.op].family == "source")}
    later = [operand for node in graph.nodes if node in calls or levels[node] > number for operand in node.operands]
    outputs = tuple(dict.fromkeys(node for node in (*later, *graph.outputs) if node in set(computed)))
    return _closed(graph, outputs, own, following)


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
