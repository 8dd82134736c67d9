"""Gradients of matrices taken apart and of systems of equations.

Formulas: Giles, "Collected matrix derivative results" (2008); Murray, "Differentiation of the Cholesky decomposition"
(2016); Walter and Lehmann, "Algorithmic differentiation of linear algebra functions" (2012) for qr; Townsend,
"Differentiating the singular value decomposition" (2016). Where eigenvalues or singular values are equal, vectors have
no gradient, and what would be divided by their difference is left out.
"""

from __future__ import annotations

from lavax.ir.graph import Node
from lavax.ir.types import int32
from lavax.passes.builder import (
    add,
    broadcast,
    build,
    cast,
    divide,
    dot,
    equal,
    greater_equal,
    index_type,
    iota,
    multiply,
    negate,
    scale,
    splat,
    subtract,
    transpose,
    where,
    zeros,
)
from lavax.passes.differentiate.rule import Rule, by_operand
from lavax.passes.matrices import part, rows_in_order

# Matrices, in stacks


def _turned(x: Node) -> Node:
    """Each matrix transposed."""
    rank = x.type.rank
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def _product(*matrices: Node) -> Node:
    """The matrix product, from left to right."""
    result = matrices[0]
    for other in matrices[1:]:
        rank = result.type.rank
        stack = tuple(range(rank - 2))
        result = dot(result, other, ((rank - 1,), (rank - 2,)), (stack, stack))
    return result


def _lower(x: Node, offset: int = 0) -> Node:
    """The elements on and below the diagonal; with an offset of -1 those below."""
    return where(_is_lower(x, offset), x, zeros(x.type))


def _is_lower(x: Node, offset: int = 0) -> Node:
    type, rank = index_type(x.shape), x.type.rank
    return greater_equal(iota(type, rank - 2), add(iota(type, rank - 1), splat(-offset, type)))


def _upper(x: Node) -> Node:
    """The elements on and above the diagonal."""
    return where(_is_lower(x, -1), zeros(x.type), x)


def _by_row(x: Node, shape: tuple[int, ...]) -> Node:
    """A number for each row."""
    return broadcast(x, shape, range(len(shape) - 1))


def _by_column(x: Node, shape: tuple[int, ...]) -> Node:
    """A number for each column."""
    rank = len(shape)
    return broadcast(x, shape, (*range(rank - 2), rank - 1))


def _on_diagonal(x: Node, shape: tuple[int, ...]) -> Node:
    rows, type = _by_row(x, shape), index_type(shape)
    is_diagonal = equal(iota(type, len(shape) - 2), iota(type, len(shape) - 1))
    return where(is_diagonal, rows, zeros(rows.type))


def _inverse_or_zero(x: Node) -> Node:
    is_zero = equal(x, zeros(x.type))
    return where(is_zero, zeros(x.type), divide(splat(1, x.type), where(is_zero, splat(1, x.type), x)))


def _triangular(matrix: Node, right: Node, *, lower: bool, transposed: bool, unit: bool = False) -> Node:
    return build("triangular_solve", matrix, right, lower=lower, transposed=transposed, unit_diagonal=unit)


def _between(left: Node, middle: Node, right: Node, **triangle: bool) -> Node:
    """T₁⁻¹ · middle · T₂⁻ᵀ, the triangles being `left` and `right`, transposed if the setting says so."""
    outer = _triangular(left, middle, **triangle)
    return _turned(_triangular(right, _turned(outer), **triangle))


def _read_below(x: Node) -> Node:
    """The gradient of a matrix of which only the lower triangle is read, from that of the symmetric matrix."""
    return add(_lower(x), _lower(_turned(x), -1))


# Rules


def _cholesky(node: Node, g: Node) -> Node:
    """S = L⁻ᵀ Φ(LᵀL̄) L⁻¹, where Φ halves the diagonal and drops what is above."""
    product = _lower(_product(_turned(node), _lower(g)))
    halved = subtract(product, scale(where(_is_lower(product, -1), zeros(product.type), product), 0.5))
    whole = _between(node, halved, node, lower=True, transposed=True)
    return _read_below(scale(add(whole, _turned(whole)), 0.5))


def _triangular_solve(node: Node, g: Node, position: int) -> Node:
    """b̄ = op(T)⁻ᵀ x̄, T̄ = -b̄ xᵀ where the triangle is."""
    matrix, _ = node.operands
    attrs = node.attrs
    back = build("triangular_solve", matrix, g, **{**attrs, "transposed": not attrs["transposed"]})
    if position == 1:
        return back
    whole = negate(_product(back, _turned(node)))
    oriented = _turned(whole) if attrs["transposed"] else whole
    unit = attrs["unit_diagonal"]
    if attrs["lower"]:
        return _lower(oriented, -1 if unit else 0)
    return _turned(_lower(_turned(oriented), -1 if unit else 0))


def _lu(node: Node, g: Node) -> Node:
    """Ā = Pᵀ L⁻ᵀ (tril(LᵀL̄, -1) + triu(Ū Uᵀ)) U⁻ᵀ."""
    (matrix,) = node.operands
    factors, given = part(node, "lu", matrix, "factors"), part(g, "lu", matrix, "factors")
    unit = splat(1, factors.type.with_shape(factors.shape[:-1]))
    left = add(_lower(factors, -1), _on_diagonal(unit, factors.shape))
    right = _upper(factors)
    middle = add(
        _lower(_product(_turned(left), _lower(given, -1)), -1), _upper(_product(_upper(given), _turned(right)))
    )
    first = _triangular(factors, middle, lower=True, transposed=True, unit=True)
    # Z = X U⁻ᵀ is Zᵀ = U⁻¹ Xᵀ.
    inner = _turned(_triangular(factors, _turned(first), lower=False, transposed=False))
    order = cast(part(node, "lu", matrix, "permutation"), int32)
    return rows_in_order(inner, build("sort_order", order, axis=order.type.rank - 1))


