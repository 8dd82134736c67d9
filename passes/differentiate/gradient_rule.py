"""The type of gradient rules, and their composition from rules for single operands."""
from __future__ import annotations

from collections.abc import Callable

from lavax.ir.graph import Node

# rule(node, cotangent, position): the cotangent of the operand at `position`, of that operand's type.
# It is called only for operands whose gradient is needed.
GradientRule = Callable[[Node, Node, int], Node]
OperandGradientRule = Callable[[Node, Node], Node]


def by_operand(*rules: OperandGradientRule) -> GradientRule:
    """The rule of an operation, from one rule(node, cotangent) per operand."""

    def rule(node: Node, cotangent: Node, position: int) -> Node:
        return rules[position](node, cotangent)

    return rule
