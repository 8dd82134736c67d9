"""Solutions of equations whose derivatives are those of the equation."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lavax.numpy as lnp
from lavax.tracer.pytrees import pytree
from lavax.tracer.transforms.closure_convert import closure_convert
from lavax.tracer.transforms.custom_rules import custom_jvp, custom_vjp
from lavax.tracer.transforms.jvp import jvp
from lavax.tracer.transforms.linear_transpose import linear_transpose
from lavax.tracer.transforms.vjp import vjp

_Function = Callable[..., Any]


def custom_root(
    f: _Function, initial_guess: Any, solve: _Function, tangent_solve: _Function, has_aux: bool = False
) -> Any:
    """x with f(x) = 0, found by `solve(f, initial_guess)`, and differentiable in what `f` closes over.

    `tangent_solve(g, y)` gives x with g(x) = y for a linear g, by operations that can be transposed. With `has_aux`
    `solve` gives (x, other results), which have no derivatives. By the implicit function theorem dx = -(∂f/∂x)⁻¹ · ∂f.
    """
    residual, values = closure_convert(f, initial_guess)

    @custom_jvp
    def root(held: Any, guess: Any) -> Any:
        return solve(lambda x: residual(x, *held), guess)

    @root.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        held, guess = primals
        found = root(held, guess)
        x, aux = found if has_aux else (found, None)
        _, moved = jvp(lambda *each: residual(x, *each), tuple(held), tuple(tangents[0]))

        def product(v: Any) -> Any:
            return jvp(lambda y: residual(y, *held), (x,), (v,))[1]

        tangent = tangent_solve(product, pytree.map(lnp.negative, moved))
        if not has_aux:
            return x, tangent
        return found, (tangent, pytree.map(lnp.zeros_like, aux))

    return root(tuple(values), initial_guess)


def custom_linear_solve(
    matvec: _Function,
    b: Any,
    solve: _Function,
    transpose_solve: _Function | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """x of the linear matvec(x) = b, found by `solve(matvec, b)`.

    With `transpose_solve(vecmat, b)`, or `symmetric`, gradients solve the transposed system by it, and may be taken
    again; forward mode goes through the steps of `solve` then. Without, tangents are solved by `solve`, and gradients
    transpose its steps. With `has_aux` solvers give (x, other results), which have no derivatives.
    """
    product, values = closure_convert(matvec, b)
    if transpose_solve is None and not symmetric:
        return _by_tangents(product, tuple(values), b, solve, has_aux)
    back = solve if transpose_solve is None else transpose_solve
    return _System(product, solve, back, symmetric, has_aux).call(tuple(values), b)


def _by_tangents(product: _Function, values: tuple[Any, ...], b: Any, solve: _Function, has_aux: bool) -> Any:
    @custom_jvp
    def solution(held: Any, right: Any) -> Any:
        return solve(lambda x: product(x, *held), right)

    @solution.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (held, right), (moved, right_moved) = primals, tangents
        found = solution(held, right)
        x, aux = found if has_aux else (found, None)
        _, of_matrix = jvp(lambda *each: product(x, *each), tuple(held), tuple(moved))
        tangent = solution(held, pytree.map(lnp.subtract, right_moved, of_matrix))
        if not has_aux:
            return x, tangent
        return found, (tangent[0], pytree.map(lnp.zeros_like, aux))

    return solution(values, b)


class _System:
    """A system and its transposed one, each of which is in the other's gradient."""

    def __init__(self, product: _Function, solve: _Function, back: _Function, symmetric: bool, has_aux: bool) -> None:
        self.product, self.solve, self.has_aux = product, solve, has_aux
        self.turned = self if symmetric else _Turned(self, back)
        self.call = custom_vjp(self._solved)
        self.call.defvjp(self._forward, self._backward)

    def _solved(self, held: Any, right: Any) -> Any:
        return self.solve(lambda x: self.product(x, *held), right)

    def _forward(self, held: Any, right: Any) -> Any:
        found = self.call(held, right)
        return found, (held, found[0] if self.has_aux else found)

    def _backward(self, kept: Any, cotangent: Any) -> Any:
        """λ with Aᵀ·λ = x̄ is the cotangent of b, and -λ that of A·x."""
        held, x = kept
        found = self.turned.call(held, cotangent[0] if self.has_aux else cotangent)
        pulled = found[0] if self.has_aux else found
        _, pull = vjp(lambda given: self.product(x, *given), held)
        return pull(pytree.map(lnp.negative, pulled))[0], pulled


class _Turned(_System):
    """The transposed system of another one."""

    def __init__(self, other: _System, back: _Function) -> None:
        def transposed(vector: Any, *held: Any) -> Any:
            return linear_transpose(lambda v: other.product(v, *held), vector)(vector)[0]

        self.product, self.solve, self.has_aux, self.turned = transposed, back, other.has_aux, other
        self.call = custom_vjp(self._solved)
        self.call.defvjp(self._forward, self._backward)
