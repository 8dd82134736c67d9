"""Whether the values computed from a contraction's result converge to one, and so belong in its epilogue.

A result with several readers is better stored once; an example is a gradient that an optimizer reads in three places.
Each reader that joined the kernel would become a result, to be written in every tile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lavax.ir.graph import Graph, Node, users_of
from lavax.ir.operation import OPERATIONS


@dataclass(frozen=True)
class Lookahead:
    """How far to search for the value that all readers converge to.

    Chosen by `python -m benchmarks comparison --only mlp-step --only transformer-step`.
    """

    nodes: int = 24


_LOOKAHEAD = Lookahead()


class Readers:
    """The readers of each value of a graph. With `beyond_movement`, a moved copy of a value is not a point of
    convergence, because several nodes may still read it."""

    def __init__(self, graph: Graph, beyond_movement: bool) -> None:
        self._beyond_movement = beyond_movement
        self.users: Mapping[Node, Sequence[Node]] = users_of(graph.nodes)
        self._position = {node: position for position, node in enumerate(graph.nodes)}
        self._outputs = frozenset(graph.outputs)
        self._known: dict[Node, bool] = {}

    def converge(self, node: Node) -> bool:
        """Whether everything that reads the node leads, element by element, to a single value soon."""
        if node not in self._known:
            self._known[node] = node not in self._outputs and self._search(node)
        return self._known[node]

    def _search(self, node: Node) -> bool:
        ahead = set(self.users.get(node, ()))
        for _ in range(_LOOKAHEAD.nodes):
            first = min(ahead, key=self._position.__getitem__, default=None)
            if first is None or not self._goes_by_element(first, node):
                return False
            if len(ahead) == 1 and not (self._beyond_movement and self._only_moves(first)):
                return True
            if first in self._outputs:
                return False
            ahead.remove(first)
            ahead.update(self.users.get(first, ()))
        return False

    def _only_moves(self, node: Node) -> bool:
        return node not in self._outputs and OPERATIONS[node.op].family == "movement"

    def _goes_by_element(self, node: Node, start: Node) -> bool:
        return node.type.size == start.type.size and OPERATIONS[node.op].family in ("elementwise", "movement")
