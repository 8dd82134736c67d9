"""Products that maps alone read, such as an optimizer's updates by a weight's gradient, in parts that these add up.

Other parts take a kernel that adds them, which is waited for. What computes new weights is there anyway, and nobody
waits for such a product but for it. So its tiles may be large, which read less, though the result has few of them: each
is computed in parts of the sum, beside the products that the next kernels wait for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node
from lavax.ir.operation import OPERATIONS
from lavax.passes.build.contraction_geometry import in_parts, sizes_of
from lavax.passes.build.rebuild import rebuilt
from lavax.passes.target.target import Target


@dataclass(frozen=True)
class ReadersAhead:
    """How many nodes that are computed from a product are looked at. An optimizer has some 20."""

    nodes: int = 48


_READERS_AHEAD = ReadersAhead()
Users = Mapping[Node, Sequence[Node]]


def with_parts_for_maps(graph: Graph, target: Target) -> Graph:
    """The graph with such products in as many parts as the device is best kept busy with."""
    products = [node for node in graph.nodes if node.op == "dot"]
    users, outputs, parts_of = graph.users, frozenset(graph.outputs), dict[Node, int]()
    for node, together in _together(products).items():
        parts = target.products.parts_for_maps(node, together)
        if parts > 1 and is_read_by_maps_alone(node, users, outputs):
            parts_of[node] = parts
    if not parts_of:
        return graph
    return rebuilt(graph, lambda node, new: in_parts(new, parts_of[node]) if node in parts_of else new)


def is_read_by_maps_alone(node: Node, users: Users, outputs: Collection[Node]) -> bool:
    """Whether all that is computed from a node is computed element by element, and ends in several results: what ends
    in one is in the product's own kernel."""
    ahead, seen, ends = [node], {node}, 0
    while ahead:
        value = ahead.pop()
        ends += value in outputs
        for reader in users.get(value, ()):
            if reader in seen:
                continue
            is_map = reader.type.size == node.type.size and OPERATIONS[reader.op].family in ("elementwise", "movement")
            if not is_map or len(seen) > _READERS_AHEAD.nodes:
                return False
            seen.add(reader)
            ahead.append(reader)
    return ends > 1 and node not in outputs


def _together(products: Sequence[Node]) -> dict[Node, int]:
    """For each product, how many of the same extents read an operand of it, and so are likely to share its dispatch.

    Readers are counted once for each operand and pair, as all turns of a loop that is written out read one weight.
    """
    sizes = {node: sizes_of(node) for node in products}
    operands = {node: frozenset(node.operands) for node in products}
    of_operand = Counter((operand, sizes[node]) for node in products for operand in operands[node])
    of_pair = Counter((operands[node], sizes[node]) for node in products if len(operands[node]) == 2)
    return {
        node: sum(of_operand[operand, sizes[node]] for operand in operands[node]) - of_pair[operands[node], sizes[node]]
        for node in products
    }
