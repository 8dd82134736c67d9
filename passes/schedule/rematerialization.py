"""Rematerialization: late kernels compute values again, so that memory need not hold them from early kernels on.

A training step keeps values of the forward pass for its gradients, and is at its peak where the gradients begin. Many
of those values are cheap functions of others that are kept as well: a mask of a ReLU's result, a normalised value of
the convolution's result and of two numbers per channel. Kernels that run after the peak compute such values from the
arrays that are there, and the early kernel does not write them, or they are dropped at their last early use.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence, Set

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Graph, Node, graph_of, topological, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.passes.build.builder import computed_after
from lavax.passes.fuse.costs import cost_of
from lavax.passes.fuse.extract import Piece
from lavax.passes.numerics.narrow_movement import is_widening
from lavax.passes.schedule.wide_values import Recomputed, wide_values


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
    reads: dict[Node, list[int]]

    def is_held_over(self, node: Node, phase: int) -> bool:
        """Whether a value is written before a phase, and read in it or later."""
        return self.written[node] < phase <= self.last(node)

    def last(self, node: Node) -> int:
        return max(self.reads.get(node, ()), default=self.written[node])

    def last_use_before(self, node: Node, phase: int) -> int:
        return max((read for read in self.reads.get(node, ()) if read < phase), default=self.written[node])

    def bytes_by_phase(self) -> list[int]:
        changes = [0] * (2 + max(map(self.last, self.written), default=0))
        for node, first in self.written.items():
            changes[first] += node.type.nbytes
            changes[self.last(node) + 1] -= node.type.nbytes
        total, found = 0, []
        for change in changes:
            total += change
            found.append(total)
        return found


def with_recomputed_values(
    graph: Graph,
    pieces: Sequence[Piece],
    phases: Mapping[Piece, int],
    repeated: Set[Node],
    epilogue_cost: int,
    operations_per_byte: float,
) -> Graph:
    """The graph in which kernels after the peak of memory recompute what they would have read, if that frees memory,
    and others what they can compute from less.

    `pieces` are the graph's kernels, and `phases` their positions in time. What is stored because it is `repeated` for
    very many elements, such as the angles of positions, is small, and stays. A product's epilogue may cost
    `epilogue_cost`, and a byte less to move so many operations. Returns the graph itself if there is nothing to gain.
    """
    lifetimes = _lifetimes(graph, pieces, phases)
    in_use = lifetimes.bytes_by_phase()
    peak = max(range(len(in_use)), key=in_use.__getitem__)
    if in_use[peak] < _LIMITS.least_peak:
        return graph
    late = {piece: _latest_read(piece, lifetimes) for piece in pieces if phases[piece] >= peak}
    held = [node for node in graph.nodes if node in lifetimes.written and lifetimes.is_held_over(node, peak)]
    least_bytes = in_use[peak] // _LIMITS.least_part
    wanted = [node for node in held if node.type.nbytes >= least_bytes and node not in repeated]
    formulas = _formulas(wanted, held, pieces, lifetimes, late, phases, peak)
    formulas |= {node: frozenset([node]) for node in _read_twice(pieces, late, epilogue_cost) if node not in formulas}
    again: dict[Piece, dict[Node, Recomputed]] = {}
    for piece, anchor in late.items():
        made = [node for node in piece.reads if _is_made_again(node, piece, formulas)]
        if anchor is not None:
            again[piece] = {node: Recomputed(formulas[node], anchor) for node in made}
    written = {node: phase for node, phase in lifetimes.written.items() if node not in formulas}
    for node, readers in wide_values(pieces, written, _bases, operations_per_byte, repeated).items():
        for piece, recomputed in readers.items():
            again.setdefault(piece, {})[node] = recomputed
    return _rewritten(graph, pieces, again) if any(again.values()) else graph


def _lifetimes(graph: Graph, pieces: Sequence[Piece], phases: Mapping[Piece, int]) -> _Lifetimes:
    results = set(graph.outputs)
    written = {node: phases[piece] for piece in pieces for node in piece.writes if node not in results}
    reads: dict[Node, list[int]] = {}
    for piece in pieces:
        for node in piece.reads:
            if node in written:
                reads.setdefault(node, []).append(phases[piece])
    return _Lifetimes(written, reads)


def _latest_read(piece: Piece, lifetimes: _Lifetimes) -> Node | None:
    """The array that a kernel reads and that is written last: nothing that depends on it can run before."""
    read = (node for node in piece.reads if node in lifetimes.written and node.type.size)
    return max(read, key=lifetimes.written.__getitem__, default=None)


def _formulas(
    wanted: Sequence[Node],
    held: Sequence[Node],
    pieces: Sequence[Piece],
    lifetimes: _Lifetimes,
    late: Mapping[Piece, Node | None],
    phases: Mapping[Piece, int],
    peak: int,
) -> dict[Node, frozenset[Node]]:
    """Those of the `wanted` values that need not be `held` over the peak, and for each the arrays that it is recomputed
    from.

    First come those that have a base in common; then others that kernels recompute in passing; then those that take a
    kernel of their own, because a product reads them over and over: not those of 16 bits, which take half the memory
    and the same time. Of each, the first ones computed come first, so that the others are made from what these are made
    from.
    """
    readers: dict[Node, list[Piece]] = {}
    for piece in late:
        for node in piece.reads:
            readers.setdefault(node, []).append(piece)

    def may_wait(node: Node) -> bool:
        """Whether each late reader can recompute the value only after its last early use."""
        early = lifetimes.last_use_before(node, peak)
        anchors = [late[piece] for piece in readers[node] if piece.kind in _FUSED]
        whole = len(anchors) == len(readers[node])
        return whole and all(anchor is not None and lifetimes.written[anchor] > early for anchor in anchors)

    wanted = [node for node in wanted if may_wait(node)]
    apart = {node for node in wanted if any(_is_factor(node, piece) for piece in readers[node])}
    left = {node for node in apart if _is_narrow(node) or any(phases[piece] == peak for piece in readers[node])}
    in_passing = {node for node in wanted if node not in apart}
    found = _from_shared_bases(in_passing, set(held) - in_passing, pieces)
    needed = {base for bases in found.values() for base in bases}
    kept = set(held) - found.keys()
    for node in sorted((node for node in wanted if node not in found), key=lambda node: node in apart):
        bases = None if node in needed or node in left else _bases(node, kept)
        if bases is not None:
            found[node] = bases
            kept.discard(node)
            needed |= bases
    return found


def _from_shared_bases(
    wanted: Set[Node], held: Set[Node], pieces: Sequence[Piece]
) -> dict[Node, frozenset[Node]]:
    """Values that one kernel writes, and that all come from one value of that kernel, which it need not write yet.

    An activation and its derivatives are such values: the activation's argument can stand for all of them.
    """
    found: dict[Node, frozenset[Node]] = {}
    for piece in pieces:
        written = [node for node in piece.writes if node in wanted]
        computed = piece.computed if len(written) > 1 else ()
        bases = (base for base in computed if base.type.size == written[0].type.size)
        choices = [(_made_from(base, written, held), base) for base in bases]
        if not choices:
            continue
        made, _ = max(choices, key=lambda choice: _bytes_saved(choice[0], choice[1], written))
        found |= made
    return found


def _made_from(base: Node, written: Sequence[Node], held: Set[Node]) -> dict[Node, frozenset[Node]]:
    """Those of the values that can be computed from `base`, and from what; none if that saves no memory."""
    bases = {node: _bases(node, held, base) for node in written if node is not base}
    made = {node: of for node, of in bases.items() if of is not None and base in of}
    return made if _bytes_saved(made, base, written) > 0 else {}


def _bytes_saved(made: Iterable[Node], base: Node, written: Sequence[Node]) -> int:
    """The memory that the values do not need, less that of their base unless it is written anyway."""
    return _bytes_of(made) - (0 if base in written else base.type.nbytes)


def _bytes_of(nodes: Iterable[Node]) -> int:
    return sum(node.type.nbytes for node in nodes)


def _is_factor(node: Node, piece: Piece) -> bool:
    """Whether a product reads the value as one of its operands."""
    if piece.kind not in ("contract", "gates"):
        return False
    factors = [operand for other in piece.computed if _is_product(other) for operand in other.operands]
    return node in factors or any(node in other.operands for other in topological(factors, stop=piece.reads))


def _is_narrow(node: Node) -> bool:
    return node.dtype.bits < 32


def _is_product(node: Node) -> bool:
    return OPERATIONS[node.op].family == "contraction"


def _bases(value: Node, held: Set[Node], also: Node | None = None) -> frozenset[Node] | None:
    """The other arrays, held or `also`, from which a value is computed element by element; None if that costs much."""
    bases: set[Node] = set()
    computed: set[Node] = set()
    stack = [value]
    cost = 0
    while stack:
        node = stack.pop()
        if node in computed or node in bases:
            continue
        if node is not value and (node in held or node is also or _is_small(node, value)):
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


def _read_twice(
    pieces: Sequence[Piece], late: Mapping[Piece, Node | None], epilogue_cost: int
) -> list[Node]:
    """What a product's kernel writes for late kernels and for one early map that reads nothing else but arguments.

    If the late ones read it for themselves, fusion sees that the map's values can be computed in the product's
    epilogue, which writes the value once for all that come later.
    """
    early: dict[Node, list[Piece]] = {}
    for piece in pieces:
        for node in () if piece in late else piece.reads:
            early.setdefault(node, []).append(piece)
    later = {node for piece in late for node in piece.reads if not _is_factor(node, piece)}
    products = [piece for piece in pieces if piece.kind == "contract"]
    read_once = [(piece, node) for piece in products for node in piece.writes if len(early.get(node, ())) == 1]
    return [
        node
        for piece, node in read_once
        if node in later
        and _is_map_of(node, early[node][0])
        and _cost(piece) + _cost(early[node][0]) <= epilogue_cost
    ]


def _is_map_of(node: Node, piece: Piece) -> bool:
    return piece.kind == "map" and all(read is node or read.op == INPUT for read in piece.reads)


def _cost(piece: Piece) -> int:
    """The operations for an element of what a kernel writes, but those of a product and of what it multiplies."""
    factors = [operand for node in piece.computed if _is_product(node) for operand in node.operands]
    multiplied = set(topological(factors, stop=piece.reads))
    return sum(cost_of(node) for node in piece.computed if node not in multiplied and not is_widening(node))


def _rewritten(graph: Graph, pieces: Sequence[Piece], again: Mapping[Piece, Mapping[Node, Recomputed]]) -> Graph:
    """The graph in which pieces compute what they would have read."""
    new: dict[Node, Node] = {node: node for node in graph.inputs}
    for piece in pieces:
        local = _recomputed(again.get(piece, {}), new)
        for node in piece.computed:
            if not local.keys().isdisjoint(node.operands):
                local[node] = _over(node, ChainMap(local, new))
            elif node not in new:
                new[node] = _over(node, new)
        new.update((node, local[node]) for node in piece.writes if node in local)
    return graph_of(graph.inputs, [new[output] for output in graph.outputs])


def _is_made_again(node: Node, piece: Piece, formulas: Mapping[Node, frozenset[Node]]) -> bool:
    """Whether a kernel has a formula for a value, or reads the value for itself; a product reads its factors as they
    lie."""
    bases = formulas.get(node, ())
    return bool(bases) and not (node in bases and _is_factor(node, piece))


def _over(node: Node, new: Mapping[Node, Node]) -> Node:
    return with_operands(node, tuple([new[operand] for operand in node.operands]))


def _recomputed(values: Mapping[Node, Recomputed], new: Mapping[Node, Node]) -> dict[Node, Node]:
    """The values that one kernel reads, computed from arrays that are in memory; what they have in common is computed
    once."""
    arrays: dict[Node, Node] = {}
    made: dict[tuple[Node, tuple[Node, ...]], Node] = {}
    found: dict[Node, Node] = {}
    for value, of in values.items():
        for base in of.bases:
            if base not in arrays:
                arrays[base] = new[base] if base.op == INPUT else computed_after(new[base], new[of.anchor])
        local = {base: arrays[base] for base in of.bases}
        for node in topological([value], stop=of.bases):
            operands = tuple(local[operand] for operand in node.operands)
            local[node] = made.setdefault((node, operands), with_operands(node, operands))
        found[value] = local[value]
    return found
