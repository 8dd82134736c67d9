"""Splits routines that one kernel would compute too slowly into nodes that each have a fast kernel."""
from __future__ import annotations

from collections.abc import Callable

from lavax.ir.graph import Node
from lavax.passes.prepare.decompose.attention import RULES as ATTENTION

# Per operation: the node -> a node of the same value that has kernels.
RULES: dict[str, Callable[[Node], Node]] = {**ATTENTION}

__all__ = ["RULES"]
