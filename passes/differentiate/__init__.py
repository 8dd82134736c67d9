"""Reverse-mode differentiation of graphs."""
from lavax.passes.differentiate.reverse import differentiate, vjp
from lavax.passes.differentiate.rules import NOT_DIFFERENTIABLE, RULES

__all__ = ["NOT_DIFFERENTIABLE", "RULES", "differentiate", "vjp"]
