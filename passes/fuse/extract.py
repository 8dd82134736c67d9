"""Turns the kernels found by fusion into self-contained pieces of graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lavax.ir.graph import Graph, Node, input_node, topological, with_operands
from lavax.passes.fuse.fusion import Fusion
from lavax.passes.fuse.kernel_draft import KernelDraft
from lavax.passes.kernels.kernel import Kernel


@dataclass(frozen=True, eq=False)
class Piece:
    """A kernel, and the nodes of the whole graph that correspond to its inputs and outputs."""

    kernel: Kernel
    reads: tuple[Node, ...]
    writes: tuple[Node, ...]


def extract(fusion: Fusion, outputs: Iterable[Node]) -> list[Piece]:
    """The kernels needed for `outputs`, each after the kernels it reads from.

    Fusion may have marked a result for a reader that later joined the kernel; such results are not written.
    """
    needed = set(outputs)
    pieces: list[Piece] = []
    for draft in sorted(fusion.all_drafts, key=lambda draft: draft.order, reverse=True):
        results = tuple(result for result in draft.results if result in needed)
        if results:
            pieces.append(_piece(fusion, draft, results))
            needed.update(pieces[-1].reads)
    return pieces[::-1]


def _piece(fusion: Fusion, draft: KernelDraft, results: tuple[Node, ...]) -> Piece:
    arrays = fusion.cone(results, draft)[1]
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
    fixed = [node for node in order if node in draft.members and (node in results or node in draft.heavy)]
    coordinates = {renamed[node]: draft.members[node] for node in fixed}
    return Piece(Kernel(draft.kind, graph, draft.domain, coordinates), reads, results)
