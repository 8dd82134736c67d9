"""Schedules of rows on CPU drivers, and on GPUs without shuffles.

A CPU driver runs a workgroup one subgroup after the other and stops it at every barrier, so that its row groups are one
subgroup. Starting a workgroup takes as long as adding up some hundred numbers, so several row groups of short rows
share one, and short rows that are read once have an invocation each. Short rows are kept in registers from phase to
phase and not computed again; long rows are read again, from the cache.
"""

from __future__ import annotations

from dataclasses import replace

from lavax.backends.vulkan.emit.reduce.invocation import InvocationRows
from lavax.backends.vulkan.emit.reduce.neighbours import NeighbourRows
from lavax.backends.vulkan.emit.reduce.online_sum import phases_of
from lavax.backends.vulkan.emit.reduce.ragged import RaggedRows
from lavax.backends.vulkan.emit.reduce.row_reads import (
    elements_of_step,
    is_only_read,
    is_read_by_descriptor,
    is_read_once,
    reads_in_common,
    starts_of_rows,
    unit_strides,
)
from lavax.backends.vulkan.emit.reduce.row_schedule import RowSchedule
from lavax.backends.vulkan.emit.reduce.tiles import TiledRows
from lavax.backends.vulkan.emit.reduce.unroll import ways_to_walk
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import local_invocations
from lavax.backends.vulkan.glsl.reductions import POSITIONS
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.fuse.costs import cost_of
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS


@dataclass(frozen=True)
class SharingOnCpu:
    """When lanes share rows. Exercised by `python -m benchmarks comparison --only sum-rows`."""

    elements_per_lane: int = 16  # from which on many rows that are read once are shared
    row_groups: int = 8  # per workgroup, at most
    elements_together: int = 2048  # of a workgroup's rows, at most


@dataclass(frozen=True)
class FourRows:
    """When an invocation has four rows although most elements are a row's neighbours.
    docs/rejected/maps_and_rows.md, "Four short rows to a lane where a row's elements are neighbours";
    `python -m benchmarks comparison --only cross-entropy`."""

    elements: int = 1 << 15  # of all rows, at least


@dataclass(frozen=True)
class RowStrips:
    """Strips of columns of an invocation. Exercised by `python -m benchmarks comparison --only sum-columns`."""

    counts: tuple[int, ...] = (8, 4, 2)
    busy: int = 32  # invocations that must be left, and row groups if several share a workgroup
    statements: int = 384 // VECTOR  # of the graph, times the strips


@dataclass(frozen=True)
class WrittenOut:
    """Whole rows are written out if they have that many elements and no more values and statements.

    The driver's call must save enough to be worth compiling for several times as long.
    docs/rejected/maps_and_rows.md, "Long rows kept in registers on a CPU driver";
    `python -m benchmarks comparison --only softmax`.
    """

    elements: int  # of all rows, at least
    kept: int  # values of an invocation, at most
    statements: int  # written out, at most


@dataclass(frozen=True)
class ManyShortRows:
    """Rows of which only results are written, such as windows and vectors: an invocation has several, one after the
    other. docs/performance/rows_on_cpus.md, "Many short rows"."""

    length: int = 32  # of a row, at most
    elements: int = 1 << 15  # of all rows, at least
    together: int = 256  # elements of an invocation's rows, at most
    turns: tuple[int, ...] = (16, 8, 4, 2)
    busy: int = 256  # invocations that must be left
    statements: int = 160  # of a row's steps, written out


@dataclass(frozen=True)
class RowTiles:
    """Tiles of rows that are made of pairs. docs/performance/rows_on_cpus.md, "Pairs"."""

    lines: tuple[int, ...] = (4, 8, 6, 5, 3, 2)
    reads: float = 0.75  # the most elements that are read, over those of as many rows by themselves
    statements: int = 384  # of the graph, times the lines
    invocations: int = 64  # that must be left


@dataclass(frozen=True)
class Ragged:
    """Rows that begin between vectors. docs/performance/rows_on_cpus.md, "Rows of odd lengths"."""

    elements_per_lane: int = 4  # at least
    statements: int = 384  # of the graph, times the rows of a subgroup
    cost: int = 192  # of the graph, times these rows: functions are long code, of which each row has its own
    busy: int = 2  # subgroups that must be left


