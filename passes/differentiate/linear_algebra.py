"""Gradients of matrix decompositions and of linear systems.

Formulas: Giles, "Collected matrix derivative results" (2008); Murray, "Differentiation of the Cholesky decomposition"
(2016); Walter and Lehmann, "Algorithmic differentiation of linear algebra functions" (2012) for qr; Townsend,
"Differentiating the singular value decomposition" (2016). If eigenvalues or singular values are equal, their vectors
have no gradient, and the terms with their difference as the divisor are omitted.
"""

from __future__ import annotations

from lavax.ir.graph import Node
from lavax.ir.types import int32
from lavax.passes.build.builder import add, build, cast, multiply, negate, scale, splat, subtract, where, zeros
from lavax.passes.build.matrices import (
    by_column,
    by_row,
    inverse_or_zero,
    is_lower,
    lower,
    on_diagonal,
    part,
    product,
    rows_in_order,
    turned,
    upper,
)
from lavax.passes.differentiate.gradient_rule import GradientRule, by_operand


def _triangular(matrix: Node, right: Node, *, lower: bool, transposed: bool, unit: bool = False) -> Node:
    return build("triangular_solve", matrix, right, lower=lower, transposed=transposed, unit_diagonal=unit)


def _between(left: Node, middle: Node, right: Node, **triangle: bool) -> Node:
    """T₁⁻¹ · middle · T₂⁻ᵀ for the triangles `left` and `right`, transposed if `triangle` says so."""
    outer = _triangular(left, middle, **triangle)
    return turned(_triangular(right, turned(outer), **triangle))


def _read_below(x: Node) -> Node:
    """The gradient of a matrix of which only the lower triangle is read, from the gradient of the symmetric matrix."""
    return add(lower(x), lower(turned(x), -1))


# Rules


def _cholesky(node: Node, g: Node) -> Node:
    """S = L⁻ᵀ Φ(LᵀL̄) L⁻¹, where Φ halves the diagonal and clears the elements above it."""
    whole = lower(product(turned(node), lower(g)))
    halved = subtract(whole, scale(where(is_lower(whole, -1), zeros(whole.type), whole), 0.5))
    found = _between(node, halved, node, lower=True, transposed=True)
    return _read_below(scale(add(found, turned(found)), 0.5))


def _triangular_solve(node: Node, g: Node, position: int) -> Node:
    """b̄ = op(T)⁻ᵀ x̄, T̄ = -b̄ xᵀ within the triangle."""
    matrix, _ = node.operands
    attrs = node.attrs
    back = build("triangular_solve", matrix, g, **{**attrs, "transposed": not attrs["transposed"]})
    if position == 1:
        return back
    whole = negate(product(back, turned(node)))
    oriented = turned(whole) if attrs["transposed"] else whole
    unit = attrs["unit_diagonal"]
    if attrs["lower"]:
        return lower(oriented, -1 if unit else 0)
    return turned(lower(turned(oriented), -1 if unit else 0))


def _lu(node: Node, g: Node) -> Node:
    """Ā = Pᵀ L⁻ᵀ (tril(LᵀL̄, -1) + triu(Ū Uᵀ)) U⁻ᵀ."""
    (matrix,) = node.operands
    factors, given = part(node, "lu", matrix, "factors"), part(g, "lu", matrix, "factors")
    unit = splat(1, factors.type.with_shape(factors.shape[:-1]))
    left = add(lower(factors, -1), on_diagonal(unit, factors.shape))
    right = upper(factors)
    middle = add(lower(product(turned(left), lower(given, -1)), -1), upper(product(upper(given), turned(right))))
    first = _triangular(factors, middle, lower=True, transposed=True, unit=True)
    # Z = X U⁻ᵀ is Zᵀ = U⁻¹ Xᵀ.
    inner = turned(_triangular(factors, turned(first), lower=False, transposed=False))
    order = cast(part(node, "lu", matrix, "permutation"), int32)
    return rows_in_order(inner, build("sort_order", order, axis=order.type.rank - 1))


def _linear_solve(node: Node, g: Node, position: int) -> Node:
    """b̄ = op(A)⁻ᵀ x̄, Ā = -b̄ xᵀ; the factors of A get none, because A gets the whole gradient."""
    matrix, factored, _ = node.operands
    if position == 1:
        return zeros(factored.type)
    back = build("linear_solve", matrix, factored, g, transposed=not node.attrs["transposed"])
    if position == 2:
        return back
    whole = negate(product(back, turned(node)))
    return turned(whole) if node.attrs["transposed"] else whole


