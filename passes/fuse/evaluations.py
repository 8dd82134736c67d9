"""How much is computed for one element of a floating node, if each value counts once per coordinates it is read at.

Movement adds coordinates: an element of `f(x)[1:] + f(x)[:-1]` evaluates `f` twice. If several such steps follow each
other, as in the levels of a parallel scan, the number of evaluations multiplies with each step although the number of
nodes hardly grows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field

from lavax.base.often_made import often_made
from lavax.ir.graph import INPUT, Node
from lavax.ir.operation import OPERATIONS
from lavax.passes.fuse.costs import cost_of

_NOT_COUNTED: Mapping[Node, int] = {}
# Coordinates are numbered: 0 is the element itself, other numbers are reached from it by steps of movement.
_OWN = 0


@often_made()
class Evaluations:
    """How many values are computed for one element, and their cost. At all coordinates but one, a value counts half,
    because some coordinates turn out to be equal or to need only one part of a concatenation.

    `moved` is the part of the cost at coordinates other than the element's own; `repeated` is the part that would
    vanish if each value were computed once. `times` says how often each value is computed, where that was counted.
    """

    values: int
    cost: int
    moved: int
    repeated: int
    times: Mapping[Node, int] = field(default_factory=dict)

    @property
    def work(self) -> int:
        """A single number for the work, both of the driver's compiler and at run time."""
        return self.values + self.cost


def upper_bound(node: Node, operands: Sequence[Evaluations]) -> Evaluations:
    """A bound for an element of a node, given its floating operands, as if they shared no value at any coordinates.

    Two operands may compute a value at different coordinates if either of them moves anything.
    """
    values = 1
    cost = most = moved = repeated = 0
    for operand in operands:
        values += operand.values
        cost += operand.cost
        moved += operand.moved
        repeated += operand.repeated
        if operand.cost > most:
            most = operand.cost
    if moved:
        repeated += cost - most
    if not _is_elementwise(node):
        moved = cost
    return Evaluations(values, cost + cost_of(node), moved, repeated, _NOT_COUNTED)


def evaluations_of(node: Node, is_stored: Callable[[Node], bool], most_values: int) -> Evaluations:
    """The evaluations for one element of the node, except values read from memory; counts slightly past
    `most_values`, then stops."""
    numbers: dict[tuple[int, Hashable], int] = {}
    seen = {(node, _OWN)}
    times: dict[Node, int] = {}
    cost = moved = 0
    stack = [(node, _OWN)]
    while stack and len(seen) + len(times) <= 2 * most_values:
        current, at = stack.pop()
        is_moved = not _is_elementwise(current)
        price = cost_of(current)
        cost += price
        moved += price if at != _OWN else 0
        times[current] = times.get(current, 0) + 1
        for position, operand in enumerate(current.operands):
            if operand.op == INPUT or is_stored(operand):
                continue
            there = numbers.setdefault((at, _step(current, position)), len(numbers) + 1) if is_moved else at
            if (operand, there) not in seen:
                seen.add((operand, there))
                stack.append((operand, there))
    repeated = sum(cost_of(value) * _surplus(value, number, node) for value, number in times.items())
    return Evaluations((len(seen) + len(times) + 1) // 2, cost, moved, int(repeated), times)


def _surplus(value: Node, times: int, node: Node) -> float:
    """How often, per element of the node, an element of the value is computed beyond the first time."""
    return max(0.0, times - max(1.0, value.type.size / max(node.type.size, 1)))


def _is_elementwise(node: Node) -> bool:
    return OPERATIONS[node.op].family == "elementwise"


def _step(node: Node, position: int) -> Hashable:
    """Identifies the step from a node's coordinates to those at which it reads an operand."""
    if len(node.operands) > 1:
        return node, position
    return node.op, tuple(node.attrs.items()), node.shape, node.operands[0].shape
