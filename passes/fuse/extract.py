"""Turns the kernels found by fusion into self-contained pieces of graph.

Kernels that are equal in all, such as those of a network's layers, are one object: what passes and the backend find out
about one, they need not find out again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from itertools import chain

from lavax.base.kept import kept
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.exact_text import exact_text
from lavax.ir.graph import INPUT, Graph, Node, input_node, topological, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import TensorType, TupleType
from lavax.passes.fuse.fusion import Fusion
from lavax.passes.fuse.kernel_draft import KernelDraft
from lavax.passes.kernels.kernel import Kernel, Kind
from lavax.passes.kernels.reads import behind_counted


@dataclass(frozen=True, eq=False)
class Piece:
    """A kernel, which is made when it is asked for, and the nodes of the whole graph that correspond to its inputs and
    outputs, and lie between them."""

    kind: Kind
    reads: tuple[Node, ...]
    writes: tuple[Node, ...]
    computed: Sequence[Node]
    make: Callable[[], Kernel]

    @kept
    def kernel(self) -> Kernel:
        return self.make()


def extract(fusion: Fusion, outputs: Iterable[Node], known: dict[Hashable, Kernel] | None = None) -> list[Piece]:
    """The kernels needed for `outputs`, each after the kernels it reads from.

    `known` are kernels that were found before; new ones are added. Fusion may have marked a result for a reader
    that later joined the kernel; such results are not written.
    """
    needed = set(outputs)
    pieces: list[Piece] = []
    known = {} if known is None else known
    for draft in sorted(fusion.all_drafts, key=lambda draft: draft.order, reverse=True):
        results = tuple(result for result in draft.results if result in needed)
        if results:
            pieces.append(_piece(fusion, draft, results, known))
            needed.update(pieces[-1].reads)
    return pieces[::-1]


def _piece(fusion: Fusion, draft: KernelDraft, results: tuple[Node, ...], known: dict[Hashable, Kernel]) -> Piece:
    order, arrays = _computed(fusion, draft, results)
    own = {node: _with_own_counts(node, arrays) for node in order if node.op == "gather"}
    used = chain.from_iterable([own.get(node, node.operands) for node in order] if own else [n.operands for n in order])
    reads = tuple(dict.fromkeys([operand for operand in used if operand in arrays]))
    computed = topological(results, stop=reads) if own else order
    return Piece(draft.kind, reads, results, computed, lambda: _kernel(draft, order, own, reads, results, known))


def _computed(fusion: Fusion, draft: KernelDraft, results: Iterable[Node]) -> tuple[list[Node], set[Node]]:
    """The nodes that a draft computes for its results, operands first, and the arrays that it reads from memory."""
    order: list[Node] = []
    done: set[Node] = set()
    arrays: set[Node] = set()
    draft_of = fusion.draft_of
    for result in results:
        path = [] if result in done else [result]
        while path:
            node = path[-1]
            for operand in node.operands:
                if operand in done or operand in arrays:
                    continue
                owner = draft_of.get(operand)
                is_made_elsewhere = owner is not None and owner is not draft
                if operand.op == INPUT or (is_made_elsewhere and fusion.is_written_before(operand, draft)):
                    arrays.add(operand)
                    continue
                path.append(operand)
                break
            else:
                done.add(node)
                order.append(path.pop())
    return order, arrays


def _key(
    draft: KernelDraft, order: Sequence[Node], reads: Sequence[Node], results: Sequence[Node], fixed: Sequence[Node]
) -> Hashable:
    """Equal for drafts without gathers that give the same kernel, the lines of the user's code included."""
    number = {node: place for place, node in enumerate((*reads, *order))}
    parts: list[Hashable] = [draft.kind, draft.domain.outer, draft.domain.reduced, len(reads)]
    for array in reads:
        parts += _type_key(array.type)
    for node in order:
        parts += (node.op, node.location, *_type_key(node.type), tuple([number[operand] for operand in node.operands]))
        # Texts tell 0.0 from -0.0, and NaN equals NaN.
        names, attrs = OPERATIONS[node.op].attributes, node.attrs
        if names:
            parts += [exact_text(attrs[name]) if name == "value" else attrs[name] for name in names]
    parts.append(tuple([number[result] for result in results]))
    for node in fixed:
        parts += [number[node], tuple([index.key for index in draft.members[node]])]
    return tuple(parts)


def _type_key(type: TensorType) -> tuple[Hashable, ...]:
    """The type itself, or of one array what tells it from others and is hashed soon."""
    return (type,) if isinstance(type, TupleType) else (type.shape, type.dtype.name)


def _kernel(
    draft: KernelDraft,
    order: Sequence[Node],
    own: Mapping[Node, tuple[Node, ...]],
    reads: Sequence[Node],
    results: Sequence[Node],
    known: dict[Hashable, Kernel],
) -> Kernel:
    """A draft's kernel: the one `known` that is equal, if there is one."""
    fixed = [node for node in order if node in draft.members and (node in results or node in draft.heavy)]
    if own:  # its coordinates may name nodes of this graph
        return _made(draft, order, own, reads, results, fixed)
    key = _key(draft, order, reads, results, fixed)
    found = known.get(key)
    if found is None:
        found = known[key] = _made(draft, order, own, reads, results, fixed)
    return found


def _made(
    draft: KernelDraft,
    order: Sequence[Node],
    own: Mapping[Node, tuple[Node, ...]],
    reads: Sequence[Node],
    results: Sequence[Node],
    fixed: Sequence[Node],
) -> Kernel:
    renamed: dict[Node, Node] = {array: input_node(f"a{number}", array.type) for number, array in enumerate(reads)}
    nodes: list[Node] = []
    for node in order:
        operands = own.get(node, node.operands)
        if node in own:
            copies = topological((operand for operand in operands if operand not in renamed), stop=renamed)
            renamed.update(zip(copies, copies, strict=True))
            nodes += copies
        renamed[node] = with_operands(node, tuple(renamed[operand] for operand in operands))
        nodes.append(renamed[node])
    graph = Graph(tuple(renamed[array] for array in reads), tuple(nodes), tuple(renamed[result] for result in results))
    coordinates = {renamed[node]: draft.members[node] for node in fixed}
    return Kernel(draft.kind, graph, draft.domain, coordinates)


def _with_own_counts(node: Node, arrays: Set[Node]) -> tuple[Node, ...]:
    """The operands of a gather, with copies of the indices that count but are written to memory as well.

    Fusion may have let the gather stay in the kernel because it knew what the indices are.
    """
    array, *indices = node.operands
    chains = [behind_counted(index) for index in indices]
    own = (
        index if arrays.isdisjoint(chain) else _copied(chain) for index, chain in zip(indices, chains, strict=True)
    )
    return (array, *own)


def _copied(chain: Sequence[Node]) -> Node:
    """The last of nodes of which each moves the one before, made anew."""
    first, *moves = chain
    copy = Node(first.op, (), first.attrs, first.type, first.name, first.location)
    for move in moves:
        copy = with_operands(move, (copy,))
    return copy
