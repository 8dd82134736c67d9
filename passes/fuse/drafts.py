"""The kernels drafted so far, the values that floating nodes are based on, and how a value comes to be stored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import inf

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Node
from lavax.ir.operation import OPERATIONS
from lavax.passes.fuse.coordinates import candidates, is_legal
from lavax.passes.fuse.costs import KERNEL_LIMITS, code_of
from lavax.passes.fuse.evaluations import evaluations_of
from lavax.passes.fuse.kernel_draft import FIRST, KernelDraft, Order, flat_draft
from lavax.passes.fuse.reasons import Reason
from lavax.passes.kernels.index import flatten, grows_by_one
from lavax.passes.kernels.reads import Coordinates
from lavax.passes.target.target import Target

# Kernels that accept further members once they are open.
_JOINABLE = ("row", "contract", "gates")


@dataclass(frozen=True)
class WholeRows:
    """When a row kernel may iterate over whole rows again: if rows are short, or enough to keep a device busy.

    Chosen by `python -m benchmarks comparison --only softmax --only layer-norm`.
    """

    longest_short: int = 1 << 14  # elements of a row
    rows_to_keep_busy: int = 32

    def may_be_walked_again(self, rows: int, length: int) -> bool:
        return length <= self.longest_short or rows >= self.rows_to_keep_busy


@dataclass(frozen=True)
class MapCandidates:
    """The existing maps to try before a value gets a map of its own: the latest few.

    A bound on the search alone. Checked by `python -m benchmarks compile-time`.
    """

    per_array: int = 2
    in_all: int = 4


_WHOLE_ROWS = WholeRows()
_MAP_CANDIDATES = MapCandidates()
# Made once: `frozenset[Node]()` takes ten times as long as the rest of some of these functions.
NO_ARRAYS: frozenset[Node] = frozenset()
_NO_BASES: tuple[Node, ...] = ()
_MAP_NODES = KERNEL_LIMITS.values * KERNEL_LIMITS.nodes


class Drafts:
    """All kernel drafts, and the facts about nodes that no kernel owns."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.draft_of: dict[Node, KernelDraft] = {}
        self.all_drafts: list[KernelDraft] = []
        self.bases: dict[Node, tuple[Node, ...]] = {}  # the members of kernels that a moved node is made of
        self.settled: dict[Node, Order] = {}  # the last kernel whose results a floating node reads
        self.reading: dict[Node, frozenset[Node]] = {}  # the arrays a floating node is computed from
        self.maps: dict[tuple[tuple[int, ...], Node], list[KernelDraft]] = {}  # (shape, array) -> maps that read it
        self.refusals: dict[tuple[Node, KernelDraft], Reason] = {}  # why a node is not in the kernel of an operand
        self.storing: dict[Node, Reason] = {}  # why a value is stored that its readers could compute again

    # -- the basis of a node ------------------------------------------------------------------------------------------

    def bases_of(self, node: Node) -> tuple[Node, ...]:
        """The members of joinable kernels that the node is, or is made of by movement."""
        draft = self.draft_of.get(node)
        if draft is not None:
            return (node,) if draft.kind in _JOINABLE else ()
        return self.bases.get(node, ())

    def all_bases_of(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        draft_of, found = self.draft_of, _NO_BASES
        for node in nodes:
            draft = draft_of.get(node)
            if draft is None:
                bases = self.bases.get(node)
            else:
                bases = (node,) if draft.kind in _JOINABLE else None
            if bases:
                found = tuple(dict.fromkeys((*found, *bases))) if found else bases
        return found

    def last_needed(self, nodes: Iterable[Node], excluding: KernelDraft | None = None) -> Order:
        """The last kernel, except `excluding`, that must run before the nodes can be computed."""
        last, draft_of = FIRST, self.draft_of
        for node in nodes:
            draft = draft_of.get(node)
            if draft is None:
                order = self.settled.get(node, FIRST)
            else:
                order = FIRST if draft is excluding else draft.order
            if order > last:
                last = order
            for base in self.bases.get(node, ()):
                of_base = draft_of[base]
                if of_base is not excluding and of_base.order > last:
                    last = of_base.order
        return last

    def settled_of(self, operand: Node) -> Order:
        """The last kernel that an operand needs, apart from those of its bases."""
        draft = self.draft_of.get(operand)
        if draft is None:
            return self.settled.get(operand, FIRST)
        return FIRST if draft.kind in _JOINABLE else draft.order

    def arrays_of(self, nodes: Iterable[Node], excluding: KernelDraft | None = None) -> frozenset[Node]:
        """The arrays read to compute the nodes, except those that `excluding` computes itself."""
        draft_of = self.draft_of
        arrays = NO_ARRAYS
        for node in nodes:
            owner = draft_of.get(node)
            own: Collection[Node] = (node,)
            if owner is None and node.op != INPUT:
                own = self.reading[node]
            if excluding is not None:
                if owner is excluding:
                    continue
                if owner is None:
                    own = [array for array in own if draft_of.get(array) is not excluding]
            if not arrays.issuperset(own):
                arrays = arrays.union(own) if arrays else frozenset(own)  # which is itself, if it is one
        return arrays

    def arrays_with(self, draft: KernelDraft, nodes: Iterable[Node]) -> set[Node]:
        """The arrays that a kernel reads if it computes the nodes as well."""
        further = self.arrays_of(nodes, draft)
        return draft.arrays if further <= draft.arrays else draft.arrays | further

    def is_stored(self, node: Node) -> bool:
        return node.op == INPUT or (node in self.draft_of and node in self.draft_of[node].results)

    def cone(
        self,
        outputs: Iterable[Node],
        draft: KernelDraft | None = None,
        most: float = inf,
        without: Node | None = None,
    ) -> tuple[list[Node], dict[Node, None]]:
        """The nodes computed for `outputs`, and the arrays read from memory; members of `draft` count as computed.

        `without` counts as read from memory. If a map kernel writes a floating node, only kernels after that map read
        it. The search stops once it has found more than `most` nodes, because callers that pass a limit need only know
        that it is exceeded.
        """
        computed: dict[Node, None] = {}
        arrays: dict[Node, None] = {}
        stack, draft_of = list(outputs), self.draft_of
        while stack and len(computed) <= most:
            node = stack.pop()
            if node in computed or node in arrays:
                continue
            written, owner = node.op == INPUT or node is without, draft_of.get(node)
            if written or (owner is not None and owner is not draft and self.is_written_before(node, draft)):
                arrays[node] = None
            else:
                computed[node] = None
                stack.extend(node.operands)
        return list(computed), arrays

    def is_written_before(self, node: Node, draft: KernelDraft | None) -> bool:
        """Whether a kernel other than `draft` writes the node to memory, for this one as well."""
        owner = self.draft_of.get(node)
        if owner is None or owner is draft or (draft is not None and node in draft.recomputed):
            return False
        return draft is None or owner.kind != "map" or owner.order < draft.order

    def is_made_of(self, node: Node, draft: KernelDraft) -> bool:
        """Whether a kernel computes a node by moving its own members, rather than reading it from memory."""
        bases = self.bases.get(node)
        if not bases or self.is_written_before(node, draft):
            return False
        return any(self.draft_of[base] is draft for base in bases)

    # -- making results -----------------------------------------------------------------------------------------------

    def settle(self, node: Node, reader: Node | None = None, reason: Reason | None = None) -> None:
        """Has the bases of the node written to memory; `reason` says why `reader` is computed elsewhere."""
        for base in self.bases_of(node):
            self.draft_of[base].results[base] = None
            if reader is not None and reason is not None:
                self.refusals.setdefault((reader, self.draft_of[base]), reason)

    def settle_others(self, reader: Node, bases: Iterable[Node], draft: KernelDraft) -> None:
        """Has all bases but those in `draft`, which `reader` joins, written to memory."""
        for base in bases:
            if self.draft_of[base] is not draft:
                self.draft_of[base].results[base] = None
                self.refusals[reader, self.draft_of[base]] = Reason.ELSEWHERE

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
        """Has a moved member of a kernel written by that kernel, if possible."""
        bases = self.bases_of(node)
        if not bases:
            return False
        draft = self.last_draft(bases)
        if self.last_needed(node.operands, draft) >= draft.order or self.add_member(node, draft) is not None:
            return False
        self.settle_others(node, bases, draft)
        draft.results[node] = None
        return True

    def _store_by_map(self, node: Node) -> None:
        for draft in self._related_maps(node):
            computed, arrays = self.cone([node], draft, _MAP_NODES)
            if self._fits(node, draft, computed, arrays):
                break
        else:
            draft = flat_draft("map", self.next_order([node]), node.shape)
            self.all_drafts.append(draft)
            computed, arrays = self.cone([node], draft)
        draft.members[node] = draft.full
        draft.results[node] = None
        draft.arrays.update(arrays)
        draft.computed.update(computed)
        self.draft_of[node] = draft
        for array in self._worth_sharing(node, (node, *arrays)):
            found = self.maps.setdefault((node.shape, array), [])
            if draft not in found:
                found.append(draft)

    def _fits(self, node: Node, draft: KernelDraft, computed: list[Node], arrays: dict[Node, None]) -> bool:
        """Whether a map can write one more result, which takes these nodes and arrays."""
        if len(draft.arrays.union(arrays)) + len(draft.results) >= KERNEL_LIMITS.arrays:
            return False
        every = draft.computed.union(computed)
        if KERNEL_LIMITS.are_passed_by_kernel(len(every), sum(map(code_of, every))):
            return False
        if self.last_needed(arrays, draft) >= draft.order:
            return False
        return not self._repeats_much_in(draft, node, computed)

    def _repeats_much_in(self, draft: KernelDraft, node: Node, computed: list[Node]) -> bool:
        """Whether a map would compute too many values per element, counting its own results at other coordinates, for a
        node that takes these."""
        if not any(self._moves_computed(value, draft) for value in computed):
            return len(computed) > _MAP_NODES  # each at the element itself
        found = evaluations_of(node, lambda value: self.is_written_before(value, draft), _MAP_NODES)
        return found.values > _MAP_NODES

    def _moves_computed(self, value: Node, draft: KernelDraft) -> bool:
        """Whether a value is another one that the map computes, too, at other coordinates."""
        if OPERATIONS[value.op].family == "elementwise":
            return False
        return not all(operand.op == INPUT or self.is_written_before(operand, draft) for operand in value.operands)

    def _related_maps(self, node: Node) -> list[KernelDraft]:
        """The latest few maps over the node's shape that read an array it reads, or write one."""
        arrays, latest = self._worth_sharing(node, self.arrays_of([node])), _MAP_CANDIDATES
        found = dict.fromkeys(
            draft for array in arrays for draft in self.maps.get((node.shape, array), [])[-latest.per_array :]
        )
        return sorted(found, key=lambda draft: draft.order, reverse=True)[: latest.in_all]

    @staticmethod
    def _worth_sharing(node: Node, arrays: Iterable[Node]) -> list[Node]:
        """The arrays for whose sake a map may write several values: not single numbers, such as a step's, which many
        maps read that have nothing else in common."""
        return [array for array in arrays if array.type.size > 1 or node.type.size == 1]

    def last_draft(self, bases: Sequence[Node]) -> KernelDraft:
        if len(bases) == 1:
            return self.draft_of[bases[0]]
        drafts = {self.draft_of[base] for base in bases}
        return max(drafts, key=lambda draft: draft.order) if len(drafts) > 1 else drafts.pop()

    def next_order(self, operands: Iterable[Node]) -> Order:
        return (self.last_needed(operands)[0] + 1, len(self.all_drafts))

    def add_member(self, node: Node, draft: KernelDraft) -> Reason | None:
        """Computes a node in a kernel's loops, or says why no coordinates suit it."""
        refusal = Reason.NO_COORDINATES
        for at in candidates(node, draft):
            if not self._may_go_over_rows(at, draft):
                refusal = Reason.LONG_ROWS
            elif self._is_turned(node, at, draft):
                refusal = Reason.TURNED
            elif not is_legal(node, at, draft, self.is_made_of, self.draft_of):
                refusal = Reason.OTHER_ELEMENTS
            else:
                draft.members[node] = at
                self.draft_of[node] = draft
                return None
        return refusal

    def _is_turned(self, node: Node, at: Coordinates, draft: KernelDraft) -> bool:
        """Whether a row's kernel would write a large value, or read what it is computed from, far from its neighbours:
        invocations of neighbouring rows have elements that lie apart."""
        least = self.target.rows.turned
        if draft.kind != "row" or least is None or node.type.size < least:
            return False
        proper = [index for index in draft.domain.outer_variables if not index.is_constant]
        if not proper or not all(index.variables.isdisjoint(draft.reduced_names) for index in at):
            return False
        (name,) = proper[-1].variables
        return not grows_by_one(flatten(at, node.shape), name)

    def _may_go_over_rows(self, at: Coordinates, draft: KernelDraft) -> bool:
        if _WHOLE_ROWS.may_be_walked_again(draft.domain.rows, draft.domain.length):
            return True
        return all(index.variables.isdisjoint(draft.reduced_names) for index in at)
