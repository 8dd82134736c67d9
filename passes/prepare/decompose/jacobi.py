"""Jacobi's methods by blocks, as loops over rounds, each of which multiplies whole matrices by rotations.

Blocks of rows are paired as in a round-robin tournament: seat k plays against seat N - 1 - k. In each round the
operation `jacobi` makes the submatrix of every pair diagonal, and all rows are multiplied by the rotations. Then all
blocks but the first move one seat on. After N - 1 rounds, every two blocks have been paired, and all are in their
first seats again. Matrices small enough for one kernel stay as they are.

Arrays keep paired blocks side by side, [..., matches, 2, rows of a block, …] in one axis.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf, nan
from typing import Any

import numpy as np

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node, graph_of, input_node
from lavax.ir.types import TensorType
from lavax.passes.build.builder import (
    absolute,
    add,
    broadcast,
    build,
    concatenate,
    divide,
    equal,
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
from lavax.passes.build.matrices import (
    by_column,
    by_row,
    columns_of,
    inverse_or_zero,
    on_diagonal,
    packed,
    part,
    product,
    rows_in_order,
    rows_of,
    turned,
)
from lavax.passes.prepare.decompose.linear_algebra import orthogonal_factors, reflected, times
from lavax.passes.prepare.decompose.sorting import order_of_rows
from lavax.passes.target.kernel_limits import BIDIAGONAL, MATRICES, TRIDIAGONAL
from lavax.passes.target.target import Matrices, Target


@dataclass(frozen=True)
class Convergence:
    """When rounds end, and which vectors hold rounding errors alone. All but `most_sweeps` are in units in the last
    place of 1. docs/rejected/functions.md, "Jacobi's method in other ways", has counts of sweeps and errors.
    """

    most_sweeps: int = 14  # convergence is quadratic in the end: 7 or 8 are enough for some hundred rows
    off_diagonal: float = 1 / 12  # off-diagonal elements that no longer matter, in a matrix whose largest element is 1
    cosine: float = 1 / 2  # cosines of angles between columns that are rounding alone, over the root of the rows' count
    singular_value: float = 1.0  # relative to the largest; right vectors of smaller ones are rounding alone


_CONVERGENCE = Convergence()

# The carried values, the number of matches, and the attributes of `jacobi` -> the carried values after a round.
Round = Callable[..., list[Node]]


def _unit(x: Node) -> float:
    """The unit in the last place of 1, in the dtype."""
    return float(np.finfo(x.dtype.numpy).eps)


def _scaled(matrix: Node) -> tuple[Node, Node]:
    """The matrix divided by its largest element, and the divisor. If one is infinite, all are NaN: a single NaN among
    zeros, which is what dividing by infinity makes, would not reach all results."""
    rank = matrix.type.rank
    largest = reduce("max", absolute(matrix), (rank - 2, rank - 1))
    divisor = where(equal(largest, zeros(largest.type)), splat(1, largest.type), largest)
    divisor = where(less(divisor, splat(inf, largest.type)), divisor, splat(nan, largest.type))
    return divide(matrix, broadcast(divisor, matrix.shape, range(rank - 2))), divisor


def _matches(matrix: Node, target: Target) -> int:
    """The pairs of blocks of a square matrix, so few that one kernel takes the rows of each."""
    return -(-matrix.shape[-1] // target.matrices.rotated(matrix.dtype))


def _filled(x: Node, axes: Sequence[int], matches: int) -> Node:
    """The matrix padded to whole blocks with zeros, which are never rotated."""
    more = [0] * x.type.rank
    for axis in axes:
        more[axis] = -x.shape[axis] % (2 * matches)
    none = [0] * x.type.rank
    return pad(x, none, more, none, 0.0) if any(more) else x


def _meeting(rows: Node, matches: int) -> Node:
    """The rows of paired blocks, [..., matches, rows of two blocks, columns]."""
    *stack, count, columns = rows.shape
    return reshape(rows, (*stack, matches, count // matches, columns))


def _rotated(rotation: Node, rows: Node) -> Node:
    """The rows of paired blocks, multiplied by their rotation."""
    return reshape(product(rotation, _meeting(rows, rotation.shape[-3])), rows.shape)


def _came_from(place: Node, matches: int, block: int) -> Node:
    """For each row, the row that moves to its position when all blocks move on."""
    type, count = place.type, 2 * matches
    whole, two = splat(block, type), splat(2, type)
    number = divide(place, whole)
    match, side = divide(number, two), build("remainder", number, two)
    last = splat(count - 1, type)
    seat = where(equal(side, zeros(type)), match, subtract(last, match))
    one = splat(1, type)
    before = where(equal(seat, one), last, subtract(seat, one))
    before = where(equal(seat, zeros(type)), seat, before)
    first = less(before, splat(matches, type))
    slot = where(first, multiply(before, two), add(multiply(subtract(last, before), two), one))
    return add(multiply(slot, whole), build("remainder", place, whole))


def _moved_on(x: Node, axes: Sequence[int], matches: int) -> Node:
    """All blocks but the first moved one seat on, along the axes."""
    if matches == 1:
        return x
    type = index_type(x.shape)
    places = [iota(type, axis) for axis in range(x.type.rank)]
    for axis in axes:
        places[axis] = _came_from(places[axis], matches, x.shape[axis] // (2 * matches))
    return gather(x, places, range(x.type.rank))


def _orthonormal(rows: Node) -> Node:
    """One step of Newton's method, which removes most of the rounding of many rounds from nearly orthonormal rows."""
    square = product(rows, turned(rows))
    one = on_diagonal(splat(1, square.type.with_shape(square.shape[:-1])), square.shape)
    excess = subtract(square, one)
    return subtract(rows, scale(product(excess, rows), 0.5))


