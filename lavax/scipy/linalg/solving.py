"""Systems of equations, with SciPy's arguments.

`overwrite_a`, `overwrite_b`, `check_finite` and `debug` are taken as SciPy takes them, and change nothing.
"""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import linalg
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.numpy.indexing.indexed_update import At
from lavax.tracer.control_flow.fori_loop import fori_loop
from lavax.tracer.transforms.vmap import vmap
from lavax.tracer.values.value import Value

_ASSUMPTIONS = ("gen", "sym", "her", "pos")


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Value:
    """The determinants of `linalg.det`."""
    return linalg.det(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Value:
    """The inverses of `linalg.inv`."""
    return linalg.inv(a)


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Value:
    """x of a·x = b for triangular matrices, as `linalg.solve_triangular`."""
    return linalg.solve_triangular(a, b, trans, lower, unit_diagonal)


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Value:
    """x of a·x = b, from `cho_factor(a)`; `b` is [..., n, k] or one vector [n].

    Raises ShapeError if it does not fit.
    """
    factor, lower = c_and_lower
    half = linalg.solve_triangular(factor, b, trans=0 if lower else 2, lower=lower)
    return linalg.solve_triangular(factor, half, trans=2 if lower else 0, lower=lower)


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Value:
    """x of a·x = b; with `assume_a` "pos", by Cholesky's decomposition of the triangle that `lower` names.

    "gen", "sym" and "her" are solved by elimination. Raises ShapeError if the shapes do not fit, ValueError for another
    `assume_a`.
    """
    if assume_a not in _ASSUMPTIONS:
        raise ValueError(f"scipy.linalg.solve: assume_a must be one of {', '.join(_ASSUMPTIONS)}, got {assume_a!r}")
    if assume_a != "pos":
        return linalg.solve(a, b)
    return cho_solve((linalg.cholesky(a, upper=not lower, symmetrize_input=False), lower), b)


def _order(swaps: Value, count: int) -> Value:
    """The permutation [count] of rows that swaps one after the other make."""

    def step(place: Any, order: Value) -> Value:
        other = swaps[place]
        here, there = order[place], order[other]
        swapped = At(order)[place].set(there)
        return At(swapped)[other].set(here)

    found: Value = fori_loop(0, swaps.shape[0], step, lnp.arange(count, dtype="int32"))
    return found


def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Value:
    """x of a·x = b, from `lu_factor(a)`, or of aᵀ·x = b with `trans` 1, of aᴴ·x = b with 2.

    `b` is [..., n, k] or one vector [n]. Raises ShapeError if it does not fit, ValueError for another `trans`.
    """
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans must be 0, 1 or 2, got {trans!r}")
    factors, swaps, right = as_value(lu_and_piv[0]), as_value(lu_and_piv[1]), as_value(b)
    n = factors.shape[-1]
    is_vector = right.ndim == 1
    columns = right[:, None] if is_vector else right
    if columns.ndim < 2 or columns.shape[-2] != n or factors.shape[-2] != n:
        given = f"{factors.type} and {right.type}"
        raise shape_error(f"lu_solve: factors [..., n, n] need right sides [..., n, k] or [n], got {given}")
    order = vmap(lambda row: _order(row, n))(lnp.reshape(swaps, (-1, swaps.shape[-1])))
    order = lnp.reshape(order, (*swaps.shape[:-1], n))
    stack = lnp.broadcast_shapes(order.shape[:-1], columns.shape[:-2])
    columns = lnp.broadcast_to(columns, (*stack, *columns.shape[-2:]))
    places = lnp.broadcast_to(order, (*stack, n))[..., None]
    if trans:
        half = linalg.solve_triangular(factors, columns, trans=trans)
        turned = linalg.solve_triangular(factors, half, trans=trans, lower=True, unit_diagonal=True)
        found = lnp.take_along_axis(turned, lnp.argsort(places, axis=-2), axis=-2)
    else:
        half = linalg.solve_triangular(
            factors, lnp.take_along_axis(columns, places, axis=-2), lower=True, unit_diagonal=True
        )
        found = linalg.solve_triangular(factors, half)
    return found[..., 0] if is_vector else found
