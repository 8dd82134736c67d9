"""Whether values of a row kernel that a reduction over other elements needs are better recomputed than stored.

An example is the gradient of layer norm by its scale. It sums over the rows what the kernel of the other gradients
computes row by row. Storing these values takes a write and a read of a whole array. Recomputing them takes a read of
the arrays they are made of, except those that are read there anyway, and of a few numbers per row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Graph, Node
from lavax.ir.operation import OPERATIONS
from lavax.passes.fuse.costs import cost_of
from lavax.passes.fuse.kernel_draft import KernelDraft


@dataclass(frozen=True)
class RecomputationLimits:
    """The most that is recomputed for one reduction.

    Chosen by `python -m benchmarks comparison --only layer-norm-backward`.
    """

    nodes: int = 12


_LIMITS = RecomputationLimits()


@dataclass(frozen=True)
class Recomputation:
    """Members of a kernel that another kernel recomputes, and the arrays that it reads for them."""

    nodes: frozenset[Node]
    arrays: tuple[Node, ...]  # in the order in which they were found, so that programs do not differ between processes


class Siblings:
    """What reads each array of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._users = graph.users

    def readers(self, array: Node) -> int:
        """How many nodes read an array."""
        return len(self._users.get(array, ()))

    def reduced_alike(self, array: Node, reduction: Node) -> bool:
        """Whether another reduction over the same axes of the same shape reads the array too, and nothing else."""
        moved = [array, *(user for user in self._users.get(array, ()) if OPERATIONS[user.op].family == "movement")]
        others = (user for node in moved for user in self._users.get(node, ()))
        return any(_is_alike(other, reduction) for other in others if other is not reduction)


def _is_alike(node: Node, reduction: Node) -> bool:
    if OPERATIONS[node.op].family != "reduction" or node.attrs.get("axes") != reduction.attrs.get("axes"):
        return False
    return node.operands[0].shape == reduction.operands[0].shape


def recomputation_instead(
    reduction: Node,
    bases: Sequence[Node],
    draft_of: dict[Node, KernelDraft],
    siblings: Siblings,
    is_returned: Callable[[Node], bool],
    worth: Callable[[int], float],
) -> Recomputation | None:
    """What a reduction recomputes of `bases`, members of another kernel; None if storing them is better.

    Recomputation pays if it saves enough bytes of memory traffic: of arrays of so many bytes, one for as many simple
    operations as they are `worth`.
    """
    owners = {draft_of[base] for base in bases}
    draft = owners.pop() if bases and worth(0) else None
    if draft is None or owners or draft.kind != "row":
        return None
    values = [base for base in bases if not _is_row_level(base, draft)]
    if not values or any(is_returned(value) or value in draft.results for value in values):
        return None
    found = _cone(reduction.operands[0], draft, draft_of)
    if found is None:
        return None
    stored = 2 * sum(value.type.nbytes for value in values)
    read = sum(_bytes_for(array, draft, draft_of, reduction, siblings) for array in found.arrays)
    operations = sum(node.type.size * cost_of(node) for node in found.nodes)
    return found if read < stored and operations <= (stored - read) * worth(stored // 2) else None


def _cone(operand: Node, draft: KernelDraft, draft_of: dict[Node, KernelDraft]) -> Recomputation | None:
    """The members with whole rows, and the arrays, from which the operand is computed."""
    nodes: set[Node] = set()
    arrays: dict[Node, None] = {}
    seen: set[Node] = set()
    stack = [operand]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        owner = draft_of.get(node)
        if node.op == INPUT or (owner is not None and (owner is not draft or _is_row_level(node, draft))):
            arrays[node] = None
            continue
        if node in draft.heavy or len(nodes) > _LIMITS.nodes:
            return None
        if owner is draft:
            nodes.add(node)
        stack.extend(node.operands)
    return Recomputation(frozenset(nodes), tuple(arrays))


def _bytes_for(
    array: Node, draft: KernelDraft, draft_of: dict[Node, KernelDraft], reduction: Node, siblings: Siblings
) -> int:
    """Bytes moved to read an array: none if a sibling reads it anyway, twice its size if it must be written first."""
    if draft_of.get(array) is draft:
        return array.type.nbytes * (1 if array in draft.results else 2)
    return 0 if siblings.reduced_alike(array, reduction) else array.type.nbytes


def _is_row_level(node: Node, draft: KernelDraft) -> bool:
    return all(index.variables.isdisjoint(draft.reduced_names) for index in draft.members[node])
