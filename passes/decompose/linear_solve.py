"""Systems of equations of a matrix that is taken apart already: an exchange of rows and two triangular systems."""

from __future__ import annotations

from collections.abc import Callable

from lavax.ir.graph import Node
from lavax.ir.types import int32
from lavax.passes.builder import build, cast
from lavax.passes.decompose.sorting import order_of_rows
from lavax.passes.matrices import part, rows_in_order


def _linear_solve(node: Node) -> Node:
    matrix, factored, right = node.operands
    factors = part(factored, "lu", matrix, "factors")
    order = cast(part(factored, "lu", matrix, "permutation"), int32)

    def solved(lower: bool, transposed: bool, side: Node) -> Node:
        return build("triangular_solve", factors, side, lower=lower, transposed=transposed, unit_diagonal=lower)

    if not node.attrs["transposed"]:
        return solved(False, False, solved(True, False, rows_in_order(right, order)))
    return rows_in_order(solved(True, True, solved(False, True, right)), order_of_rows(order))


RULES: dict[str, Callable[[Node], Node]] = {"linear_solve": _linear_solve}
