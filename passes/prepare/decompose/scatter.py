"""Scatters of many updates over few lines, which would leave the work to few invocations.

If the array is small, the updates are distributed over several copies of it, which are then reduced. If it is large,
they are sorted by position, so that the updates of one position form a segment, and only those positions are visited.
In both cases the updates of an element are combined in the same order on every run.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from functools import reduce as joined
from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.ops.indexing import JOINS, SCATTERS
from lavax.ir.ops.lowered.scatter import length_of_links, levels_of
from lavax.ir.types import DType, float32, int32, uint32
from lavax.passes.build.builder import (
    add,
    broadcast,
    build,
    cast,
    gather,
    greater_equal,
    index_type,
    iota,
    less,
    logical_and,
    multiply,
    pad,
    reduce,
    reshape,
    reshaped,
    scatter,
    slice_along,
    splat,
    transpose,
    transposed,
    where,
)
from lavax.passes.kernels.scatter_lines import ScatterLines, lines_of
from lavax.passes.prepare.decompose.order_keys import float_words, floats_of
from lavax.passes.prepare.decompose.radix_sort import WORD, keys_of, payload_of, sorted_by_bits, with_payload
from lavax.passes.prepare.decompose.sorting import order_of_rows, uses_radix_sort
from lavax.passes.prepare.decompose.sums_in_whole_numbers import summed
from lavax.passes.target.kernel_limits import LISTS, MAX_LOOP_ITERATIONS, PLACES, ROWS
from lavax.passes.target.target import Target


@dataclass(frozen=True)
class ScatterLimits:
    """When updates are distributed over copies of the array, or sorted into segments.

    Chosen by `python -m benchmarks algorithms` and
    `python -m benchmarks comparison --only scatter-add --only embedding-backward`.
    """

    few_updates: int = 1 << 5  # per line: its invocation applies them one by one
    many_updates: int = 1 << 11  # per line: copies of the array may pay
    many_lines: int = 1 << 12  # enough to keep any device busy
    least_share: int = 64  # updates per copy
    always_small: int = 1 << 16  # elements that the copies may have in all, however few the updates are
    enough_copies: int = 32  # lines of all copies from which on copies pay
    elements_set_per_update: int = 4  # of an array that is written anew for its updates, at most
    elements_summed_per_update: int = 4  # of an array whose floats are added as whole numbers, at most
    updates_per_element: int = 2  # so many copies of a large array pay for one update of each element
    most_copies: int = 4  # of a large array: enough to keep a processor busy
    least_row: int = 2  # elements of an update that is joined as a row
    elements_of_lane: int = 8  # of such a row
    elements_copied: float = 0.25  # of all copies of an array of rows, for each element of the updates
    lines_per_update: int = 4  # of an array whose lines are made longer
    least_dealt_out: int = 1 << 15  # elements of all rows; kernels before and after would take longer than is saved
    most_kernels: int = 8  # that join updates to their places, one after the other
    least_listed_row: int = 8  # elements of an update that is joined by lists
    least_listed: int = 1 << 15  # elements of all rows, as for copies
    listed_per_element: float = 0.5  # elements of one kernel's updates, for each of the array, which is written whole
    updates_of_list: int = 64  # for each place, from which on there are several lists
    most_lists: int = 4  # enough to keep a processor busy
    chunk: int = 1 << 7  # updates that one invocation joins; the rest of a longer segment is folded before


_LIMITS = ScatterLimits()
_EXTREMA = ("maximum", "minimum")
_READ_TOGETHER = 4  # updates: a share has a multiple of them


def _scatter(node: Node, target: Target) -> Node:
    array, updates, *indices = node.operands
    if updates.type.size == 0:
        return array
    lines, keys = lines_of(node), indices[0].type.size
    steps = prod(indices[0].shape[place] for place in lines.serial)
    count = array.type.size // prod(array.shape[axis] for axis in lines.along)
    join = node.op.removeprefix("scatter_")
    if steps <= _few(node, target):
        return node
    if _is_summed_in_whole_numbers(node, join, target) and count >= _LIMITS.many_lines:
        return _in_whole_numbers(node, target)
    if keys > steps and count >= _LIMITS.many_lines and steps <= MAX_LOOP_ITERATIONS:
        return node
    if _is_joined_by_rows(node, target):
        return _by_lists(node, join) if _is_joined_by_lists(node, join) else _by_rows(node, join, target)
    is_in_place = _is_joined_in_place(node, join, target)
    if join in JOINS and steps >= _LIMITS.many_updates and count < _LIMITS.many_lines:
        limits = target.scatters
        room = max(limits.elements_per_update * updates.type.size, _LIMITS.always_small) // array.type.size
        parts = min(-(-limits.lines // count), steps // _LIMITS.least_share, room)
        in_place = is_in_place and (limits.at_once or parts * array.type.size > updates.type.size)
        if parts * count >= _LIMITS.enough_copies and steps <= parts * limits.longest_share and not in_place:
            return _by_copies(node, lines, join, parts)
    if is_in_place:
        return _by_places(node, join, target)
    wide = _wide(array.dtype) if join in _EXTREMA else array.dtype
    if wide != array.dtype:
        found = scatter(join, cast(array, wide), cast(updates, wide), indices, node.attrs["axes"])
        return cast(_scatter(found, target), array.dtype)
    if _is_summed_in_whole_numbers(node, join, target):
        return _in_whole_numbers(node, target)
    return _by_segments(node, join, target)


def _wide(dtype: DType) -> DType:
    """The dtype of 32 bits, which updates are joined in place in, that holds all numbers of a narrow one in order."""
    if dtype.bits >= uint32.bits:
        return dtype
    return float32 if dtype.is_float else int32


def _few(node: Node, target: Target) -> int:
    """How many updates of a line its invocation applies one by one."""
    array, updates, *indices = node.operands
    are_elements = updates.type.size == indices[0].type.size
    is_small = are_elements and array.type.size <= target.scatters.elements_one_by_one
    return max(_LIMITS.few_updates, target.scatters.one_by_one if is_small else 0)


def _is_joined_in_place(node: Node, join: str, target: Target) -> bool:
    """Whether each update goes to its place, or for sets its number, of which the last one counts."""
    array, updates, *indices = node.operands
    in_order, dtypes = node.op == "scatter_set", target.scatters.joined_in_place
    if in_order:  # the whole array is written again
        is_dense = array.type.size <= _LIMITS.elements_set_per_update * updates.type.size
        return "i32" in dtypes and is_dense and list(node.attrs["axes"]) == list(range(len(node.attrs["axes"])))
    kernels = -(-updates.type.size // PLACES.most)
    is_compared = join in _EXTREMA
    held = uint32 if is_compared and array.dtype == float32 else array.dtype
    are_few = target.scatters.at_once or kernels <= _LIMITS.most_kernels
    within = are_few and updates.type.size == indices[0].type.size
    return (join == "add" or (is_compared and held.is_integer)) and within and held.name in dtypes


def _is_summed_in_whole_numbers(node: Node, join: str, target: Target) -> bool:
    """Whether single floats are added in any order. What is found of all places of the array is written and read."""
    array, updates, *indices = node.operands
    are_elements = updates.type.size == indices[0].type.size
    is_dense = array.type.size <= _LIMITS.elements_summed_per_update * updates.type.size
    suits = join == "add" and array.dtype == float32 and are_elements and is_dense
    return suits and target.scatters.at_once and "i64" in target.scatters.joined_in_place


def _is_joined_by_rows(node: Node, target: Target) -> bool:
    """Whether each update is a row, of which lanes have neighbouring elements."""
    array, updates, *indices = node.operands
    axes, count = node.attrs["axes"], indices[0].type.size
    is_row = updates.type.size >= _LIMITS.least_row * count and list(axes) == list(range(len(axes)))
    return is_row and count <= _LIMITS.most_kernels * ROWS.most and array.dtype.name in target.scatters.joined_by_rows


def _is_joined_by_lists(node: Node, join: str) -> bool:
    """Whether rows are long enough to be written once for each place, and many enough for another kernel and for all
    places to be written."""
    array, updates, *indices = node.operands
    count = indices[0].type.size
    width = updates.type.size // count
    is_dense = min(count, LISTS.most) * width >= _LIMITS.listed_per_element * array.type.size
    is_large = width >= _LIMITS.least_listed_row and count * width >= _LIMITS.least_listed
    return join in JOINS and is_large and is_dense


def _by_lists(node: Node, join: str) -> Node:
    """The updates of each place are put in lists, along which they are joined to it."""
    array, updates, *indices = node.operands
    count = indices[0].type.size
    extents = [array.shape[axis] for axis in node.attrs["axes"]]
    places = reshape(_flat_positions(indices, extents), (count,))
    width, length = updates.type.size // count, prod(extents)
    rows, found = reshaped(updates, (count, width)), reshaped(array, (length, width))
    for start in range(0, count, LISTS.most):
        end = min(start + LISTS.most, count)
        lists = max(1, min(_LIMITS.most_lists, (end - start) // (_LIMITS.updates_of_list * length)))
        ends = splat(-1, index_type((length_of_links(lists, length, end - start),)))
        links = build("link_rows", ends, slice_along(places, 0, start, end), lists=lists, extent=length)
        found = build("join_lists", found, slice_along(rows, 0, start, end), links, join=join, lists=lists)
    return reshaped(found, array.shape)


def _by_rows(node: Node, join: str, target: Target) -> Node:
    """Copies of a small array of short rows each have a share of the updates, and are folded."""
    array, updates, *indices = node.operands
    count = indices[0].type.size
    extents = [array.shape[axis] for axis in node.attrs["axes"]]
    places = reshape(_flat_positions(indices, extents), (count,))
    width, length = updates.type.size // count, prod(extents)
    line, copies = _line_and_copies(count, width, length, join, target)
    lines, held = reshaped(updates, (count, width)), reshaped(array, (length, width))
    if copies > 1:
        found = splat(JOINS[join].identity(array.dtype), array.type.with_shape((copies, length, line)))
    else:
        filling = 0.0 if array.dtype.is_float else 0
        longer = pad(held, [0, 0], [0, line - width], [0, 0], filling) if line > width else held
        found = reshape(longer, (1, length, line))
    for start in range(0, count, ROWS.most * copies):
        end = min(start + ROWS.most * copies, count)
        part = (slice_along(operand, 0, start, end) for operand in (lines, places))
        found = build("join_rows", found, *part, join=join)
    if copies == 1:
        return reshaped(slice_along(reshape(found, (length, line)), 1, 0, width), array.shape)
    folded = slice_along(reduce(JOINS[join].reduction, found, (0,)), 1, 0, width)
    return reshaped(build(join, held, folded), array.shape)


def _line_and_copies(count: int, width: int, length: int, join: str, target: Target) -> tuple[int, int]:
    """How long lines of the array are made, so that each lane has words next to each other, and how many copies of it
    share the updates: as many as stand side by side in a subgroup, or several times as many. Long rows have one."""
    if count * width < _LIMITS.least_dealt_out:
        return width, 1
    words = _READ_TOGETHER if width <= _READ_TOGETHER else _LIMITS.elements_of_lane
    line = -(-width // words) * words if length <= _LIMITS.lines_per_update * count else width
    if width > words or join not in JOINS:
        return line, 1
    lanes, room = target.scatters.lanes_of_rows, int(_LIMITS.elements_copied * count * width) // (length * line)
    copies = min(lanes * _LIMITS.most_copies, room, count // _LIMITS.least_share)
    return line, max(1, copies - copies % lanes if copies > lanes else copies)


def _by_places(node: Node, join: str, target: Target) -> Node:
    """For sets, the number of the last update of each place is found, then all places take their updates."""
    array, updates, *indices = node.operands
    count = indices[0].type.size
    extents = [array.shape[axis] for axis in node.attrs["axes"]]
    places = reshape(_flat_positions(indices, extents), (count,))
    if join in _EXTREMA and array.dtype == float32:
        return _floats_by_places(node, join, places, target)
    if join != "set":
        held, joining = reshaped(array, (array.type.size,)), reshaped(updates, (count,))
        return reshaped(_joined_to(held, joining, places, join, target), array.shape)
    length, window = prod(extents), array.shape[len(extents) :]
    lines, held = reshape(updates, (count, *window)), reshape(array, (length, *window))
    last = _joined_to(splat(-1, index_type((length,))), iota(places.type, 0), places, "maximum", target)
    is_set = broadcast(greater_equal(last, splat(0, last.type)), held.shape, (0,))
    return reshape(where(is_set, gather(lines, (last,), (0,)), held), array.shape)


def _in_whole_numbers(node: Node, target: Target) -> Node:
    array, updates, *indices = node.operands
    extents = [array.shape[axis] for axis in node.attrs["axes"]]
    places = reshape(_flat_positions(indices, extents), (updates.type.size,))
    held, joining = (reshaped(operand, (operand.type.size,)) for operand in (array, updates))
    joined_to = partial(_joined_to, target=target)
    return reshaped(summed(held, joining, places, joined_to), array.shape)


def _floats_by_places(node: Node, join: str, places: Node, target: Target) -> Node:
    """Floats as words in their order, of which NaN is the greatest, also in minima: those are maxima of -x."""
    array, updates = (reshaped(operand, (operand.type.size,)) for operand in node.operands[:2])
    is_least = join == "minimum"
    held, words = (float_words(build("negate", x) if is_least else x).node for x in (array, updates))
    found = floats_of(_joined_to(held, words, places, "maximum", target), array.dtype)
    return reshaped(build("negate", found) if is_least else found, node.operands[0].shape)


def _joined_to(array: Node, updates: Node, places: Node, join: str, target: Target) -> Node:
    """If there are many updates for each element, copies of the array each take a share of them, and are folded, unless
    a kernel's invocations share them anyway."""
    if target.scatters.at_once:
        return build("join_places", array, updates, places, join=join)
    (extent,), (count,) = array.shape, updates.shape
    copies = min(_LIMITS.updates_per_element * count // extent, _LIMITS.most_copies)
    if copies <= 1 or count < _LIMITS.many_updates:
        return _joined_by_kernels(array, updates, places, join)
    share = -(-count // (copies * _READ_TOGETHER)) * _READ_TOGETHER

    def dealt_out(value: Node, filling: float) -> Node:
        more = copies * share - count
        return reshape(pad(value, [0], [more], [0], filling) if more else value, (copies, share))

    identity = splat(JOINS[join].identity(array.dtype), array.type.with_shape((copies, extent)))
    nothing = 0.0 if updates.dtype.is_float else 0  # of updates without a place
    found = _joined_by_kernels(identity, dealt_out(updates, nothing), dealt_out(places, -1), join)
    return build(join, array, reduce(JOINS[join].reduction, found, (0,)))


def _joined_by_kernels(array: Node, updates: Node, places: Node, join: str) -> Node:
    last, count = updates.type.rank - 1, updates.shape[-1]
    for start in range(0, count, PLACES.most):
        end = min(start + PLACES.most, count)
        part = (slice_along(operand, last, start, end) for operand in (updates, places))
        array = build("join_places", array, *part, join=join)
    return array


def _by_copies(node: Node, lines: ScatterLines, join: str, parts: int) -> Node:
    array, updates, *indices = node.operands
    axes, shape = node.attrs["axes"], indices[0].shape
    kept = list(lines.aligned.values())
    steps = prod(shape[place] for place in lines.serial)
    share = -(-steps // parts)
    front = tuple(shape[place] for place in kept)
    order = [*kept, *lines.serial]

    def dealt_out(value: Node, filling: float | bool) -> Node:
        window = value.shape[len(shape) :]
        moved = transpose(value, [*order, *range(len(shape), value.type.rank)])
        flat = reshape(moved, (*front, steps, *window))
        none = [0] * flat.type.rank
        more = [parts * share - steps if axis == len(front) else 0 for axis in range(flat.type.rank)]
        full = pad(flat, none, more, none, filling) if any(more) else flat
        return reshape(full, (*front, parts, share, *window))

    dealt = index_type((*front, parts, share))
    identity = JOINS[join].identity(array.dtype)
    positions = [
        iota(dealt, kept.index(lines.aligned[axis])) if axis in lines.aligned else dealt_out(index, -1)
        for index, axis in zip(indices, axes, strict=True)
    ]
    copies = scatter(
        join,
        splat(identity, array.type.with_shape((parts, *array.shape))),
        dealt_out(updates, identity),
        [iota(dealt, len(front)), *positions],
        [0, *(axis + 1 for axis in axes)],
    )
    return build(join, array, reduce(JOINS[join].reduction, copies, (0,)))


def _by_segments(node: Node, join: str, target: Target) -> Node:
    array, updates, *indices = node.operands
    axes, count = node.attrs["axes"], indices[0].type.size
    extents = [array.shape[axis] for axis in axes]
    # The indexed axes side by side, at the position of the first of them.
    window = [axis for axis in range(array.type.rank) if axis not in axes]
    position = [*window[: axes[0]], *axes, *window[axes[0] :]]
    positions = reshape(_flat_positions(indices, extents), (count,))
    lines = reshape(updates, (count, *updates.shape[indices[0].type.rank :]))
    segments = _in_order(positions, lines, prod(extents), target)
    levels = _folded_segments(segments, join)
    neighbours = range(axes[0], axes[0] + len(axes))
    moved = transposed(array, position)
    joined = build("join_runs", moved, *segments, *levels, join=join, chunk=_LIMITS.chunk, axes=tuple(neighbours))
    return transposed(joined, sorted(range(len(position)), key=position.__getitem__))


def _folded_segments(segments: tuple[Node, Node, Node], join: str) -> list[Node]:
    """Folds the first segment of every chunk of updates, then of every chunk of results, until one chunk is left."""
    updates, order, positions = segments
    levels: list[Node] = []
    for count in levels_of(positions.type.size, _LIMITS.chunk):
        levels.append(build("fold_runs", updates, order, positions, join=join, chunk=_LIMITS.chunk))
        updates, positions = levels[-1], slice_along(positions, 0, 0, positions.type.size, _LIMITS.chunk)
        order = iota(index_type((count,)), 0)
    return levels


def _in_order(positions: Node, updates: Node, extent: int, target: Target) -> tuple[Node, Node, Node]:
    """The updates, their numbers in the order of their positions, and the sorted positions."""
    numbers = iota(positions.type, 0)
    if not uses_radix_sort(positions, target):
        order = order_of_rows(positions, target)
        return updates, order, gather(positions, (order,), (0,))
    goes_along = updates.type.rank == 1 and updates.dtype.bits == WORD
    payload = build("bitcast", updates, type=positions.type.with_dtype(uint32)) if goes_along else numbers
    pairs = sorted_by_bits(with_payload(positions, payload), WORD, extent.bit_length())
    if not goes_along:
        return updates, payload_of(pairs), keys_of(pairs)
    return build("bitcast", payload_of(pairs), type=updates.type), numbers, keys_of(pairs)


def _flat_positions(indices: Sequence[Node], extents: Sequence[int]) -> Node:
    """The row-major position of each update; past the end if it is outside the range."""
    checks, flat = [], None
    for index, extent in zip(indices, extents, strict=True):
        checks += [greater_equal(index, splat(0, index.type)), less(index, splat(extent, index.type))]
        flat = index if flat is None else add(multiply(flat, splat(extent, index.type)), index)
    assert flat is not None
    return where(joined(logical_and, checks), flat, splat(prod(extents), flat.type))


RULES: dict[str, Callable[[Node, Target], Node]] = dict.fromkeys(SCATTERS, _scatter)

