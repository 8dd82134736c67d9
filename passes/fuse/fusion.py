"""The state of fusion's walk over a graph, and nodes that float: each reader computes them again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Graph, Node
from lavax.ir.operation import OPERATIONS
from lavax.passes.fuse.costs import KERNEL_LIMITS, code_of, cost_of
from lavax.passes.fuse.drafts import NO_ARRAYS, Drafts
from lavax.passes.fuse.epilogue import Readers
from lavax.passes.fuse.evaluations import Evaluations, evaluations_of, upper_bound
from lavax.passes.fuse.kernel_draft import FIRST, KernelDraft, Order
from lavax.passes.fuse.reasons import Reason
from lavax.passes.fuse.recompute import Siblings
from lavax.passes.kernels.reads import Coordinates
from lavax.passes.target.target import Target


@dataclass(frozen=True)
class Repetition:
    """The work that may be repeated for elements that share a value.

    Chosen by `python -m benchmarks comparison --only elementwise --only cross-entropy-backward` and
    `python -m benchmarks first-calls`.
    """

    cost: int = 32  # per element: about as much as storing a value and reading it takes
    work: int = 1 << 18  # in all: below this, repetition is never worth a kernel


REPETITION = Repetition()
# A value is cut elsewhere than at an operand if this part of it would be computed twice; so many cuts are compared.
_SHARED_PART = 4
_CUTS = 16


class Fusion(Drafts):
    """The state of one walk."""

    def __init__(self, graph: Graph, target: Target, carried: Mapping[Node, Node]) -> None:
        super().__init__(target)
        self.carried = carried
        self.readers = Readers(graph, target.products.stages_operands, target.fusion.epilogue_cost)
        self.siblings = Siblings(graph)
        self.returned = frozenset(graph.outputs)
        self.number = graph.position
        self.weight: dict[Node, Evaluations] = {}  # the evaluations for an element of a floating node
        self.rows: dict[tuple[tuple[int, ...], tuple[int, ...]], list[KernelDraft]] = {}  # (shape, axes) -> row kernels
        self.sharing: set[Node] = set()  # contractions that are to share a shader with others
        self.joint_kernels: dict[tuple[object, ...], KernelDraft] = {}  # of routines that several nodes may share

    def open(self, draft: KernelDraft, node: Node, at: Coordinates) -> None:
        """Adds a kernel that begins with this reduction, contraction, routine, branch or loop."""
        draft.arrays.update(self.arrays_of(node.operands))
        draft.members[node] = at
        draft.heavy.add(node)
        self.all_drafts.append(draft)
        self.draft_of[node] = draft

    def is_full(self, draft: KernelDraft, node: Node) -> bool:
        """Whether a kernel would compute too much if it computed a node as well, with what that node is made of."""
        if len(draft.members) >= KERNEL_LIMITS.nodes:
            return True
        nodes, work = self._most_with(draft, node)
        if not KERNEL_LIMITS.are_passed_by_kernel(nodes, work):
            return False
        computed = self.cone([*draft.members, node], draft)[0]
        return KERNEL_LIMITS.are_passed_by_kernel(len(computed), sum(map(code_of, computed)))

    def add_work(self, draft: KernelDraft, node: Node) -> None:
        """Notes that a kernel computes a node."""
        draft.most_nodes, draft.most_work = self._most_with(draft, node)

    def _most_with(self, draft: KernelDraft, node: Node) -> tuple[int, int]:
        nodes, work = draft.most_nodes + 1, draft.most_work + cost_of(node)
        for weight in self._floating(node.operands):
            nodes += weight.values
            work += weight.cost
        return nodes, work

    def _floating(self, operands: Iterable[Node]) -> list[Evaluations]:
        """The evaluations for those of the operands that float."""
        weight, draft_of = self.weight, self.draft_of
        return [weight[operand] for operand in operands if operand in weight and operand not in draft_of]

    def leave_floating(self, node: Node) -> None:
        """Leaves the node to be computed by each of its readers; first stores values that would take too much."""
        self._weigh(node)
        while self._takes_much(node) and (value := self._value_to_store(node)) is not None:
            self.store_within(value, node, Reason.LARGE)

    def store_within(self, value: Node, node: Node, reason: Reason) -> None:
        """Has a value written to memory from which a floating node is computed."""
        self.store(value, reason)
        for other in self._floating_above(value, node):
            self._weigh(other)

    def _weigh(self, node: Node) -> None:
        """Notes the evaluations that a floating node takes, and what it reads; counts the evaluations in full only if a
        cheap bound is high."""
        floating, arrays, last = self._made_of(node)
        weight = upper_bound(node, floating)
        is_long = KERNEL_LIMITS.are_passed(weight.values, weight.cost)
        if is_long or weight.repeated > REPETITION.cost:
            weight = evaluations_of(node, self.draft_of.__contains__, KERNEL_LIMITS.nodes)
        self.weight[node] = weight
        self.reading[node] = arrays
        self.settled[node] = last if node not in self.bases else max(map(self.settled_of, node.operands))

    def _made_of(self, node: Node) -> tuple[list[Evaluations], frozenset[Node], Order]:
        """Of a floating node's operands, in one walk: the evaluations for those that float, the arrays that they read,
        and the last kernel that must run before them (as `last_needed`)."""
        draft_of, bases_of, weight_of, last = self.draft_of, self.bases, self.weight, FIRST
        floating: list[Evaluations] = []
        arrays = NO_ARRAYS
        for operand in node.operands:
            draft = draft_of.get(operand)
            own: Collection[Node] = (operand,)
            if draft is not None:
                order = draft.order
            elif operand.op == INPUT:
                order = FIRST
            else:
                own, order = self.reading[operand], self.settled[operand]
                floating.append(weight_of[operand])
            if not arrays.issuperset(own):
                arrays = arrays.union(own) if arrays else frozenset(own)  # which is itself, if it is one
            if order > last:
                last = order
            for base in bases_of.get(operand, ()):
                if (of_base := draft_of[base].order) > last:
                    last = of_base
        return floating, arrays, last

    def _floats(self, node: Node) -> bool:
        return node.op != INPUT and node not in self.draft_of

    def _takes_much(self, node: Node) -> bool:
        weight = self.weight[node]
        if KERNEL_LIMITS.are_passed(weight.values, weight.cost):
            soon_compiled = sum((cost_of(value) - code_of(value)) * times for value, times in weight.times.items())
            if KERNEL_LIMITS.are_passed(weight.values, weight.cost - soon_compiled):
                return True
        if len(self.reading[node]) > KERNEL_LIMITS.floating_arrays:
            return True
        return weight.repeated > REPETITION.cost and weight.repeated * node.type.size >= REPETITION.work

    def _value_to_store(self, node: Node) -> Node | None:
        """The value behind a floating node whose storage saves most: one computed repeatedly, or else an operand."""
        saved = {
            value: (times * node.type.size - value.type.size) * self.weight[value].work
            for value, times in self.weight[node].times.items()
            if times > 1 and OPERATIONS[value.op].family == "elementwise"
        }
        value = max(saved, key=saved.__getitem__, default=None)
        if value is not None and saved[value] > 0:
            return value
        operands = [operand for operand in node.operands if self._floats(operand) and operand not in self.bases]
        sizes = {operand: self.weight[operand].values + len(self.reading[operand]) for operand in operands}
        return self._cut_at(node, max(sizes, key=sizes.__getitem__)) if sizes else None

    def _cut_at(self, node: Node, operand: Node) -> Node:
        """What to store in place of an operand: another value if the operand's kernel would compute much of what the
        node's kernel computes as well.

        Such values are those of a chain that derivatives read in turn, from its end to its start.
        """
        cone = sorted(self.cone([node])[0], key=self.number.__getitem__)
        total = len(cone)
        shared, _ = self._divided(node, operand, total)
        if shared * _SHARED_PART <= total:
            return operand
        possible = [value for value in cone[:-1] if self._may_be_stored(value)]
        some = possible[:: -(-len(possible) // _CUTS) or 1]
        return min(some, key=lambda value: max(self._divided(node, value, total)), default=operand)

    def _divided(self, node: Node, value: Node, total: int) -> tuple[int, int]:
        """If `value` is stored: the nodes that two kernels compute, and those of the larger kernel."""
        apart = len(self.cone([value])[0])
        rest = len(self.cone([node], without=value)[0])
        return apart + rest - total, max(apart, rest)

    def _may_be_stored(self, value: Node) -> bool:
        return OPERATIONS[value.op].family == "elementwise" and self._floats(value) and value not in self.bases

    def _floating_above(self, value: Node, node: Node) -> list[Node]:
        """The floating nodes on the way from a value to a node that is computed from it, and that node."""
        above = {value: None}
        for other in sorted(self.cone([node])[0], key=self.number.__getitem__):
            if not above.keys().isdisjoint(other.operands):
                above[other] = None
        return list(above)[1:]
