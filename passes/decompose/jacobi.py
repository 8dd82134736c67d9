"""Jacobi's methods as loops over turns, in each of which every element of all matrices is computed at once.

Players of a round-robin tournament sit at a table, each opposite the one it meets: seat k opposite seat N - 1 - k. A
turn rotates all pairs that meet; then all but the first move one seat on. After N - 1 turns all have met, and sit
where they sat. Matrices small enough for one workgroup stay as they are (`backends/vulkan/emit/jacobi.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lavax.ir.graph import Node, graph_of, input_node
from lavax.ir.types import TensorType
from lavax.passes.builder import (
    absolute,
    add,
    broadcast,
    build,
    divide,
    equal,
    flip,
    gather,
    greater,
    index_type,
    iota,
    less,
    logical_and,
    multiply,
    negate,
    pad,
    reduce,
    reshape,
    scale,
    splat,
    subtract,
    sum_over,
    where,
    zeros,
)
from lavax.passes.decompose.linear_algebra import orthogonal_factors
from lavax.passes.decompose.sorting import order_of_rows
from lavax.passes.matrices import (
    by_column,
    by_row,
    inverse_or_zero,
    on_diagonal,
    packed,
    product,
    rows_in_order,
    rows_of,
    turned,
)

# What one workgroup of 8 does in few enough turns of its loops (see `linear_algebra`).
_MOST_EIGENVALUES, _MOST_COLUMNS, _MOST_ROWS, _MOST_ROWS_COMPLETED = 32, 16, 32, 24
# Convergence is quadratic in the end: 8 or 9 sweeps do for some hundred rows, up to 20 for columns of very different
# lengths.
_MOST_SWEEPS = 30
# The following are in units in the last place of 1: off-diagonal elements of a matrix whose largest is 1 that no longer
# matter,
_SETTLED = 1 / 12
# cosines of angles between columns that are rounding alone, over the root of how many rows there are,
_NEGLIGIBLE = 1 / 2
# and singular values, relative to the largest, that have left vectors of rounding alone.
_NOTHING = 1.0


def _unit(x: Node) -> float:
    """The unit in the last place of 1, in the dtype."""
    return float(np.finfo(x.dtype.numpy).eps)


def _seats_filled(x: Node, axes: Sequence[int]) -> Node:
    """With a player who never turns where the number is odd."""
    more = [x.shape[axis] % 2 if axis in axes else 0 for axis in range(x.type.rank)]
    none = [0] * x.type.rank
    return pad(x, none, more, none, 0.0) if any(more) else x


def _scaled(matrix: Node) -> tuple[Node, Node]:
    """The matrix divided by its largest element, and that."""
    rank = matrix.type.rank
    largest = reduce("max", absolute(matrix), (rank - 2, rank - 1))
    divisor = where(equal(largest, zeros(largest.type)), splat(1, largest.type), largest)
    return divide(matrix, broadcast(divisor, matrix.shape, range(rank - 2))), divisor


def _angles(own: Node, other: Node, across: Node, negligible: Node) -> tuple[Node, Node]:
    """Sine and tangent of the half angle of each seat's rotation, by which it becomes
    `own - s·(opposite + t·own)`."""
    one, seats = splat(1, own.type), own.shape[-1]
    first = less(iota(index_type(own.shape), own.type.rank - 1), splat(seats // 2, index_type(own.shape)))
    safe = where(negligible, one, across)
    tilt = divide(subtract(other, own), scale(safe, 2.0))
    length = add(absolute(tilt), build("sqrt", add(one, multiply(tilt, tilt))))
    slope = divide(one, length)
    level = equal(tilt, zeros(tilt.type))
    upwards = where(level, first, greater(tilt, zeros(tilt.type)))
    slope = where(upwards, slope, negate(slope))
    cosine = divide(one, build("sqrt", add(one, multiply(slope, slope))))
    sine = where(negligible, zeros(own.type), multiply(slope, cosine))
    return sine, divide(sine, add(one, cosine))


def _rotated(x: Node, angles: tuple[Node, Node]) -> Node:
    """Every row with the one opposite."""
    sine, half = (by_row(each, x.shape) for each in angles)
    return subtract(x, multiply(sine, add(flip(x, (x.type.rank - 2,)), multiply(half, x))))


def _moved_on(x: Node, axes: Sequence[int]) -> Node:
    """All players but the first one seat further."""
    type, places = index_type(x.shape), []
    for axis in range(x.type.rank):
        seat = iota(type, axis)
        if axis in axes:
            before = subtract(seat, splat(1, type))
            last = splat(x.shape[axis] - 1, type)
            came = where(equal(seat, splat(1, type)), last, before)
            seat = where(equal(seat, zeros(type)), seat, came)
        places.append(seat)
    return gather(x, places, range(x.type.rank))


def _items(loop: Node, count: int) -> list[Node]:
    return [build("item", loop, index=number) for number in range(count)]


def _inputs_like(values: Sequence[Node]) -> list[Node]:
    return [input_node(f"state{number}", value.type) for number, value in enumerate(values)]


def _swept(turn: Callable[[Sequence[Node]], Sequence[Node]], state: Sequence[Node]) -> list[Node]:
    """What is carried after a sweep: as many turns as there are players to meet."""
    inputs, turns = _inputs_like(state), state[0].shape[-2] - 1
    body = graph_of(inputs, turn(inputs))
    loop = build("scan", *state, carries=len(state), sequences=0, length=turns, reverse=False, body=body)
    return _items(loop, len(state))


def _until_settled(
    turn: Callable[[Sequence[Node]], Sequence[Node]], distance: Callable[[Node], Node], state: Sequence[Node]
) -> list[Node]:
    """What is carried when no element of `distance` of the first array is more than 1 but on the diagonal."""
    far = splat(2, TensorType((), state[0].dtype))
    carried = [*state, far, splat(0, index_type(()))]
    inputs = _inputs_like(carried)
    swept = _swept(turn, inputs[:-2])
    sweeps = add(inputs[-1], splat(1, index_type(())))
    body = graph_of(inputs, [*swept, _farthest(distance(swept[0])), sweeps])
    inputs = _inputs_like(carried)
    goes_on = greater(inputs[-2], splat(1, far.type))
    condition = graph_of(inputs, [logical_and(goes_on, less(inputs[-1], splat(_MOST_SWEEPS, index_type(()))))])
    loop = build("while", *carried, condition=condition, body=body)
    return _items(loop, len(carried))[: len(state)]


def _farthest(distances: Node) -> Node:
    """The largest number above 1 off the diagonals, else zero: matrices with NaN in them keep no others waiting."""
    type, rank = index_type(distances.shape), distances.type.rank
    off = build("not_equal", iota(type, rank - 2), iota(type, rank - 1))
    counts = logical_and(off, greater(distances, splat(1, distances.type)))
    return reduce("max", where(counts, distances, zeros(distances.type)), range(rank))


def _in_order(values: Node, falling: bool, *vectors: Node) -> list[Node]:
    """The values in order, and the vectors, which are rows, with them."""
    order = order_of_rows(negate(values) if falling else values)
    column = reshape(values, (*values.shape, 1))
    return [reshape(rows_in_order(column, order), values.shape), *(rows_in_order(rows, order) for rows in vectors)]


def _signs(rows: Node) -> Node:
    """What makes the component of largest magnitude of each row positive."""
    last = rows.type.rank - 1
    highest, lowest = reduce("max", rows, (last,)), reduce("min", rows, (last,))
    one = splat(1, highest.type)
    return where(greater(negate(lowest), highest), negate(one), one)


def _unit_rows(matrix: Node, seats: int) -> Node:
    *stack, _, _ = matrix.shape
    shape = (*stack, seats, matrix.shape[-1])
    return on_diagonal(splat(1, matrix.type.with_shape(shape[:-1])), shape)


# Eigenvalues


def _eigh(node: Node) -> Node:
    (matrix,) = node.operands
    rank, size = matrix.type.rank, matrix.shape[-1]
    if size <= _MOST_EIGENVALUES:
        return node
    with_vectors = node.attrs["vectors"]
    positions = [iota(index_type(matrix.shape), axis) for axis in (rank - 2, rank - 1)]
    symmetric = where(build("greater_equal", *positions), matrix, turned(matrix))
    work, divisor = _scaled(symmetric)
    work = _seats_filled(work, (rank - 2, rank - 1))
    seats = work.shape[-1]
    carried = [work, _unit_rows(matrix, seats)] if with_vectors else [work]
    work, *vectors = _until_settled(_eigen_turn, _far_from_diagonal, carried)
    vectors = [rows_of(rows, 0, size) for rows in vectors]
    if vectors:  # of the matrix itself, so that the rounding of all turns is not in them
        values = sum_over(multiply(product(vectors[0], symmetric), vectors[0]), (rank - 1,))
    else:
        values = _diagonal(rows_of(work, 0, size))[0]
        values = multiply(values, by_row(divisor, values.shape))
    values, *vectors = _in_order(values, False, *vectors)
    vectors = [multiply(rows, by_row(_signs(rows), rows.shape)) for rows in vectors]
    scratch = zeros(matrix.type.with_shape((*matrix.shape[:-2], size * size + size)))
    return packed([values, *vectors, scratch], rank - 2)


def _far_from_diagonal(work: Node) -> Node:
    """Magnitudes in units of what is settled."""
    return scale(absolute(work), 1 / (_SETTLED * _unit(work)))


def _diagonal(work: Node) -> tuple[Node, Node]:
    """The diagonal, and the elements of each row across from it: in the column of the player opposite."""
    *stack, rows, columns = work.shape
    type = index_type((*stack, rows))
    places = [iota(type, axis) for axis in range(len(stack) + 1)]
    opposite = subtract(splat(columns - 1, type), places[-1])
    axes = range(len(stack) + 2)
    return gather(work, [*places, places[-1]], axes), gather(work, [*places, opposite], axes)


def _eigen_turn(state: Sequence[Node]) -> list[Node]:
    work, *vectors = state
    rank, seats = work.type.rank, work.shape[-1]
    own, across = _diagonal(work)
    across = scale(add(across, flip(across, (rank - 2,))), 0.5)  # the same for both, so that they turn as one
    angles = _angles(own, flip(own, (rank - 2,)), across, equal(across, zeros(across.type)))
    turned_rows = _rotated(work, angles)
    both = turned(_rotated(turned(turned_rows), angles))
    type = index_type(both.shape)
    met = equal(add(iota(type, rank - 2), iota(type, rank - 1)), splat(seats - 1, type))
    both = where(met, zeros(both.type), both)
    return [
        _moved_on(both, (rank - 2, rank - 1)),
        *(_moved_on(_rotated(rows, angles), (rank - 2,)) for rows in vectors),
    ]


# Singular values


def _svd(node: Node) -> Node:
    """Columns of the matrix are the players, and rows of `work`."""
    (matrix,) = node.operands
    rank, (rows, columns) = matrix.type.rank, matrix.shape[-2:]
    complete = node.attrs["complete"]
    if columns <= _MOST_COLUMNS and rows <= (_MOST_ROWS_COMPLETED if complete else _MOST_ROWS):
        return node
    scaled, divisor = _scaled(matrix)
    work = _seats_filled(turned(scaled), (rank - 2,))
    seats = work.shape[-2]
    carried = [work, _unit_rows(matrix, seats)] if node.attrs["vectors"] else [work]
    found = _until_settled(_singular_turn, _far_from_orthogonal, carried)
    work, *right = (rows_of(each, 0, columns) for each in found)
    lengths = build("sqrt", sum_over(multiply(work, work), (rank - 1,)))
    lengths, work, *right = _in_order(lengths, True, work, *right)
    values = multiply(lengths, by_row(divisor, lengths.shape))
    if not right:
        scratch = zeros(matrix.type.with_shape((*matrix.shape[:-2], rows * columns)))
        return packed([values, scratch], rank - 2)
    signs = _signs(right[0])
    right_vectors, work = (multiply(each, by_row(signs, each.shape)) for each in (right[0], work))
    return packed([values, right_vectors, _left_vectors(lengths, work, complete)], rank - 2)


def _singular_turn(state: Sequence[Node]) -> list[Node]:
    work, *vectors = state
    rank = work.type.rank
    own = sum_over(multiply(work, work), (rank - 1,))
    across = sum_over(multiply(work, flip(work, (rank - 2,))), (rank - 1,))
    other = flip(own, (rank - 2,))
    size = multiply(build("sqrt", own), build("sqrt", other))
    rounding = scale(size, _NEGLIGIBLE * _unit(work) * work.shape[-1] ** 0.5)
    angles = _angles(own, other, across, build("less_equal", absolute(across), rounding))
    return [_moved_on(_rotated(each, angles), (rank - 2,)) for each in (work, *vectors)]


def _far_from_orthogonal(work: Node) -> Node:
    """Cosines of angles between rows, in units of some times the rounding of their products."""
    gram = product(work, turned(work))
    inverse = build("sqrt", inverse_or_zero(sum_over(multiply(work, work), (work.type.rank - 1,))))
    cosines = multiply(multiply(absolute(gram), by_row(inverse, gram.shape)), by_column(inverse, gram.shape))
    return scale(cosines, 1 / (4 * _NEGLIGIBLE * _unit(work) * work.shape[-1] ** 0.5))


def _left_vectors(lengths: Node, work: Node, complete: bool) -> Node:
    """The rows of `work` divided by their lengths, as columns; in place of those that are nothing, and behind all where
    the set is to be complete, what an orthogonal factor has there."""
    last = lengths.type.rank - 1
    longest = broadcast(reduce("max", lengths, (last,)), lengths.shape, range(last))
    one = splat(1, lengths.type)
    is_known = greater(lengths, scale(longest, _NOTHING * _unit(longest)))
    inverse = where(is_known, divide(one, where(is_known, lengths, one)), zeros(one.type))
    q, r = orthogonal_factors(turned(multiply(work, by_row(inverse, work.shape))), complete)
    signs = where(less(_diagonal(rows_of(r, 0, lengths.shape[-1]))[0], zeros(one.type)), negate(one), one)
    none = [0] * signs.type.rank
    more = q.shape[-1] - signs.shape[-1]
    return multiply(q, by_column(pad(signs, none, [*none[1:], more], none, 1.0) if more else signs, q.shape))


RULES: dict[str, Callable[[Node], Node]] = {"eigh": _eigh, "svd": _svd}
