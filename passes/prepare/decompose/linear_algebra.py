"""Splits large matrices recursively into halves, which leaves products, and matrices small enough for one kernel.

No kernel makes more than some ten thousand loop iterations, because some drivers end loops after 65535.
Methods: Golub and Van Loan, 4.2.6 (Cholesky), 3.2.11 (elimination), 5.2.3 (products of reflections).
"""

from __future__ import annotations

from collections.abc import Callable

from lavax.ir.graph import Node
from lavax.ir.types import TensorType, int32
from lavax.passes.build.builder import (
    add,
    broadcast,
    build,
    cast,
    concatenate,
    equal,
    iota,
    multiply,
    pad,
    reshape,
    scale,
    slice_along,
    splat,
    subtract,
    sum_over,
    where,
    zeros,
)
from lavax.passes.build.matrices import (
    columns_of,
    is_lower,
    on_diagonal,
    packed,
    part,
    product,
    rows_in_order,
    rows_of,
    turned,
)
from lavax.passes.prepare.decompose.sorting import order_of_rows
from lavax.passes.target.kernel_limits import MATRICES, MAX_LOOP_ITERATIONS
from lavax.passes.target.target import Matrices, Target


def times(left: Node, right: Node) -> Node:
    """The matrix product; if an operand is a vector, by multiplication and a sum, because a dot needs matrices."""
    if left.shape[-2] > 1 and right.shape[-1] > 1:
        return product(left, right)
    *stack, rows, inner = left.shape
    shape = (*stack, rows, inner, right.shape[-1])
    places = range(len(stack))
    first = broadcast(left, shape, (*places, len(stack), len(stack) + 1))
    second = broadcast(right, shape, (*places, len(stack) + 1, len(stack) + 2))
    return sum_over(multiply(first, second), (len(stack) + 1,))


def _below(upper: Node, lower: Node) -> Node:
    return concatenate([upper, lower], upper.type.rank - 2)


def _beside(left: Node, right: Node) -> Node:
    return concatenate([left, right], left.type.rank - 1)


def _half(extent: int) -> int:
    return (extent + 1) // 2


