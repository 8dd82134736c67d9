"""Complex numbers that are taken apart and put together again."""
from __future__ import annotations

from lavax.ir.graph import Node
from lavax.passes.build.builder import build, negate
from lavax.passes.simplify.rewriting import RewriteRule


def _real(node: Node) -> Node | None:
    """real(complex(x, y)) -> x; real(conj z) -> real(z)."""
    (z,) = node.operands
    if z.op == "conjugate":
        return build("real", z.operands[0])
    return z.operands[0] if z.op == "complex" else None


def _imag(node: Node) -> Node | None:
    """imag(complex(x, y)) -> y; imag(conj z) -> -imag(z)."""
    (z,) = node.operands
    if z.op == "conjugate":
        return negate(build("imag", z.operands[0]))
    return z.operands[1] if z.op == "complex" else None


def _complex(node: Node) -> Node | None:
    """complex(real z, imag z) -> z."""
    real, imaginary = node.operands
    if real.op == "real" and imaginary.op == "imag" and real.operands[0] is imaginary.operands[0]:
        return real.operands[0]
    return None


def _conjugate(node: Node) -> Node | None:
    """conj(conj z) -> z."""
    (z,) = node.operands
    return z.operands[0] if z.op == "conjugate" else None


RULES: dict[str, tuple[RewriteRule, ...]] = {
    "real": (_real,),
    "imag": (_imag,),
    "complex": (_complex,),
    "conjugate": (_conjugate,),
}
