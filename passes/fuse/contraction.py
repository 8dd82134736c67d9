"""Fusion of contractions: each opens a kernel, with a cheap prologue and an epilogue of limited size."""

from __future__ import annotations

from lavax.ir.graph import INPUT, Node
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import DTYPES
from lavax.passes.build.contraction_geometry import is_strided, lies_scattered, pays_in_one_array
from lavax.passes.fuse.costs import cost_of
from lavax.passes.fuse.fusion import Fusion
from lavax.passes.fuse.gates import compute_as_gate
from lavax.passes.fuse.kernel_draft import KernelDraft, flat_draft
from lavax.passes.fuse.reasons import Reason
from lavax.passes.fuse.strides import OperandUse, scattered_operands, use_in_epilogue
from lavax.passes.kernels.index import flatten, grows_by_one, linear, variable
from lavax.passes.kernels.reads import MOVES, READS
from lavax.passes.numerics.narrow_movement import as_stored, is_widening
from lavax.passes.numerics.padded_lines import padding_of
from lavax.passes.numerics.rounding import rounding_of

_VECTOR = 8  # elements of 16 bits


def visit_contraction(fusion: Fusion, node: Node) -> None:
    needed = list(node.operands)
    for side, wide in enumerate(node.operands):
        operand = as_stored(wide)
        padding = padding_of(wide)
        if padding is not None:
            fusion.store_within(padding, wide, Reason.LINES)
            needed[side] = padding
            continue
        rounding = _stored_rounding(fusion, node, side)
        if rounding is not None:
            fusion.store_within(rounding, wide, Reason.ROUNDED)
            needed[side] = rounding
            continue
        fusion.settle(operand, node, Reason.PRODUCT)
        stored = None
        if _is_large_prologue(fusion, operand):
            stored = before_repetition(fusion, operand)
            fusion.store_within(stored, operand, Reason.PROLOGUE)
        if stored is operand:
            continue
        if stored is not None and _is_large_prologue(fusion, operand):
            fusion.store(operand, Reason.PROLOGUE)
        elif fusion.target.products.stages_operands and lies_scattered(node, side):
            fusion.store(operand, Reason.SCATTERED)
        elif fusion.target.products.stages_operands and operand.op != INPUT:
            joined = before_repetition(fusion, operand)
            in_vectors = joined.dtype.bits == 16 and joined.type.rank > 0 and joined.shape[-1] % _VECTOR == 0
            pays = pays_in_one_array(node, side, in_vectors) and not _is_chosen_from(fusion, node, joined)
            if pays and _is_looked_up(fusion, operand, in_vectors):
                fusion.store_within(joined, operand, Reason.JOINED)
    scattered = scattered_operands(node, fusion.cone, fusion.bases_of, fusion.target.products)
    if scattered is not None:
        fusion.sharing.add(node)
        for operand in scattered:
            fusion.store(operand, Reason.STRIDES)
    if fusion.target.products.are_gates(node):
        compute_as_gate(fusion, node, needed)
        return
    draft = flat_draft("contract", fusion.next_order(needed), node.shape)
    fusion.open(draft, node, draft.full)


def before_repetition(fusion: Fusion, operand: Node) -> Node:
    """What a convolution's windows, or a broadcast, repeat: the smallest of the values that are only moved or widened
    after it.

    What is only reshaped after it is that value itself, which other kernels may read in its own shape.
    """
    found = smallest = operand
    while (OPERATIONS[found.op].family == "movement" or is_widening(found)) and len(found.operands) == 1:
        is_same = found is smallest and found.op == "reshape"
        (found,) = found.operands
        if found.op == INPUT or found in fusion.draft_of:
            break
        if is_same or found.type.nbytes < smallest.type.nbytes:
            smallest = found
    return smallest


def _is_large_prologue(fusion: Fusion, operand: Node) -> bool:
    computed, arrays = fusion.cone([operand])
    limits = fusion.target.fusion
    return sum(map(cost_of, computed)) > limits.prologue_cost or len(arrays) > limits.prologue_arrays


def _is_looked_up(fusion: Fusion, operand: Node, in_vectors: bool) -> bool:
    """Whether an operand is several arrays end to end: whatever loads an element looks at each of them. What is
    gathered is in no vectors either."""
    computed, arrays = fusion.cone([operand])
    ops = ("pad", "concatenate", "gather") if in_vectors else ("pad", "concatenate")
    return len(arrays) > 1 and any(node.op in ops for node in computed)


def _is_chosen_from(fusion: Fusion, dot: Node, joined: Node) -> bool:
    """Whether a product loads whole vectors, each from the one of several arrays end to end that has it: then it is as
    fast as from one array."""
    if joined.op != "concatenate" or joined.dtype.bits != 16 or fusion.target.products.line(dot) != _VECTOR:
        return False
    return all(_has_whole_vectors(fusion, part) for part in joined.operands)


