"""Cuts a graph into kernels, in one walk from the inputs to the outputs.

A node is either *floating* (computed again by whoever reads it: elementwise chains over arrays in memory, movement)
or has a *draft*, the kernel it is computed in. Reductions, contractions and routines open kernels. What
is computed from a kernel's values joins it where `placement` allows; else the values it reads become results of
their kernel and it floats on over them. Floating outputs get map kernels of their own in the end, shared where
they have the same shape and read the same arrays.
"""

from __future__ import annotations

from collections.abc import Collection

from lavax.ir.graph import INPUT, Graph, Node
from lavax.ir.operation import OPERATIONS
from lavax.ir.ops.attention import OPERANDS as ATTENTION
from lavax.ir.types import DTYPES
from lavax.passes.build.attention import company
from lavax.passes.build.contraction_geometry import is_strided, lies_scattered
from lavax.passes.fuse.coordinates import candidates, covers, is_legal, is_whole_row
from lavax.passes.fuse.costs import MOST_ARRAYS, MOST_FLOATING_ARRAYS, MOST_NODES, cost_of
from lavax.passes.fuse.drafts import Drafts
from lavax.passes.fuse.epilogue import Readers
from lavax.passes.fuse.evaluations import Evaluations, bound, evaluations_of
from lavax.passes.fuse.kernel_draft import KernelDraft, flat_draft, row_draft, variables_of
from lavax.passes.fuse.reasons import Reason
from lavax.passes.fuse.recompute import Again, Siblings, again_instead
from lavax.passes.fuse.strides import Way, scattered_operands, way_into_epilogue
from lavax.passes.kernels.reads import READS, Coordinates
from lavax.passes.numerics.rounding import rounding_of
from lavax.passes.target.target import ANY_DEVICE, Target

# Recomputing a small expensive value for every element of a large one: how often, and how much work in all.
_REPEATS, _REPEATED_COST, _REPEATED_WORK = 16, 8, 1 << 18
# What may be computed for an element that others compute too: about as much as it takes to store and to read a value.
_WORTH_REPEATING = 32
# Operands of routines that are read many times over: worth storing where they are computed and not merely moved.
_READ_OFTEN: dict[str, tuple[int, ...]] = {
    **{op: tuple(range(len(names))) for op, names in ATTENTION.items()},
    "merge_runs": (0, 1),
    "search_sorted": (0,),
    "sort_runs": (0,),
    "triangular_solve": (0,),
}


