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
    numbers: dict[int, Any] = {}  # Python's own among the results, by their place: they stay what they are

    def searched(guess: Any, held: Any) -> Any:
        found = solve(lambda x: residual(x, *held), guess)
        leaves = enumerate(pytree.leaves(found))
        numbers.update((place, leaf) for place, leaf in leaves if isinstance(leaf, (bool, int, float, complex)))
        return found

    search, of_search = closure_convert(searched, initial_guess, tuple(values))

    @custom_jvp
    def root(held: Any, for_search: Any, guess: Any) -> Any:
        leaves, structure = pytree.flatten(search(guess, held, *for_search))
        return pytree.unflatten(structure, [numbers.get(place, leaf) for place, leaf in enumerate(leaves)])

    @root.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        held, found = primals[0], root(*primals)
        x, aux = found if has_aux else (found, None)
        _, moved = jvp(lambda *each: residual(x, *each), tuple(held), tuple(tangents[0]))

        def product(v: Any) -> Any:
            return jvp(lambda y: residual(y, *held), (x,), (v,))[1]

        tangent = tangent_solve(product, pytree.map(lnp.negative, moved))
        if not has_aux:
            return x, tangent
        return found, (tangent, pytree.map(lnp.zeros_like, aux))

    return root(tuple(values), tuple(of_search), initial_guess)


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
    forward, of_forward = closure_convert(lambda right: solve(matvec, right), b)
    if transpose_solve is None and not symmetric:
        return _by_tangents(product, tuple(values), forward, tuple(of_forward), b, has_aux)

    def transposed(vector: Any, *held: Any) -> Any:
        return linear_transpose(lambda v: product(v, *held), vector)(vector)[0]

    def backward_solve(right: Any) -> Any:
        if transpose_solve is None:
            return solve(matvec, right)
        return transpose_solve(lambda v: transposed(v, *values), right)

    backward, of_backward = closure_convert(backward_solve, b)
    system = _System(product, forward, has_aux)
    system.turned = _System(product if symmetric else transposed, backward, has_aux)
    system.turned.turned = system
    return system.call((tuple(values), tuple(of_forward), tuple(of_backward)), b)


def _by_tangents(
    product: _Function, values: tuple[Any, ...], forward: _Function, of_forward: tuple[Any, ...], b: Any, has_aux: bool
) -> Any:
    """Tangents are solved in the same way; their gradients transpose the steps of the solver."""

    @custom_jvp
    def solution(held: Any, of_solver: Any, right: Any) -> Any:
        return forward(right, *of_solver)

    @solution.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (held, of_solver, right), (moved, _, right_moved) = primals, tangents
        found = forward(right, *of_solver)
        x, aux = found if has_aux else (found, None)
        _, of_matrix = jvp(lambda *each: product(x, *each), tuple(held), tuple(moved)) if held else (x, None)
        rest = right_moved if of_matrix is None else pytree.map(lnp.subtract, right_moved, of_matrix)
        tangent = forward(rest, *of_solver)
        if not has_aux:
            return x, tangent
        return found, (tangent[0], pytree.map(lnp.zeros_like, aux))

    return solution(values, of_forward, b)


class _System:
    """A system and its transposed one, each of which is in the other's gradient.

    It is a function of what the matrix, its solver and the transposed solver close over, and of the right side.
    """

    turned: _System

    def __init__(self, product: _Function, forward: _Function, has_aux: bool) -> None:
        self.product, self.forward, self.has_aux = product, forward, has_aux
        self.call = custom_vjp(self._solved)
        self.call.defvjp(self._keeping, self._backward)

    def _solved(self, held: Any, right: Any) -> Any:
        return self.forward(right, *held[1])

    def _keeping(self, held: Any, right: Any) -> Any:
        found = self.call(held, right)
        return found, (held, found[0] if self.has_aux else found)

    def _backward(self, kept: Any, cotangent: Any) -> Any:
        """λ with Aᵀ·λ = x̄ is the cotangent of b, and -λ that of A·x."""
        (values, of_forward, of_backward), x = kept
        given = cotangent[0] if self.has_aux else cotangent
        found = self.turned.call((values, of_backward, of_forward), given)
        pulled = found[0] if self.has_aux else found
        _, pull = vjp(lambda held: self.product(x, *held), values)
        of_values = pull(pytree.map(lnp.negative, pulled))[0]
        return (of_values, *(pytree.map(lambda _: None, each) for each in (of_forward, of_backward))), pulled
