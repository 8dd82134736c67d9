"""Gradients of elementwise operations. In each rule `g` is the cotangent of the node's value."""
from __future__ import annotations

import math
from collections.abc import Callable

from lavax.ir.graph import Node
from lavax.passes.build.builder import (
    add,
    build,
    cast,
    divide,
    equal,
    exp,
    floor,
    greater,
    less,
    log,
    logical_and,
    multiply,
    negate,
    power,
    scale,
    sign,
    splat,
    subtract,
    where,
    zeros,
)
from lavax.passes.differentiate.gradient_rule import GradientRule, OperandGradientRule, by_operand


def _one_plus(x: Node) -> Node:
    return add(x, splat(1, x.type))


def _one_minus(x: Node) -> Node:
    return subtract(splat(1, x.type), x)


def _pass_on(node: Node, g: Node) -> Node:
    return g


def _pass_on_negated(node: Node, g: Node) -> Node:
    return negate(g)


def _abs(node: Node, g: Node) -> Node:
    """For complex z the change is Re(conj(z)·dz)/|z|; 0 at the origin."""
    (x,) = node.operands
    if not x.dtype.is_complex:
        return multiply(g, sign(x))
    length = where(equal(node, zeros(node.type)), splat(1, node.type), node)
    real, imaginary = (multiply(g, divide(build(part, x), length)) for part in ("real", "imag"))
    return build("complex", real, negate(imaginary))


def _exp(node: Node, g: Node) -> Node:
    return multiply(g, node)


def _log(node: Node, g: Node) -> Node:
    return divide(g, node.operands[0])


def _exp2(node: Node, g: Node) -> Node:
    return multiply(g, scale(node, math.log(2)))


def _log2(node: Node, g: Node) -> Node:
    return divide(scale(g, 1 / math.log(2)), node.operands[0])


def _expm1(node: Node, g: Node) -> Node:
    """exp(x), rather than the value + 1, which has no correct digit if exp(x) is small."""
    return multiply(g, exp(node.operands[0]))


def _log1p(node: Node, g: Node) -> Node:
    return divide(g, _one_plus(node.operands[0]))


def _sqrt(node: Node, g: Node) -> Node:
    return divide(scale(g, 0.5), node)


def _rsqrt(node: Node, g: Node) -> Node:
    return multiply(scale(g, -0.5), divide(node, node.operands[0]))


def _cbrt(node: Node, g: Node) -> Node:
    return divide(scale(g, 1 / 3), multiply(node, node))


def _logistic(node: Node, g: Node) -> Node:
    return multiply(g, multiply(node, _one_minus(node)))


def _multiply_by(position: int) -> OperandGradientRule:
    def rule(node: Node, g: Node) -> Node:
        return multiply(g, node.operands[position])

    return rule


def _dividend(node: Node, g: Node) -> Node:
    return divide(g, node.operands[1])


def _divisor(node: Node, g: Node) -> Node:
    return negate(multiply(divide(g, node.operands[1]), node))


def _remainder_divisor(node: Node, g: Node) -> Node:
    """remainder(x, y) = x − n·y with an integer n. It is computed from the value, so it is the n that was used."""
    x, y = node.operands
    quotient = divide(subtract(x, node), y)
    return negate(multiply(g, floor(add(quotient, splat(0.5, x.type)))))


def _base(node: Node, g: Node) -> Node:
    """y·x^(y − 1), and 0 if y is 0, because 0^(−1) would give 0·∞."""
    x, y = node.operands
    undefined = logical_and(equal(x, zeros(x.type)), equal(y, zeros(y.type)))
    exponent = where(undefined, splat(1, y.type), subtract(y, splat(1, y.type)))
    return multiply(g, multiply(y, power(x, exponent)))


def _exponent(node: Node, g: Node) -> Node:
    """log(x)·x^y, and 0 if x is 0 (for positive y); undefined for negative x."""
    x, _ = node.operands
    positive = where(equal(x, zeros(x.type)), splat(1, x.type), x)
    return multiply(g, multiply(log(positive), node))


def _extremum(compare: Callable[[Node, Node], Node], position: int) -> OperandGradientRule:
    """The chosen operand gets the whole gradient; equal operands get half each."""

    def rule(node: Node, g: Node) -> Node:
        own, other = node.operands[position], node.operands[1 - position]
        shared = where(equal(own, other), scale(g, 0.5), zeros(g.type))
        return where(compare(own, other), g, shared)

    return rule


def _where(node: Node, g: Node, position: int) -> Node:
    """Selects instead of multiplying by a mask, so that a NaN in one branch does not reach the other."""
    condition, zero = node.operands[0], zeros(g.type)
    return where(condition, g, zero) if position == 1 else where(condition, zero, g)


def _nothing(position: int) -> OperandGradientRule:
    """The rule for an operand that does not affect the result."""
    return lambda node, g: zeros(node.operands[position].type)


def _cast(node: Node, g: Node) -> Node:
    return cast(g, node.operands[0].dtype)


RULES: dict[str, GradientRule] = {
    "negate": by_operand(_pass_on_negated),
    "abs": by_operand(_abs),
    "exp": by_operand(_exp),
    "exp2": by_operand(_exp2),
    "log": by_operand(_log),
    "log2": by_operand(_log2),
    "expm1": by_operand(_expm1),
    "log1p": by_operand(_log1p),
    "sqrt": by_operand(_sqrt),
    "rsqrt": by_operand(_rsqrt),
    "cbrt": by_operand(_cbrt),
    "logistic": by_operand(_logistic),
    "add": by_operand(_pass_on, _pass_on),
    "subtract": by_operand(_pass_on, _pass_on_negated),
    "multiply": by_operand(_multiply_by(1), _multiply_by(0)),
    "divide": by_operand(_dividend, _divisor),
    "remainder": by_operand(_pass_on, _remainder_divisor),
    "modulo": by_operand(_pass_on, _remainder_divisor),
    "power": by_operand(_base, _exponent),
    "maximum": by_operand(_extremum(greater, 0), _extremum(greater, 1)),
    "minimum": by_operand(_extremum(less, 0), _extremum(less, 1)),
    "where": _where,
    "cast": by_operand(_cast),
    "barrier": by_operand(_pass_on, _nothing(1)),
    "known_value": by_operand(_pass_on, _nothing(1)),
}