class Fusion(Drafts):
    """The state of one walk."""

    def __init__(self, graph: Graph, target: Target) -> None:
        super().__init__()
        self.target = target
        self.readers = Readers(graph, beyond_movement=target.products.stages_operands)
        self.siblings = Siblings(graph)
        self.returned = frozenset(graph.outputs)
        self.number = {node: number for number, node in enumerate(graph.nodes)}
        self.weight: dict[Node, Evaluations] = {}  # what it takes to compute a floating node
        self.rows: dict[tuple[tuple[int, ...], tuple[int, ...]], list[KernelDraft]] = {}
        self.sharing: set[Node] = set()  # contractions that are to share a shader with others
        self.companies: dict[tuple[object, ...], KernelDraft] = {}  # kernels of routines that may compute more than one

    # -- the walk -----------------------------------------------------------------------------------------------------

    def visit(self, node: Node) -> None:
        family = OPERATIONS[node.op].family
        if family == "elementwise" and not _widens(node):
            self._visit_elementwise(node)
        elif node.op in READS:
            self._visit_moved(node)
        elif family == "reduction":
            self._visit_reduction(node)
        elif family == "contraction":
            self._visit_contraction(node)
        elif family == "region":
            self._visit_control_flow(node)
        else:
            self._visit_routine(node)

    def _float(self, node: Node) -> None:
        """Leaves the node to be computed by whoever reads it, unless that would take too much."""
        self._weigh(node)
        while self._takes_much(node) and (value := self._value_to_store(node)) is not None:
            self.store(value, Reason.LARGE)
            for other in self._floating_above(value, node):
                self._weigh(other)

    def _weigh(self, node: Node) -> None:
        """Notes what it takes to compute a floating node; in full only where a bound that is soon found is high."""
        weight = bound(node, [self.weight[operand] for operand in node.operands if self._floats(operand)])
        if weight.values > MOST_NODES or weight.repeated > _WORTH_REPEATING:
            weight = evaluations_of(node, self.draft_of.__contains__, MOST_NODES)
        self.weight[node] = weight
        self.reading[node] = self.arrays_of(node.operands)
        if node in self.bases:
            self.settled[node] = max(self.settled_of(operand) for operand in node.operands)
        else:
            self.settled[node] = self.last_needed(node.operands)

    def _floats(self, node: Node) -> bool:
        return node.op != INPUT and node not in self.draft_of

    def _takes_much(self, node: Node) -> bool:
        weight = self.weight[node]
        if weight.values > MOST_NODES or len(self.reading[node]) > MOST_FLOATING_ARRAYS:
            return True
        return weight.repeated > _WORTH_REPEATING and weight.repeated * node.type.size >= _REPEATED_WORK

    def _value_to_store(self, node: Node) -> Node | None:
        """The value behind a floating node without which it takes least: one of many places, or else an operand."""
        saved = {
            value: (number * node.type.size - value.type.size) * self.weight[value].work
            for value, number in self.weight[node].places.items()
            if number > 1 and OPERATIONS[value.op].family == "elementwise"
        }
        value = max(saved, key=saved.__getitem__, default=None)
        if value is not None and saved[value] > 0:
            return value
        operands = [operand for operand in node.operands if self._floats(operand) and operand not in self.bases]
        return max(operands, key=lambda operand: self.weight[operand].values + len(self.reading[operand]), default=None)

    def _floating_above(self, value: Node, node: Node) -> list[Node]:
        """The floating nodes that a node is computed from and that read a value, from that one on, and the node."""
        above = {value: None}
        for other in sorted(self.cone([node])[0], key=self.number.__getitem__):
            if not above.keys().isdisjoint(other.operands):
                above[other] = None
        return list(above)[1:]

    def _visit_moved(self, node: Node) -> None:
        if node.op == "broadcast" and not self.bases_of(node.operands[0]) and self._repeats_much(node):
            self.store(node.operands[0], Reason.REPEATED)
        bases = self.all_bases_of(node.operands)
        if bases:
            self.bases[node] = bases
        self._float(node)

    def _repeats_much(self, node: Node) -> bool:
        """Whether a broadcast would have a small expensive value computed very many times."""
        operand = node.operands[0]
        if self.is_stored(operand) or node.type.size < _REPEATS * max(operand.type.size, 1):
            return False
        cost = sum(cost_of(part) for part in self.cone([operand])[0])
        return cost >= _REPEATED_COST and cost * node.type.size >= _REPEATED_WORK

    def _visit_elementwise(self, node: Node) -> None:
        bases = self.all_bases_of(node.operands)
        if bases:
            draft = self.last_draft(bases)
            refusal = self._join(node, draft)
            if refusal is None:
                self.settle_others(node, bases, draft)
                return
            self.refusals[node, draft] = refusal
            for operand in node.operands:
                self.settle(operand, node, Reason.NOT_LAST)
        self._float(node)

    def _join(self, node: Node, draft: KernelDraft) -> Reason | None:
        """Computes an elementwise node in a kernel it reads from, or says why that is not allowed or does not pay."""
        if self.last_needed(node.operands, draft) >= draft.order:
            return Reason.NEEDS_LATER
        if len(draft.members) >= MOST_NODES:
            return Reason.NODES
        arrays = draft.arrays | self.arrays_of(node.operands, draft)
        if len(arrays) + len(draft.results) + 1 > MOST_ARRAYS:
            return Reason.ARRAYS
        cost = draft.cost + cost_of(node)
        refusal = self._unsuited_epilogue(node, draft, cost, len(arrays)) if draft.kind == "contract" else None
        refusal = refusal or self.place(node, draft)
        if refusal is None:
            draft.cost, draft.arrays = cost, arrays
        return refusal

    def _unsuited_epilogue(self, node: Node, draft: KernelDraft, cost: int, arrays: int) -> Reason | None:
        if cost > self.target.fusion.epilogue_cost:
            return Reason.EPILOGUE_COST
        if arrays > self.target.fusion.epilogue_arrays:
            return Reason.EPILOGUE_ARRAYS
        (product,) = draft.heavy
        one_to_one = node.type.size == product.type.size
        if one_to_one and product in self.sharing and not self._is_in_strides(node, draft):
            return Reason.STRIDES
        bases = (base for base in self.all_bases_of(node.operands) if self.draft_of[base] is draft)
        return None if all(self.readers.come_together(base) for base in bases) else Reason.READ_APART

    def _is_in_strides(self, node: Node, draft: KernelDraft) -> bool:
        """Whether a contraction that shares its shader is to compute a node; stores what it is to read for that."""
        (product,) = draft.heavy
        read_apart = node not in self.returned and not self.readers.come_together(node)
        ways = {
            operand: way_into_epilogue(node, self.cone([operand])[0], product, read_apart, self.target.products)
            for operand in node.operands
            if self.draft_of.get(operand) is not draft and not self.is_made_of(operand, draft)
        }
        if Way.LEFT_OUT in ways.values() or not is_strided(node):
            return False
        for operand, way in ways.items():
            if way is Way.STORED:
                self.store(operand, Reason.STRIDES)
        return self.last_needed(node.operands, draft) < draft.order

    # -- what opens kernels -------------------------------------------------------------------------------------------

    def _open(self, draft: KernelDraft, node: Node, at: Coordinates) -> None:
        draft.arrays.update(self.arrays_of(node.operands))
        draft.members[node] = at
        draft.heavy.add(node)
        self.all_drafts.append(draft)
        self.draft_of[node] = draft

    def _visit_reduction(self, node: Node) -> None:
        (operand,) = node.operands
        axes = _reduced_axes(node)
        bases = self.bases_of(operand)
        for draft in self._rows_to_join(operand, axes, bases):
            refusal = self._join_reduction(node, draft, axes)
            if refusal is None:
                self.settle_others(node, bases, draft)
                return
            self.refusals[node, draft] = refusal
        worth = self.target.fusion.operations_per_byte
        again = again_instead(node, bases, self.draft_of, self.siblings, self.returned.__contains__, worth)
        if again is not None:
            self._reduce_again(node, again)
            return
        self.settle(operand, node, Reason.WHOLE_ROWS)
        self._open_rows(node)

    def _open_rows(self, node: Node) -> KernelDraft:
        (operand,) = node.operands
        axes = _reduced_axes(node)
        draft = row_draft(self.next_order([operand]), operand.shape, axes)
        self._open(draft, node, draft.domain.outer_variables)
        self.rows.setdefault((operand.shape, axes), []).append(draft)
        return draft

    def _reduce_again(self, node: Node, again: Again) -> None:
        """Reduces values of another kernel, which this one computes for itself: with others that read the same."""
        for array in again.arrays:
            if array in self.draft_of:
                self.draft_of[array].results[array] = None
        axes = _reduced_axes(node)
        for draft in self._recent_rows(node.operands[0].shape, axes, again.arrays):
            if self._join_reduction(node, draft, axes) is None:
                break
        else:
            draft = self._open_rows(node)
        draft.again |= again.nodes
        draft.arrays = (draft.arrays - again.nodes) | again.arrays

    def _recent_rows(
        self, shape: tuple[int, ...], axes: tuple[int, ...], arrays: frozenset[Node]
    ) -> list[KernelDraft]:
        """The latest few kernels over such rows that read one of the arrays; of no arrays, any."""
        recent = self.rows.get((shape, axes), [])[-4:]
        return [draft for draft in reversed(recent) if not arrays or not draft.arrays.isdisjoint(arrays)]

    def _rows_to_join(self, operand: Node, axes: tuple[int, ...], bases: tuple[Node, ...]) -> list[KernelDraft]:
        if bases:
            last = self.last_draft(bases)
            return [last] if last.kind == "row" else []
        return self._recent_rows(operand.shape, axes, self.arrays_of([operand]))

    def _join_reduction(self, node: Node, draft: KernelDraft, axes: tuple[int, ...]) -> Reason | None:
        """Computes a reduction in a row kernel, or says why not."""
        (operand,) = node.operands
        if self.last_needed([operand], draft) >= draft.order:
            return Reason.NEEDS_LATER
        if len(draft.members) >= MOST_NODES:
            return Reason.NODES
        arrays = draft.arrays | self.arrays_of([operand], draft)
        if len(arrays) + len(draft.results) + 1 > MOST_ARRAYS:
            return Reason.ARRAYS
        refusal = Reason.OTHER_ROWS
        for at in [draft.members[operand]] if operand in draft.members else candidates(operand, draft):
            outer = tuple(index for axis, index in enumerate(at) if axis not in axes)
            if not is_whole_row([at[axis] for axis in axes], outer, draft) or not covers(node, outer, draft):
                continue
            if operand in draft.members or is_legal(operand, at, draft, self.is_made_of, self.draft_of):
                draft.members[node] = outer
                draft.heavy.add(node)
                draft.arrays = arrays
                self.draft_of[node] = draft
                return None
            refusal = Reason.OTHER_ELEMENTS
        return refusal

    def _visit_contraction(self, node: Node) -> None:
        needed = list(node.operands)
        for side, operand in enumerate(node.operands):
            rounding = self._stored_rounding(node, side)
            if rounding is not None:
                self.store(rounding, Reason.ROUNDED)
                needed[side] = rounding
                continue
            self.settle(operand, node, Reason.PRODUCT)
            computed, arrays = self.cone([operand])
            if self._is_large_prologue(computed, arrays):
                self.store(operand, Reason.PROLOGUE)
            elif self.target.products.stages_operands and lies_scattered(node, side):
                self.store(operand, Reason.SCATTERED)
        scattered = scattered_operands(node, self.cone, self.bases_of, self.target.products)
        if scattered is not None:
            self.sharing.add(node)
            for operand in scattered:
                self.store(operand, Reason.STRIDES)
        draft = flat_draft("contract", self.next_order(needed), node.shape)
        self._open(draft, node, draft.full)

    def _is_large_prologue(self, computed: Collection[Node], arrays: Collection[Node]) -> bool:
        fusion = self.target.fusion
        return sum(map(cost_of, computed)) > fusion.prologue_cost or len(arrays) > fusion.prologue_arrays

    def _stored_rounding(self, dot: Node, side: int) -> Node | None:
        """What an operand is rounded to, where that is best stored."""
        if not dot.attrs["precision"] or not self.target.products.stores_rounded(dot, side):
            return None
        return rounding_of(dot.operands[side], DTYPES[dot.attrs["precision"]])

    def _visit_control_flow(self, node: Node) -> None:
        """A branch or loop is a kernel by itself, which writes those of its results that are taken out."""
        if node.op == "item":
            draft = self.draft_of[node.operands[0]]
            self.draft_of[node] = draft
            draft.results[node] = None
            return
        for operand in node.operands:
            self.store(operand, Reason.CONTROL_FLOW)
        self._open(flat_draft("region", self.next_order(node.operands), ()), node, ())

    def _visit_routine(self, node: Node) -> None:
        for position, operand in enumerate(node.operands):
            if position in _READ_OFTEN.get(node.op, ()) and any(map(cost_of, self.cone([operand])[0])):
                self.store(operand, Reason.ROUTINE)
            else:
                self.settle(operand, node, Reason.ROUTINE)
        if self._keeps_company(node):
            return
        draft = flat_draft("routine", self.next_order(node.operands), node.shape)
        self._open(draft, node, draft.full)
        draft.results[node] = None
        together = company(node)
        if together is not None:
            self.companies[together] = draft

    def _keeps_company(self, node: Node) -> bool:
        """Has a routine computed by the kernel of another one that it goes with, if there is one and that may be."""
        together = company(node)
        draft = self.companies.get(together) if together is not None else None
        if draft is None or any(member.op == node.op for member in draft.members):
            return False
        if self.last_needed(node.operands) >= draft.order:
            return False
        draft.arrays |= self.arrays_of(node.operands)
        draft.members[node] = variables_of(node.shape)
        draft.heavy.add(node)
        draft.results[node] = None
        self.draft_of[node] = draft
        return True


def _widens(node: Node) -> bool:
    """Whether it only holds narrow floats in more bits: whoever reads it does that, and memory has the narrow ones."""
    (operand, *_) = node.operands or (node,)
    return node.op == "cast" and operand.dtype.is_float and operand.dtype.bits < node.dtype.bits <= 32


def _reduced_axes(node: Node) -> tuple[int, ...]:
    return node.attrs["axes"] if "axes" in node.attrs else (node.attrs["axis"],)


def fuse(graph: Graph, target: Target = ANY_DEVICE) -> Fusion:
    """Walks the graph, for a device; the kernels stand in the result's `all_drafts`, and all outputs are stored."""
    fusion = Fusion(graph, target)
    for node in graph.nodes:
        fusion.visit(node)
    for output in dict.fromkeys(graph.outputs):
        fusion.store(output)
    return fusion
