"""How the rows of a row kernel are shared out over invocations.

A *team* of invocations has a row, or four neighbouring rows, and each member takes every so many elements of it. Where
a row's elements are neighbours in memory, so are the members of a team; where neighbouring rows are, teams interleave:
neighbouring invocations have the same part of neighbouring rows. A team of one has nothing to share.

A CPU driver runs a workgroup one subgroup after the other, and stops it at every barrier: its teams are one subgroup.
Starting a workgroup takes it as long as adding up some hundred numbers, so several teams of short rows stand side by
side in one, and short rows that are read once have an invocation each. What it keeps of short rows it need not compute
again in the next phase; long rows are read again, from its cache. A GPU's teams are as large as it takes to keep a
row's elements in registers, so that memory is read once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from lavax.backends.vulkan.emit.reduce.online_sum import online_sum_of, phases_of
from lavax.backends.vulkan.glsl.body import LANE
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import at_element, at_row, local_invocations, placed
from lavax.backends.vulkan.glsl.reductions import POSITIONS
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.accesses import accesses, roots_of
from lavax.passes.kernels.index import Index, grows_by_one, linear, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS

# What keeps a GPU busy, in invocations: below it teams grow at the cost of work to each member. Columns that are read
# once want more.
_BUSY, _BUSY_COLUMNS = 1 << 17, 1 << 18
# Invocations of a workgroup in which several teams stand side by side.
_GROUP = 128
_MOST_GROUP = 1024
# Interleaved teams: bytes that neighbours read together, and how many elements a member should at least have.
_LINE, _LEAST_ELEMENTS = 128, 8
# Values of a row that an invocation keeps in registers: of each array where that makes its team no larger than a
# subgroup, which has no barriers; of each array in larger teams; and of all arrays together.
_KEPT_ALONE, _KEPT, _MOST_KEPT = 32, 16, 64
# Long rows that are written as well as read: invocations of a team, what each keeps of each array, and of all arrays.
# Two teams of the first size are at work on a processor at once; members of the second have fewer registers.
_LONG_ROWS = ((512, 40, 64), (1024, 32, 48))
# Rows that are read once, in elements or vectors of them: how many each member of a part of a subgroup has at least,
# and at most those of so many subgroups; of how many subgroups teams are for longer rows; and how many members read
# enough together that are no subgroup.
_LEAST_ONCE, _TEAMS_ONCE, _MOST_ONCE, _LEAST_TOGETHER = 16, ((1, 48), (4, 32), (8, 64)), 16, 4
# Rows of up to so many elements are not shared.
_SHORT_ROW = 16
# Schedules that serve every shape have one of few teams: a subgroup or this many side by side, or so many interleaved.
_SHARED_TEAM, _FEW_PARTS = 256, 8
# Turns of a loop written out, so that as many loads are under way at once.
_UNROLLED = 4
# Statements of a loop's body, times the turns written out.
_MOST_STATEMENTS = 768
# The same for CPU drivers, which compile slowly what is long.
_MOST_STATEMENTS_OF_CPU = 384
# Elements of all rows from which on what a CPU driver's call saves is worth compiling several times as long, how many
# values an invocation then keeps at most, and how many statements are written out.
_WORTH_WRITING_OUT = ((1 << 18, 96, 600), (4096, 64, _MOST_STATEMENTS_OF_CPU))
# The same for four rows an invocation of which most elements are not read together.
_WORTH_FOUR_ROWS = 1 << 15
# Strips of columns of a CPU driver's invocation, and how many invocations there should be left.
_STRIPS, _BUSY_CPU = (8, 4, 2), 32
# On CPU drivers: elements a lane from which on many rows that are read once are shared, teams of a workgroup, and up to
# how many elements these have.
_LEAST_ALONE, _TEAMS_TOGETHER, _ELEMENTS_TOGETHER = 16, 8, 2048


@dataclass(frozen=True)
class Schedule:
    """How rows are shared out. `row_width` and `element_width` are 1 or 4; one of them is 1.

    `turns` elements, or vectors of them, are written out one after the other: all that a member has, or, in a `loop`,
    one turn of it.
    """

    team: int
    row_width: int
    element_width: int
    local: int
    subgroup: int = 0  # lanes that exchange by shuffles; 0: none do
    interleaved: bool = False
    turns: int = 1
    loop: bool = True
    strips: int = 1  # rows, or vectors of them, of one invocation: each a workgroup further on
    chunked: bool = False  # whether rounding errors of long sums are kept for chunks of them only
    online: bool = False  # whether a row's maximum and its sum of exponentials are made in one walk

    @property
    def shared(self) -> bool:
        return self.team > 1

    @property
    def teams(self) -> int:
        """Teams a workgroup."""
        return self.local // self.team

    def steps(self, length: int) -> int:
        """Elements of a row, or vectors of them."""
        return length // self.element_width

    def additions(self, length: int) -> int:
        """How many elements one member takes in, one after the other."""
        return self.steps(length) // self.team


def choose_schedule(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Schedule:
    """The schedule of a row kernel on a device of this profile; one of few where other shapes are to share it."""
    along_row, along_rows = _unit_strides(kernel)
    if profile.kind == "cpu" or not profile.subgroup_shuffle:
        schedule = _subgroup_or_single(kernel, profile, along_row, along_rows)
        if lifted:
            return schedule
        return _side_by_side_on_cpu(kernel, _with_rows_kept(kernel, schedule) or _in_strips(kernel, schedule))
    rows, length = kernel.domain.rows, kernel.domain.length
    if along_rows > along_row and rows >= profile.subgroup_size:
        return _interleaved(kernel, profile, lifted)
    width = VECTOR if length % VECTOR == 0 and along_row >= along_rows else 1
    if length <= _SHORT_ROW and rows >= profile.subgroup_size:
        turns, loop = _turns(kernel, length // width, 0 if lifted else _SHORT_ROW)
        return Schedule(1, 1, width, local_invocations(profile), turns=turns, loop=loop)
    schedule = _side_by_side(kernel, profile, width, lifted)
    return schedule if lifted else _in_one_walk(kernel, schedule, profile)


def longest_row(profile: DeviceProfile) -> int:
    """Rows of more neighbouring elements are better reduced in parts: loops of a GPU's teams may go so far."""
    shares_rows = profile.kind == "gpu" and profile.subgroup_shuffle
    return MAX_LOOP_ITERATIONS * (profile.subgroup_size if shares_rows else 1)