def _items(loop: Node, count: int) -> list[Node]:
    return [build("item", loop, index=number) for number in range(count)]


def _inputs_like(values: Sequence[Node]) -> list[Node]:
    return [input_node(f"state{number}", value.type) for number, value in enumerate(values)]


def _swept(one_round: Round, state: Sequence[Node], matches: int) -> list[Node]:
    """The carried values after a sweep: one round per other block. In the first round, every row is also paired with
    the rows of its own block."""
    if matches == 1:
        return one_round(state, matches, across=False, sweeps=MATRICES.sweeps)
    first = one_round(state, matches, across=False, sweeps=1)
    inputs, rounds = _inputs_like(state), 2 * matches - 2
    body = graph_of(inputs, one_round(inputs, matches, across=True, sweeps=1))
    loop = build("scan", *first, carries=len(state), sequences=0, length=rounds, reverse=False, body=body)
    return _items(loop, len(state))


def _until_settled(
    one_round: Round, distance: Callable[[Node], Node], state: Sequence[Node], matches: int
) -> list[Node]:
    """The carried values once no off-diagonal element of `distance` of the first array exceeds 1."""
    far = splat(2, TensorType((), state[0].dtype))
    carried = [*state, far, splat(0, index_type(()))]
    inputs = _inputs_like(carried)
    swept = _swept(one_round, inputs[:-2], matches)
    sweeps = add(inputs[-1], splat(1, index_type(())))
    body = graph_of(inputs, [*swept, _farthest(distance(swept[0])), sweeps])
    inputs = _inputs_like(carried)
    goes_on = greater(inputs[-2], splat(1, far.type))
    may_go_on = less(inputs[-1], splat(_CONVERGENCE.most_sweeps, index_type(())))
    condition = graph_of(inputs, [logical_and(goes_on, may_go_on)])
    loop = build("while", *carried, condition=condition, body=body)
    return _items(loop, len(carried))[: len(state)]


def _farthest(distances: Node) -> Node:
    """The largest off-diagonal number above 1, else zero; a matrix with NaN does not delay the rest of its batch."""
    type, rank = index_type(distances.shape), distances.type.rank
    off = build("not_equal", iota(type, rank - 2), iota(type, rank - 1))
    counts = logical_and(off, greater(distances, splat(1, distances.type)))
    return reduce("max", where(counts, distances, zeros(distances.type)), range(rank))


def _in_order(values: Node, falling: bool, *vectors: Node) -> list[Node]:
    """The sorted values, and the vectors, which are rows, in the same order."""
    order = order_of_rows(negate(values) if falling else values)
    column = reshape(values, (*values.shape, 1))
    return [reshape(rows_in_order(column, order), values.shape), *(rows_in_order(rows, order) for rows in vectors)]


def _signs(rows: Node) -> Node:
    """The sign of the component of largest magnitude of each row."""
    last = rows.type.rank - 1
    highest, lowest = reduce("max", rows, (last,)), reduce("min", rows, (last,))
    one = splat(1, highest.type)
    return where(greater(negate(lowest), highest), negate(one), one)


def _unit_rows(size: int, count: int, like: Node) -> Node:
    """A unit vector for each of `count` rows; rows of padding get zeros."""
    shape = (*like.shape[:-2], count, size)
    return on_diagonal(splat(1, like.type.with_shape(shape[:-1])), shape)


