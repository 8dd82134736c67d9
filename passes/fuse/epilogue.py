"""Whether the values computed from a contraction's result converge to one, and so belong in its epilogue.

A result with several readers is better stored once; an example is a gradient that an optimizer reads in three places.
Each reader that joined the kernel would become a result, to be written in every tile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node
from lavax.ir.operation import OPERATIONS
from lavax.passes.fuse.costs import cost_of
from lavax.passes.numerics.narrow_movement import is_widening


@dataclass(frozen=True)
class Lookahead:
    """How far to search for the value that all readers converge to.

    Chosen by `python -m benchmarks comparison --only mlp-step --only transformer-step`.
    """

    nodes: int = 24
    ends: int = 2  # of a narrow value, in place of a single one: a map would read it again to write as many


_LOOKAHEAD = Lookahead()


class Readers:
    """The readers of each value of a graph. With `beyond_movement`, a moved copy of a value is not a point of
    convergence, because several nodes may still read it. An epilogue may take `most` operations."""

    def __init__(self, graph: Graph, beyond_movement: bool, most: int) -> None:
        self._beyond_movement, self._most = beyond_movement, most
        self.users: Mapping[Node, Sequence[Node]] = graph.users
        self._position = graph.position
        self._outputs = frozenset(graph.outputs)
        self._known: dict[Node, bool] = {}
        self._ahead: dict[Node, int] = {}

    def converge(self, node: Node) -> bool:
        """Whether everything that reads the node leads, element by element, to a single value soon."""
        if node not in self._known:
            self._known[node] = node not in self._outputs and self._search(node)
        return self._known[node]

    def cost_ahead(self, node: Node) -> int:
        """What it costs to compute all that a narrow node converges to; 0 of others."""
        return self._ahead.get(node, 0) if self.converge(node) and _is_narrow(node) else 0

    def _search(self, node: Node) -> bool:
        ends: set[Node] = set()
        ahead, cost = set(self._read_on(node, node, ends)), 0
        for _ in range(_LOOKAHEAD.nodes):
            first = min(ahead, key=self._position.__getitem__, default=None)
            if first is None:
                return 0 < len(ends) <= _LOOKAHEAD.ends
            cost = self._ahead[node] = cost + (0 if is_widening(first) else cost_of(first))
            if not self._goes_by_element(first, node) or (cost > self._most and _is_narrow(node)):
                return False
            if len(ahead) == 1 and not ends and self._suits(first, node):
                return True
            if first in self._outputs and not _is_narrow(node):
                return False
            ahead.remove(first)
            ahead.update(self._read_on(first, node, ends))
        return False

    def _read_on(self, value: Node, node: Node, ends: set[Node]) -> list[Node]:
        """The readers of a value that is computed from a node, but those that wait for other kernels, and so read it
        from memory whatever the others do. If the node is narrow, values that are stored anyway are added to `ends`:
        returned ones and factors of products."""
        readers = [reader for reader in self.users.get(value, ()) if reader.op != "barrier"]
        if not _is_narrow(node):
            return readers
        if value in self._outputs:
            ends.add(value)
        further = [reader for reader in readers if OPERATIONS[reader.op].family != "contraction"]
        if len(further) < len(readers):
            ends.add(_as_read(value))
        return further

    def _suits(self, value: Node, node: Node) -> bool:
        """Whether a single value is as good to store as the node that all of it is computed from."""
        if value.type.nbytes > node.type.nbytes and _is_narrow(node):
            return False
        return not (self._beyond_movement and self._only_moves(value))

    def _only_moves(self, node: Node) -> bool:
        moves = OPERATIONS[node.op].family == "movement" or is_widening(node)
        return moves and node not in self._outputs

    def _goes_by_element(self, node: Node, start: Node) -> bool:
        return node.type.size == start.type.size and OPERATIONS[node.op].family in ("elementwise", "movement")


def _is_narrow(node: Node) -> bool:
    return node.dtype.is_float and node.dtype.bits < 32


def _as_read(value: Node) -> Node:
    """What memory holds of a factor: neither moved nor widened."""
    while (is_widening(value) or OPERATIONS[value.op].family == "movement") and len(value.operands) == 1:
        (value,) = value.operands
    return value