def _has_whole_vectors(fusion: Fusion, part: Node) -> bool:
    """Whether memory has a part in whole vectors of neighbours along its last axis."""
    if part.shape[-1] % _VECTOR:
        return False
    lane = variable("lane", _VECTOR)
    within = linear([(variable("vector", part.shape[-1] // _VECTOR), _VECTOR), (lane, 1)])
    at = (*(variable(f"axis {axis}", extent) for axis, extent in enumerate(part.shape[:-1])), within)
    while part.op in MOVES and part not in fusion.draft_of:
        ((part, at),) = READS[part.op](part, at)
    is_stored = part.op == INPUT or part in fusion.draft_of
    place = flatten(at, part.shape)
    others = [factor for atom, factor in place.terms if lane.variables.isdisjoint(atom.variables)]
    in_vectors = grows_by_one(place, "lane") and all(factor % _VECTOR == 0 for factor in (*others, place.constant))
    return is_stored and in_vectors


def _stored_rounding(fusion: Fusion, dot: Node, side: int) -> Node | None:
    """The rounded operand, if it is best stored. What had 16 bits before it was widened is rounded for nothing but a
    copy (prepare/windows.py)."""
    if not dot.attrs["precision"]:
        return None
    rounding = rounding_of(dot.operands[side], DTYPES[dot.attrs["precision"]])
    is_copy = rounding is not None and is_widening(rounding.operands[0])
    return rounding if is_copy or fusion.target.products.stores_rounded(dot, side) else None


def store_gathered(fusion: Fusion, node: Node, draft: KernelDraft) -> None:
    """Stores what is gathered from other arrays for each element of a node, such as a model's embeddings in its first
    sum with a product. A tile waits for a place and then for what is there, vector after vector; maps and rows have
    more invocations that wait at the same time."""
    if fusion.target.fusion.epilogue_operand_cost is None:
        return
    floating = [operand for operand in node.operands if operand not in fusion.draft_of]
    for value in fusion.cone(floating, draft)[0]:
        is_large = value.op == "gather" and value.type.size >= node.type.size
        if is_large and not fusion.bases_of(value) and fusion.next_order([value]) < draft.order:
            fusion.store(value, Reason.PLACES)


def unsuited_epilogue(fusion: Fusion, node: Node, draft: KernelDraft, cost: int, arrays: int) -> Reason | None:
    """Why a node does not belong in a contraction's epilogue, which would have that cost and read so many arrays."""
    if cost > fusion.target.fusion.epilogue_cost:
        return Reason.EPILOGUE_COST
    if _needs_costly_operand(fusion, node, draft):
        return Reason.EPILOGUE_OPERAND
    if arrays > fusion.target.fusion.epilogue_arrays:
        return Reason.EPILOGUE_ARRAYS
    (product,) = draft.heavy
    one_to_one = node.type.size == product.type.size
    if one_to_one and product in fusion.sharing and not _is_in_strides(fusion, node, draft):
        return Reason.STRIDES
    bases = [base for base in fusion.all_bases_of(node.operands) if fusion.draft_of[base] is draft]
    if not all(fusion.readers.converge(base) for base in bases):
        return Reason.READ_APART
    # All that follows a narrow value or none of it: what is left half computed is stored in 32 bits.
    whole = max((draft.cost_at.get(base, 0) + fusion.readers.cost_ahead(base) for base in bases), default=0)
    if whole > fusion.target.fusion.epilogue_cost:
        return Reason.EPILOGUE_COST
    return Reason.BESIDE if _reads_one_beside(fusion, node, draft) else None


def _needs_costly_operand(fusion: Fusion, node: Node, draft: KernelDraft) -> bool:
    """Whether what a node needs of other arrays alone costs too much for an epilogue."""
    most = fusion.target.fusion.epilogue_operand_cost
    floating = [each for each in node.operands if each in fusion.weight and each not in fusion.draft_of]
    if most is None or all(fusion.weight[each].cost <= most for each in floating):  # which count what is repeated, too
        return False
    others = [each for each in floating if not fusion.is_made_of(each, draft) and _has_one_reader(fusion, each)]
    return sum(map(cost_of, fusion.cone(others, draft)[0])) > most


def _has_one_reader(fusion: Fusion, value: Node) -> bool:
    """Whether nothing else reads a value, in another dtype or place either.

    What others read, such as a residual stream before its first product, is theirs to compute as well: if a sum with it
    were left to its readers, they would compute all of it once more, and so would those of the next sum.
    """
    while len(fusion.readers.users[value]) == 1:
        if len(value.operands) != 1 or not (value.op == "cast" or OPERATIONS[value.op].family == "movement"):
            return True
        (value,) = value.operands
    return False


def _reads_one_beside(fusion: Fusion, node: Node, draft: KernelDraft) -> bool:
    """Whether a node reads another product that waits for as much as the one of `draft`, neither of which keeps the
    device busy alone."""
    owners = {fusion.draft_of.get(array) for array in fusion.arrays_of(node.operands, draft)}
    level, leaves_idle = draft.order[0], fusion.target.products.leaves_idle
    beside = [owner for owner in owners if owner is not None and owner.kind == "contract" and owner.order[0] == level]
    return bool(beside) and all(leaves_idle(product) for each in (draft, *beside) for product in each.heavy)


def _is_in_strides(fusion: Fusion, node: Node, draft: KernelDraft) -> bool:
    """Whether a contraction that shares its shader should compute a node; stores the operands that this requires."""
    (product,) = draft.heavy
    read_apart = node not in fusion.returned and not fusion.readers.converge(node)
    uses = {
        operand: use_in_epilogue(node, fusion.cone([operand])[0], product, read_apart, fusion.target.products)
        for operand in node.operands
        if fusion.draft_of.get(operand) is not draft and not fusion.is_made_of(operand, draft)
    }
    if OperandUse.LEFT_OUT in uses.values() or not is_strided(node):
        return False
    for operand, use in uses.items():
        if use is OperandUse.STORED:
            fusion.store(operand, Reason.STRIDES)
    return fusion.last_needed(node.operands, draft) < draft.order