def _or_nan(rows: Node, values: Node) -> Node:
    """The rows, with NaN in those whose value is NaN."""
    found = by_row(values, rows.shape)
    return where(equal(found, found), rows, found)


# Eigenvalues


def _eigh(node: Node, target: Target) -> Node:
    (matrix,) = node.operands
    rank, size = matrix.type.rank, matrix.shape[-1]
    several_kernels_pay = matrix.type.size > TRIDIAGONAL.few_elements
    by_tridiagonal = target.matrices.tridiagonal and size <= TRIDIAGONAL.largest and several_kernels_pay
    if size <= target.matrices.rotated(matrix.dtype) and not by_tridiagonal:
        return node
    with_vectors = node.attrs["vectors"]
    positions = [iota(index_type(matrix.shape), axis) for axis in (rank - 2, rank - 1)]
    symmetric = where(build("greater_equal", *positions), matrix, turned(matrix))
    work, divisor = _scaled(symmetric)
    find = _by_tridiagonal if by_tridiagonal else partial(_by_rotations, target=target)
    values, vectors = find(work, with_vectors)
    vectors = [_orthonormal(rows) for rows in vectors]
    if vectors:  # of the matrix itself, so that they do not have the rounding of all rounds
        values = sum_over(multiply(product(vectors[0], symmetric), vectors[0]), (rank - 1,))
    else:
        values = multiply(values, by_row(divisor, values.shape))
    values, *vectors = _in_order(values, False, *vectors)
    vectors = [_or_nan(multiply(rows, by_row(_signs(rows), rows.shape)), values) for rows in vectors]
    return packed([values, *vectors], rank - 2)


def _by_rotations(matrix: Node, with_vectors: bool, target: Target) -> tuple[Node, list[Node]]:
    """The eigenvalues, and the vectors as rows, if they are wanted, in any order."""
    rank, size = matrix.type.rank, matrix.shape[-1]
    matches = _matches(matrix, target)
    work = _filled(matrix, (rank - 2, rank - 1), matches)
    carried = [work, _unit_rows(size, work.shape[-1], matrix)] if with_vectors else [work]
    one_round = partial(_eigen_round, matrices=target.matrices)
    work, *vectors = _until_settled(one_round, _far_from_diagonal, carried, matches)
    values = _diagonal(columns_of(rows_of(work, 0, size), 0, size))
    return values, [rows_of(rows, 0, size) for rows in vectors]


def _by_tridiagonal(matrix: Node, with_vectors: bool) -> tuple[Node, list[Node]]:
    """The same by one kernel that makes the matrix tridiagonal, and one that finds what it is made of."""
    made = build("tridiagonal", matrix)
    parts = [part(made, "tridiagonal", matrix, name) for name in ("reflections", "diagonal", "beside")]
    found = build("tridiagonal_eigh", *parts, vectors=with_vectors)
    names = ["values", "vectors"] if with_vectors else ["values"]
    values, *vectors = (part(found, "tridiagonal_eigh", matrix, name, vectors=with_vectors) for name in names)
    return values, vectors


def _far_from_diagonal(work: Node) -> Node:
    """Magnitudes, in units of the largest that no longer matters."""
    return scale(absolute(work), 1 / (_CONVERGENCE.off_diagonal * _unit(work)))


def _diagonal(work: Node) -> Node:
    *stack, rows, _ = work.shape
    type = index_type((*stack, rows))
    places = [iota(type, axis) for axis in range(len(stack) + 1)]
    return gather(work, [*places, places[-1]], range(len(stack) + 2))


def _own_blocks(work: Node, matches: int) -> Node:
    """The submatrices of the paired blocks: [..., matches, n, n]."""
    *stack, rows, _ = work.shape
    size = rows // matches
    type = index_type((*stack, matches, size, size))
    rank = type.rank
    places = [iota(type, axis) for axis in range(rank)]
    first = multiply(places[rank - 3], splat(size, type))
    row, column = (add(first, places[axis]) for axis in (rank - 2, rank - 1))
    return gather(work, [*places[: rank - 3], row, column], range(rank - 1))


def _with_own_blocks(work: Node, blocks: Node) -> Node:
    """The matrix with `blocks` as the submatrices of the paired blocks."""
    type, rank = index_type(work.shape), work.type.rank
    whole = splat(blocks.shape[-1], type)
    places = [iota(type, axis) for axis in range(rank)]
    match, row, column = divide(places[-2], whole), *(build("remainder", each, whole) for each in places[-2:])
    own = gather(blocks, [*places[:-2], match, row, column], range(rank + 1))
    return where(equal(match, divide(places[-1], whole)), own, work)


