"""Gradients of complex parts, in JAX's convention.

The cotangent g of a value of c pairs with a change t of it as Re(g·t). So an operation that is linear over complex
numbers has the same rules as over real ones, without conjugation, and the gradient of a real function f of z = x + iy
is ∂f/∂x − i·∂f/∂y.
"""
from __future__ import annotations

from lavax.ir.graph import Node
from lavax.passes.build.builder import build, negate, zeros
from lavax.passes.differentiate.gradient_rule import GradientRule, by_operand


def _real(node: Node, g: Node) -> Node:
    return build("complex", g, zeros(g.type))


def _imag(node: Node, g: Node) -> Node:
    """Im t = Re(−i·t)."""
    return build("complex", zeros(g.type), negate(g))


def _of_real_part(node: Node, g: Node) -> Node:
    return build("real", g)


def _of_imaginary_part(node: Node, g: Node) -> Node:
    """Re(g·it) = −Im(g)·t."""
    return negate(build("imag", g))


def _conjugate(node: Node, g: Node) -> Node:
    return build("conjugate", g)


def _fft(node: Node, g: Node) -> Node:
    """The matrix of a transform is symmetric: its transpose is itself."""
    return build("fft", g, **node.attrs)


RULES: dict[str, GradientRule] = {
    "complex": by_operand(_of_real_part, _of_imaginary_part),
    "real": by_operand(_real),
    "imag": by_operand(_imag),
    "conjugate": by_operand(_conjugate),
    "fft": by_operand(_fft),
}
