"""Routines as several kernels: what one kernel would do too slowly becomes a few nodes that each have a good one."""
from __future__ import annotations

from collections.abc import Callable

from lavax.ir.graph import Node
from lavax.passes.prepare.decompose.attention import RULES as ATTENTION
from lavax.passes.prepare.decompose.jacobi import RULES as JACOBI
from lavax.passes.prepare.decompose.linear_algebra import RULES as LINEAR_ALGEBRA

# One entry an operation: the node -> a node of the same value that kernels are made of.
RULES: dict[str, Callable[[Node], Node]] = {**ATTENTION, **JACOBI, **LINEAR_ALGEBRA}

__all__ = ["RULES"]
