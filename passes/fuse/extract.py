"""Turns the kernels that fusion found into pieces of graph that stand on their own."""

from __future__ import annotations

from dataclasses import dataclass

from lavax.ir.graph import Graph, Node, input_node, topological, with_operands
from lavax.passes.fuse.fuse import Fusion
from lavax.passes.fuse.home import Home
from lavax.passes.kernels.kernel import Kernel


@dataclass(frozen=True, eq=False)
class Piece:
    """A kernel and the nodes of the whole graph that its inputs and outputs stand for."""

    kernel: Kernel
    reads: tuple[Node, ...]
    writes: tuple[Node, ...]


def extract(fusion: Fusion) -> list[Piece]:
    """The kernels that write something, in an order in which each comes after those it reads from."""
    homes = sorted((home for home in fusion.all_homes if home.results), key=lambda home: home.order)
    return [_piece(fusion, home) for home in homes]


def _piece(fusion: Fusion, home: Home) -> Piece:
    results = tuple(home.results)
    arrays = fusion.cone(results, home)[1]
    order = topological(results, stop=arrays)
    reads = tuple(dict.fromkeys(operand for node in order for operand in node.operands if operand in arrays))
    renamed: dict[Node, Node] = {array: input_node(f"a{number}", array.type) for number, array in enumerate(reads)}
    for node in order:
        renamed[node] = with_operands(node, tuple(renamed[operand] for operand in node.operands))
    graph = Graph(
        tuple(renamed[array] for array in reads),
        tuple(renamed[node] for node in order),
        tuple(renamed[result] for result in results),
    )
    placed = [node for node in order if node in home.members and (node in home.results or node in home.heavy)]
    places = {renamed[node]: home.members[node] for node in placed}
    return Piece(Kernel(home.kind, graph, home.domain, places), reads, results)
