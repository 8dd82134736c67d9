"""Products of whole numbers of 8 bits in float32, to the same result.

Up to 2^24 float32 holds every whole number, so that a sum of products that stays below is exact in any order. GPUs
multiply floats at twice the rate of integers, or by matrices of a dtype that holds what 8 bits do. Longer sums are
added in parts, whose results are integers again.
"""

from __future__ import annotations

from lavax.ir.graph import Graph, Node, graph_of
from lavax.ir.graph import with_operands as with_other_operands
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import float32, int32, uint32
from lavax.passes.build.builder import build, cast, located, set_location
from lavax.passes.build.contraction_geometry import in_parts, number_of_parts, sizes_of
from lavax.passes.target.target import Target

_EXACT = 1 << 24
# The most that a number of each dtype may be, regardless of its sign, by the dtype of the product. Bfloat16 and float16
# hold all of them. Negative numbers are great ones of uint32.
_NOT_NEGATIVE = {"u8": (1 << 8) - 1, "bool": 1}
_GREATEST = {int32: {"i8": 1 << 7, **_NOT_NEGATIVE}, uint32: _NOT_NEGATIVE}
_MOST_PARTS = 64  # of a sum, each of which is written
_SEARCH_DEPTH = 32


def with_products_of_bytes_as_floats(graph: Graph, target: Target) -> Graph:
    """The graph whose products of 8-bit integers are computed in float32, where the target asks for it."""
    if not any(map(_is_of_integers, graph.nodes)):
        return graph
    found = {node: node for node in graph.inputs}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            operands = tuple(found[operand] for operand in node.operands)
            moved = node if operands == node.operands else with_other_operands(node, operands)
            found[node] = (_in_floats(moved, target) if _is_of_integers(node) else None) or moved
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _is_of_integers(node: Node) -> bool:
    return node.op == "dot" and node.dtype in (int32, uint32)


def _in_floats(dot: Node, target: Target) -> Node | None:
    """A product in float32; None if it is best left, or its sums may be longer than float32 is exact, even in parts."""
    left, right = map(_greatest, dot.operands)
    precision, sizes = target.products.of_bytes(dot), sizes_of(dot)
    if precision is None or left is None or right is None or sizes.k == 0:
        return None
    parts = _parts(sizes.summed, sizes.k, _EXACT // (left * right))
    if parts is None:
        return None
    contract, batch = dot.attrs["contract"], dot.attrs["batch"]
    operands = (cast(operand, float32) for operand in dot.operands)
    product = build("dot", *operands, contract=contract, batch=batch, precision=precision)
    if parts == 1:
        return cast(product, dot.dtype)
    total = in_parts(product, parts)
    return build("sum", cast(total.operands[0], dot.dtype), **total.attrs)


def _parts(extents: tuple[int, ...], length: int, longest: int) -> int | None:
    """The number of parts to ask for so that none is longer."""
    wanted = -(-length // longest)
    while wanted <= _MOST_PARTS:
        if wanted == 1 or -(-length // number_of_parts(extents, wanted)) <= longest:
            return wanted
        wanted += 1
    return None


def _greatest(operand: Node) -> int | None:
    """A bound of an operand's elements by the dtypes that they are cast from; None if these are not of 8 bits."""
    stack, greatest, known = [operand], 0, _GREATEST[operand.dtype]
    for _ in range(_SEARCH_DEPTH):
        read = stack.pop()
        if _moves(read) and (read.op != "pad" or read.attrs["value"] == 0):
            stack += read.operands
        elif read.op == "cast" and read.operands[0].dtype.name in known:
            greatest = max(greatest, known[read.operands[0].dtype.name])
        else:
            return None
        if not stack:
            return greatest
    return None


def _moves(node: Node) -> bool:
    return node.op in OPERATIONS and OPERATIONS[node.op].family == "movement"
