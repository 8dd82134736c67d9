"""The coordinates in a kernel's loops at which a node could be computed, and whether that is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lavax.ir.graph import Node
from lavax.passes.build.matching import without_units
from lavax.passes.fuse.kernel_draft import KernelDraft
from lavax.passes.kernels.index import ZERO, Index, flatten, linear, unflatten
from lavax.passes.kernels.reads import READS, Coordinates


def _after_reshape(node: Node, at: Coordinates) -> Coordinates:
    return unflatten(flatten(at, node.operands[0].shape), node.shape)


def _after_transpose(node: Node, at: Coordinates) -> Coordinates:
    return tuple(at[axis] for axis in node.attrs["axes"])


def _after_flip(node: Node, at: Coordinates) -> Coordinates:
    axes = node.attrs["axes"]
    return tuple(
        linear([(index, -1)], extent - 1) if axis in axes else index
        for axis, (index, extent) in enumerate(zip(at, node.shape, strict=True))
    )


def _after_broadcast(node: Node, at: Coordinates) -> Coordinates | None:
    """None if the broadcast repeats elements."""
    if node.type.size != node.operands[0].type.size:
        return None
    index_of = dict(zip(node.attrs["axes"], at, strict=True))
    return tuple(index_of.get(axis, ZERO) for axis in range(len(node.shape)))


def _after_cast(node: Node, at: Coordinates) -> Coordinates:
    return at


# Per movement, or cast: the coordinates of an element of its result, given those of the operand's element it copies.
_AFTER: dict[str, Callable[[Node, Coordinates], Coordinates | None]] = {
    "cast": _after_cast,
    "reshape": _after_reshape,
    "transpose": _after_transpose,
    "flip": _after_flip,
    "broadcast": _after_broadcast,
}


def _moved(node: Node, draft: KernelDraft) -> Coordinates | None:
    """The coordinates of a node that is a member, or is made from a member by one-to-one movement."""
    chain: list[Node] = []
    while node not in draft.members:
        if node.op not in _AFTER or (node.op == "cast" and draft.kind != "row"):
            return None
        chain.append(node)
        node = node.operands[0]
    at: Coordinates | None = draft.members[node]
    for moved in reversed(chain):
        if at is None:
            return None
        at = _AFTER[moved.op](moved, at)
    return at


def _by_shape(node: Node, draft: KernelDraft) -> Iterator[Coordinates]:
    """The kernel's loops in the node's axes, if their extents agree but for those of 1."""
    for loops in (draft.full, draft.domain.outer_variables) if draft.kind == "row" else (draft.domain.outer_variables,):
        proper = [index for index in loops if _extent(index) != 1]
        if without_units(node.shape) == tuple(_extent(index) for index in proper):
            remaining = iter(proper)
            yield tuple(ZERO if extent == 1 else next(remaining) for extent in node.shape)


def _extent(index: Index) -> int:
    return index.high + 1


def candidates(node: Node, draft: KernelDraft) -> Iterator[Coordinates]:
    """Coordinates at which this kernel might compute the node, each element exactly once."""
    for source in (node, *node.operands):
        if source is node and node.op not in _AFTER:
            continue
        at = _moved(source, draft)
        if at is not None and source.shape == node.shape and covers(node, at, draft):
            yield at
    for at in _by_shape(node, draft):
        if covers(node, at, draft):
            yield at


def covers(node: Node, at: Coordinates, draft: KernelDraft) -> bool:
    """Whether coordinates that correspond one to one to loop variables reach every element of the node."""
    reduced = draft.reduced_names
    full = bool(reduced) and any(not index.variables.isdisjoint(reduced) for index in at)
    return node.type.size == draft.domain.rows * (draft.domain.length if full else 1)


def is_legal(
    node: Node,
    at: Coordinates,
    draft: KernelDraft,
    is_made_of: Callable[[Node, KernelDraft], bool],
    draft_of: dict[Node, KernelDraft],
) -> bool:
    """Whether computing the node there needs the kernel's reductions only at the coordinates where they are computed.

    `is_made_of` says whether the kernel would compute a node that is not a member from its members.
    """
    stack = list(READS[node.op](node, at)) if node.op in READS else [(node, at)]
    checked: set[tuple[Node, Coordinates]] = set()
    while stack:
        read, there = stack.pop()
        is_member = draft_of.get(read) is draft
        if (there == draft.members[read]) if is_member else not is_made_of(read, draft):
            continue
        if (read, there) in draft.legal or (read, there) in checked:
            continue
        if is_member and read in draft.heavy:
            return False
        stack.extend(READS[read.op](read, there))
        checked.add((read, there))
    draft.legal |= checked
    return True


def is_whole_row(inner: Sequence[Index], outer: Coordinates, draft: KernelDraft) -> bool:
    """Whether `inner` runs over exactly the kernel's reduced elements and `outer` does not change with them."""
    proper = [index for index in draft.domain.reduced_variables if not index.is_constant]
    is_fixed = all(index.variables.isdisjoint(draft.reduced_names) for index in outer)
    return is_fixed and [index for index in inner if not index.is_constant] == proper
