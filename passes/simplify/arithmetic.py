"""Algebraic identities of arithmetic.

All hold exactly in IEEE arithmetic, including infinities, NaN and signed zeros, with one exception: if two operands of
maximum or minimum are equal, either may be the result.
"""
from __future__ import annotations

from math import copysign, frexp

from lavax.ir.graph import Node
from lavax.ir.types import float32
from lavax.passes.build.builder import (
    absolute,
    add,
    build,
    divide,
    maximum,
    minimum,
    multiply,
    negate,
    splat,
    subtract,
    zeros,
)
from lavax.passes.build.matching import is_splat, is_value, splat_value
from lavax.passes.simplify.bounds import bounds
from lavax.passes.simplify.rewriting import RewriteRule

_SMALLEST_RECIPROCAL, _LARGEST_RECIPROCAL = 2.0**-126, 2.0**127


def splat_to_the_right(node: Node) -> Node | None:
    """op(splat, x) -> op(x, splat), for commutative operations."""
    x, y = node.operands
    return build(node.op, y, x) if is_splat(x) and not is_splat(y) else None


def equal_operands(node: Node) -> Node | None:
    """op(x, x) -> x, for maximum, minimum, and, or."""
    x, y = node.operands
    return x if x is y else None


def _add_zero(node: Node) -> Node | None:
    """x + 0 -> x; x - 0 -> x; for floats only x + -0.0 and x - 0.0, because -0.0 + 0.0 is 0.0."""
    x, y = node.operands
    if not is_value(y, 0) or node.dtype.is_complex:
        return None
    changes_sign = node.dtype.is_inexact and (copysign(1, splat_value(y)) > 0) == (node.op == "add")
    return None if changes_sign else x


def _add_negated(node: Node) -> Node | None:
    """x + (-y) -> x - y; (-x) + y -> y - x."""
    x, y = node.operands
    if y.op == "negate":
        return subtract(x, y.operands[0])
    return subtract(y, x.operands[0]) if x.op == "negate" else None


def _subtract_negated(node: Node) -> Node | None:
    """x - (-y) -> x + y."""
    x, y = node.operands
    return add(x, y.operands[0]) if y.op == "negate" else None


def _subtract_integers(node: Node) -> Node | None:
    """x - x -> 0; 0 - x -> -x; integers only, because of NaN, infinities and the sign of zero."""
    x, y = node.operands
    if node.dtype.is_inexact:
        return None
    if x is y:
        return zeros(node.type)
    return negate(y) if is_value(x, 0) else None


def _negate_twice(node: Node) -> Node | None:
    """-(-x) -> x."""
    (x,) = node.operands
    return x.operands[0] if x.op == "negate" else None


def _negate_multiple(node: Node) -> Node | None:
    """-(x * c) -> x * (-c)."""
    (x,) = node.operands
    if x.op != "multiply" or not is_splat(x.operands[1]):
        return None
    return multiply(x.operands[0], negate(x.operands[1]))


def _multiply_by_splat(node: Node) -> Node | None:
    """x * 1 -> x; x * -1 -> -x; x * 0 -> 0 for integers; (-x) * c -> x * (-c)."""
    x, y = node.operands
    if not is_splat(y):
        return None
    value = splat_value(y)
    if value == 1:
        return x
    if value == -1:
        return negate(x)
    if value == 0 and node.dtype.is_integer:
        return y
    return multiply(x.operands[0], negate(y)) if x.op == "negate" else None


def negation_outward(node: Node) -> Node | None:
    """op(-x, y) and op(x, -y) -> -op(x, y), for products, and quotients of floats."""
    x, y = node.operands
    if node.op == "divide" and not node.dtype.is_inexact:
        return None
    if x.op == "negate":
        return negate(build(node.op, x.operands[0], y, **node.attrs))
    return negate(build(node.op, x, y.operands[0], **node.attrs)) if y.op == "negate" else None


def _divide_by_splat(node: Node) -> Node | None:
    """x / 1 -> x; x / c -> x * (1/c) if c is a power of two, so that 1/c is exact."""
    x, y = node.operands
    if not is_splat(y):
        return None
    value = splat_value(y)
    if value == 1:
        return x
    if node.dtype != float32 or abs(frexp(value)[0]) != 0.5:
        return None
    reciprocal = 1 / value
    normal = _SMALLEST_RECIPROCAL <= abs(reciprocal) <= _LARGEST_RECIPROCAL
    return multiply(x, splat(reciprocal, y.type)) if normal else None


def _power_of_splat(node: Node) -> Node | None:
    """x^0 -> 1; x^1 -> x; x^2 -> x * x; x^-1 -> 1 / x for floats: the exponents whose results round once."""
    x, y = node.operands
    if not is_splat(y):
        return None
    value = splat_value(y)
    if value == 0:
        return splat(1, node.type)
    if value == 1:
        return x
    if value == 2:
        return multiply(x, x)
    return divide(splat(1, node.type), x) if value == -1 and node.dtype.is_inexact else None


def _nested_extremum(node: Node) -> Node | None:
    """max(max(x, c), d) -> max(x, max(c, d)); the same for min."""
    x, y = node.operands
    if x.op != node.op or not is_splat(y) or not is_splat(x.operands[1]):
        return None
    both = (maximum if node.op == "maximum" else minimum)(x.operands[1], y)
    return build(node.op, x.operands[0], both)


def _extremum_within_bounds(node: Node) -> Node | None:
    """max(x, y) -> x if the integer y is known not to exceed x; the same for min."""
    x, y = node.operands
    of_x, of_y = bounds(x), bounds(y)
    if of_x is None or of_y is None:
        return None
    (x_low, x_high), (y_low, y_high) = of_x, of_y
    if node.op == "maximum":
        return x if x_low >= y_high else y if y_low >= x_high else None
    return x if x_high <= y_low else y if y_high <= x_low else None


def _abs(node: Node) -> Node | None:
    """|-x| -> |x|; |conj x| -> |x|; ||x|| -> |x|; |x| -> x if x is unsigned."""
    (x,) = node.operands
    if x.op == "conjugate":
        return absolute(x.operands[0])
    if x.op == "abs" or x.dtype.kind == "uint":
        return x
    return absolute(x.operands[0]) if x.op == "negate" else None


def _floor(node: Node) -> Node | None:
    """floor(x) -> x if x is known to be whole."""
    (x,) = node.operands
    whole = x.op in ("floor", "sign") or (x.op == "cast" and not x.operands[0].dtype.is_inexact)
    return x if whole else None


def _stop_gradient(node: Node) -> Node | None:
    """stop_gradient(x) -> x if x has no gradient anyway."""
    (x,) = node.operands
    return x if x.op == "stop_gradient" or not x.dtype.is_inexact else None


RULES: dict[str, tuple[RewriteRule, ...]] = {
    "add": (splat_to_the_right, _add_zero, _add_negated),
    "subtract": (_add_zero, _subtract_negated, _subtract_integers),
    "negate": (_negate_twice, _negate_multiple),
    "multiply": (splat_to_the_right, _multiply_by_splat, negation_outward),
    "divide": (_divide_by_splat, negation_outward),
    "power": (_power_of_splat,),
    "maximum": (splat_to_the_right, equal_operands, _nested_extremum, _extremum_within_bounds),
    "minimum": (splat_to_the_right, equal_operands, _nested_extremum, _extremum_within_bounds),
    "abs": (_abs,),
    "floor": (_floor,),
    "stop_gradient": (_stop_gradient,),
}
