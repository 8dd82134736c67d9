"""Differentiation of graphs in reverse and forward mode."""
from lavax.passes.differentiate.forward import jvp
from lavax.passes.differentiate.reverse import differentiate, vjp
from lavax.passes.differentiate.rules import NOT_DIFFERENTIABLE, RULES

__all__ = ["NOT_DIFFERENTIABLE", "RULES", "differentiate", "jvp", "vjp"]
