"""Rematerialization: late kernels compute values again, so that memory need not hold them from early kernels on.

A training step keeps values of the forward pass for its gradients, and is at its peak where the gradients begin. Many
of those values are cheap functions of others that are kept as well: a mask of a ReLU's result, a normalised value of
the convolution's result and of two numbers per channel. Kernels that run after the peak compute such values from the
arrays that are there, and the early kernel does not write them, or they are dropped at their last early use.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from lavax.ir.graph import INPUT, Graph, Node, graph_of, topological, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.passes.build.builder import computed_after
from lavax.passes.fuse.costs import cost_of
from lavax.passes.fuse.extract import Piece


@dataclass(frozen=True)
class RematerializationLimits:
    """What is computed again. Chosen by `python -m benchmarks models`."""

    least_peak: int = 32 << 20  # bytes of temporaries below which memory is no concern
    least_part: int = 1 << 10  # values of a smaller part of the peak than one in so many are kept
    nodes: int = 24  # the most nodes of one value's formula
    cost: int = 80  # the most simple operations per element: a GELU and its surroundings
    arrays: int = 6  # the most arrays that a formula reads
    small: int = 16  # an array of so many times fewer elements is kept for a formula


_LIMITS = RematerializationLimits()
_FREE = ("movement", "source")
_LOCAL = ("elementwise", *_FREE)
_FUSED = ("row", "map", "contract")


@dataclass(frozen=True)
class _Lifetimes:
    """When temporaries are written and read last, by the phases of their kernels."""

    written: dict[Node, int]
    last_read: dict[Node, int]

    def bytes_by_phase(self) -> list[int]:
        changes = [0] * (2 + max(self.last_read.values(), default=0))
        for node, first in self.written.items():
            changes[first] += node.type.nbytes
            changes[self.last_read.get(node, first) + 1] -= node.type.nbytes
        total, found = 0, []
        for change in changes:
            total += change
            found.append(total)
        return found


def with_recomputed_values(graph: Graph, pieces: Sequence[Piece], phases: Mapping[Piece, int]) -> Graph:
    """The graph in which kernels after the peak of memory recompute what they would have read, if that frees memory.

    `pieces` are the graph's kernels, and `phases` their positions in time. Returns the graph itself if there is nothing
    to gain.
    """
    lifetimes = _lifetimes(graph, pieces, phases)
    in_use = lifetimes.bytes_by_phase()
    peak = max(range(len(in_use)), key=in_use.__getitem__)
    if in_use[peak] < _LIMITS.least_peak:
        return graph
    anchors = _anchors(pieces, phases, peak)
    formulas = _formulas(lifetimes, pieces, phases, anchors, peak, in_use[peak] // _LIMITS.least_part)
    return _rewritten(graph, pieces, anchors, formulas) if formulas else graph


def _lifetimes(graph: Graph, pieces: Sequence[Piece], phases: Mapping[Piece, int]) -> _Lifetimes:
    results = set(graph.outputs)
    written = {node: phases[piece] for piece in pieces for node in piece.writes if node not in results}
    last_read: dict[Node, int] = {}
    for piece in pieces:
        for node in piece.reads:
            if node in written:
                last_read[node] = max(last_read.get(node, 0), phases[piece])
    return _Lifetimes(written, last_read)


def _anchors(pieces: Sequence[Piece], phases: Mapping[Piece, int], peak: int) -> dict[Piece, Node]:
    """For each kernel that must run after the peak, an array that it reads and that is not written before."""
    written = {node: phases[piece] for piece in pieces for node in piece.writes}
    found = {}
    for piece in pieces:
        latest = max((node for node in piece.reads if node in written), key=written.__getitem__, default=None)
        if latest is not None and written[latest] >= peak and latest.type.size:
            found[piece] = latest
    return found


def _formulas(
    lifetimes: _Lifetimes,
    pieces: Sequence[Piece],
    phases: Mapping[Piece, int],
    anchors: Mapping[Piece, Node],
    peak: int,
    least_bytes: int,
) -> dict[Node, frozenset[Node]]:
    """The values that are not held over the peak, and for each the arrays that it is recomputed from, which are.

    First come those that kernels recompute in passing; then those that take a kernel of their own, because a product
    reads them over and over.
    """
    readers: dict[Node, list[Piece]] = {}
    for piece in pieces:
        if phases[piece] > peak:
            for node in piece.reads:
                readers.setdefault(node, []).append(piece)
    held = {node: None for node, first in lifetimes.written.items() if first < peak < lifetimes.last_read.get(node, 0)}
    large = [node for node in held if node.type.nbytes >= least_bytes]
    wanted = [node for node in large if all(r in anchors and r.kernel.kind in _FUSED for r in readers[node])]
    apart = {node for node in wanted if any(_is_factor(node, piece) for piece in readers[node])}
    found: dict[Node, frozenset[Node]] = {}
    needed: set[Node] = set()
    for node in sorted(wanted, key=lambda node: node in apart):
        bases = None if node in needed else _bases(node, held.keys() - found.keys() - {node})
        if bases is not None:
            found[node] = bases
            needed |= bases
    return found


def _is_factor(node: Node, piece: Piece) -> bool:
    """Whether a product reads the value as one of its operands."""
    if piece.kernel.kind != "contract":
        return False
    computed = topological(piece.writes, stop=piece.reads)
    factors = [operand for other in computed if _is_product(other) for operand in other.operands]
    return node in factors or any(node in other.operands for other in topological(factors, stop=piece.reads))


def _is_product(node: Node) -> bool:
    return OPERATIONS[node.op].family == "contraction"


def _bases(value: Node, held: Set[Node]) -> frozenset[Node] | None:
    """The arrays from which a value is computed element by element; None if that takes too much."""
    bases: set[Node] = set()
    computed: set[Node] = set()
    stack = [value]
    cost = 0
    while stack:
        node = stack.pop()
        if node in computed or node in bases:
            continue
        if node is not value and (node in held or _is_small(node, value)):
            bases.add(node)
            continue
        computed.add(node)
        cost += cost_of(node)
        if OPERATIONS[node.op].family not in _LOCAL or cost > _LIMITS.cost or len(computed) > _LIMITS.nodes:
            return None
        stack.extend(node.operands)
    return frozenset(bases) if 0 < len(bases) <= _LIMITS.arrays else None


def _is_small(node: Node, value: Node) -> bool:
    """Whether an array costs little to read: an argument, or one of few elements that a kernel writes."""
    if node.op == INPUT:
        return True
    return OPERATIONS[node.op].family not in _FREE and node.type.size * _LIMITS.small <= value.type.size


def _rewritten(
    graph: Graph, pieces: Sequence[Piece], anchors: Mapping[Piece, Node], formulas: Mapping[Node, frozenset[Node]]
) -> Graph:
    new: dict[Node, Node] = {node: node for node in graph.inputs}
    for piece in pieces:
        again = [node for node in piece.reads if node in formulas] if piece in anchors else []
        local = {node: _recomputed(node, formulas[node], new[anchors[piece]], new) for node in again}
        for node in topological(piece.writes, stop=piece.reads):
            if not local.keys().isdisjoint(node.operands):
                local[node] = _over(node, ChainMap(local, new))
            elif node not in new:
                new[node] = _over(node, new)
        new.update((node, local[node]) for node in piece.writes if node in local)
    return graph_of(graph.inputs, [new[output] for output in graph.outputs])


def _over(node: Node, new: Mapping[Node, Node]) -> Node:
    return with_operands(node, tuple(new[operand] for operand in node.operands))


def _recomputed(value: Node, bases: frozenset[Node], anchor: Node, new: Mapping[Node, Node]) -> Node:
    """The value, computed after `anchor` from arrays that are in memory."""
    found = {base: new[base] if base.op == INPUT else computed_after(new[base], anchor) for base in bases}
    for node in topological([value], stop=bases):
        found[node] = _over(node, found)
    return found[value]
