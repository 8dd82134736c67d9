"""Fusion of routines: each opens a kernel of its own, unless an existing kernel can compute both."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from lavax.ir.graph import Node
from lavax.ir.ops.attention import OPERANDS as ATTENTION
from lavax.ir.ops.attention import PROJECTED
from lavax.ir.ops.indexing import SCATTERS
from lavax.passes.build.attention import joint_kernel_key
from lavax.passes.fuse.contraction import before_repetition
from lavax.passes.fuse.costs import code_of, cost_of
from lavax.passes.fuse.fusion import Fusion
from lavax.passes.fuse.kernel_draft import flat_draft, variables_of
from lavax.passes.fuse.reasons import Reason
from lavax.passes.numerics.narrow_movement import as_stored, is_widening

# Operands that routines read repeatedly, by position: stored if they are computed rather than merely moved.
_READ_OFTEN: dict[str, tuple[int, ...]] = {
    **{op: tuple(range(len(names))) for op, names in ATTENTION.items()},
    "depthwise_conv": (0, 1),
    "merge_runs": (0, 1),
    "search_sorted": (0,),
    "select_greatest": (0,),
    "sort_runs": (0,),
    "triangular_solve": (0,),
}
# Steps of Fourier transforms that read tables, by pairs of numbers, once for each line: all is stored that makes them.
_WITH_TABLES = frozenset(("fourier_cut", "fourier_filtered", "fourier_padded"))
# Points of lines across, at least, whose transposition is a kernel of its own: of shorter ones, neighbours in memory
# that lines beside each other read are still in the cache (docs/performance/transforms_on_cpus.md, "Real lines
# across").
_LONG_ACROSS = 512
# Of these steps, those with this attribute read lines in the order of cosine transforms.
_READ_FOLDED = frozenset(("fourier_cosines", "fourier_step"))
# Routines whose lanes have neighbours along the last axes of the operands that are read often.
_OF_NEIGHBOURS = frozenset(("depthwise_conv",))


def visit_routine(fusion: Fusion, node: Node) -> None:
    if node.op in SCATTERS and fusion.carried.get(node) is node.operands[0]:
        _read_before_writing(fusion, node)
    read_often = () if _reads_once(fusion, node) else _READ_OFTEN.get(node.op, ())
    for position, operand in enumerate(map(as_stored, node.operands)):
        if position and node.op in _WITH_TABLES:
            fusion.store(operand, Reason.ROUTINE)
        elif position in read_often and any(map(_must_be_stored(node.op), fusion.cone([operand])[0])):
            fusion.store(before_repetition(fusion, operand), Reason.ROUTINE)
        else:
            stored = _stored_for_transform(fusion, node, operand)
            if stored is not None:
                fusion.store(stored, Reason.ROUTINE)
            if stored is not operand:
                fusion.settle(operand, node, Reason.ROUTINE)
    if _join(fusion, node):
        return
    draft = flat_draft("routine", fusion.next_order(node.operands), node.shape)
    fusion.open(draft, node, draft.full)
    draft.results[node] = None
    key = joint_kernel_key(node)
    if key is not None:
        fusion.joint_kernels[key] = draft


def _stored_for_transform(fusion: Fusion, node: Node, operand: Node) -> Node | None:
    """What is best stored of an operand that a step of a Fourier transform reads: what would be too much code wherever
    it reads a number, or long lines that lie across, which it would read number by number. None if nothing is."""
    most = fusion.target.fusion.transformed_cost
    if most is None or not node.op.startswith("fourier_"):
        return None
    if sum(map(code_of, fusion.cone([operand])[0])) > most:
        return operand
    turned = operand
    while turned.op == "reshape" and turned not in fusion.draft_of:
        (turned,) = turned.operands
    is_across = turned not in fusion.draft_of and _moves_neighbours(turned)
    is_long = is_across and turned.shape[-1] >= _LONG_ACROSS
    return turned if is_long and not _reads_beside(fusion, node, turned) else None


def _reads_once(fusion: Fusion, node: Node) -> bool:
    """Whether it is attention whose kernel reads each key and value once."""
    if node.op in PROJECTED:
        return True
    return node.op in ("attention", "attention_logsumexp") and fusion.target.attention.in_one_kernel(node)


def _read_before_writing(fusion: Fusion, scatter: Node) -> None:
    """Has updates and indices that are made of the array itself written first, so that it is updated where it is.

    Otherwise each turn of the loop would copy all of it, twice.
    """
    array, *rest = scatter.operands
    if sum(operand.type.nbytes for operand in rest) <= array.type.nbytes:
        for operand in rest:
            if array in fusion.arrays_of([operand]):
                fusion.store(operand, Reason.UPDATED)


def _must_be_stored(op: str) -> Callable[[Node], bool]:
    """Whether a value, which is made into an operand that is read often, is no part of a load."""
    return (lambda node: _is_computed(node) or _moves_neighbours(node)) if op in _OF_NEIGHBOURS else _is_computed


def _moves_neighbours(node: Node) -> bool:
    """Whether neighbours along the last axis were none before."""
    if node.op != "transpose":
        return False
    (operand,), axes = node.operands, node.attrs["axes"]
    last = max((axis for axis, extent in enumerate(operand.shape) if extent > 1), default=0)
    return any(node.shape[axis] > 1 for axis in range(axes.index(last) + 1, node.type.rank))


def _reads_beside(fusion: Fusion, node: Node, turned: Node) -> bool:
    """Whether a step reads lines where they were before they were transposed. One that reads four numbers at a time
    from places of its own does not."""
    if node.op in _READ_FOLDED and node.attrs["folded"]:
        return False
    (operand,), axes, length = turned.operands, turned.attrs["axes"], turned.shape[-1]
    return fusion.target.transforms.beside(length, prod(operand.shape[axes[-1] + 1 :]), turned.type.size // length)


def _is_computed(node: Node) -> bool:
    """Whether reading a value again takes more than a load: a cast that widens is part of one."""
    return cost_of(node) > 0 and not is_widening(node)


def _join(fusion: Fusion, node: Node) -> bool:
    """Has the kernel of another routine compute this one too, if there is a suitable one."""
    key = joint_kernel_key(node)
    draft = fusion.joint_kernels.get(key) if key is not None else None
    if draft is None or any(member.op == node.op for member in draft.members):
        return False
    if fusion.last_needed(node.operands) >= draft.order:
        return False
    draft.arrays |= fusion.arrays_of(node.operands)
    draft.members[node] = variables_of(node.shape)
    draft.heavy.add(node)
    draft.results[node] = None
    fusion.draft_of[node] = draft
    return True
