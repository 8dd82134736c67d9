"""Gradients of trigonometric and hyperbolic functions and their inverses. `g` is the cotangent of the node's value.

Squares of arguments are avoided if they would overflow or cancel before the derivative does.
"""
from __future__ import annotations

import numpy as np

from lavax.ir.graph import Node
from lavax.passes.build.builder import (
    absolute,
    add,
    build,
    cos,
    divide,
    equal,
    greater,
    logical_and,
    maximum,
    minimum,
    multiply,
    negate,
    sin,
    splat,
    subtract,
    where,
    zeros,
)
from lavax.passes.differentiate.gradient_rule import GradientRule, by_operand


def _one(x: Node) -> Node:
    return splat(1, x.type)


def _one_minus_square(x: Node) -> Node:
    """(1 - x)(1 + x), exact near 1."""
    return multiply(subtract(_one(x), x), add(_one(x), x))


def _sin(node: Node, g: Node) -> Node:
    return multiply(g, cos(node.operands[0]))


def _cos(node: Node, g: Node) -> Node:
    return negate(multiply(g, sin(node.operands[0])))


def _tan(node: Node, g: Node) -> Node:
    return multiply(g, add(_one(node), multiply(node, node)))


def _asin(node: Node, g: Node) -> Node:
    return multiply(g, build("rsqrt", _one_minus_square(node.operands[0])))


def _acos(node: Node, g: Node) -> Node:
    return negate(_asin(node, g))


def _atan(node: Node, g: Node) -> Node:
    (x,) = node.operands
    return divide(g, add(_one(x), multiply(x, x)))


def _sinh(node: Node, g: Node) -> Node:
    return multiply(g, build("cosh", node.operands[0]))


def _cosh(node: Node, g: Node) -> Node:
    return multiply(g, build("sinh", node.operands[0]))


def _tanh(node: Node, g: Node) -> Node:
    return multiply(g, subtract(_one(node), multiply(node, node)))


def _asinh(node: Node, g: Node) -> Node:
    """1 / sqrt(1 + x^2). Both summands are divided by the square of the greater, a factor that cancels and so has no
    gradient."""
    (x,) = node.operands
    if x.dtype.is_complex:
        return multiply(g, build("rsqrt", add(_one(x), multiply(x, x))))
    finite = minimum(absolute(x), splat(float(np.finfo(x.dtype.numpy).max), x.type))
    size = build("stop_gradient", maximum(finite, _one(x)))
    unit, ratio = divide(_one(x), size), divide(x, size)
    length = build("rsqrt", add(multiply(unit, unit), multiply(ratio, ratio)))
    return multiply(g, divide(length, size))


def _acosh(node: Node, g: Node) -> Node:
    (x,) = node.operands
    below, above = (build("rsqrt", end) for end in (subtract(x, _one(x)), add(x, _one(x))))
    return multiply(g, multiply(below, above))


def _atanh(node: Node, g: Node) -> Node:
    return divide(g, _one_minus_square(node.operands[0]))


def _atan2(node: Node, g: Node, position: int) -> Node:
    """x / (x^2 + y^2) for y and -y / (x^2 + y^2) for x, from the quotient whose magnitude is at most 1; 0 at the
    origin."""
    y, x = node.operands
    steep = greater(absolute(y), absolute(x))
    large, small = where(steep, y, x), where(steep, x, y)
    origin = logical_and(equal(x, zeros(x.type)), equal(y, zeros(y.type)))
    large = where(origin, _one(large), large)
    ratio = divide(small, large)
    inverse = divide(divide(_one(large), large), add(_one(ratio), multiply(ratio, ratio)))
    inverse = where(origin, zeros(inverse.type), inverse)
    if position == 0:
        factor = where(steep, ratio, _one(ratio))
    else:
        factor = negate(where(steep, _one(ratio), ratio))
    return multiply(g, multiply(factor, inverse))


RULES: dict[str, GradientRule] = {
    "sin": by_operand(_sin),
    "cos": by_operand(_cos),
    "tan": by_operand(_tan),
    "asin": by_operand(_asin),
    "acos": by_operand(_acos),
    "atan": by_operand(_atan),
    "atan2": _atan2,
    "sinh": by_operand(_sinh),
    "cosh": by_operand(_cosh),
    "tanh": by_operand(_tanh),
    "asinh": by_operand(_asinh),
    "acosh": by_operand(_acosh),
    "atanh": by_operand(_atanh),
}
