"""Systems of equations whose matrices have few diagonals, or a triangle."""
from __future__ import annotations

import lavax.numpy as lnp
from lavax import linalg
from lavax.linalg.matrices import matrices, square_matrices
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.control_flow.scan import scan
from lavax.tracer.values.value import Value


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Value:
    """X of op(a)·X = b with `left_side`, else of X·op(a) = b, for triangles [..., m, m].

    `op` transposes with `transpose_a`, conjugates with `conjugate_a`, or does both. `b` is [..., m, n], or without
    `left_side` [..., n, m]. Raises ShapeError if the shapes do not fit.
    """
    matrix, right = square_matrices("triangular_solve", a), matrices("triangular_solve", b)
    if right.shape[-2 if left_side else -1] != matrix.shape[-1]:
        side = f"[..., {matrix.shape[-1]}, n]" if left_side else f"[..., n, {matrix.shape[-1]}]"
        raise shape_error(f"triangular_solve: a {matrix.type} needs b {side}, got {right.type}")
    if conjugate_a:
        matrix = lnp.conj(matrix)
    if left_side:
        return linalg.solve_triangular(matrix, right, int(transpose_a), lower, unit_diagonal)
    turned = lnp.matrix_transpose(right)
    return lnp.matrix_transpose(linalg.solve_triangular(matrix, turned, int(not transpose_a), lower, unit_diagonal))


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Value:
    """X of A·X = b [..., m, n], where A has the diagonals `dl` below, `d` and `du` above, each [..., m].

    dl[0] and du[m - 1] are not read. By elimination with exchanges of neighbouring rows. A singular matrix gives NaN or
    infinities. Raises ShapeError if the shapes do not fit, ValueError for `perturb_singular`.
    """
    if perturb_singular:
        raise ValueError("tridiagonal_solve: perturb_singular is not supported: singular matrices give NaN")
    values = [as_value(each) for each in (dl, d, du, b)]
    dtype = lnp.result_type(*values, 1.0)
    below, middle, above, right = (lnp.astype(each, dtype) for each in values)
    stack = right.shape[:-1] if right.ndim >= 2 else None
    if not below.shape == middle.shape == above.shape == stack:
        given = ", ".join(str(each.type) for each in values)
        raise shape_error(f"tridiagonal_solve takes dl, d and du [..., m] and b [..., m, n], got {given}")
    if not right.size:
        return right
    below, middle, above = (lnp.moveaxis(each[..., None], -2, 0) for each in (below, middle, above))
    return lnp.moveaxis(_solved(below, middle, above, lnp.moveaxis(right, -2, 0)), 0, -2)


_Row = tuple[Value, Value, Value, Value]  # coefficients of an unknown and the two after it, and the right side


def _solved(below: Value, middle: Value, above: Value, right: Value) -> Value:
    """x [m, ..., n]: rows are eliminated from the first to the last, and unknowns found from the last to the first."""
    zero = lnp.zeros_like(middle[0])
    last = lnp.concatenate([above[:-1], zero[None]], axis=0)

    def eliminate(pivot: _Row, row: _Row) -> tuple[_Row, _Row]:
        exchanged = lnp.abs(row[0]) > lnp.abs(pivot[0])
        upper = [lnp.where(exchanged, other, own) for own, other in zip(pivot, row, strict=True)]
        lower = [lnp.where(exchanged, own, other) for own, other in zip(pivot, row, strict=True)]
        factor = lower[0] / lnp.where(lower[0] == 0, 1, upper[0])
        rest = [own - factor * other for own, other in zip(lower, upper, strict=True)]
        return (rest[1], rest[2], zero, rest[3]), (upper[0], upper[1], upper[2], upper[3])

    first = (middle[0], last[0], zero, right[0])
    final, rows = scan(eliminate, first, (below[1:], middle[1:], last[1:], right[1:]))

    def substitute(known: tuple[Value, Value], row: _Row) -> tuple[tuple[Value, Value], Value]:
        next_one, after = known
        found = (row[3] - row[1] * next_one - row[2] * after) / row[0]
        return (found, next_one), found

    nothing = lnp.zeros_like(right[0])
    known, end = substitute((nothing, nothing), final)
    _, others = scan(substitute, known, rows, reverse=True)
    return lnp.concatenate([others, end[None]], axis=0)