def _rotation_of(found: Node, matrix: Node, matrices: Matrices) -> Node:
    """The rotation that `jacobi` has found for a matrix, orthonormal."""
    rotation = part(found, "jacobi", matrix, "rotation")
    return rotation if matrices.orthonormal_rotations else _orthonormal(rotation)


def _eigen_round(state: Sequence[Node], matches: int, matrices: Matrices, **sweeping: Any) -> list[Node]:
    """One round. Takes the diagonal blocks from `jacobi`, because products would have the rounding of the diagonal."""
    work, *vectors = state
    rank = work.type.rank
    own = _own_blocks(work, matches)
    found = build("jacobi", own, relative=False, **sweeping)
    rotated, rotation = part(found, "jacobi", own, "rotated"), _rotation_of(found, own, matrices)
    both = _rotated(rotation, turned(_rotated(rotation, work)))
    work = _with_own_blocks(both, rotated)
    return [
        _moved_on(work, (rank - 2, rank - 1), matches),
        *(_moved_on(_rotated(rotation, rows), (rank - 2,), matches) for rows in vectors),
    ]


# Singular values


def _svd(node: Node, target: Target) -> Node:
    """Through the singular values of the triangle R of Q·R, whose rows are rotated. That converges in half as many
    sweeps as rotating columns, and in as few if columns depend on each other (Drmač and Veselić 2008)."""
    (matrix,) = node.operands
    rank, (rows, columns) = matrix.type.rank, matrix.shape[-2:]
    complete, with_vectors = node.attrs["complete"], node.attrs["vectors"]
    most_rows = MATRICES.singular_rows_completed if complete else MATRICES.singular_rows
    several_kernels_pay = matrix.type.size // rows * columns > BIDIAGONAL.few_elements
    is_fit = BIDIAGONAL.least <= columns <= BIDIAGONAL.largest
    by_bidiagonal = target.matrices.bidiagonal and is_fit and several_kernels_pay
    if columns <= MATRICES.singular_columns and rows <= most_rows and not by_bidiagonal:
        return node
    scaled, divisor = _scaled(matrix)
    if by_bidiagonal:
        return _svd_by_bidiagonal(node, scaled, divisor, target)
    if not with_vectors:
        values = _singular_values(reflected(scaled, target)[1], divisor, target)
        return packed([values, zeros(matrix.type.with_shape((*matrix.shape[:-2], rows * columns)))], rank - 2)
    q, r = orthogonal_factors(scaled, complete, target)
    values, right, of_triangle = _singular_vectors(rows_of(r, 0, columns), target)
    values = multiply(values, by_row(divisor, values.shape))
    left = times(columns_of(q, 0, columns), of_triangle)
    if q.shape[-1] > columns:
        left = concatenate([left, columns_of(q, columns, rows)], rank - 1)
    return packed([values, right, left], rank - 2)


def _svd_by_bidiagonal(node: Node, scaled: Node, divisor: Node, target: Target) -> Node:
    """By one kernel that makes a square matrix bidiagonal, and one that finds what it is made of."""
    rank, (rows, columns) = scaled.type.rank, scaled.shape[-2:]
    complete, with_vectors = node.attrs["complete"], node.attrs["vectors"]
    q, square = None, scaled
    if rows > columns and with_vectors:
        q, r = orthogonal_factors(scaled, complete, target)
        square = rows_of(r, 0, columns)
    elif rows > columns:
        square = reflected(scaled, target)[1]
    made = build("bidiagonal", square)
    parts = [part(made, "bidiagonal", square, name) for name in ("left", "right", "diagonal", "beside")]
    found = build("bidiagonal_svd", *parts, vectors=with_vectors)
    values = part(found, "bidiagonal_svd", square, "values", vectors=with_vectors)
    if not with_vectors:
        values = multiply(values, by_row(divisor, values.shape))
        return packed([values, zeros(node.type.with_shape((*scaled.shape[:-2], rows * columns)))], rank - 2)
    left, right = (
        _orthonormal(part(found, "bidiagonal_svd", square, name, vectors=True)) for name in ("left", "right")
    )  # values of the matrix itself do not have the rounding of all rotations
    values = absolute(sum_over(multiply(product(left, square), right), (rank - 1,)))
    values, left, right = _in_order(multiply(values, by_row(divisor, values.shape)), True, left, right)
    signs = _signs(right)
    left, right = (_or_nan(multiply(each, by_row(signs, each.shape)), values) for each in (left, right))
    left = turned(left)
    if q is not None:
        left = times(columns_of(q, 0, columns), left)
        left = concatenate([left, columns_of(q, columns, rows)], rank - 1) if q.shape[-1] > columns else left
    return packed([values, right, left], rank - 2)