# In a workgroup's loop: the rows of a row group, or vectors of rows, and how many elements of a column a lane has at
# least if several share it.
ROWS_TOGETHER = (8, 4, 5, 3, 2)
COLUMNS_IN_LOOP = 4
_READ_BY_ADDRESS = 2  # of a vector, over a texel of four words
_APART = 128  # multiples of so many elements apart, rows take each other's places in caches
SHARING_ON_CPU, FOUR_ROWS, STRIPS, SHORT_ROWS = SharingOnCpu(), FourRows(), RowStrips(), ManyShortRows()
TILES, RAGGED = RowTiles(), Ragged()
WRITTEN_OUT = (WrittenOut(1 << 18, kept=96, statements=600), WrittenOut(4096, kept=64, statements=384))


def choose_on_cpu(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> RowSchedule:
    schedule = _in_loops(kernel, profile)
    if lifted:
        return schedule
    tiled = _in_tiles(kernel, profile)
    if tiled is not None:
        return tiled
    is_wide = schedule.row_width == VECTOR or is_read_once(kernel)
    ragged = _ragged(kernel, profile, schedule)
    if ragged is not None:
        written_out = _written_out(kernel, replace(ragged, in_turn=True))
        return _side_by_side(kernel, written_out or ragged)
    ways = (_written_out, _in_strips, _in_turns) if is_wide else (_in_turns, _written_out)
    return _side_by_side(kernel, next(filter(None, (way(kernel, schedule) for way in ways)), schedule))


def choose_in_loop(kernel: Kernel, profile: DeviceProfile) -> RowSchedule:
    """The schedule of a kernel in a workgroup's loop: the workgroup is one subgroup, which starts once.

    A vector that multiplies rows changes from turn to turn, so it is read by address; several rows share it. Lanes that
    read one element of it each take as long as lanes that all read the same, so columns are shared by lanes, too.
    """
    schedule = choose_on_cpu(kernel, profile, lifted=False)
    is_one_walk = max(phases_of(kernel).values(), default=0) <= 1
    by_lanes = _rows_of_lanes(kernel, profile) if is_one_walk else None
    if by_lanes is not None:
        return by_lanes
    if isinstance(schedule, InvocationRows):
        return (is_one_walk and _in_common(kernel, profile, schedule)) or schedule
    if isinstance(schedule, RaggedRows):
        return replace(schedule, local=schedule.members)
    if not isinstance(schedule, NeighbourRows) or schedule.members > profile.subgroup_size:
        return schedule
    alone = replace(schedule, local=schedule.members)
    return replace(alone, together=_together(kernel.domain.rows)) if is_one_walk else alone


def _rows_of_lanes(kernel: Kernel, profile: DeviceProfile) -> InvocationRows | None:
    """Several whole rows for each lane, which reads vectors of each, and for all of them at once what they have in
    common; None if rows are too few, or if other schedules read fewer vectors.

    A row that a subgroup shares is read by all lanes at once, of which the last ones have nothing to read, and ends
    with shuffles. docs/performance/loop_turns_on_cpus.md, "Rows of lanes in a workgroup's loop".
    """
    (rows, length), subgroup = (kernel.domain.rows, kernel.domain.length), profile.subgroup_size
    along_row, along_rows = unit_strides(kernel)
    suits = reads_in_common(kernel) and is_only_read(kernel) and length % VECTOR == 0
    if not suits or along_row < along_rows or not is_read_by_descriptor(kernel) or length % _APART == 0:
        return None

    def by_lane(together: int) -> int:
        return -(-rows // (subgroup * together)) * (length // VECTOR) * (together + _READ_BY_ADDRESS)

    together = min((several for several in ROWS_TOGETHER if rows % several == 0), key=by_lane, default=1)
    shared = _together(rows)
    by_subgroup = rows // shared * (-(-length // (VECTOR * subgroup)) * (shared + _READ_BY_ADDRESS) + shared)
    if by_lane(together) > by_subgroup:
        return None
    return InvocationRows(element_width=VECTOR, local=subgroup, chunked=True, together=together)


def _in_common(kernel: Kernel, profile: DeviceProfile, schedule: InvocationRows) -> RowSchedule | None:
    """Rows of lanes of their own that share what they read in common."""
    rows, length, subgroup = kernel.domain.rows, kernel.domain.length, profile.subgroup_size
    if not reads_in_common(kernel) or not is_only_read(kernel) or schedule.strips > 1 or schedule.turns > 1:
        return None
    along_row, along_rows = unit_strides(kernel)
    if rows % VECTOR == 0 and along_rows >= along_row and length >= COLUMNS_IN_LOOP * subgroup:
        together = _together(rows // VECTOR)
        return NeighbourRows(
            members=subgroup, row_width=VECTOR, local=subgroup, subgroup=subgroup, chunked=True, together=together
        )
    if schedule.row_width > 1 or not schedule.loop:
        return None
    return replace(schedule, together=_together(rows))


def _together(rows: int) -> int:
    return next((several for several in ROWS_TOGETHER if rows % several == 0), 1)


def candidates_on_cpu(kernel: Kernel, profile: DeviceProfile) -> list[RowSchedule]:
    """They differ in the steps written out, and in strips."""
    looped = _in_loops(kernel, profile)
    return [*ways_to_walk(kernel, looped), _in_strips(kernel, looped) or looped]


def _in_loops(kernel: Kernel, profile: DeviceProfile) -> RowSchedule:
    """A subgroup per row if it reads neighbours and rows are long enough to share, else an invocation."""
    along_row, along_rows = unit_strides(kernel)
    if profile.subgroup_shuffle and _is_shared(kernel, profile, along_row, along_rows):
        width = VECTOR if kernel.domain.length % VECTOR == 0 and along_row >= along_rows else 1
        subgroup = profile.subgroup_size
        return NeighbourRows(members=subgroup, element_width=width, local=subgroup, subgroup=subgroup, chunked=True)
    return _invocations(kernel, profile, along_row, along_rows)


def _is_shared(kernel: Kernel, profile: DeviceProfile, along_row: int, along_rows: int) -> bool:
    rows, length, subgroup = kernel.domain.rows, kernel.domain.length, profile.subgroup_size
    least = SHARING_ON_CPU.elements_per_lane if is_read_once(kernel) else 2
    is_long = length >= least * subgroup or (length >= subgroup and rows < 4 * subgroup)
    is_too_long = length * (1 + max(phases_of(kernel).values(), default=0)) > MAX_LOOP_ITERATIONS
    return (is_long and (along_row >= along_rows or rows < subgroup)) or is_too_long


def _invocations(kernel: Kernel, profile: DeviceProfile, along_row: int, along_rows: int) -> InvocationRows:
    rows, length = kernel.domain.rows, kernel.domain.length
    worth_it = along_rows >= along_row or rows * length >= FOUR_ROWS.elements
    several = rows % VECTOR == 0 and rows > VECTOR * profile.subgroup_size
    row_width = VECTOR if several and along_rows > 0 and worth_it else 1
    element_width = VECTOR if row_width == 1 and length % VECTOR == 0 and along_row > 0 else 1
    local = local_invocations(profile)
    return InvocationRows(row_width=row_width, element_width=element_width, local=local, chunked=True)


def _ragged(kernel: Kernel, profile: DeviceProfile, schedule: RowSchedule) -> RaggedRows | None:
    """Rows of neighbours that begin between vectors, as vectors and single elements at their ends."""
    subgroup, (along_row, along_rows) = profile.subgroup_size, unit_strides(kernel)
    is_plain = isinstance(schedule, (NeighbourRows, InvocationRows)) and schedule.row_width == 1
    if not is_plain or along_row < along_rows or not profile.subgroup_shuffle:
        return None
    starts = starts_of_rows(kernel)
    if starts is None or any(node.op in POSITIONS for node in phases_of(kernel)):
        return None
    length, (stride, offset) = kernel.domain.length, starts
    if length % VECTOR == 0 and not stride and not offset:
        return None  # all that rows have are whole vectors
    ragged = RaggedRows(
        members=subgroup,
        element_width=VECTOR,
        local=subgroup,
        chunked=True,
        in_turn=not reads_in_common(kernel),
        subgroup=subgroup,
        length=length,
        stride=stride,
        offset=offset,
    )
    is_long = length >= RAGGED.elements_per_lane * subgroup and ragged.vectors > 0 and ragged.ends <= subgroup
    cost = sum(map(cost_of, kernel.graph.nodes))
    is_short = ragged.together * len(kernel.graph.nodes) <= RAGGED.statements and ragged.together * cost <= RAGGED.cost
    is_whole = kernel.domain.rows % ragged.together == 0 or is_read_by_descriptor(kernel)
    enough = kernel.domain.rows >= ragged.together * RAGGED.busy
    return ragged if is_long and is_short and is_whole and enough else None


def _in_tiles(kernel: Kernel, profile: DeviceProfile) -> TiledRows | None:
    """Rows of pairs in tiles: what an element reads for one of both is the same for a line of the tile."""
    rows, length = kernel.domain.rows, kernel.domain.length
    extents = [extent for extent in kernel.domain.outer if extent > 1]
    if len(extents) < 2 or not is_only_read(kernel) or length * max(phases_of(kernel).values()) > MAX_LOOP_ITERATIONS:
        return None
    above, columns = extents[-2:]
    width = VECTOR if columns % VECTOR == 0 else 1
    alone = InvocationRows(row_width=width, local=local_invocations(profile), chunked=True)
    least = TILES.reads * elements_of_step(kernel, [alone.row_index(rows, "i")])
    for lines in TILES.lines:
        suits = above % lines == 0 and lines * len(kernel.graph.nodes) <= TILES.statements
        if suits and rows // (lines * width) >= TILES.invocations:
            tiled = TiledRows(row_width=width, local=alone.local, chunked=True, lines=lines, columns=columns)
            if elements_of_step(kernel, tiled.tile(rows, "i")) <= least * lines:
                return tiled
    return None


def _side_by_side(kernel: Kernel, schedule: RowSchedule) -> RowSchedule:
    """The schedule with several row groups per workgroup if rows are many and short: starting one takes a while."""
    rows, length, together = kernel.domain.rows, kernel.domain.length, 1
    most = SHARING_ON_CPU.elements_together
    while schedule.is_shared and rows >= 2 * together * STRIPS.busy and 2 * together * length <= most:
        together *= 2
    if together == 1:
        return schedule
    return replace(schedule, local=schedule.members * min(together, SHARING_ON_CPU.row_groups))


def _in_turns(kernel: Kernel, schedule: RowSchedule) -> RowSchedule | None:
    """Several rows per invocation, if rows are many and short and only read.

    Four rows make one store, which is a loop over the lanes. Where texels are read, it hardly matters whether four
    elements are neighbours.
    """
    rows, length = kernel.domain.rows, kernel.domain.length
    if not is_only_read(kernel) or not kernel.by_descriptor:
        return None
    if length > SHORT_ROWS.length or rows * length < SHORT_ROWS.elements:
        return None
    width = VECTOR if rows % VECTOR == 0 else 1
    vectors, written_out = rows // width, length * len(kernel.graph.nodes) <= SHORT_ROWS.statements
    for turns in SHORT_ROWS.turns:
        if vectors // turns >= SHORT_ROWS.busy and turns * width * length <= SHORT_ROWS.together:
            break
    else:
        turns = 1
    wide = InvocationRows(row_width=width, local=schedule.local, chunked=True, turns=turns)
    return replace(wide, unrolled=length, loop=False) if written_out else wide


def _in_strips(kernel: Kernel, schedule: RowSchedule) -> RowSchedule | None:
    """Columns in strips: elements of a row lie far apart, so an invocation reads more than one cache line of each."""
    if not isinstance(schedule, InvocationRows) or schedule.row_width != VECTOR:
        return None
    vectors = kernel.domain.rows // VECTOR
    for strips in STRIPS.counts:
        enough = vectors // strips >= STRIPS.busy and vectors % (strips * schedule.local) == 0
        if enough and strips * len(kernel.graph.nodes) <= STRIPS.statements:
            return replace(schedule, strips=strips)
    return None


def _written_out(kernel: Kernel, schedule: RowSchedule) -> RowSchedule | None:
    """The schedule without loops if rows are short, walked over more than once, and have many elements in all."""
    steps = -(-schedule.steps(kernel.domain.length) // schedule.members)
    kept = steps * max(schedule.row_width, schedule.element_width)
    walks = max(phases_of(kernel).values(), default=0) + (not is_only_read(kernel))
    statements, elements = steps * len(kernel.graph.nodes), kernel.domain.rows * kernel.domain.length
    is_worth_it = any(
        elements >= limit.elements and kept <= limit.kept and statements <= limit.statements for limit in WRITTEN_OUT
    )
    return replace(schedule, unrolled=steps, loop=False) if walks > 1 and is_worth_it else None
