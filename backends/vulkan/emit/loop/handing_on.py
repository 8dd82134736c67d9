"""Carries that turns hand on without a copy.

A body that cannot write what it carries in place writes an array aside, or a row of a stack, which the turn copies to
the carry at its end. In a loop of one workgroup the places of arrays are variables: the turn hands on the place
instead, and the loop copies once, at its end. Where such arrays are read through descriptors, whose place is known when
the shader is written, two turns are written out, and the two arrays change places from one to the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lavax.backends.vulkan.emit.loop.stopping import has_state
from lavax.backends.vulkan.emit.loop.turns import (
    Branch,
    FirstRow,
    HandedOn,
    Member,
    Turn,
    Turns,
    While,
    members_of,
    parts_of,
    slots_of,
    within,
)
from lavax.backends.vulkan.emit.loop.writing import moves_by_words

# Two turns are written out where that lets arrays of so many bytes be read through descriptors, if they have so few
# kernels: drivers compile longer shaders for seconds.
_LEAST_EXCHANGED = 1 << 7
_MOST_KERNELS = 8


def hand_on(turn: Turn) -> Turn:
    """The loop, or part of a turn, with copies at the end of turns handed on.

    A loop that may stop within a turn hands on nothing: what is carried has to be in its place then.
    """
    match turn:
        case Turns() if not has_state(turn):
            members = tuple(_with_barriers_of_copies(_in_rows(_handed_on(turn.members, set()))))
            return replace(turn, members=members, exchanged=_exchanged(members))
        case While() if not has_state(turn):
            handed = tuple(_with_barriers_of_copies(_handed_on(within(turn), {turn.holds.slot})))
            turns = len(turn.members)
            return replace(turn, members=handed[:turns], asked=handed[turns:])
        case Turns() | Branch():
            return replace(turn, members=tuple(map(hand_on, turn.members)))
        case While():
            return replace(turn, members=tuple(map(hand_on, turn.members)), asked=tuple(map(hand_on, turn.asked)))
    return turn


def moving_slots(turn: Turn) -> set[int]:
    """The slots of arrays whose place is known only when such a loop runs."""
    found: set[int] = set()
    for part in parts_of(turn):
        exchanged = {slot for pair in part.exchanged for slot in pair} if isinstance(part, Turns) else set()
        for handed in within(part):
            if isinstance(handed, HandedOn) and handed.target.slot not in exchanged:
                found |= {handed.target.slot} if handed.source.counters else {handed.target.slot, handed.source.slot}
    return found


def exchanged_in(turn: Turn) -> list[tuple[int, int]]:
    """The pairs of slots that change places in a loop and in those within."""
    return [pair for part in parts_of(turn) if isinstance(part, Turns) for pair in part.exchanged]


def _exchanged(members: Sequence[Turn]) -> tuple[tuple[int, int], ...]:
    """The slots of the arrays that change places from turn to turn, if all that is handed on does, and is worth it."""
    handed = [member for member in members if isinstance(member, HandedOn)]
    kernels = sum(1 for member in members for _ in members_of(member)) - len(handed)
    is_large = any(each.target.nbytes >= _LEAST_EXCHANGED for each in handed)
    if not is_large or kernels > _MOST_KERNELS or any(each.source.counters or each.rows for each in handed):
        return ()
    return tuple((each.target.slot, each.source.slot) for each in handed)


def _handed_on(turns: Sequence[Turn], behind: set[int]) -> list[Turn]:
    """The parts of a turn with copies handed on, where nothing but the copy writes the carry.

    `behind`: the slots that the turn uses after a copy.
    """
    members = [hand_on(turn) for turn in turns]
    found: list[Turn] = []
    for place in range(len(members) - 1, -1, -1):
        turn = members[place]
        behind_it = set(behind)
        behind |= set(slots_of(turn))
        can_be = isinstance(turn, Member) and turn.is_copy and _can_be_handed_on(turn, members[:place], behind_it)
        found.append(HandedOn(turn) if can_be and isinstance(turn, Member) else turn)
    return found[::-1]


def _in_rows(turns: Sequence[Turn]) -> list[Turn]:
    """The turn's parts; what is handed on and stacked as it was before goes from row to row."""
    found = list(turns)
    for place, turn in enumerate(turns):
        if not isinstance(turn, HandedOn) or turn.source.counters:
            continue
        for number, copy in enumerate(turns[:place]):
            if not isinstance(copy, Member):
                continue
            step = _step_of_rows(copy, turn, [*turns[:number], *turns[number + 1 :]])
            if step is not None:
                found[place] = handed = replace(turn, rows=copy.places[1], step=step)
                found[number] = FirstRow(copy, handed)
                break
    return found


