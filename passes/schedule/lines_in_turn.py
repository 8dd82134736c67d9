"""Puts the steps of Fourier transforms that follow each other into one dispatch, which takes a few lines at a time.

A step reads lines that are whole in the array that the step before it has written, and nothing else. So the steps may
be computed one after the other for a few lines, and then for the next ones, where a device gains by it: what is between
them stays in a processor's cache.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lavax.ir.graph import INPUT, Node
from lavax.passes.fuse.extract import Piece
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.target.target import Target

Group = tuple[Piece, ...]


def lines_of(kernel: Kernel) -> int:
    """How many lines, one after the other in its operand and its result, a kernel of a Fourier step transforms; 0 for
    another kernel."""
    node = kernel.graph.outputs[0]
    is_step = kernel.kind == "routine" and node.op.startswith("fourier_")
    return node.operands[0].shape[0] if is_step else 0


def group_in_turn(
    groups: Sequence[Group], phases: Mapping[Piece, int], outputs: Sequence[Node], target: Target
) -> list[Group]:
    """The groups, with single pieces joined to the one whose result they alone read, where the target gains by it, in
    order of execution: a group waits for all that its pieces read."""
    reader: dict[Node, Piece | None] = dict.fromkeys(outputs)  # the only one; None if there are others
    for piece in (piece for group in groups for piece in group):
        reader.update((node, None if node in reader else piece) for node in piece.reads)
    alone = {group[0] for group in groups if len(group) == 1}
    joined: dict[Piece, Group] = {}
    taken: set[Piece] = set()
    for group in groups:
        if len(group) == 1 and group[0] not in taken and lines_of(group[0].kernel):
            chain = _chain(group[0], reader, alone)
            kernels = [piece.kernel for piece in chain]
            if len(chain) > 1 and target.dispatches.in_turn(kernels):
                joined[group[0]] = chain
                taken.update(chain)
    apart = (group for group in groups if group[0] not in taken or group[0] in joined)
    found = [joined.get(group[0], group) for group in apart]
    return sorted(found, key=lambda group: _phase(group, phases))


def in_turn_phases(groups: Sequence[Group], phases: Mapping[Piece, int]) -> dict[Piece, int]:
    """The phases of pieces: those of one dispatch have one, because all their arrays are in use at once."""
    return {piece: _phase(group, phases) for group in groups for piece in group}


def _phase(group: Group, phases: Mapping[Piece, int]) -> int:
    """The first one at which all is there that the group reads: that of the last piece that reads what other kernels
    compute, or of the first piece."""
    if not is_in_turn(group):
        return phases[group[0]]
    waiting = (piece for piece in group[1:] if any(read.op != INPUT for read in _others(piece)))
    return max(phases[piece] for piece in (group[0], *waiting))


def is_in_turn(group: Group) -> bool:
    """Whether each piece of a dispatch reads what the one before it writes."""
    return len(group) > 1 and group[0].writes[0] in group[1].reads


def _chain(piece: Piece, reader: Mapping[Node, Piece | None], alone: Collection[Piece]) -> Group:
    """The piece and those that follow it, line by line."""
    chain = [piece]
    while len(chain[-1].writes) == 1:
        after = reader.get(chain[-1].writes[0])
        if after is None or after not in alone or not _follows(after, chain[-1]):
            break
        chain.append(after)
    return tuple(chain)


def _follows(after: Piece, before: Piece) -> bool:
    """Whether all of the piece's lines are what the one before has written, and all else that it reads is there."""
    if lines_of(after.kernel) != lines_of(before.kernel) or len(before.writes) > 1:
        return False
    operand = operand_of(after.kernel)
    return operand is not None and after.reads[operand] is before.writes[0]


def _others(piece: Piece) -> list[Node]:
    """What a piece reads besides its lines."""
    operand = operand_of(piece.kernel)
    return [read for number, read in enumerate(piece.reads) if number != operand]


def operand_of(kernel: Kernel) -> int | None:
    """The number of the input that is a step's lines, if nothing is computed of it."""
    operand = kernel.graph.outputs[0].operands[0]
    while operand.op == "reshape":
        (operand,) = operand.operands
    return kernel.graph.inputs.index(operand) if operand.op == INPUT else None
