"""Gradients of complex parts, in JAX's convention.

The cotangent g of a value of c pairs with a change t of it as Re(g·t). So an operation that is linear over complex
numbers has the same rules as over real ones, without conjugation, and the gradient of a real function f of z = x + iy
is ∂f/∂x − i·∂f/∂y.
"""
from __future__ import annotations

from lavax.ir.graph import Node
from lavax.ir.types import int32
from lavax.passes.build.builder import build, equal, iota, multiply, negate, splat, where, zeros
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


def _trigonometric_4(node: Node, g: Node) -> Node:
    """So is that of one of type 4."""
    return build("trigonometric_4", g, **node.attrs)


def _rfft(node: Node, g: Node) -> Node:
    """Σ Re(g[k]·exp(−2πi·jk/n)) over the half of the spectrum, of which `irfft` counts all but the ends twice."""
    length = node.operands[0].shape[-1]
    return build("irfft", _weighted_conjugate(g, length, 0.5), length=length)


def _irfft(node: Node, g: Node) -> Node:
    return _weighted_conjugate(build("rfft", g), node.attrs["length"], 2.0)


def _weighted_conjugate(z: Node, length: int, inside: float) -> Node:
    """The conjugate, times a factor at all frequencies of the last axis but 0 and length/2."""
    real, imaginary = build("real", z), build("imag", z)
    place = iota(real.type.with_dtype(int32), real.type.rank - 1)
    is_end = build("or", *(equal(multiply(place, splat(2, place.type)), splat(end, place.type)) for end in (0, length)))
    weights = where(is_end, splat(1.0, real.type), splat(inside, real.type))
    return build("complex", multiply(real, weights), negate(multiply(imaginary, weights)))


RULES: dict[str, GradientRule] = {
    "complex": by_operand(_of_real_part, _of_imaginary_part),
    "real": by_operand(_real),
    "imag": by_operand(_imag),
    "conjugate": by_operand(_conjugate),
    "fft": by_operand(_fft),
    "rfft": by_operand(_rfft),
    "irfft": by_operand(_irfft),
    "trigonometric_4": by_operand(_trigonometric_4),
}
