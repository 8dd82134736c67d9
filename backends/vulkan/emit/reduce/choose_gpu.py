"""Schedules of rows on GPUs.

If a row's elements are neighbours in memory, so are the members of its row group; if neighbouring rows are, row groups
are interleaved. Row groups are large enough to keep a row's elements in registers, so that memory is read once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lavax.backends.vulkan.emit.reduce.common_vectors import CommonVectorRows, bytes_of_vectors
from lavax.backends.vulkan.emit.reduce.early_reads import reads_of_elements
from lavax.backends.vulkan.emit.reduce.interleaved import InterleavedRows
from lavax.backends.vulkan.emit.reduce.invocation import InvocationRows
from lavax.backends.vulkan.emit.reduce.neighbours import NeighbourRows
from lavax.backends.vulkan.emit.reduce.online_sum import online_sum_of
from lavax.backends.vulkan.emit.reduce.row_reads import (
    arrays_kept,
    bytes_of_partial_results,
    is_one_for_vector,
    is_only_read,
    is_read_once,
    reads_much_in_common,
    unit_strides,
)
from lavax.backends.vulkan.emit.reduce.row_schedule import RowSchedule
from lavax.backends.vulkan.emit.reduce.shared_results import results_of_all_rows
from lavax.backends.vulkan.emit.reduce.unroll import UNROLL_LIMITS, may_write_out, unrolled, ways_to_walk
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import local_invocations
from lavax.backends.vulkan.glsl.reductions import POSITIONS
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.kernel import Kernel

# Elements read as neighbours along a row, and along the rows (unit_strides).
Strides = tuple[int, int]


@dataclass(frozen=True)
class Occupancy:
    """Invocations that keep a GPU busy. Exercised by `python -m benchmarks comparison --only sum-rows`."""

    busy: int = 1 << 17  # below it row groups grow, at the cost of work per member
    busy_columns: int = 1 << 18  # the same for columns that are read once
    local: int = 128  # of a workgroup that several row groups share
    most_local: int = 1024


@dataclass(frozen=True)
class RowsInRegisters:
    """Values of a row that an invocation keeps. Exercised by `python -m benchmarks comparison --only softmax`."""

    short_row: int = 16  # rows of up to so many elements are not shared
    in_subgroup: int = 32  # of each array, if that makes the row group no larger than a subgroup, without barriers
    in_workgroup: int = 16  # of each array, in larger row groups


@dataclass(frozen=True)
class LongRow:
    """Members of a row group for long rows that are written as well as read, and the values that each keeps.

    docs/rejected/maps_and_rows.md, "Maximum and sum of a row in one walk, and rows half in registers, on a GPU".
    """

    members: int
    kept: int  # of each array
    most_kept: int  # of all arrays


@dataclass(frozen=True)
class OneWalk:
    """Row groups of rows that are read once; a step is an element or a vector of them.

    docs/rejected/maps_and_rows.md, "Rows that are only read, in the registers of 1,024 invocations";
    `python -m benchmarks comparison --only cross-entropy`.
    """

    steps: int = 16  # per member of a part of a subgroup, at least
    subgroups: tuple[tuple[int, int], ...] = ((1, 48), (4, 32), (8, 64))  # of a row group, with the most steps per lane
    most_subgroups: int = 16  # of a row group, for longer rows
    members: int = 4  # which read enough together without being a subgroup


@dataclass(frozen=True)
class Runs:
    """Neighbouring vectors of elements that a member takes one after the other, because what they are read from is one
    load. Exercised by `python -m benchmarks models` (decoding)."""

    narrow: int = 2  # of elements of fewer than 32 bits
    words: int = 4  # of elements of which a word has several, as of quantised weights


@dataclass(frozen=True)
class RowsTogether:
    """Neighbouring rows that a row group shares, where they read as much in common as each for itself.

    docs/performance/decoding.md, "Rows that share a vector"; `python -m benchmarks models` (decoding).
    """

    rows: int = 2
    busy: int = 1 << 16  # invocations that are left at least


@dataclass(frozen=True)
class CommonVectorLimits:
    """Subgroups with a row each, whose workgroup computes what rows have in common, such as a norm, once.

    docs/performance/decoding.md, "Norms once a workgroup"; `python -m benchmarks models` (decoding).
    """

    rows: int = 8  # of a workgroup
    least: int = 8  # workgroups
    nbytes: int = 1 << 14  # of shared memory, for vectors of floats
    kept: int = 256  # bytes of a row in an invocation's registers, which are read before the workgroup meets
    longer: int = 4  # rows of a workgroup where they are more bytes, and loops read them


@dataclass(frozen=True)
class Interleaving:
    """Interleaved row groups. Exercised by `python -m benchmarks comparison --only sum-columns`."""

    line_bytes: int = 128  # that neighbours read together
    least_bytes: int = 32  # the same where there are few workgroups: devices fetch no less
    workgroups: int = 128  # that are not too few for the processors of a device
    elements: int = 8  # per member, at least
    few: int = 1 << 16  # elements of all rows: kernels of no more leave most of a device to others
    least_elements: int = 3  # per member of such, if that keeps in registers what is walked again
    few_local: int = 512  # of a workgroup that keeps what is walked again, where there are few workgroups


@dataclass(frozen=True)
class SharedShaders:
    """Schedules that serve every shape, so that few differ. Exercised by `python -m benchmarks first-calls`."""

    members: int = 256  # of a row group that is larger than a subgroup
    interleaved_members: int = 8


OCCUPANCY, ROWS_IN_REGISTERS, ONE_WALK = Occupancy(), RowsInRegisters(), OneWalk()
COMMON_VECTORS = CommonVectorLimits()
INTERLEAVING, SHARED_SHADERS, RUNS, TOGETHER = Interleaving(), SharedShaders(), Runs(), RowsTogether()
# Two row groups of the first size run on a processor at once; members of the second have fewer registers.
LONG_ROWS = (LongRow(512, kept=40, most_kept=64), LongRow(1024, kept=32, most_kept=48))


def choose_on_gpu(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> RowSchedule:
    """The schedule of the first form that suits the kernel."""
    strides = unit_strides(kernel)
    suited = (form(kernel, profile, strides, lifted) for form in FORMS)
    return next(schedule for schedule in suited if schedule is not None)


def candidates_on_gpu(kernel: Kernel, profile: DeviceProfile) -> list[RowSchedule]:
    """They differ in the size of row groups, and in the steps written out."""
    chosen = choose_on_gpu(kernel, profile, lifted=False)
    others = OTHER_SIZES[type(chosen)](chosen, kernel, profile) if chosen.is_shared else [chosen]
    return [way for schedule in others for way in ways_to_walk(kernel, schedule)]


def _most_neighbours(profile: DeviceProfile) -> int:
    """Subgroups of a workgroup exchange by one more shuffle, so there are no more of them than lanes."""
    return min(OCCUPANCY.most_local, profile.max_workgroup_invocations, profile.subgroup_size**2)


# -- rows that are neighbours in memory -----------------------------------------------------------------------------


def _columns(kernel: Kernel, profile: DeviceProfile, strides: Strides, lifted: bool) -> RowSchedule | None:
    """Neighbouring invocations have neighbouring rows; a workgroup has as many parts of each as keep it busy."""
    along_row, along_rows = strides
    rows, length = kernel.domain.rows, kernel.domain.length
    if along_rows <= along_row or rows < profile.subgroup_size:
        return None
    width = VECTOR if rows % VECTOR == 0 else 1
    row_groups = max(INTERLEAVING.line_bytes // (4 * width), 1)
    room = profile.shared_memory_bytes // max(bytes_of_partial_results(kernel, width), 1)
    most_local = min(OCCUPANCY.most_local, profile.max_workgroup_invocations, room)
    most = most_local // row_groups
    busy = OCCUPANCY.busy_columns if is_read_once(kernel) else OCCUPANCY.busy
    members = 1
    while 2 * members <= most and 2 * members * INTERLEAVING.elements <= length and rows // width * members < busy:
        members *= 2
    if lifted and members > 1:
        members = min(members, SHARED_SHADERS.interleaved_members) if members < most // 2 else members
    kept = 0 if lifted else UNROLL_LIMITS.kept // (width * arrays_kept(kernel))
    if members > 1 and rows * length <= INTERLEAVING.few and not is_read_once(kernel):
        members = _enough_to_keep(kernel, members, most, kept)
    steps, loop = unrolled(kernel, -(-length // members), kept)
    if members == 1:
        wide = width if rows > OCCUPANCY.busy else 1
        return InvocationRows(row_width=wide, local=local_invocations(profile), unrolled=steps, loop=loop)
    while members * row_groups > profile.subgroup_size and _may_spread(row_groups, width, rows):
        row_groups //= 2
    if loop and kept and not is_read_once(kernel) and rows // width < INTERLEAVING.workgroups * row_groups:
        members = _enough_to_keep(kernel, members, min(INTERLEAVING.few_local, most_local) // row_groups, kept)
        steps, loop = unrolled(kernel, -(-length // members), kept)
    local = members * row_groups
    return InterleavedRows(members=members, row_width=width, local=local, unrolled=steps, loop=loop)


def _enough_to_keep(kernel: Kernel, members: int, most: int, kept: int) -> int:
    """More members if so many keep their rows in registers, which are then not read again in each walk."""
    length, enough = kernel.domain.length, members
    while unrolled(kernel, -(-length // enough), kept)[1]:
        enough *= 2
        if enough > most or enough * INTERLEAVING.least_elements > length:
            return members
    return enough


def _may_spread(row_groups: int, width: int, rows: int) -> bool:
    """Whether half as many row groups a workgroup still read whole sectors, and more workgroups are needed."""
    return 4 * width * row_groups > INTERLEAVING.least_bytes and rows // width < INTERLEAVING.workgroups * row_groups


def _other_interleaved(chosen: RowSchedule, kernel: Kernel, profile: DeviceProfile) -> list[RowSchedule]:
    """The schedule with smaller and larger row groups, and with more and fewer of them per workgroup."""
    most = min(OCCUPANCY.most_local, profile.max_workgroup_invocations)
    room = profile.shared_memory_bytes // max(bytes_of_partial_results(kernel, chosen.row_width), 1)
    sizes = [(members, chosen.local) for members in _sizes(chosen, kernel) if chosen.local % members == 0]
    sizes += [(chosen.members, local) for local in (chosen.local // 2, 2 * chosen.local) if local >= chosen.members]
    return [
        replace(chosen, members=members, local=local)
        for members, local in sizes
        if profile.subgroup_size <= local <= min(most, room)
    ]


# -- rows whose elements are neighbours in memory -------------------------------------------------------------------


def _element_width(kernel: Kernel, strides: Strides) -> int:
    along_row, along_rows = strides
    return VECTOR if kernel.domain.length % VECTOR == 0 and along_row >= along_rows else 1


def _short_rows(kernel: Kernel, profile: DeviceProfile, strides: Strides, lifted: bool) -> RowSchedule | None:
    """An invocation per row."""
    short, length = ROWS_IN_REGISTERS.short_row, kernel.domain.length
    if length > short or kernel.domain.rows < profile.subgroup_size:
        return None
    width = _element_width(kernel, strides)
    steps, loop = unrolled(kernel, length // width, 0 if lifted else short)
    return InvocationRows(element_width=width, local=local_invocations(profile), unrolled=steps, loop=loop)


def _shared_rows(kernel: Kernel, profile: DeviceProfile, strides: Strides, lifted: bool) -> RowSchedule:
    """Part of a subgroup, a subgroup, or a whole workgroup per row."""
    schedule = _in_registers(kernel, profile, _element_width(kernel, strides), lifted)
    if lifted:
        return schedule
    common = _with_common_vectors(kernel, schedule, profile)
    if common is not None:
        return common
    return _together(kernel, _in_runs(kernel, _in_one_walk(kernel, schedule, profile)))


def _with_common_vectors(kernel: Kernel, schedule: NeighbourRows, profile: DeviceProfile) -> CommonVectorRows | None:
    """A subgroup for each row where all rows need the same sums and vectors of sums, which workgroups compute once.

    None if there are no such sums, or a subgroup is not busy with a row, or shared memory has no room.
    """
    rows, subgroup, limits = kernel.domain.rows, schedule.subgroup, COMMON_VECTORS
    groups = 1 << min(limits.rows, subgroup, _most_neighbours(profile) // subgroup).bit_length() - 1
    if schedule.element_width != VECTOR or not is_only_read(kernel) or rows < limits.least * groups or groups < 2:
        return None
    steps = schedule.steps(kernel.domain.length)
    if steps < subgroup or not results_of_all_rows(kernel) or _has_positions(kernel):
        return None
    if not 0 < bytes_of_vectors(kernel) <= min(limits.nbytes, profile.shared_memory_bytes // 2):
        return None
    found = CommonVectorRows(
        members=subgroup, element_width=VECTOR, local=groups * subgroup, subgroup=subgroup,
        unrolled=-(-steps // (RUNS.narrow * subgroup)) * RUNS.narrow, loop=False,
    )
    run = _in_runs(kernel, found).run
    each = -(-steps // (run * subgroup)) * run
    own = reads_of_elements(kernel)
    nbytes = sum((1 if is_one_for_vector(kernel, read) else VECTOR) * read[0].dtype.storage.itemsize for read in own)
    if each * nbytes <= limits.kept:
        return replace(found, run=run, unrolled=each)
    local = min(groups, limits.longer) * subgroup
    return replace(found, local=local, run=run, unrolled=max(UNROLL_LIMITS.steps // run, 1) * run, loop=True)


def _has_positions(kernel: Kernel) -> bool:
    return any(node.op in POSITIONS for node in kernel.coordinates)


def _in_runs(kernel: Kernel, schedule: NeighbourRows) -> NeighbourRows:
    """The schedule with runs of neighbouring steps if rows are only read, and most of what they have for themselves is
    narrow, or all of it words that serve a whole vector of elements."""
    own = reads_of_elements(kernel)
    if schedule.element_width != VECTOR or not own or not is_only_read(kernel):
        return schedule
    steps, members = schedule.steps(kernel.domain.length), schedule.members
    if all(is_one_for_vector(kernel, read) for read in own):
        run = RUNS.words
        each = -(-steps // (run * members)) * run
        return schedule if steps % (run * members) else replace(
            schedule, run=run, unrolled=run if schedule.loop else each, loop=schedule.loop and each > run
        )
    narrow = sum(node.dtype.storage.itemsize < 4 for node, _ in own)
    whole = steps % RUNS.narrow == 0 == schedule.unrolled % RUNS.narrow
    return replace(schedule, run=RUNS.narrow) if whole and 2 * narrow > len(own) else schedule


def _together(kernel: Kernel, schedule: NeighbourRows) -> NeighbourRows:
    """The schedule with neighbouring rows in one row group, if they read much in common and enough groups are left."""
    rows, outer = TOGETHER.rows, kernel.domain.outer
    busy = kernel.domain.rows // rows * schedule.members >= TOGETHER.busy
    if not busy or not schedule.is_shared or outer[-1] % rows or schedule.online or not is_only_read(kernel):
        return schedule
    short = may_write_out(kernel, schedule.unrolled * rows)
    return replace(schedule, together=rows) if short and reads_much_in_common(kernel) else schedule


def _in_registers(kernel: Kernel, profile: DeviceProfile, width: int, lifted: bool) -> NeighbourRows:
    """A row group that is large enough to keep a row, if it may be."""
    rows, steps, subgroup = kernel.domain.rows, kernel.domain.length // width, profile.subgroup_size
    most, together = _most_neighbours(profile), UNROLL_LIMITS.kept // arrays_kept(kernel)
    limits = (ROWS_IN_REGISTERS.in_subgroup, ROWS_IN_REGISTERS.in_workgroup)
    alone, kept = (max(min(limit, together) // width, 1) for limit in limits)
    members = 1
    if subgroup * kept < steps <= subgroup * alone:
        kept = alone
    elif steps > LONG_ROWS[0].members * kept:
        members, kept = _group_of_long_row(kernel, width, most) or (1, kept)
    while members < most and (members * kept < steps or (members < steps and rows * members < OCCUPANCY.busy)):
        members *= 2
    if lifted:
        members = subgroup if members < SHARED_SHADERS.members else min(SHARED_SHADERS.members, most)
    count, loop = unrolled(kernel, -(-steps // members), 0 if lifted else kept)
    local = members if members > subgroup else min(OCCUPANCY.local, most)
    return NeighbourRows(
        members=members, element_width=width, local=local, subgroup=subgroup, unrolled=count, loop=loop
    )


def _group_of_long_row(kernel: Kernel, width: int, most: int) -> tuple[int, int] | None:
    """The size of the row group that keeps a row, and the vectors of each array per member; None if it is too long.

    Rows that are only read are as fast in loops: the next rows are read meanwhile.
    """
    if is_only_read(kernel):
        return None
    for limit in LONG_ROWS:
        kept = min(limit.kept, limit.most_kept // arrays_kept(kernel)) // width
        if limit.members <= most and kernel.domain.length // width <= limit.members * kept:
            return limit.members, kept
    return None


def _in_one_walk(kernel: Kernel, schedule: NeighbourRows, profile: DeviceProfile) -> NeighbourRows:
    """A smaller row group for a row that is only read, and once, or that registers do not hold.

    Several row groups run on a processor, and while one exchanges, others read.
    """
    online = online_sum_of(kernel) is not None and (is_only_read(kernel) or schedule.loop)
    if not online and not is_read_once(kernel):
        return schedule
    rows, steps, subgroup = kernel.domain.rows, schedule.steps(kernel.domain.length), profile.subgroup_size
    most = _most_neighbours(profile)
    members = min(_members_reading_once(steps, subgroup), most)
    if members < (ONE_WALK.members if online and schedule.element_width == VECTOR else subgroup):
        return schedule
    while members < min(most, steps) and rows * members < OCCUPANCY.busy:
        members *= 2
    count, loop = unrolled(kernel, -(-steps // members), UNROLL_LIMITS.steps)
    local = members if members > subgroup else min(OCCUPANCY.local, most)
    return replace(schedule, members=members, local=local, unrolled=count, loop=loop, online=online)


def _members_reading_once(steps: int, subgroup: int) -> int:
    """How many invocations share a row of so many steps if there are many rows."""
    if steps < ONE_WALK.steps * subgroup:
        return 1 << max(steps // ONE_WALK.steps, 1).bit_length() - 1
    sizes = (number * subgroup for number, each in ONE_WALK.subgroups if steps <= number * subgroup * each)
    return next(sizes, ONE_WALK.most_subgroups * subgroup)


def _other_neighbours(chosen: RowSchedule, kernel: Kernel, profile: DeviceProfile) -> list[RowSchedule]:
    """The schedule with smaller and larger row groups."""
    most, subgroup = _most_neighbours(profile), profile.subgroup_size
    found = []
    for members in _sizes(chosen, kernel):
        if members <= most:
            local = members if members > subgroup else max(members, min(OCCUPANCY.local, most))
            found.append(replace(chosen, members=members, local=local))
    return found


def _sizes(chosen: RowSchedule, kernel: Kernel) -> list[int]:
    sizes = [chosen.members // 4, chosen.members // 2, chosen.members, 2 * chosen.members, 4 * chosen.members]
    return [members for members in sizes if 1 < members <= chosen.steps(kernel.domain.length)]


# A kernel gets the first form of row group that suits it; the last one suits all.
FORMS: tuple[Callable[[Kernel, DeviceProfile, Strides, bool], RowSchedule | None], ...] = (
    _columns,
    _short_rows,
    _shared_rows,
)
# The sizes of shared row groups that tuning tries.
OTHER_SIZES: dict[type[RowSchedule], Callable[[Any, Kernel, DeviceProfile], list[RowSchedule]]] = {
    InterleavedRows: _other_interleaved,
    NeighbourRows: _other_neighbours,
    CommonVectorRows: lambda chosen, kernel, profile: [chosen],
}