def _qr(node: Node, g: Node) -> Node:
    """Ā = (Q̄ + Q·copyltu(R R̄ᵀ - Q̄ᵀ Q)) R⁻ᵀ, where copyltu(M) is symmetric with the lower triangle of M."""
    (matrix,) = node.operands
    if node.attrs["complete"] and matrix.shape[-2] != matrix.shape[-1]:
        raise NotImplementedError("qr: mode='complete' of a matrix that is not square has no gradient; use 'reduced'")
    (q, r), (q_given, r_given) = ([part(x, "qr", matrix, name, **node.attrs) for name in "qr"] for x in (node, g))
    middle = subtract(product(r, turned(upper(r_given))), product(turned(q_given), q))
    symmetric = add(lower(middle), turned(lower(middle, -1)))
    right = add(q_given, product(q, symmetric))
    return turned(_triangular(r, turned(right), lower=False, transposed=False))


def _eigh(node: Node, g: Node) -> Node:
    """Ā = V (diag(λ̄) + F ∘ VᵀV̄) Vᵀ with F[i, j] = 1 / (λ[j] - λ[i]); vectors are rows here."""
    (matrix,) = node.operands
    given = part(g, "eigh", matrix, "values", **node.attrs)
    if not node.attrs["vectors"]:
        whole = build("eigh", matrix, vectors=True)
        rows = part(whole, "eigh", matrix, "vectors", vectors=True)
        return _read_below(product(turned(rows), on_diagonal(given, matrix.shape), rows))
    values, rows = (part(node, "eigh", matrix, name, **node.attrs) for name in ("values", "vectors"))
    vectors_given = part(g, "eigh", matrix, "vectors", **node.attrs)
    gaps = subtract(by_column(values, matrix.shape), by_row(values, matrix.shape))
    turning = multiply(inverse_or_zero(gaps), product(rows, turned(vectors_given)))
    middle = add(on_diagonal(given, matrix.shape), turning)
    whole = product(turned(rows), middle, rows)
    return _read_below(scale(add(whole, turned(whole)), 0.5))


def _svd(node: Node, g: Node) -> Node:
    """With the right vectors, all of them, as rows of V, and P = UᵀŪ - ŪᵀU, Q = VV̄ᵀ - V̄Vᵀ:
    Ā = U (diag(s̄) + ½ (P + Q)[i, j] / (s[j] - s[i]) + ½ (P - Q)[i, j] / (s[j] + s[i])) V + (I - UUᵀ) Ū S⁻¹ V.

    Where two values are equal the first quotient is 0, which is right if nothing tells their vectors apart; the second
    stays."""
    (matrix,) = node.operands
    attrs = node.attrs
    given = part(g, "svd", matrix, "values", **attrs)
    square = (*matrix.shape[:-2], matrix.shape[-1], matrix.shape[-1])
    if not attrs["vectors"]:
        attrs = {"vectors": True, "complete": False}
        whole = build("svd", matrix, **attrs)
        left, right = (part(whole, "svd", matrix, name, **attrs) for name in ("left", "right"))
        return product(left, on_diagonal(given, square), right)
    if attrs["complete"] and matrix.shape[-2] != matrix.shape[-1]:
        raise NotImplementedError("svd: full_matrices=True of a matrix that is not square has no gradient")
    values, left, right = (part(node, "svd", matrix, name, **attrs) for name in ("values", "left", "right"))
    left_given, right_given = (part(g, "svd", matrix, name, **attrs) for name in ("left", "right"))
    ahead, behind = by_column(values, square), by_row(values, square)
    apart, together = inverse_or_zero(subtract(ahead, behind)), inverse_or_zero(add(ahead, behind))
    of_left, of_right = product(turned(left), left_given), product(right, turned(right_given))
    by_left, by_right = subtract(of_left, turned(of_left)), subtract(of_right, turned(of_right))
    turning = multiply(apart, add(by_left, by_right))
    # It is symmetric: this half sum is for its transpose, the tangent, whose terms cancel so before they are divided by
    # the tiny difference of two values that are equal but for rounding. Afterwards they would differ for U and V.
    turning = scale(add(turning, turned(turning)), 0.5)
    middle = add(turning, multiply(together, subtract(by_left, by_right)))
    inner = product(left, add(on_diagonal(given, square), scale(middle, 0.5)), right)
    inverses = inverse_or_zero(values)
    beside = subtract(left_given, product(left, of_left))
    outside = multiply(beside, by_column(inverses, left.shape))
    return add(inner, product(outside, right))


RULES: dict[str, GradientRule] = {
    "cholesky": by_operand(_cholesky),
    "triangular_solve": _triangular_solve,
    "lu": by_operand(_lu),
    "linear_solve": _linear_solve,
    "qr": by_operand(_qr),
    "eigh": by_operand(_eigh),
    "svd": by_operand(_svd),
}