def _singular_values(triangle: Node, divisor: Node, target: Target) -> Node:
    rank, size = triangle.type.rank, triangle.shape[-1]
    if size <= MATRICES.singular_columns:
        found = build("svd", triangle, vectors=False, complete=False)
        values = part(found, "svd", triangle, "values", vectors=False, complete=False)
    else:
        one_round, matches = partial(_singular_round, matrices=target.matrices), _matches(triangle, target)
        (work,) = _until_settled(one_round, _far_from_orthogonal, [_filled(triangle, (rank - 2,), matches)], matches)
        (values,) = _in_order(_lengths(rows_of(work, 0, size)), True)
    return multiply(values, by_row(divisor, values.shape))


def _singular_vectors(triangle: Node, target: Target) -> tuple[Node, Node, Node]:
    """The singular values of a triangle, the right vectors as rows and the left ones as columns."""
    rank, size = triangle.type.rank, triangle.shape[-1]
    if size <= MATRICES.singular_columns:
        found = build("svd", triangle, vectors=True, complete=False)
        attrs = {"vectors": True, "complete": False}
        values, right, left = (part(found, "svd", triangle, name, **attrs) for name in ("values", "right", "left"))
        return values, right, left
    matches = _matches(triangle, target)
    work = _filled(triangle, (rank - 2,), matches)
    carried = [work, _unit_rows(size, work.shape[-2], triangle)]
    one_round = partial(_singular_round, matrices=target.matrices)
    settled = _until_settled(one_round, _far_from_orthogonal, carried, matches)
    work, left = (rows_of(each, 0, size) for each in settled)
    lengths, work, left = _in_order(_lengths(work), True, work, left)
    right = turned(_directions(lengths, work, target))
    signs = _signs(right)
    right, left = (multiply(each, by_row(signs, each.shape)) for each in (right, _orthonormal(left)))
    return lengths, _or_nan(right, lengths), turned(_or_nan(left, lengths))


def _lengths(rows: Node) -> Node:
    return build("sqrt", sum_over(multiply(rows, rows), (rows.type.rank - 1,)))


def _singular_round(state: Sequence[Node], matches: int, matrices: Matrices, **sweeping: Any) -> list[Node]:
    meeting = _meeting(state[0], matches)
    products = product(meeting, turned(meeting))
    found = build("jacobi", products, relative=True, **sweeping)
    rotation = _rotation_of(found, products, matrices)
    axis = state[0].type.rank - 2
    return [_moved_on(_rotated(rotation, each), (axis,), matches) for each in state]


def _far_from_orthogonal(work: Node) -> Node:
    """Cosines of angles between rows, in units of a multiple of the rounding of their products."""
    gram = product(work, turned(work))
    inverse = build("sqrt", inverse_or_zero(sum_over(multiply(work, work), (work.type.rank - 1,))))
    cosines = multiply(multiply(absolute(gram), by_row(inverse, gram.shape)), by_column(inverse, gram.shape))
    return scale(cosines, 1 / (4 * _CONVERGENCE.cosine * _unit(work) * work.shape[-1] ** 0.5))


def _directions(lengths: Node, rows: Node, target: Target) -> Node:
    """The normalised rows, as columns. Negligible rows are replaced by the columns of an orthogonal factor."""
    last = lengths.type.rank - 1
    longest = broadcast(reduce("max", lengths, (last,)), lengths.shape, range(last))
    one = splat(1, lengths.type)
    is_known = greater(lengths, scale(longest, _CONVERGENCE.singular_value * _unit(longest)))
    inverse = where(is_known, divide(one, where(is_known, lengths, one)), zeros(one.type))
    unit = multiply(rows, by_row(inverse, rows.shape))
    q, r = orthogonal_factors(turned(unit), complete=False, target=target)
    signs = where(less(_diagonal(r), zeros(one.type)), negate(one), one)
    return multiply(q, by_column(signs, q.shape))


RULES: dict[str, Callable[[Node, Target], Node]] = {"eigh": _eigh, "svd": _svd}
