"""Loops whose turns nobody knows beforehand: a dispatch stops where it has done enough, and the next one goes on there.

Turns are counted by what they cost, in parts of what a dispatch may take. A loop asks before each turn whether it may
run. What has such a loop inside keeps in memory which of its parts is the next one and, of counted turns, the turn.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.loop.turns import Branch, Turn, Turns, While, kernel_of, parts_of, within
from lavax.backends.vulkan.plan.plan import Work
from lavax.passes.fuse.lane_loops import LANE_LOOPS
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS

WHOLE = 1 << 20  # what a dispatch may take
# It starts no turn beyond. The rest is for what it goes on with.
MOST_SPENT = WHOLE // 2
# So that a dispatch takes some turns, all loops together may cost so much in one turn each.
MOST_OF_TURNS = WHOLE // 4


def is_stoppable(turn: Turn) -> bool:
    """Whether the part is a loop whose turns are not known, or has one inside."""
    return any(isinstance(part, While) for part in parts_of(turn))


def has_state(turn: Turn) -> bool:
    """Whether a dispatch may stop between the parts of a loop or branch."""
    return any(map(is_stoppable, within(turn)))


def count_states(turn: Turn) -> int:
    """How many loops and branches keep where they are."""
    return sum(map(has_state, parts_of(turn)))


def cost_of_turn(turn: Turns | Branch | While) -> int:
    """What one turn costs, or a branch, without what is stoppable in it."""
    work = work_of_turn(turn)
    of_operations = (work.operations + work.nbytes) * WHOLE // LANE_LOOPS.operations
    return 1 + max(iterations_of_turn(turn) * WHOLE // MAX_LOOP_ITERATIONS, of_operations)


def cost_of_turns(turn: Turn) -> int:
    """What one turn of all stoppable parts costs."""
    parts = (part for part in parts_of(turn) if is_stoppable(part))
    return sum(cost_of_turn(part) for part in parts if isinstance(part, (Turns, Branch, While)))


def work_of_turn(turn: Turns | Branch | While) -> Work:
    """The work of one turn, or of a branch, without what is stoppable in it."""
    operations = nbytes = 0
    for part in within(turn):
        if is_stoppable(part):
            continue
        times = part.count if isinstance(part, Turns) else 1
        work = work_of_turn(part) if isinstance(part, (Branch, Turns, While)) else kernel_of(part).work
        operations, nbytes = operations + times * work.operations, nbytes + times * work.nbytes
    return Work(operations, nbytes)


def iterations_of_turn(turn: Turns | Branch | While) -> int:
    """The iterations of loops in one turn, itself counted, without what is stoppable in it."""
    iterations = 1
    for part in within(turn):
        if is_stoppable(part):
            continue
        times = part.count if isinstance(part, Turns) else 1
        inner = iterations_of_turn(part) if isinstance(part, (Branch, Turns, While)) else kernel_of(part).iterations
        iterations += times * inner
    return iterations


def work_until_stopped(turn: Turn) -> Work:
    """The most work of a dispatch that stops."""
    most = 0, 0
    for part in parts_of(turn):
        if is_stoppable(part) and isinstance(part, (Turns, Branch, While)):
            work, turns = work_of_turn(part), MOST_SPENT // cost_of_turn(part)
            most = max(most, (work.operations * turns, work.nbytes * turns))
    return Work(*most)
