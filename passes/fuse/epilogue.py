"""Whether what is computed from a contraction's result comes together again, and so belongs into its epilogue.

A result with several readers, such as a gradient that an optimizer reads in three places, is better stored once: each
reader that joined would become a result of the kernel, and be written out in every tile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lavax.ir.graph import Graph, Node, users_of
from lavax.ir.operation import OPERATIONS

# How many nodes ahead to look.
_HORIZON = 24


class Readers:
    """Who reads what in a graph. With `beyond_movement` a value that is only moved does not count as one that all came
    together in: several may read it after all."""

    def __init__(self, graph: Graph, beyond_movement: bool) -> None:
        self._beyond_movement = beyond_movement
        self._users: Mapping[Node, Sequence[Node]] = users_of(graph.nodes)
        self._position = {node: position for position, node in enumerate(graph.nodes)}
        self._outputs = frozenset(graph.outputs)
        self._known: dict[Node, bool] = {}

    def come_together(self, node: Node) -> bool:
        """Whether all that is read from the node leads, element by element, to one value soon."""
        if node not in self._known:
            self._known[node] = node not in self._outputs and self._search(node)
        return self._known[node]

    def _search(self, node: Node) -> bool:
        ahead = set(self._users.get(node, ()))
        for _ in range(_HORIZON):
            first = min(ahead, key=self._position.__getitem__, default=None)
            if first is None or not self._goes_by_element(first, node):
                return False
            if len(ahead) == 1 and not (self._beyond_movement and self._only_moves(first)):
                return True
            if first in self._outputs:
                return False
            ahead.remove(first)
            ahead.update(self._users.get(first, ()))
        return False

    def _only_moves(self, node: Node) -> bool:
        return node not in self._outputs and OPERATIONS[node.op].family == "movement"

    def _goes_by_element(self, node: Node, start: Node) -> bool:
        return node.type.size == start.type.size and OPERATIONS[node.op].family in ("elementwise", "movement")
