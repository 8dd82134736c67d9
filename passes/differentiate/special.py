"""Gradients of the error, gamma and Bessel functions. In each rule `g` is the cotangent of the node's value.

Formulas: Abramowitz and Stegun, "Handbook of Mathematical Functions" (1964), 6.4, 7.1.19 and 9.6.26 to 9.6.28.
"""
from __future__ import annotations

import math

from lavax.ir.graph import Node
from lavax.passes.build.builder import (
    add,
    build,
    divide,
    equal,
    exp,
    less,
    multiply,
    negate,
    scale,
    sign,
    sin,
    splat,
    subtract,
    where,
    zeros,
)
from lavax.passes.differentiate.gradient_rule import GradientRule, by_operand

_TWO_BY_ROOT_PI = 2 / math.sqrt(math.pi)
_HALF_ROOT_PI = math.sqrt(math.pi) / 2
_ROOT_TWO_PI = math.sqrt(2 * math.pi)
# trigamma: the steps of the recurrence before the asymptotic series, and the Bernoulli numbers of the series.
_STEPS = 6
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66)


def _erf(node: Node, g: Node) -> Node:
    (x,) = node.operands
    return multiply(scale(g, _TWO_BY_ROOT_PI), exp(negate(multiply(x, x))))


def _erfc(node: Node, g: Node) -> Node:
    return negate(_erf(node, g))


def _erfcx(node: Node, g: Node) -> Node:
    (x,) = node.operands
    return multiply(g, subtract(multiply(scale(x, 2), node), splat(_TWO_BY_ROOT_PI, x.type)))


def _erfinv(node: Node, g: Node) -> Node:
    return multiply(scale(g, _HALF_ROOT_PI), exp(multiply(node, node)))


def _ndtr(node: Node, g: Node) -> Node:
    (x,) = node.operands
    return multiply(scale(g, 1 / _ROOT_TWO_PI), exp(scale(multiply(x, x), -0.5)))


def _ndtri(node: Node, g: Node) -> Node:
    return multiply(scale(g, _ROOT_TWO_PI), exp(scale(multiply(node, node), 0.5)))


def _lgamma(node: Node, g: Node) -> Node:
    return multiply(g, build("digamma", node.operands[0]))


def _trigamma(x: Node) -> Node:
    """The derivative of digamma, from operations that have derivatives themselves.

    Recurrence (6.4.6) and asymptotic series (6.4.12) from 1/2 upwards, reflection (6.4.7) below.
    """
    one = splat(1, x.type)
    below = less(x, splat(0.5, x.type))
    y = where(below, subtract(one, x), x)
    total = zeros(x.type)
    for step in range(_STEPS):
        inverse = divide(one, add(y, splat(step, x.type)))
        total = add(total, multiply(inverse, inverse))
    u = divide(one, add(y, splat(_STEPS, x.type)))
    square = multiply(u, u)
    series = zeros(x.type)
    for number in reversed(_BERNOULLI):
        series = multiply(square, add(series, splat(number, x.type)))
    tail = add(scale(square, 0.5), multiply(u, add(series, one)))
    above = add(total, tail)
    # If the reflection is not used, the sine is taken far from integers, so that nothing becomes infinite.
    distance = where(below, subtract(x, build("round", x)), splat(0.5, x.type))
    sine = divide(splat(math.pi, x.type), sin(scale(distance, math.pi)))
    return where(below, subtract(multiply(sine, sine), above), above)


def _digamma(node: Node, g: Node) -> Node:
    return multiply(g, _trigamma(node.operands[0]))


def _by_argument(node: Node) -> Node:
    """I1(x) / x, which is 1/2 at 0, given I1(x)."""
    (x,) = node.operands
    at_zero = equal(x, zeros(x.type))
    quotient = divide(node, where(at_zero, splat(1, x.type), x))
    return where(at_zero, splat(0.5, x.type), quotient)


def _bessel_i0(node: Node, g: Node) -> Node:
    return multiply(g, build("bessel_i1", node.operands[0]))


def _bessel_i1(node: Node, g: Node) -> Node:
    return multiply(g, subtract(build("bessel_i0", node.operands[0]), _by_argument(node)))


def _bessel_i0e(node: Node, g: Node) -> Node:
    (x,) = node.operands
    return multiply(g, subtract(build("bessel_i1e", x), multiply(sign(x), node)))


def _bessel_i1e(node: Node, g: Node) -> Node:
    (x,) = node.operands
    unscaled = subtract(build("bessel_i0e", x), _by_argument(node))
    return multiply(g, subtract(unscaled, multiply(sign(x), node)))


RULES: dict[str, GradientRule] = {
    "erf": by_operand(_erf),
    "erfc": by_operand(_erfc),
    "erfcx": by_operand(_erfcx),
    "erfinv": by_operand(_erfinv),
    "ndtr": by_operand(_ndtr),
    "ndtri": by_operand(_ndtri),
    "lgamma": by_operand(_lgamma),
    "digamma": by_operand(_digamma),
    "bessel_i0": by_operand(_bessel_i0),
    "bessel_i0e": by_operand(_bessel_i0e),
    "bessel_i1": by_operand(_bessel_i1),
    "bessel_i1e": by_operand(_bessel_i1e),
}
