"""Functions of matrices: exponentials on the device; square roots, Schur forms and Sylvester's equation on the host."""
from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

import lavax.numpy as lnp
from lavax import linalg
from lavax.linalg.host_routines import on_host
from lavax.linalg.matrices import is_empty, matrices, square_matrices
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.control_flow.fori_loop import fori_loop
from lavax.tracer.transforms.custom_rules import custom_vjp
from lavax.tracer.transforms.jvp import jvp
from lavax.tracer.values.value import Value

# By the bits of a float: the degree of the Padé approximant of exp, and the largest norm for which its error is within
# rounding (Higham 2005, tables 2.3 and A.1).
_DEGREES = {32: (7, 3.925724783138660), 64: (13, 5.371920351148152)}


def _pade(value: Value, degree: int) -> Value:
    """The Padé approximant of the exponential; its coefficients are (2m - k)!·m! / ((2m)!·(m - k)!·k!)."""
    powers = math.factorial
    coefficients = [
        powers(2 * degree - k) * powers(degree) / (powers(2 * degree) * powers(degree - k) * powers(k))
        for k in range(degree + 1)
    ]
    identity = lnp.eye(value.shape[-1], dtype=value.dtype)
    square = lnp.matmul(value, value)
    even, odd = coefficients[degree - 1] * identity, coefficients[degree] * identity
    for k in range(degree - 3, -1, -2):
        even, odd = lnp.matmul(even, square), lnp.matmul(odd, square)
        even, odd = even + coefficients[k] * identity, odd + coefficients[k + 1] * identity
    odd = lnp.matmul(value, odd)
    return linalg.solve(even - odd, even + odd)


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Value:
    """The exponentials of matrices [..., n, n], by scaling and squaring (Higham 2005).

    Matrices that need more than `max_squarings` squarings, those of a norm beyond some 4·2^max_squarings (5·… for
    float64), give NaN. `upper_triangular` changes nothing. Raises ShapeError for matrices that are not square.
    """
    value = square_matrices("expm", A)
    if is_empty(value):
        return value
    degree, largest = _DEGREES[64 if value.dtype == np.float64 else 32]
    norm = lnp.max(lnp.sum(lnp.abs(value), axis=-2), axis=-1)
    doublings = lnp.ceil(lnp.log2(lnp.maximum(norm / largest, 1.0)))[..., None, None]
    scaled = _pade(value / lnp.exp2(lnp.minimum(doublings, float(max_squarings))), degree)

    def step(number: Any, held: Value) -> Value:
        return cast(Value, lnp.where(number < doublings, lnp.matmul(held, held), held))

    found: Value = fori_loop(0, max_squarings, step, scaled)
    return cast(Value, lnp.where(doublings > max_squarings, math.nan, found))


def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """`expm(A)` and its derivative in the direction `E`, both [..., n, n]; with `compute_expm=False` only the
    derivative.

    `method` changes nothing. Raises ShapeError if the shapes differ.
    """
    value, direction = square_matrices("expm_frechet", A), square_matrices("expm_frechet", E)
    if value.shape != direction.shape:
        raise shape_error(f"expm_frechet: A and E must have one shape, got {value.type} and {direction.type}")
    pair = jvp(expm, (value,), (lnp.astype(direction, value.dtype),))
    return pair if compute_expm else pair[1]


@custom_vjp
def _root(value: Value) -> Value:
    return on_host("sqrtm", value)[0]


def _root_forward(value: Value) -> tuple[Value, Value]:
    root = _root(value)
    return root, root


def _root_backward(root: Value, cotangent: Value) -> tuple[Value]:
    """The transpose of X·Ẋ + Ẋ·X = Ȧ."""
    turned = lnp.matrix_transpose(root)
    return (_sylvester(turned, turned, cotangent),)


_root.defvjp(_root_forward, _root_backward)


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Value:
    """The square roots X of matrices [..., n, n], X·X = A, of which the eigenvalues have positive real parts.

    Computed on the host by SciPy, in float64, so a compiled function waits for the device here. The complex root of a
    real matrix is NaN: make the matrix complex to get it. `blocksize` changes nothing. Raises ShapeError for matrices
    that are not square, ImportError without SciPy.
    """
    value = square_matrices("sqrtm", A)
    found: Value = value if is_empty(value) else _root(value)
    return found


def schur(a: ArrayLike, output: str = "real") -> tuple[Value, Value]:
    """T and Z with Z·T·Zᴴ = a [..., n, n]: Z is unitary, and T an upper triangle.

    The `output` "real" of a real matrix is real: its T has blocks of 2 by 2 on the diagonal for complex eigenvalues.
    With "complex", and of complex matrices, both are complex. Computed on the host by SciPy, in float64, as `sqrtm`; it
    has no derivative. Raises ValueError for another `output`, and the errors of `sqrtm`.
    """
    if output not in ("real", "complex"):
        raise ValueError(f"schur: output must be 'real' or 'complex', got {output!r}")
    value = square_matrices("schur", a)
    if output == "complex":
        value = lnp.astype(value, lnp.result_type(value, lnp.complex64))
    if is_empty(value):
        return value, value
    t, z = on_host("schur", value)
    return t, z


def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """H with Q·H·Qᵀ = a [..., n, n], zero below its first subdiagonal; with `calc_q` also the orthogonal Q.

    Computed on the host by SciPy, as `schur`; other arguments change nothing.
    """
    value = square_matrices("hessenberg", a)
    if is_empty(value):
        return (value, value) if calc_q else value
    return on_host("hessenberg_with_q", value) if calc_q else on_host("hessenberg", value)[0]


@custom_vjp
def _sylvester(a: Value, b: Value, q: Value) -> Value:
    return on_host("solve_sylvester", a, b, q)[0]


def _sylvester_forward(a: Value, b: Value, q: Value) -> tuple[Value, tuple[Value, Value, Value]]:
    x = _sylvester(a, b, q)
    return x, (a, b, x)


def _sylvester_backward(kept: tuple[Value, Value, Value], cotangent: Value) -> tuple[Value, Value, Value]:
    """The transpose of A·Ẋ + Ẋ·B = Q̇ - Ȧ·X - X·Ḃ."""
    a, b, x = kept
    given = _sylvester(lnp.matrix_transpose(a), lnp.matrix_transpose(b), cotangent)
    turned = lnp.matrix_transpose(x)
    return -lnp.matmul(given, turned), -lnp.matmul(turned, given), given


_sylvester.defvjp(_sylvester_forward, _sylvester_backward)


def solve_sylvester(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8
) -> Value:
    """X of A·X + X·B = C, for matrices A [..., m, m], B [..., n, n] and C [..., m, n] of one batch.

    Computed on the host by SciPy, in float64, as `sqrtm`. `method` and `tol` change nothing. Raises ShapeError if the
    shapes do not fit, and the errors of `sqrtm`.
    """
    name = "solve_sylvester"
    a, b, c = square_matrices(name, A), square_matrices(name, B), matrices(name, C)
    wanted = (a.shape[-2], b.shape[-1])
    if c.shape[-2:] != wanted or not a.shape[:-2] == b.shape[:-2] == c.shape[:-2]:
        needed = f"C [..., {wanted[0]}, {wanted[1]}]"
        raise shape_error(f"{name}: A {a.type} and B {b.type} need {needed} of their batch, got {c.type}")
    dtype = lnp.result_type(a, b, c)
    found: Value = c if is_empty(c) else _sylvester(lnp.astype(a, dtype), lnp.astype(b, dtype), lnp.astype(c, dtype))
    return found
