"""Solutions of linear systems whose derivatives are those of the equation, not of the steps that solved it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lavax.numpy as lnp
from lavax.base.errors import TreeMismatchError
from lavax.ir.location import user_error
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import as_value
from lavax.optim.tree.raveling import ravel_pytree
from lavax.tracer.pytrees.pytree import leaves, map, structure
from lavax.tracer.transforms.closure_convert import closure_convert
from lavax.tracer.transforms.custom_rules import custom_vjp
from lavax.tracer.transforms.linear_transpose import linear_transpose
from lavax.tracer.transforms.vjp import vjp
from lavax.tracer.values.value import Value

Product = Callable[[Any], Any]
# iterate(product with the matrix, product with the preconditioner, right side, first guess): the solution, as vectors.
Iteration = Callable[[Product, Product, Value, Value], Value]


def product_with(name: str, a: Any) -> Product:
    """A matrix, or a function, as a function. Raises ShapeError for a matrix that is not square."""
    if callable(a):
        return a  # type: ignore[no-any-return]
    matrix = as_value(a)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise shape_error(f"{name}: A must be a function or a square matrix, got {matrix.type}")
    return lambda x: lnp.matmul(matrix, x)


def _on_vectors(name: str, what: str, product: Product, unravel: Product, like: Any) -> Product:
    def on_vectors(vector: Any) -> Value:
        made = product(unravel(vector))
        if structure(made) is not structure(like):
            expected = f"{name}: {what}(x) must be a tree like b, {structure(like)!r}"
            raise user_error(TreeMismatchError, f"{expected}, got {structure(made)!r}")
        return ravel_pytree(made)[0]

    return on_vectors


def solved(name: str, a: Any, b: Any, x0: Any, m: Any, symmetric: bool, iterate: Iteration) -> Any:
    """x of a(x) = b by `iterate`, for trees; derivatives by b, and by what `a` closes over, follow from a⁻¹ itself.

    `m` is the preconditioner. The transposed system is solved in the same way. Raises TreeMismatchError or ShapeError
    if trees do not fit.
    """
    if any(lnp.iscomplexobj(leaf) for leaf in (*leaves(x0), *(() if callable(a) else (a,)))):
        b = map(lambda leaf: leaf + lnp.complex64(0), b)
    right, unravel = ravel_pytree(map(lnp.asarray, b))
    if not (right.type.dtype.is_float or right.type.dtype.is_complex):
        right, unravel = ravel_pytree(map(lambda leaf: lnp.astype(leaf, lnp.float32), b))
    start = lnp.zeros_like(right)
    if x0 is not None:
        if structure(x0) is not structure(b):
            expected = f"{name}: x0 must be a tree like b, {structure(b)!r}"
            raise user_error(TreeMismatchError, f"{expected}, got {structure(x0)!r}")
        start = lnp.astype(ravel_pytree(x0)[0], right.dtype)
    product, values = closure_convert(_on_vectors(name, "A", product_with(name, a), unravel, b), right)
    conditioner, more = closure_convert(
        _on_vectors(name, "M", (lambda x: x) if m is None else product_with(name, m), unravel, b), right
    )

    def transposed(vector: Any, *given: Any) -> Any:
        return linear_transpose(lambda v: product(v, *given), vector)(vector)[0]

    solution = _Solution(product, conditioner, iterate)
    if right.type.dtype.is_complex and symmetric:  # the transposed of a Hermitian matrix is its conjugate
        solution.turned = _Solution(_conjugated(product), _conjugated(conditioner), iterate)
        solution.turned.turned = solution
    elif not symmetric:  # two that are each other's derivatives
        solution.turned = _Solution(transposed, conditioner, iterate)
        solution.turned.turned = solution
    return unravel(solution.call((tuple(values), tuple(more)), right, start))


def _conjugated(product: Callable[..., Any]) -> Callable[..., Any]:
    return lambda vector, *given: lnp.conj(product(lnp.conj(vector), *given))


class _Solution:
    """The solution as a function of what the products close over, the right side and the first guess."""

    def __init__(self, product: Callable[..., Any], conditioner: Callable[..., Any], iterate: Iteration) -> None:
        self.product, self.conditioner, self.iterate = product, conditioner, iterate
        self.turned = self  # of the transposed matrix
        self.call = custom_vjp(self._solved)
        self.call.defvjp(self._forward, self._backward)

    def _solved(self, held: Any, right: Value, guess: Value) -> Value:
        values, more = held
        return self.iterate(lambda v: self.product(v, *values), lambda v: self.conditioner(v, *more), right, guess)

    def _forward(self, held: Any, right: Value, guess: Value) -> tuple[Value, Any]:
        x = self.call(held, right, guess)
        return x, (held, x)

    def _backward(self, kept: Any, cotangent: Value) -> tuple[Any, Value, Value]:
        """λ with Aᵀ·λ = x̄ is the cotangent of b, and -λ that of A·x."""
        held, x = kept
        nothing = lnp.zeros_like(cotangent)
        pulled = self.turned.call(held, cotangent, nothing)
        _, pull = vjp(lambda values: self.product(x, *values), held[0])
        return (pull(-pulled)[0], map(lambda value: None, held[1])), pulled, nothing
