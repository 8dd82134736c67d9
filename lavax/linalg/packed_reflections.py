"""Factors Q and R by Householder's reflections 1 - τ·v·vᴴ, in LAPACK's form.

Column k of a matrix holds v below the diagonal, where R begins; its first component, on the diagonal, is 1 and not
stored. Real matrices have a routine on the device, which gives Q and R; from those `packed` finds the reflections.
"""
from __future__ import annotations

from typing import Any

from lavax.linalg.complex_matrices import adjoint
from lavax.linalg.solving import solve_triangular
from lavax.numpy._core.broadcasting import broadcast_to
from lavax.numpy.arrays.complex_parts import conj, imag, real
from lavax.numpy.arrays.creation import eye, zeros
from lavax.numpy.arrays.matrices import tril, triu
from lavax.numpy.arrays.ranges import arange
from lavax.numpy.editing.padding import pad
from lavax.numpy.elementwise.arithmetic import abs, square, subtract
from lavax.numpy.elementwise.extrema import maximum
from lavax.numpy.elementwise.powers import sqrt
from lavax.numpy.indexing.selecting import where
from lavax.numpy.indexing.taking import take
from lavax.numpy.products.linear_algebra import matmul
from lavax.numpy.reductions.reductions import max as max_of
from lavax.numpy.reductions.reductions import sum as sum_over
from lavax.tracer.control_flow.fori_loop import fori_loop
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.values.value import Value


def applied(value: Value, sizes: Value, matrix: Value, from_last: bool, conjugate: bool) -> Value:
    """H₀·H₁·…·matrix (`from_last`: the last reflection is applied first), or with the others' adjoints."""
    count, rows = sizes.shape[-1], arange(value.shape[-2])

    def step(number: Any, held: Value) -> Value:
        k = count - 1 - number if from_last else number
        column = take(value, k, axis=-1)
        vector = where(rows > k, column, where(rows == k, 1, 0))[..., None]
        size = take(sizes, k, axis=-1)[..., None, None]
        along = matmul(adjoint(vector), held)
        change: Value = (conj(size) if conjugate else size) * vector * along
        return subtract(held, change)

    found: Value = fori_loop(0, count, step, matrix)
    return found


def reflected(matrix: Value) -> tuple[Value, Value]:
    """The packed reflections and R of complex matrices [..., m, n], and τ [..., k]."""
    rows, columns = matrix.shape[-2:]
    kept = min(rows, columns)
    row, column, place = arange(rows), arange(columns), arange(kept)

    def step(k: Any, state: Any) -> Any:
        held, taus = state
        whole = take(held, k, axis=-1)
        entries = where(row >= k, whole, 0)
        size = max_of(maximum(abs(real(entries)), abs(imag(entries))), axis=-1, keepdims=True)
        entries = entries / where(size == 0, 1, size)
        leading, under = take(entries, k, axis=-1)[..., None], where(row > k, entries, 0)
        rest = sum_over(square(real(under)) + square(imag(under)), axis=-1, keepdims=True)
        is_none = (rest == 0) & (imag(leading) == 0)
        length = sqrt(square(real(leading)) + square(imag(leading)) + rest)
        end = where(real(leading) >= 0, -length, length)
        tau = where(is_none, 0, 1 - leading / where(is_none, 1, end))
        vector = where(row > k, under / where(is_none, 1, leading - end), where(row == k, 1, 0))
        along = matmul(conj(vector)[..., None, :], held)
        beyond = held - (conj(tau) * vector)[..., :, None] * along
        on_diagonal = where(is_none, leading, end) * size
        packed_column = where(row > k, vector, where(row == k, on_diagonal, whole))
        held = where(column > k, beyond, where(column == k, packed_column[..., :, None], held))
        return held, where(place == k, tau, taus)

    taus = zeros((*matrix.shape[:-2], kept), dtype=matrix.dtype)
    held, taus = fori_loop(0, kept, step, (matrix, taus))
    return held, taus


def factors(matrix: Value, complete: bool) -> tuple[Value, Value]:
    """Q and R of complex matrices [..., m, n], m ≥ n: Q [..., m, n], or if `complete` [..., m, m]."""
    if complete:
        held, taus = reflected(matrix)
        return _product(held, taus, matrix.shape[-2]), triu(held)
    q, r = _reduced(matrix)
    return q, r


@custom_jvp
def _reduced(matrix: Value) -> tuple[Value, Value]:
    held, taus = reflected(matrix)
    columns = matrix.shape[-1]
    return _product(held, taus, columns), triu(held[..., :columns, :])


@_reduced.defjvp
def _of_reduced(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """With X = Qᴴ·Ȧ·R⁻¹ and K skew-Hermitian, so that X - K is an upper triangle with a real diagonal (Walter and
    Lehmann 2010): Ṙ = (X - K)·R and Q̇ = Q·K + (1 - Q·Qᴴ)·Ȧ·R⁻¹.
    """
    (matrix,), (direction,) = primals, tangents
    q, r = _reduced(matrix)
    across = adjoint(solve_triangular(r, adjoint(direction), trans="C"))
    inner = matmul(adjoint(q), across)
    below = tril(inner, -1)
    unit = eye(inner.shape[-1], dtype=inner.dtype)
    turn = below - adjoint(below) + unit * (inner - real(inner))
    return (q, r), (matmul(q, turn - inner) + across, matmul(inner - turn, r))


def _product(held: Value, taus: Value, columns: int) -> Value:
    start = eye(held.shape[-2], columns, dtype=held.dtype)
    return applied(held, taus, broadcast_to(start, (*held.shape[:-1], columns)), from_last=True, conjugate=False)


def packed(q: Value, r: Value) -> tuple[Value, Value]:
    """The packed matrices [..., m, n] and τ [..., k] of real factors Q [..., m, k] and R [..., k, n].

    The first columns of Q - 1 are -V·(T·V₀ᵀ), a lower triangle with units times an upper one whose diagonal is -τ. So
    elimination without exchanges finds the reflections (Ballard and others, 2014, "Reconstructing Householder vectors
    from tall-skinny QR"); every pivot is at least 1 in size, or the reflection is none.
    """
    rows, kept = q.shape[-2:]
    vectors, taus = _eliminated(q)
    upper = pad(triu(r), [(0, 0)] * (r.ndim - 2) + [(0, rows - kept), (0, 0)])
    lower = where(arange(rows)[:, None] > arange(kept), vectors, 0)
    return upper + pad(lower, [(0, 0)] * (r.ndim - 1) + [(0, r.shape[-1] - kept)]), taus


def _eliminated(q: Value) -> tuple[Any, Any]:
    """The vectors below the diagonal of [..., m, k], and τ [..., k]."""
    rows, kept = q.shape[-2:]
    row, column = arange(rows), arange(kept)

    def step(k: Any, state: Any) -> Any:
        matrix, taus = state
        entries, across = take(matrix, k, axis=-1), take(matrix, k, axis=-2)
        pivot = take(across, k, axis=-1)[..., None] - 1
        is_none = abs(pivot) < 0.5
        vector = where(is_none, 0, entries / where(is_none, 1, pivot))[..., :, None]
        under, beyond = (row > k)[:, None], column > k
        rest = matrix - vector * across[..., None, :]
        matrix = where(under & beyond, rest, where(under & (column == k), vector, matrix))
        return matrix, where(column == k, where(is_none, 0, -pivot), taus)

    nothing = zeros((*q.shape[:-2], kept), dtype=q.dtype)
    matrix, taus = fori_loop(0, kept, step, (q, nothing))
    return matrix, taus
