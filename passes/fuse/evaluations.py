"""How much is computed for one element of a floating node, each value counted at every place where it is needed.

Movement makes places: of `f(x)[1:] + f(x)[:-1]` an element takes `f` twice. Where several such steps follow each other,
as in the levels of a parallel scan, places multiply with every one of them, while the nodes hardly become more.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from lavax.ir.graph import INPUT, Node
from lavax.ir.operation import OPERATIONS
from lavax.passes.fuse.costs import cost_of

# A place is a number: 0 that of the element itself, else what a step of movement leads to from another place.
_HERE = 0


@dataclass(frozen=True)
class Evaluations:
    """How many values are computed for an element, and what they cost. At each place but one a value counts for half,
    since some places turn out to be one, or to need only one part of what was put together.

    `moved` is what of the cost is due at other places than the element's own; `repeated` what would not be due if each
    value were computed once. `places` says at how many each is computed, where that has been counted.
    """

    values: int
    cost: int
    moved: int
    repeated: int
    places: Mapping[Node, int] = field(default_factory=dict)

    @property
    def work(self) -> int:
        """One number for what it takes, for the driver's compiler as well as at run time."""
        return self.values + self.cost


def bound(node: Node, operands: Sequence[Evaluations]) -> Evaluations:
    """Of an element of a node whose floating operands take so much, as if these had no value in common at one place.

    Two of them may compute a value at two places if either of them moves anything.
    """
    costs = [operand.cost for operand in operands]
    moved = sum(operand.moved for operand in operands)
    repeated = sum(operand.repeated for operand in operands)
    if moved:
        repeated += sum(costs) - max(costs)
    if not _is_elementwise(node):
        moved = sum(costs)
    return Evaluations(1 + sum(operand.values for operand in operands), cost_of(node) + sum(costs), moved, repeated)


def evaluations_of(node: Node, is_stored: Callable[[Node], bool], most_values: int) -> Evaluations:
    """What an element of the node takes that is not read from memory; counted up to `most_values` and some more."""
    numbers: dict[tuple[int, Hashable], int] = {}
    seen = {(node, _HERE)}
    count: dict[Node, int] = {}
    cost = moved = 0
    stack = [(node, _HERE)]
    while stack and len(seen) + len(count) <= 2 * most_values:
        current, place = stack.pop()
        is_moved = not _is_elementwise(current)
        price = cost_of(current)
        cost += price
        moved += price if place != _HERE else 0
        count[current] = count.get(current, 0) + 1
        for position, operand in enumerate(current.operands):
            if operand.op == INPUT or is_stored(operand):
                continue
            there = numbers.setdefault((place, _step(current, position)), len(numbers) + 1) if is_moved else place
            if (operand, there) not in seen:
                seen.add((operand, there))
                stack.append((operand, there))
    repeated = sum(cost_of(value) * _surplus(value, number, node) for value, number in count.items())
    return Evaluations((len(seen) + len(count) + 1) // 2, cost, moved, int(repeated), count)


def _surplus(value: Node, places: int, node: Node) -> float:
    """How often an element of a value is computed more than once, for each element of the node."""
    return max(0.0, places - max(1.0, value.type.size / max(node.type.size, 1)))


def _is_elementwise(node: Node) -> bool:
    return OPERATIONS[node.op].family == "elementwise"


def _step(node: Node, position: int) -> Hashable:
    """What makes the place at which an operand is read another one than the node's."""
    if len(node.operands) > 1:
        return node, position
    return node.op, tuple(node.attrs.items()), node.shape, node.operands[0].shape