def candidates(kernel: Kernel, profile: DeviceProfile) -> list[Schedule]:
    """The schedules worth a try, first the one that is chosen without trying.

    Those of a CPU driver differ in what is written out, and in strips; those of a GPU in the size of teams too.
    """
    chosen = choose_schedule(kernel, profile, lifted=False)
    if profile.kind == "cpu" or not profile.subgroup_shuffle:
        looped = _subgroup_or_single(kernel, profile, *_unit_strides(kernel))
        ways = [*_ways_to_walk(kernel, looped), _in_strips(kernel, looped)]
    else:
        ways = [way for team in _other_teams(chosen, kernel, profile) for way in _ways_to_walk(kernel, team)]
    return list(dict.fromkeys([chosen, *ways]))


def _other_teams(chosen: Schedule, kernel: Kernel, profile: DeviceProfile) -> list[Schedule]:
    """The schedule with smaller and larger teams, and for interleaved ones with more and fewer of them side by side."""
    if not chosen.shared:
        return [chosen]
    most = min(_MOST_GROUP, profile.max_workgroup_invocations)
    teams = [chosen.team // 4, chosen.team // 2, chosen.team, 2 * chosen.team, 4 * chosen.team]
    teams = [team for team in teams if 1 < team <= chosen.steps(kernel.domain.length)]
    if chosen.interleaved:
        room = profile.shared_memory_bytes // (chosen.row_width * max(_bytes_of_partial_results(kernel), 1))
        sizes = [(team, chosen.local) for team in teams if chosen.local % team == 0]
        sizes += [(chosen.team, local) for local in (chosen.local // 2, 2 * chosen.local) if local >= chosen.team]
        return [
            replace(chosen, team=team, local=local)
            for team, local in sizes
            if profile.subgroup_size <= local <= min(most, room)
        ]
    subgroup = profile.subgroup_size
    most = min(most, subgroup**2)
    found = [replace(chosen, team=team, local=max(team, min(_GROUP, most))) for team in teams if team <= most]
    return [replace(way, local=way.team) if way.team > subgroup else way for way in found]


def _ways_to_walk(kernel: Kernel, schedule: Schedule) -> list[Schedule]:
    """Whole rows written out, where they are short enough, and loops with one or several elements a turn."""
    turns = -(-schedule.steps(kernel.domain.length) // schedule.team)
    kept = turns * max(schedule.row_width, schedule.element_width) * _arrays_kept(kernel)
    short = kept <= 2 * _MOST_KEPT and _may_write_out(kernel, turns)
    ways = [replace(schedule, turns=turns, loop=False)] if short else []
    unrolled = [several for several in (1, _UNROLLED) if several <= turns and _may_write_out(kernel, several)]
    return [*ways, *(replace(schedule, turns=several, loop=True) for several in unrolled)]


def _subgroup_or_single(kernel: Kernel, profile: DeviceProfile, along_row: int, along_rows: int) -> Schedule:
    """A subgroup a row where that reads neighbours and rows are long enough to share."""
    rows, length = kernel.domain.rows, kernel.domain.length
    subgroup = profile.subgroup_size
    least = _LEAST_ALONE if _is_read_once(kernel) else 2
    long_enough = length >= least * subgroup or (length >= subgroup and rows < 4 * subgroup)
    too_long = length * (1 + max(phases_of(kernel).values(), default=0)) > MAX_LOOP_ITERATIONS
    if profile.subgroup_shuffle and ((long_enough and (along_row >= along_rows or rows < subgroup)) or too_long):
        element_width = VECTOR if length % VECTOR == 0 and along_row >= along_rows else 1
        return Schedule(subgroup, 1, element_width, subgroup, subgroup, chunked=True)
    worth_it = along_rows >= along_row or rows * length >= _WORTH_FOUR_ROWS
    several = rows % VECTOR == 0 and rows > VECTOR * subgroup
    row_width = VECTOR if several and along_rows > 0 and worth_it else 1
    element_width = VECTOR if row_width == 1 and length % VECTOR == 0 and along_row > 0 else 1
    return Schedule(1, row_width, element_width, local_invocations(profile), chunked=True)


def _side_by_side_on_cpu(kernel: Kernel, schedule: Schedule) -> Schedule:
    """The schedule with several of its teams a workgroup, where rows are many and short: starting one takes a while."""
    rows, length, together = kernel.domain.rows, kernel.domain.length, 1
    while schedule.shared and rows >= 2 * together * _BUSY_CPU and 2 * together * length <= _ELEMENTS_TOGETHER:
        together *= 2
    return replace(schedule, local=schedule.team * min(together, _TEAMS_TOGETHER)) if together > 1 else schedule


def _in_strips(kernel: Kernel, schedule: Schedule) -> Schedule:
    """Columns in strips: an element of a row lies far from the next one, so that more than a line is read of each."""
    vectors = kernel.domain.rows // VECTOR
    for strips in _STRIPS if schedule.row_width == VECTOR else ():
        enough = vectors // strips >= _BUSY_CPU and vectors % (strips * schedule.local) == 0
        if enough and strips * len(kernel.graph.nodes) <= _MOST_STATEMENTS_OF_CPU // VECTOR:
            return replace(schedule, strips=strips)
    return schedule


def _with_rows_kept(kernel: Kernel, schedule: Schedule) -> Schedule | None:
    """The schedule without loops, where rows are short, gone over more than once, and many elements in all."""
    turns = -(-schedule.steps(kernel.domain.length) // schedule.team)
    kept = turns * max(schedule.row_width, schedule.element_width)
    whole_rows = any(not kernel.is_row_level(output) for output in kernel.graph.outputs)
    walks = max(phases_of(kernel).values(), default=0) + whole_rows
    statements, elements = turns * len(kernel.graph.nodes), kernel.domain.rows * kernel.domain.length
    worth = any(
        elements >= least and kept <= most_kept and statements <= most_statements
        for least, most_kept, most_statements in _WORTH_WRITING_OUT
    )
    return replace(schedule, turns=turns, loop=False) if walks > 1 and worth else None


def _side_by_side(kernel: Kernel, profile: DeviceProfile, width: int, lifted: bool) -> Schedule:
    """Neighbouring invocations share a row: part of a subgroup, a subgroup, or a whole workgroup."""
    rows, steps, subgroup = kernel.domain.rows, kernel.domain.length // width, profile.subgroup_size
    # Subgroups of a workgroup exchange by one shuffle more, so there are no more of them than lanes.
    most = min(_MOST_GROUP, profile.max_workgroup_invocations, subgroup**2)
    alone, kept = (max(min(n, _MOST_KEPT // _arrays_kept(kernel)) // width, 1) for n in (_KEPT_ALONE, _KEPT))
    team = 1
    if subgroup * kept < steps <= subgroup * alone:
        kept = alone
    elif steps > _LONG_ROWS[0][0] * kept:
        team, kept = _team_of_long_row(kernel, width, most) or (1, kept)
    while team < most and (team * kept < steps or (team < steps and rows * team < _BUSY)):
        team *= 2
    if lifted:
        team = subgroup if team < _SHARED_TEAM else min(_SHARED_TEAM, most)
    turns, loop = _turns(kernel, -(-steps // team), 0 if lifted else kept)
    local = team if team > subgroup else min(_GROUP, most)
    return Schedule(team, 1, width, local, subgroup, turns=turns, loop=loop)


def _in_one_walk(kernel: Kernel, schedule: Schedule, profile: DeviceProfile) -> Schedule:
    """The schedule for a row that is only read, and once, or that registers do not hold: smaller teams.

    Several are at work on a processor, and while one exchanges, others read.
    """
    online = online_sum_of(kernel) is not None and (_is_only_read(kernel) or schedule.loop)
    if not online and not _is_read_once(kernel):
        return schedule
    rows, steps, subgroup = kernel.domain.rows, schedule.steps(kernel.domain.length), profile.subgroup_size
    most = min(_MOST_GROUP, profile.max_workgroup_invocations, subgroup**2)
    team = min(_team_reading_once(steps, subgroup), most)
    if team < (_LEAST_TOGETHER if online and schedule.element_width == VECTOR else subgroup):
        return schedule
    while team < min(most, steps) and rows * team < _BUSY:
        team *= 2
    turns, loop = _turns(kernel, -(-steps // team), _UNROLLED)
    local = team if team > subgroup else min(_GROUP, most)
    return replace(schedule, team=team, local=local, turns=turns, loop=loop, online=online)


def _is_only_read(kernel: Kernel) -> bool:
    return all(kernel.is_row_level(output) for output in kernel.graph.outputs)


def _is_read_once(kernel: Kernel) -> bool:
    return _is_only_read(kernel) and max(phases_of(kernel).values(), default=0) == 1


def _team_reading_once(steps: int, subgroup: int) -> int:
    """How many invocations share a row of so many elements, or vectors of them, where there are many rows."""
    if steps < _LEAST_ONCE * subgroup:
        return 1 << max(steps // _LEAST_ONCE, 1).bit_length() - 1
    sizes = (number * subgroup for number, each in _TEAMS_ONCE if steps <= number * subgroup * each)
    return next(sizes, _MOST_ONCE * subgroup)


def _team_of_long_row(kernel: Kernel, width: int, most: int) -> tuple[int, int] | None:
    """The team that a row is kept by, and how many vectors a member has of each array, if the row is not too long.

    What is only read is as fast in loops: the next rows are read meanwhile.
    """
    if _is_only_read(kernel):
        return None
    for team, each, together in _LONG_ROWS:
        kept = min(each, together // _arrays_kept(kernel)) // width
        if team <= most and kernel.domain.length // width <= team * kept:
            return team, kept
    return None


def _interleaved(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Schedule:
    """Neighbouring invocations have neighbouring rows, and a workgroup has as many parts of them as keep it busy."""
    rows, length = kernel.domain.rows, kernel.domain.length
    width = VECTOR if rows % VECTOR == 0 else 1
    side_by_side = max(_LINE // (4 * width), 1)
    room = profile.shared_memory_bytes // (width * max(_bytes_of_partial_results(kernel), 1))
    most = min(_MOST_GROUP, profile.max_workgroup_invocations, room) // side_by_side
    busy = _BUSY_COLUMNS if _is_read_once(kernel) else _BUSY
    team = 1
    while 2 * team <= most and 2 * team * _LEAST_ELEMENTS <= length and rows // width * team < busy:
        team *= 2
    if lifted and team > 1:
        team = min(team, _FEW_PARTS) if team < most // 2 else team
    turns, loop = _turns(kernel, -(-length // team), 0 if lifted else _MOST_KEPT // (width * _arrays_kept(kernel)))
    if team > 1:
        return Schedule(team, width, 1, team * side_by_side, interleaved=True, turns=turns, loop=loop)
    wide = width if rows > _BUSY else 1
    return Schedule(1, wide, 1, local_invocations(profile), turns=turns, loop=loop)


def _turns(kernel: Kernel, turns: int, kept: int) -> tuple[int, bool]:
    """How many turns are written out, and whether as a loop: all where `kept` allows it, else a few.

    A loop with nothing kept is written once, so that it is the same for every number of turns.
    """
    if turns <= kept and _may_write_out(kernel, turns):
        return turns, False
    return (_UNROLLED if kept and turns >= _UNROLLED and _may_write_out(kernel, _UNROLLED) else 1), True


def _may_write_out(kernel: Kernel, turns: int) -> bool:
    return turns * len(kernel.graph.nodes) <= _MOST_STATEMENTS


def _bytes_of_partial_results(kernel: Kernel) -> int:
    """What an invocation has of one row in shared memory, where no type is shorter than a word."""
    values = [node.operands[0] if node.op in POSITIONS else node for node in phases_of(kernel)]
    positions = sum(node.op in POSITIONS for node in phases_of(kernel))
    return sum(max(node.dtype.storage.itemsize, 4) for node in values) + 4 * positions


def _arrays_kept(kernel: Kernel) -> int:
    """How many arrays have elements of their own for each row and each element of it."""
    full = (any({"k", "row"} <= index.variables for index in positions) for positions in _accesses(kernel).values())
    return max(sum(full), 1)


def _unit_strides(kernel: Kernel) -> tuple[int, int]:
    """How many elements are read as neighbours from element to element of a row, and how many from row to row.

    Each of an array's elements counts once a place at which it is read: numbers that all rows share are few.
    """
    most = kernel.domain.rows * kernel.domain.length
    reads = [(min(node.type.size, most), index) for node, found in _accesses(kernel).items() for index in found]
    along_row, along_rows = (sum(n for n, index in reads if grows_by_one(index, name)) for name in ("k", "row"))
    return along_row, along_rows


def _accesses(kernel: Kernel) -> Mapping[Node, Collection[Index]]:
    """For each array, the positions read at element `k` of row `row`."""
    element, row = variable("k", kernel.domain.length), variable("row", kernel.domain.rows)
    values = at_row(row, kernel) | at_element(element, kernel)
    roots: list[tuple[Node, Coordinates]] = [(node, placed(at, values)) for node, at in roots_of(kernel)]
    return accesses(kernel, roots)


def row_index(schedule: Schedule, rows: int, name: str) -> Index:
    """The rows an invocation works on, `name` being the number of its team."""
    row = variable(name, rows // schedule.row_width)
    return linear([(row, VECTOR), (LANE, 1)]) if schedule.row_width == VECTOR else row


def element_index(schedule: Schedule, step: Index) -> Index:
    """The element, or four of them, that an invocation works on in a step."""
    return linear([(step, VECTOR), (LANE, 1)]) if schedule.element_width == VECTOR else step