def _linear_solve(node: Node, g: Node, position: int) -> Node:
    """b̄ = op(A)⁻ᵀ x̄, Ā = -b̄ xᵀ; what A is factored into follows A, whose gradient has it all."""
    matrix, factored, _ = node.operands
    if position == 1:
        return zeros(factored.type)
    back = build("linear_solve", matrix, factored, g, transposed=not node.attrs["transposed"])
    if position == 2:
        return back
    whole = negate(_product(back, _turned(node)))
    return _turned(whole) if node.attrs["transposed"] else whole


def _qr(node: Node, g: Node) -> Node:
    """Ā = (Q̄ + Q·copyltu(R R̄ᵀ - Q̄ᵀ Q)) R⁻ᵀ, copyltu(M) being symmetric with the lower triangle of M."""
    (matrix,) = node.operands
    if node.attrs["complete"] and matrix.shape[-2] != matrix.shape[-1]:
        raise NotImplementedError("qr: mode='complete' of a matrix that is not square has no gradient; use 'reduced'")
    (q, r), (q_given, r_given) = ([part(x, "qr", matrix, name, **node.attrs) for name in "qr"] for x in (node, g))
    middle = subtract(_product(r, _turned(_upper(r_given))), _product(_turned(q_given), q))
    symmetric = add(_lower(middle), _turned(_lower(middle, -1)))
    right = add(q_given, _product(q, symmetric))
    return _turned(_triangular(r, _turned(right), lower=False, transposed=False))


def _eigh(node: Node, g: Node) -> Node:
    """Ā = V (diag(λ̄) + F ∘ VᵀV̄) Vᵀ with F[i, j] = 1 / (λ[j] - λ[i]); vectors are rows here."""
    (matrix,) = node.operands
    given = part(g, "eigh", matrix, "values", **node.attrs)
    if not node.attrs["vectors"]:
        whole = build("eigh", matrix, vectors=True)
        rows = part(whole, "eigh", matrix, "vectors", vectors=True)
        return _read_below(_product(_turned(rows), _on_diagonal(given, matrix.shape), rows))
    values, rows = (part(node, "eigh", matrix, name, **node.attrs) for name in ("values", "vectors"))
    vectors_given = part(g, "eigh", matrix, "vectors", **node.attrs)
    gaps = subtract(_by_column(values, matrix.shape), _by_row(values, matrix.shape))
    turning = multiply(_inverse_or_zero(gaps), _product(rows, _turned(vectors_given)))
    middle = add(_on_diagonal(given, matrix.shape), turning)
    whole = _product(_turned(rows), middle, rows)
    return _read_below(scale(add(whole, _turned(whole)), 0.5))


def _svd(node: Node, g: Node) -> Node:
    """With right vectors V as rows, of which there are all, and F[i, j] = 1 / (s[j]² - s[i]²):
    Ā = U (diag(s̄) + (F ∘ (UᵀŪ - ŪᵀU)) S + S (F ∘ (VV̄ᵀ - V̄Vᵀ))) V + (I - UUᵀ) Ū S⁻¹ V."""
    (matrix,) = node.operands
    attrs = node.attrs
    given = part(g, "svd", matrix, "values", **attrs)
    square = (*matrix.shape[:-2], matrix.shape[-1], matrix.shape[-1])
    if not attrs["vectors"]:
        attrs = {"vectors": True, "complete": False}
        whole = build("svd", matrix, **attrs)
        left, right = (part(whole, "svd", matrix, name, **attrs) for name in ("left", "right"))
        return _product(left, _on_diagonal(given, square), right)
    if attrs["complete"] and matrix.shape[-2] != matrix.shape[-1]:
        raise NotImplementedError("svd: full_matrices=True of a matrix that is not square has no gradient")
    values, left, right = (part(node, "svd", matrix, name, **attrs) for name in ("values", "left", "right"))
    left_given, right_given = (part(g, "svd", matrix, name, **attrs) for name in ("left", "right"))
    squares = multiply(values, values)
    gaps = _inverse_or_zero(subtract(_by_column(squares, square), _by_row(squares, square)))
    of_left, of_right = _product(_turned(left), left_given), _product(right, _turned(right_given))
    turned_left = multiply(gaps, subtract(of_left, _turned(of_left)))
    turned_right = multiply(gaps, subtract(of_right, _turned(of_right)))
    middle = add(multiply(turned_left, _by_column(values, square)), multiply(_by_row(values, square), turned_right))
    inner = _product(left, add(_on_diagonal(given, square), middle), right)
    inverses = _inverse_or_zero(values)
    beside = subtract(left_given, _product(left, of_left))
    outside = multiply(beside, _by_column(inverses, left.shape))
    return add(inner, _product(outside, right))


RULES: dict[str, Rule] = {
    "cholesky": by_operand(_cholesky),
    "triangular_solve": _triangular_solve,
    "lu": by_operand(_lu),
    "linear_solve": _linear_solve,
    "qr": by_operand(_qr),
    "eigh": by_operand(_eigh),
    "svd": by_operand(_svd),
}