def _cut(extent: int, most: int, matrices: Matrices) -> int:
    """Where to cut a matrix that is larger than one kernel takes."""
    return _half(-(-extent // most)) * most if matrices.cuts_by_kernels else _half(extent)


def _is_small(iterations: int) -> bool:
    """Whether one kernel factors the whole matrix."""
    return iterations <= MAX_LOOP_ITERATIONS * MATRICES.least_invocations


def _eliminating(rows: int, columns: int) -> int:
    """The loop iterations of all invocations together."""
    return rows * columns * (columns + 5) // 2


def _reflecting(rows: int, columns: int) -> int:
    return rows * columns * (columns + MATRICES.least_invocations)


# Triangular systems


def triangular_solution(
    matrix: Node, right: Node, matrices: Matrices, *, lower: bool, transposed: bool, unit: bool
) -> Node:
    """Solves for one half of the unknowns, substitutes them, and solves for the others."""
    size = matrix.shape[-1]
    most = matrices.solved(right.type)
    if size <= most:
        return build("triangular_solve", matrix, right, lower=lower, transposed=transposed, unit_diagonal=unit)
    half = _cut(size, most, matrices)
    how = {"lower": lower, "transposed": transposed, "unit": unit}
    corners = [columns_of(rows_of(matrix, *ends), *ends) for ends in ((0, half), (half, size))]
    sides = [rows_of(right, 0, half), rows_of(right, half, size)]
    away = rows_of(matrix, half, size) if lower else rows_of(matrix, 0, half)
    away = columns_of(away, 0, half) if lower else columns_of(away, half, size)
    away = turned(away) if transposed else away
    first, second = (0, 1) if lower != transposed else (1, 0)
    found = [sides[0], sides[1]]
    found[first] = triangular_solution(corners[first], sides[first], matrices, **how)
    rest = subtract(sides[second], times(away, found[first]))
    found[second] = triangular_solution(corners[second], rest, matrices, **how)
    return _below(*found)


def _triangular_solve(node: Node, target: Target) -> Node:
    matrix, right = node.operands
    lower, transposed, unit = (node.attrs[name] for name in ("lower", "transposed", "unit_diagonal"))
    return triangular_solution(matrix, right, target.matrices, lower=lower, transposed=transposed, unit=unit)


# Cholesky's factor


def _cholesky(node: Node, target: Target) -> Node:
    """If the factor's last element is NaN, all of its triangle is."""
    (matrix,) = node.operands
    if matrix.shape[-1] <= target.matrices.cholesky:
        return node
    find = _cholesky_panel if target.matrices.cuts_by_kernels else _cholesky_factor
    factor = find(matrix, target.matrices)
    size = matrix.shape[-1]
    corner = reshape(columns_of(rows_of(factor, size - 1, size), size - 1, size), matrix.shape[:-2])
    whole = add(factor, broadcast(scale(corner, 0.0), factor.shape, range(corner.type.rank)))
    return where(is_lower(factor), whole, zeros(factor.type))


def _cholesky_factor(matrix: Node, matrices: Matrices) -> Node:
    size = matrix.shape[-1]
    if size <= matrices.cholesky:
        return build("cholesky", matrix)
    half, none = _cut(size, matrices.cholesky, matrices), [0] * matrix.type.rank
    top, bottom = rows_of(matrix, 0, half), rows_of(matrix, half, size)
    first = _cholesky_factor(columns_of(top, 0, half), matrices)
    side = turned(columns_of(bottom, 0, half))
    away = turned(triangular_solution(first, side, matrices, lower=True, transposed=False, unit=False))
    second = _cholesky_factor(subtract(columns_of(bottom, half, size), times(away, turned(away))), matrices)
    above = pad(first, none, [*none[1:], size - half], none, 0.0)
    return _below(above, _beside(away, second))


def _cholesky_panel(panel: Node, matrices: Matrices) -> Node:
    """The factor of a panel's upper square, with what follows of the rows below.

    All rows below a square are found at once. Four parts of a matrix need several times as many triangular systems, one
    after the other, which leave a GPU idle; on a CPU driver they take two thirds of the time.
    """
    rows, columns = panel.shape[-2:]
    most = matrices.cholesky
    if columns <= most:
        square = build("cholesky", rows_of(panel, 0, columns))
        if rows == columns:
            return square
        side = turned(rows_of(panel, columns, rows))
        away = triangular_solution(square, side, matrices, lower=True, transposed=False, unit=False)
        return _below(square, turned(away))
    half, none = _cut(columns, most, matrices), [0] * panel.type.rank
    left = _cholesky_panel(columns_of(panel, 0, half), matrices)
    below = rows_of(left, half, rows)
    rest = columns_of(rows_of(panel, half, rows), half, columns)
    rest = subtract(rest, times(below, turned(rows_of(below, 0, columns - half))))
    above = [*none[2:], half, 0]
    return _beside(left, pad(_cholesky_panel(rest, matrices), above, none, none, 0.0))


# Gaussian elimination


def _lu(node: Node, target: Target) -> Node:
    (matrix,) = node.operands
    if _is_eliminated(matrix, target.matrices):
        return node
    factors, order, parity = _eliminated(matrix, target.matrices)
    return packed([factors, cast(order, matrix.dtype), parity], matrix.type.rank - 2)


def _is_eliminated(matrix: Node, matrices: Matrices) -> bool:
    """Whether one kernel eliminates all columns."""
    rows, columns = matrix.shape[-2:]
    most = matrices.eliminated(rows, matrix.dtype)
    return columns <= most if most else columns <= 2 or _is_small(_eliminating(rows, columns))


def _eliminated(matrix: Node, matrices: Matrices) -> tuple[Node, Node, Node]:
    """The factors, the permutation of rows and its parity: eliminates the left half, then the rest of the right one."""
    rows, columns = matrix.shape[-2:]
    if _is_eliminated(matrix, matrices):
        node = build("lu", matrix)
        factors, order, parity = (part(node, "lu", matrix, name) for name in ("factors", "permutation", "parity"))
        return factors, cast(order, int32), parity
    most = matrices.eliminated(rows, matrix.dtype)
    half = _cut(columns, most, matrices) if most else _half(columns)
    left, first_order, first_parity = _eliminated(columns_of(matrix, 0, half), matrices)
    right = rows_in_order(columns_of(matrix, half, columns), first_order)
    corner, away = rows_of(left, 0, half), rows_of(left, half, rows)
    beside = triangular_solution(corner, rows_of(right, 0, half), matrices, lower=True, transposed=False, unit=True)
    rest, order, parity = _eliminated(subtract(rows_of(right, half, rows), times(away, beside)), matrices)
    factors = _below(_beside(corner, beside), _beside(rows_in_order(away, order), rest))
    last = first_order.type.rank - 1
    kept, moved = slice_along(first_order, last, 0, half), slice_along(first_order, last, half, rows)
    moved = reshape(rows_in_order(reshape(moved, (*moved.shape, 1)), order), moved.shape)
    return factors, concatenate([kept, moved], last), multiply(first_parity, parity)


def _linear_solve(node: Node, target: Target) -> Node:
    """A permutation of rows and two triangular solves."""
    matrix, factored, right = node.operands
    factors = part(factored, "lu", matrix, "factors")
    order = cast(part(factored, "lu", matrix, "permutation"), int32)

    def solved(lower: bool, transposed: bool, side: Node) -> Node:
        return triangular_solution(factors, side, target.matrices, lower=lower, transposed=transposed, unit=lower)

    if not node.attrs["transposed"]:
        return solved(False, False, solved(True, False, rows_in_order(right, order)))
    return rows_in_order(solved(True, True, solved(False, True, right)), _inverse(order))


def _inverse(order: Node) -> Node:
    """The inverse of each permutation: the number's place is looked for where there are few, not sorted."""
    count, rank = order.shape[-1], order.type.rank
    if count > MATRICES.looked_for:
        return order_of_rows(order)
    pairs = order.type.with_shape((*order.shape, count))
    is_here = equal(broadcast(order, pairs.shape, range(rank)), iota(pairs, rank))
    return sum_over(where(is_here, iota(pairs, rank - 1), zeros(pairs)), (rank - 1,))


# Orthogonal factors


def orthogonal_factors(matrix: Node, complete: bool, target: Target) -> tuple[Node, Node]:
    """The orthonormal columns q, a whole basis if `complete`, and the triangle r."""
    whole = _qr(build("qr", matrix, complete=complete), target)
    return part(whole, "qr", matrix, "q", complete=complete), part(whole, "qr", matrix, "r", complete=complete)


def _orthogonal_factors(matrix: Node, kept: int, target: Target) -> tuple[Node, Node]:
    """The first `kept` orthonormal columns, and the triangle with as many rows."""
    columns = matrix.shape[-1]
    vectors, r = reflected(matrix, target)
    unit = on_diagonal(splat(1, matrix.type.with_shape(matrix.shape[:-1])), (*matrix.shape[:-1], kept))
    inner = _combined(vectors, turned(rows_of(vectors, 0, kept)), target.matrices, transposed=False)
    q = subtract(unit, times(vectors, inner))
    none = [0] * r.type.rank
    return q, pad(r, none, [*none[2:], kept - columns, 0], none, 0.0) if kept > columns else r


def _combined(vectors: Node, right: Node, matrices: Matrices, transposed: bool) -> Node:
    """T·right, where I - V·T·Vᵀ is the product of the reflections. T is upper triangular, and T⁻¹ + T⁻ᵀ = VᵀV.

    A zero vector, whose reflection is the identity, has a one on the diagonal of T⁻¹. The diagonal of the product would
    have the rounding of one long sum, several times as much.
    """
    square = times(turned(vectors), vectors)
    diagonal = sum_over(multiply(vectors, vectors), (vectors.type.rank - 2,))
    halves = where(equal(diagonal, zeros(diagonal.type)), splat(1, diagonal.type), scale(diagonal, 0.5))
    inverse = where(is_lower(square), on_diagonal(halves, square.shape), square)
    return triangular_solution(inverse, right, matrices, lower=False, transposed=transposed, unit=False)


def reflected(matrix: Node, target: Target) -> tuple[Node, Node]:
    """The reflections' vectors, and the reflected matrix: reflects the left half, then the right one."""
    rows, columns = matrix.shape[-2:]
    in_registers = target.matrices.reflected_in_registers(rows, matrix.dtype)
    if columns <= in_registers if in_registers else _is_small(_reflecting(rows, columns)):
        node = build("householder", matrix)
        return part(node, "householder", matrix, "vectors"), part(node, "householder", matrix, "r")
    height = _height_of_blocks(matrix.type, target)
    if height:
        return _reflected_by_blocks(matrix, height, target)
    half, none = _half(columns), [0] * matrix.type.rank
    first, corner = reflected(columns_of(matrix, 0, half), target)
    right = columns_of(matrix, half, columns)
    turn = _combined(first, times(turned(first), right), target.matrices, transposed=True)
    right = subtract(right, times(first, turn))
    second, rest = reflected(rows_of(right, half, rows), target)
    moved = pad(second, [*none[2:], half, 0], none, none, 0.0)
    below = pad(rest, [*none[1:], half], none, none, 0.0)
    return _beside(first, moved), _below(_beside(corner, rows_of(right, 0, half)), below)


def _height_of_blocks(panel: TensorType, target: Target) -> int:
    """The most rows of a block of a panel that is too high for a kernel; 0 if the panel is better halved."""
    rows, columns = panel.shape[-2:]
    most_columns = target.matrices.reflected_in_registers
    of_block = most_columns(MATRICES.reflected_rows, panel.dtype)
    if not of_block:
        return MAX_LOOP_ITERATIONS * MATRICES.least_invocations // _reflecting(1, 1) if columns == 1 else 0
    is_high = most_columns(rows, panel.dtype) < MATRICES.narrow_panel
    return MATRICES.reflected_rows if is_high and columns <= of_block else 0


def _reflected_by_blocks(matrix: Node, most_rows: int, target: Target) -> tuple[Node, Node]:
    """The same of a high panel, whose rows one workgroup cannot keep (Demmel, Grigori, Hoemmen and Langou 2012).

    Blocks of the rows below the first few are factors Q·R, side by side. Reflections see no difference between these
    rows and their triangles: those of the first rows and all triangles have the same result and the same signs, and
    their vectors, multiplied by each Q, are those of the whole panel.
    """
    *stack, rows, columns = matrix.shape
    axis, below = len(stack), rows - columns
    count = -(-below // most_rows)
    height = -(-below // count)
    none = [0] * matrix.type.rank
    blocks = pad(rows_of(matrix, columns, rows), none, [*none[2:], count * height - below, 0], none, 0.0)
    blocks = reshape(blocks, (*stack, count, height, columns))
    vectors, triangles = reflected(blocks, target)
    triangles = reshape(triangles, (*stack, count * columns, columns))
    joined, r = reflected(_below(rows_of(matrix, 0, columns), triangles), target)
    parts = reshape(rows_of(joined, columns, joined.shape[axis]), (*stack, count, columns, columns))
    inner = _combined(vectors, times(turned(rows_of(vectors, 0, columns)), parts), target.matrices, transposed=False)
    none = [0] * blocks.type.rank
    parts = pad(parts, none, [*none[2:], height - columns, 0], none, 0.0)
    parts = reshape(subtract(parts, times(vectors, inner)), (*stack, count * height, columns))
    return _below(rows_of(joined, 0, columns), rows_of(parts, 0, below)), r


def _qr(node: Node, target: Target) -> Node:
    (matrix,) = node.operands
    rows, columns = matrix.shape[-2:]
    kept = rows if node.attrs["complete"] else columns
    is_small = _is_small(_reflecting(rows, columns) + rows * columns * (kept + MATRICES.least_invocations))
    if is_small and not _several_kernels_pay(matrix.type, target):
        return node
    return packed(_orthogonal_factors(matrix, kept, target), matrix.type.rank - 2)


def _several_kernels_pay(matrices: TensorType, target: Target) -> bool:
    """Whether a kernel that reflects in registers and products take less time than one kernel of all in memory."""
    has_panels = target.matrices.reflected_in_registers(matrices.shape[-2], matrices.dtype) > 0
    return has_panels and matrices.size >= MATRICES.least_in_registers


RULES: dict[str, Callable[[Node, Target], Node]] = {
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    "lu": _lu,
    "linear_solve": _linear_solve,
    "qr": _qr,
}
