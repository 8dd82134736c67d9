"""Which kernel computes a node, what floating nodes rest on, and how a value comes to be stored."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from lavax.ir.graph import INPUT, Node
from lavax.passes.fuse.coordinates import candidates, is_legal
from lavax.passes.fuse.costs import MOST_ARRAYS, MOST_NODES
from lavax.passes.fuse.evaluations import evaluations_of
from lavax.passes.fuse.kernel_draft import FIRST, KernelDraft, Order, flat_draft
from lavax.passes.fuse.reasons import Reason
from lavax.passes.kernels.reads import Coordinates

# A row kernel goes over whole rows again only where there are enough rows to keep a device busy, or short ones.
_ROWS_TO_KEEP_BUSY, _SHORT = 32, 1 << 14
# Kernels that take more members once they are open.
_OPEN = ("row", "contract")


class Drafts:
    """The kernels there are, and what is known of nodes without one."""

    def __init__(self) -> None:
        self.draft_of: dict[Node, KernelDraft] = {}
        self.all_drafts: list[KernelDraft] = []
        self.bases: dict[Node, tuple[Node, ...]] = {}  # members of kernels that a moved node is made of
        self.settled: dict[Node, Order] = {}  # the last kernel whose results a floating node reads
        self.reading: dict[Node, frozenset[Node]] = {}  # the arrays a floating node is computed from
        self.maps: dict[tuple[tuple[int, ...], Node], list[KernelDraft]] = {}  # maps over a shape that read an array
        self.refusals: dict[tuple[Node, KernelDraft], Reason] = {}  # why a node is not in the kernel of an operand
        self.storing: dict[Node, Reason] = {}  # why a value is stored that its readers could compute again

    # -- what a node rests on -----------------------------------------------------------------------------------------

    def bases_of(self, node: Node) -> tuple[Node, ...]:
        """The members of kernels, open to more members, that a node is or is made of by movement."""
        draft = self.draft_of.get(node)
        if draft is not None:
            return (node,) if draft.kind in _OPEN else ()
        return self.bases.get(node, ())

    def all_bases_of(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        return tuple(dict.fromkeys(base for node in nodes for base in self.bases_of(node)))

    def last_needed(self, nodes: Iterable[Node], besides: KernelDraft | None = None) -> Order:
        """The last kernel that must have run before the nodes can be computed, in `besides` or anywhere."""
        last = FIRST
        for node in nodes:
            draft = self.draft_of.get(node)
            if draft is None:
                last = max(last, self.settled.get(node, FIRST))
            elif draft is not besides:
                last = max(last, draft.order)
            for base in self.bases.get(node, ()):
                if self.draft_of[base] is not besides:
                    last = max(last, self.draft_of[base].order)
        return last

    def settled_of(self, operand: Node) -> Order:
        """The last kernel an operand needs besides those of its bases."""
        draft = self.draft_of.get(operand)
        if draft is None:
            return self.settled.get(operand, FIRST)
        return FIRST if draft.kind in _OPEN else draft.order

    def arrays_of(self, nodes: Iterable[Node], besides: KernelDraft | None = None) -> frozenset[Node]:
        """The arrays that are read to compute the nodes, without what `besides` computes itself."""
        arrays: set[Node] = set()
        for node in nodes:
            if node.op == INPUT or node in self.draft_of:
                arrays.add(node)
            else:
                arrays |= self.reading[node]
        return frozenset(array for array in arrays if besides is None or self.draft_of.get(array) is not besides)

    def is_stored(self, node: Node) -> bool:
        return node.op == INPUT or (node in self.draft_of and node in self.draft_of[node].results)

    def cone(
        self, outputs: Iterable[Node], draft: KernelDraft | None = None, most: float = inf
    ) -> tuple[list[Node], dict[Node, None]]:
        """The nodes computed for `outputs`, and the arrays read from memory; members of `draft` are computed.

        A floating node that a map kernel has come to write is read only by kernels that come after that one.
        The search ends where it has found more than `most` nodes: whoever asks for no more has no use for the rest.
        """
        computed: dict[Node, None] = {}
        arrays: dict[Node, None] = {}
        stack = list(outputs)
        while stack and len(computed) <= most:
            node = stack.pop()
            if node in computed or node in arrays:
                continue
            if node.op == INPUT or self._is_written_before(node, draft):
                arrays[node] = None
            else:
                computed[node] = None
                stack.extend(node.operands)
        return list(computed), arrays

    def _is_written_before(self, node: Node, draft: KernelDraft | None) -> bool:
        owner = self.draft_of.get(node)
        if owner is None or owner is draft or (draft is not None and node in draft.again):
            return False
        return draft is None or owner.kind != "map" or owner.order < draft.order

    def is_made_of(self, node: Node, draft: KernelDraft) -> bool:
        """Whether a node is a member of a kernel moved about in that kernel itself, and not read from memory."""
        if self._is_written_before(node, draft):
            return False
        return any(self.draft_of[base] is draft for base in self.bases.get(node, ()))

    # -- making results -----------------------------------------------------------------------------------------------

    def settle(self, node: Node, reader: Node | None = None, reason: Reason | None = None) -> None:
        """Has what the node rests on written to memory: for `reader`, which is computed elsewhere for that reason."""
        for base in self.bases_of(node):
            self.draft_of[base].results[base] = None
            if reader is not None and reason is not None:
                self.refusals.setdefault((reader, self.draft_of[base]), reason)

    def store(self, node: Node, reason: Reason | None = None) -> None:
        """Has the node itself written to memory."""
        if node.op == INPUT:
            return
        if reason is not None:
            self.storing.setdefault(node, reason)
        if node in self.draft_of:
            self.draft_of[node].results[node] = None
        elif not self._store_in_base(node):
            self.settle(node)
            self._store_by_map(node)

    def _store_in_base(self, node: Node) -> bool:
        """A moved value of a kernel can be written by that kernel."""
        bases = self.bases_of(node)
        if not bases:
            return False
        draft = self.last_draft(bases)
        if self.last_needed(node.operands, draft) >= draft.order or self.place(node, draft) is not None:
            return False
        self.settle_others(node, bases, draft)
        draft.results[node] = None
        return True

    def _store_by_map(self, node: Node) -> None:
        for draft in self._related_maps(node):
            computed, arrays = self.cone([node], draft, 2 * MOST_NODES - draft.cost)
            together = draft.arrays.union(arrays)
            fits = len(together) + len(draft.results) < MOST_ARRAYS and draft.cost + len(computed) <= 2 * MOST_NODES
            if fits and self.last_needed(arrays, draft) < draft.order and not self._repeats_much_in(draft, node):
                break
        else:
            draft = flat_draft("map", self.next_order([node]), node.shape)
            self.all_drafts.append(draft)
            computed, arrays = self.cone([node], draft)
        draft.members[node] = draft.full
        draft.results[node] = None
        draft.arrays.update(arrays)
        draft.cost += len(computed)
        self.draft_of[node] = draft
        for array in (node, *arrays):
            found = self.maps.setdefault((node.shape, array), [])
            if draft not in found:
                found.append(draft)

    def _repeats_much_in(self, draft: KernelDraft, node: Node) -> bool:
        """Whether a map would compute very many values for an element: its own results, at other places, among them."""
        most = 2 * MOST_NODES
        return evaluations_of(node, lambda value: self._is_written_before(value, draft), most).values > most

    def _related_maps(self, node: Node) -> list[KernelDraft]:
        """Maps over the node's shape that read what it reads, or write it: the latest few."""
        arrays = self.arrays_of([node])
        found = dict.fromkeys(draft for array in arrays for draft in self.maps.get((node.shape, array), [])[-2:])
        return sorted(found, key=lambda draft: draft.order, reverse=True)[:4]

    def settle_others(self, reader: Node, bases: Iterable[Node], draft: KernelDraft) -> None:
        for base in bases:
            if self.draft_of[base] is not draft:
                self.draft_of[base].results[base] = None
                self.refusals[reader, self.draft_of[base]] = Reason.ELSEWHERE

    def last_draft(self, bases: Iterable[Node]) -> KernelDraft:
        return max((self.draft_of[base] for base in bases), key=lambda draft: draft.order)

    def next_order(self, operands: Iterable[Node]) -> Order:
        return (self.last_needed(operands)[0] + 1, len(self.all_drafts))

    def place(self, node: Node, draft: KernelDraft) -> Reason | None:
        """Computes a node in a kernel's loops, or says why there is no place for it there."""
        refusal = Reason.NO_COORDINATES
        for at in candidates(node, draft):
            if not self._may_go_over_rows(at, draft):
                refusal = Reason.LONG_ROWS
            elif not is_legal(node, at, draft, self.is_made_of, self.draft_of):
                refusal = Reason.OTHER_ELEMENTS
            else:
                draft.members[node] = at
                self.draft_of[node] = draft
                return None
        return refusal

    def _may_go_over_rows(self, at: Coordinates, draft: KernelDraft) -> bool:
        if draft.domain.length <= _SHORT or draft.domain.rows >= _ROWS_TO_KEEP_BUSY:
            return True
        return all(index.variables.isdisjoint(draft.reduced_names) for index in at)
