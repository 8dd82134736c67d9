"""Solvers that only multiply by the matrix: conjugate gradients, BiCGSTAB and GMRES.

`A` is a square matrix [n, n] or a function that is linear; then b and x may be trees. Derivatives by `b`, and by what
`A` closes over, are those of the solution, of any order: the transposed system is solved in the same way, and the
steps are not kept.
"""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import linalg
from lavax.numpy.indexing.indexed_update import At
from lavax.scipy.sparse.implicit import Product, solved
from lavax.tracer.control_flow.fori_loop import fori_loop
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.pytrees.pytree import leaves
from lavax.tracer.values.value import Value

__all__ = ["bicgstab", "cg", "gmres"]


def _limit(b: Value, tol: float, atol: float) -> Value:
    """The square of the residual's norm at which to stop."""
    result: Value = lnp.maximum(lnp.square(tol) * _square(b), lnp.square(atol))
    return result


def _inner(a: Any, b: Any) -> Any:
    """The inner product, conjugate in `a`."""
    return lnp.sum(lnp.conj(a) * b)


def _square(a: Any) -> Any:
    """The square of the norm, which is real."""
    return lnp.sum(a.real * a.real + a.imag * a.imag) if lnp.iscomplexobj(a) else lnp.sum(a * a)


def _most_steps(b: Any, maxiter: int | None) -> int:
    return 10 * sum(int(lnp.size(leaf)) for leaf in leaves(b)) if maxiter is None else maxiter


def _over(numerator: Any, denominator: Any) -> Any:
    """The quotient, and 0 where the denominator is 0: the iteration has found the solution, or stands still."""
    is_zero = denominator == 0
    return lnp.where(is_zero, 0.0, numerator / lnp.where(is_zero, 1.0, denominator))


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """x of A·x = b by conjugate gradients (Hestenes and Stiefel 1952), and None; A is symmetric and positive definite.

    Complex A are Hermitian.

    It stops when the norm of b - A·x is at most max(tol·‖b‖, atol), or after `maxiter` steps, 10·n by default. `x0` is
    the first guess, 0 by default; `M`, a matrix or function, is an approximation of A⁻¹, symmetric, too. Raises
    ShapeError or TreeMismatchError for arguments that do not fit.
    """
    most = _most_steps(b, maxiter)

    def iterate(product: Product, conditioner: Product, right: Value, start: Value) -> Value:
        limit = _limit(right, tol, atol)

        def unfinished(state: Any) -> Any:
            _, residual, _, _, count = state
            return (_square(residual) > limit) & (count < most)

        def step(state: Any) -> Any:
            x, residual, direction, size, count = state
            image = product(direction)
            factor = _over(size, _inner(direction, image))
            residual = residual - factor * image
            conditioned = conditioner(residual)
            following = _inner(residual, conditioned)
            onwards = conditioned + _over(following, size) * direction
            return x + factor * direction, residual, onwards, following, count + 1

        residual = right - product(start)
        conditioned = conditioner(residual)
        state = (start, residual, conditioned, _inner(residual, conditioned), lnp.asarray(0))
        found: Value = while_loop(unfinished, step, state)[0]
        return found

    return solved("cg", A, b, x0, M, True, iterate), None


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """x of A·x = b for any regular A, by BiCGSTAB (van der Vorst 1992), and None; arguments and errors as of `cg`."""
    most = _most_steps(b, maxiter)

    def iterate(product: Product, conditioner: Product, right: Value, start: Value) -> Value:
        limit = _limit(right, tol, atol)
        shadow = right - product(start)

        def unfinished(state: Any) -> Any:
            _, residual, *_, count = state
            return (_square(residual) > limit) & (count < most)

        def step(state: Any) -> Any:
            x, residual, direction, image, size, factor, weight, count = state
            following = _inner(shadow, residual)
            blend = _over(following * factor, size * weight)
            direction = residual + blend * (direction - weight * image)
            conditioned = conditioner(direction)
            image = product(conditioned)
            factor = _over(following, _inner(shadow, image))
            half = residual - factor * image
            smoothed = conditioner(half)
            turned = product(smoothed)
            weight = _over(_inner(turned, half), _inner(turned, turned))
            x = x + factor * conditioned + weight * smoothed
            return x, half - weight * turned, direction, image, following, factor, weight, count + 1

        one, nothing = lnp.ones((), dtype=right.dtype), lnp.zeros_like(right)
        state = (start, shadow, nothing, nothing, one, one, one, lnp.asarray(0))
        found: Value = while_loop(unfinished, step, state)[0]
        return found

    return solved("bicgstab", A, b, x0, M, False, iterate), None


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, None]:
    """x of A·x = b for any regular A, by GMRES with restarts (Saad and Schultz 1986), and None.

    Each of at most `maxiter` rounds minimises the residual over `restart` directions. Other arguments and errors are
    those of `cg`; `solve_method` changes nothing.
    """
    size = sum(int(lnp.size(leaf)) for leaf in leaves(b))
    most, directions = _most_steps(b, maxiter), min(restart, size)

    def iterate(product: Product, conditioner: Product, right: Value, start: Value) -> Value:
        limit = _limit(right, tol, atol)

        def unfinished(state: Any) -> Any:
            _, residual, count = state
            return (_square(residual) > limit) & (count < most)

        def step(state: Any) -> Any:
            x, residual, count = state
            x = x + _best_change(lambda v: conditioner(product(v)), conditioner(residual), directions)
            return x, right - product(x), count + 1

        found: Value = while_loop(unfinished, step, (start, right - product(start), lnp.asarray(0)))[0]
        return found

    return solved("gmres", A, b, x0, M, False, iterate), None


def _best_change(product: Product, residual: Value, directions: int) -> Value:
    """The combination of residual, A·residual, … that makes the residual least, by an orthonormal basis (Arnoldi)."""
    length = lnp.sqrt(_square(residual))
    basis = At(lnp.zeros((directions + 1, residual.shape[0]), dtype=residual.dtype))[0].set(_over(residual, length))
    images = lnp.eye(directions + 1, directions, dtype=residual.dtype)  # columns that are not reached stay units
    least = 10 * float(lnp.finfo(residual.dtype).eps)

    def extend(number: Any, state: Any) -> Any:
        basis, images, is_open = state
        image = product(basis[number])
        before = lnp.sqrt(_square(image))
        first = lnp.matmul(lnp.conj(basis), image)
        rest = image - lnp.matmul(first, basis)
        second = lnp.matmul(lnp.conj(basis), rest)  # once more, for what rounding left
        rest = rest - lnp.matmul(second, basis)
        size = lnp.sqrt(_square(rest))
        is_new = size > least * before
        following = lnp.where(is_new & is_open, _over(rest, size), 0.0)
        column = At(first + second)[number + 1].set(lnp.where(is_new, size, 0.0))
        column = lnp.where(is_open, column, images[:, number])
        return At(basis)[number + 1].set(following), At(images)[:, number].set(column), is_open & is_new

    basis, images, _ = fori_loop(0, directions, extend, (basis, images, length > 0))
    orthonormal, triangle = linalg.qr(images)
    weights = linalg.solve_triangular(triangle, lnp.conj(orthonormal[0]) * length)
    return lnp.matmul(weights, basis[:-1])