def _step_of_rows(copy: Member, handed: HandedOn, others: Sequence[Turn]) -> int | None:
    """By how much the turn moves to the next row, if the copy stacks what is handed on, and nothing else does."""
    if not copy.is_copy or copy.barrier or copy.places[0] != handed.target or len(copy.places[1].counters) != 1:
        return None
    rows, (counter,) = copy.places[1], copy.places[1].counters
    kernels = [kernel for turn in others for kernel in members_of(turn)]
    if not moves_by_words(rows) or any(place.slot == rows.slot for kernel in kernels for place in kernel.places):
        return None
    steps = [kernel.increment for kernel in kernels if any(place.slot == counter for place in kernel.written)]
    return steps[0] if len(steps) == 1 and rows.strides[0] == handed.target.nbytes else None


def _can_be_handed_on(copy: Member, before: Sequence[Turn], behind: set[int]) -> bool:
    """Whether the turn uses neither array after the copy, writes the source first, and never the target."""
    source, target = copy.places
    if source.slot == target.slot or target.counters or {source.slot, target.slot} & behind:
        return False
    if not (moves_by_words(source) and moves_by_words(target)):
        return False
    if {source.slot, target.slot} & _handed_on_within(before):
        return False
    earlier = [kernel for turn in before for kernel in members_of(turn)]
    if any(place.slot == target.slot for kernel in earlier for place in kernel.written):
        return False
    uses = [kernel for kernel in earlier if any(place.slot == source.slot for place in kernel.places)]
    if not uses or any(place.slot == source.slot for place in uses[0].read):
        return False
    # An array must be written whole: what a turn leaves of it would be that of the turn before the last.
    written = [place for kernel in uses for place in kernel.written if place.slot == source.slot]
    return all(place.counters == source.counters and place.strides == source.strides for place in written)


def _handed_on_within(turns: Sequence[Turn]) -> set[int]:
    """The slots of arrays that loops inside hand on: they are in their own places when such a loop begins."""
    handed = [part for turn in turns for part in parts_of(turn) if isinstance(part, HandedOn)]
    return {place.slot for each in handed for place in each.copy.places}


def _with_barriers_of_copies(turns: Sequence[Turn]) -> list[Turn]:
    """The turn's parts; what stands behind copies that are handed on waits for all that these waited for."""
    found: list[Turn] = []
    waits = False
    for turn in turns:
        if isinstance(turn, HandedOn):
            waits |= turn.copy.barrier
        elif waits:
            turn, waits = _waiting(turn), False
        found.append(turn)
    return found


def _waiting(turn: Member | FirstRow | Branch | Turns | While) -> Turn:
    """The same; its first kernel waits for all that was written before."""
    if isinstance(turn, Member):
        return replace(turn, barrier=True)
    if isinstance(turn, FirstRow):
        return replace(turn, copy=replace(turn.copy, barrier=True))
    if isinstance(turn, Branch):
        return turn  # it waits before it asks
    first, *rest = turn.asked if isinstance(turn, While) else turn.members
    assert isinstance(first, (Member, Branch, Turns, While)), "what is handed on was written before in the turn"
    begun = (_waiting(first), *rest)
    return replace(turn, asked=begun) if isinstance(turn, While) else replace(turn, members=begun)
