"""Finds maxima whose gradient is zero, because they are subtracted before `exp` against overflow and cancel again.

Softmax, its logarithm and losses of scores are written with `m = max(x)`, on which their values do not depend. Reverse
mode cannot see that. It sums the effect of the shift on every element, which is zero up to rounding, and distributes
the sum to the greatest elements, which takes two more reductions and a pass over all scores. So this pass follows the
users of the maximum as functions of m with x fixed: each node is `base + degree · m` or `base · exp(degree · m)`,
element by element, and `base` does not depend on m. If only degree 0 is left, the derivative by m is exactly zero, in
every order, and the maximum gets a `stop_gradient`.

An element depends on the maximum of its row. So the pass also tracks which one: the coordinates of m, as indices in the
node's own coordinates. Two elements cancel only if they depend on the same element of m.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from heapq import heappop, heappush
from math import isfinite, isnan, prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.types import TupleType
from lavax.passes.build.builder import build
from lavax.passes.kernels.index import substitute, variable
from lavax.passes.kernels.reads import READS, Coordinates

# The most nodes that may depend on an extremum; those that cancel do so soon.
_MOST_NODES = 64


@dataclass(frozen=True)
class _Shift:
    """How a node depends on m: base + degree · m[at], or, if `factor`, base · exp(degree · m[at])."""

    degree: Fraction
    factor: bool
    at: Coordinates

    def times(self, number: Fraction) -> _Shift:
        return replace(self, degree=self.degree * number) if number and self.degree else _NONE


_NONE = _Shift(Fraction(0), False, ())  # no dependence, or only through steps, whose derivative is zero

# The dependence of a node, given those of its operands; None if it is of another form.
_Rule = Callable[[Node, Sequence[_Shift]], "_Shift | None"]


def stop_cancelling_extrema(graph: Graph) -> Graph:
    """The graph with `stop_gradient` on extrema of floats on which no output depends."""
    extrema = [node for node in graph.nodes if node.op in ("max", "min") and node.dtype.is_float]
    if not extrema:
        return graph
    users, outputs = graph.users, frozenset(graph.outputs)
    found = {node for node in extrema if _cancels(node, users, outputs, graph.position)}
    return _with_stops(graph, found) if found else graph


def _with_stops(graph: Graph, extrema: set[Node]) -> Graph:
    built: dict[Node, Node] = {node: node for node in graph.inputs}
    for node in graph.nodes:
        built[node] = with_operands(node, tuple(built[operand] for operand in node.operands))
        if node in extrema:
            built[node] = build("stop_gradient", built[node])
    return graph_of(graph.inputs, [built[output] for output in graph.outputs])


def _cancels(
    extremum: Node, users: Mapping[Node, Sequence[Node]], outputs: frozenset[Node], position: Mapping[Node, int]
) -> bool:
    """Whether some nodes depend on it, but none of the outputs."""
    shifts = {extremum: _Shift(Fraction(1), False, _coordinates(extremum))}
    waiting: list[int] = []
    nodes: dict[int, Node] = {}

    def follow(node: Node) -> None:
        for user in users.get(node, ()):
            if position[user] not in nodes:
                nodes[position[user]] = user
                heappush(waiting, position[user])

    if extremum in outputs:
        return False
    follow(extremum)
    while waiting:
        node = nodes[heappop(waiting)]
        shift = _shift(node, [shifts.get(operand, _NONE) for operand in node.operands])
        if shift is None or (shift.degree and (node in outputs or len(shifts) > _MOST_NODES)):
            return False
        if shift.degree:
            shifts[node] = shift
            follow(node)
    return len(shifts) > 1


def _coordinates(node: Node) -> Coordinates:
    return tuple(variable(f"c{axis}", extent) for axis, extent in enumerate(node.shape))


def _shift(node: Node, operands: Sequence[_Shift]) -> _Shift | None:
    if not isinstance(node.type, TupleType) and not node.dtype.is_float:
        return _NONE
    rule = _RULES.get(node.op)
    return rule(node, operands) if rule else None


# -- rules ------------------------------------------------------------------------------------------------------------


def _added(left: _Shift, right: _Shift, sign: int) -> _Shift | None:
    """The dependence of a sum of two terms, or of a product of two factors."""
    if not right.degree:
        return left
    if not left.degree:
        return right.times(Fraction(sign))
    if left.at != right.at:
        return None
    degree = left.degree + sign * right.degree
    return replace(left, degree=degree) if degree else _NONE


def _of_sum(sign: int) -> _Rule:
    def rule(node: Node, operands: Sequence[_Shift]) -> _Shift | None:
        left, right = operands
        if left.factor or right.factor:
            return left if left == right else None
        return _added(left, right, sign)

    return rule


def _of_product(sign: int) -> _Rule:
    def rule(node: Node, operands: Sequence[_Shift]) -> _Shift | None:
        if all(shift.factor or not shift.degree for shift in operands):
            return _added(operands[0], operands[1], sign)
        for side in (0, 1) if sign > 0 else (0,):
            number = _number(node.operands[1 - side])
            if number and not operands[side].factor:
                return operands[side].times(number if sign > 0 else 1 / number)
        return None

    return rule


def _number(node: Node) -> Fraction | None:
    """The value of a finite constant."""
    known = node.op == "constant" and isfinite(node.attrs["value"])
    return Fraction(float(node.attrs["value"])) if known else None


def _of_negate(node: Node, operands: Sequence[_Shift]) -> _Shift | None:
    (shift,) = operands
    return shift if shift.factor else shift.times(Fraction(-1))


def _of_exp(node: Node, operands: Sequence[_Shift]) -> _Shift | None:
    (shift,) = operands
    return None if shift.factor else replace(shift, factor=True)


def _of_log(node: Node, operands: Sequence[_Shift]) -> _Shift | None:
    (shift,) = operands
    return replace(shift, factor=False) if shift.factor else None


def _of_choice(node: Node, operands: Sequence[_Shift]) -> _Shift | None:
    """Both values must depend on m in the same way."""
    left, right = operands[-2:]
    return left if left == right else None


def _of_where(node: Node, operands: Sequence[_Shift]) -> _Shift | None:
    """As a choice; NaN, which is read outside of an array, is NaN whatever m adds to it or multiplies it by."""
    (_, *shifts), (_, *values) = operands, node.operands
    defined = [shift for shift, value in zip(shifts, values, strict=True) if not _is_nan(value)]
    return defined[0] if len(defined) == 1 else _of_choice(node, operands)


def _is_nan(node: Node) -> bool:
    return node.op == "constant" and isnan(node.attrs["value"])


def _of_cast(node: Node, operands: Sequence[_Shift]) -> _Shift | None:
    return operands[0]


def _of_stop(node: Node, operands: Sequence[_Shift]) -> _Shift | None:
    """A constant, as derivatives see it."""
    return _NONE


def _of_movement(node: Node, operands: Sequence[_Shift]) -> _Shift | None:
    (at,) = (at for read, at in READS[node.op](node, _coordinates(node)) if read is node.operands[0])
    values = {f"c{axis}": index for axis, index in enumerate(at)}
    return replace(operands[0], at=tuple(substitute(index, values) for index in operands[0].at))


def _of_reduction(node: Node, operands: Sequence[_Shift]) -> _Shift | None:
    """All elements must depend on the same element of m."""
    (shift,), (operand,) = operands, node.operands
    axes = node.attrs["axes"]
    kept = [axis for axis in range(operand.type.rank) if axis not in axes]
    values = {f"c{axis}": index for axis, index in zip(kept, _coordinates(node), strict=True)}
    if any(not index.variables <= values.keys() for index in shift.at):
        return None
    folded = replace(shift, at=tuple(substitute(index, values) for index in shift.at))
    adds_up = node.op == ("prod" if shift.factor else "sum")
    if adds_up:
        return folded.times(Fraction(prod(operand.shape[axis] for axis in axes)))
    return None if node.op == "prod" else folded


_RULES: dict[str, _Rule] = {
    "add": _of_sum(1),
    "subtract": _of_sum(-1),
    "multiply": _of_product(1),
    "divide": _of_product(-1),
    "negate": _of_negate,
    "exp": _of_exp,
    "log": _of_log,
    "cast": _of_cast,
    "stop_gradient": _of_stop,
    "where": _of_where,
    **dict.fromkeys(("maximum", "minimum"), _of_choice),
    **dict.fromkeys(("reshape", "transpose", "broadcast", "slice", "flip", "shear", "gather"), _of_movement),
    **dict.fromkeys(("sum", "prod", "max", "min"), _of_reduction),
}
