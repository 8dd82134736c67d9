"""Attention of one query, multiplied by a weight and added to a residual, as one operation.

    x + Wᵀ·attention(q, k, v)  =  x + Σ Wᵀ[head]·attention(q, k, v)[head]

The workgroup that ends a head's attention has its result at hand, so it can multiply it by the head's rows of the
weight, and the one that ends last of all heads adds up what they give. A kernel of a decoded token takes longer to wait
for another than to compute, and this is one less in a layer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Graph, Node
from lavax.ir.ops.attention import ROUNDED
from lavax.ir.types import DType, float32
from lavax.passes.build.attention import named_operands
from lavax.passes.build.builder import add, build, cast, dot, reshape, reshaped
from lavax.passes.build.rebuild import rebuilt
from lavax.passes.prepare.decompose.few_queries import prepare_attention
from lavax.passes.prepare.products import prepare_product
from lavax.passes.prepare.vector_norms import is_elementwise
from lavax.passes.target.target import Target


def with_projected_attention(graph: Graph, target: Target) -> Graph:
    """The graph with attention, the product of its result alone, and the sum with a residual as one operation, where
    the device has a kernel for it and nothing else reads what is between."""
    if not any(node.op == "attention" for node in graph.nodes):
        return graph
    users, outputs = graph.users, frozenset(graph.outputs)

    def is_alone(node: Node) -> bool:
        return node not in outputs and len(users[node]) == 1

    found = ((node, _projection_of(node)) for node in graph.nodes)
    ends = {
        node
        for node, projection in found
        if projection and all(map(is_alone, projection.between)) and target.attention.in_one_kernel(projection.built())
    }

    def projected(node: Node, new: Node) -> Node:
        projection = _projection_of(new) if node in ends else None
        return new if projection is None else reshaped(projection.built(), new.shape)

    return rebuilt(graph, projected) if ends else graph


def prepare_projected(node: Node, target: Target) -> Node:
    """The node itself if the device has a kernel for it, else attention, and the product of its result."""
    if target.attention.in_one_kernel(node):
        return node
    operands = named_operands(node)
    weight, residual = operands.pop("weight"), operands.pop("residual", None)
    attention = prepare_attention(build("attention", *operands.values(), **node.attrs), target)
    if residual is None:
        batch = tuple(range(weight.type.rank - 2))
        axes = (weight.type.rank - 1,), (weight.type.rank - 2,)
        products = dot(cast(attention, weight.dtype), weight, axes, (batch, batch))
        return cast(reshape(prepare_product(products, target), node.shape), node.dtype)
    summed, columns = attention.type.size, weight.shape[-1]
    vector, matrix = reshape(cast(attention, weight.dtype), (summed,)), reshape(weight, (summed, columns))
    product = prepare_product(dot(vector, matrix, ((0,), (0,))), target)
    return cast(add(residual, product), node.dtype)


@dataclass(frozen=True)
class _Projection:
    """Attention, the matrix [..., N] whose leading axes are `heads · E` that its result is multiplied by, and the
    residual of N elements, whose shape the sum has.

    `between`: the nodes from the attention to the sum, with the first and without the last.
    """

    attention: Node
    matrix: Node
    residual: Node
    between: tuple[Node, ...]

    def built(self) -> Node:
        operands, attrs = named_operands(self.attention), self.attention.attrs
        *batch, _, values = self.attention.shape
        columns = self.matrix.shape[-1]
        weight, residual = reshape(self.matrix, (*batch, values, columns)), reshaped(self.residual, (columns,))
        query, key, value, *rest = operands.values()
        return build("attention_projected", query, key, value, weight, residual, *rest, **attrs)


def _projection_of(end: Node) -> _Projection | None:
    """What a sum, or its cast to 16 bits, adds to a residual, if that is such a product."""
    rounded = end.dtype if end.op == "cast" and end.dtype.bits == 16 else None
    total = end if rounded is None else end.operands[0]
    if total.op != "add" or not total.shape or total.type.size != total.shape[-1]:
        return None
    for product, residual in permutations(total.operands):
        found = _of_product(product, residual, rounded)
        if found is not None:
            return found if rounded is None else replace(found, between=(*found.between, total))
    return None


def _of_product(product: Node, residual: Node, rounded: DType | None) -> _Projection | None:
    """`rounded`: the dtype that the product, as the sum with the residual, is rounded to."""
    between = [product]
    if rounded is not None:
        if product.op != "cast" or product.operands[0].op != "cast" or product.operands[0].dtype != rounded:
            return None
        between += [product.operands[0], product.operands[0].operands[0]]
    while between[-1].op == "reshape":
        between.append(between[-1].operands[0])
    total = between[-1]
    axes = tuple(range(total.operands[0].type.rank - 1)) if total.op == "sum" else ()
    if not axes or total.attrs["axes"] != axes or total.operands[0].op != "multiply":
        return None
    (multiplied,) = total.operands
    for repeated, matrix in permutations(multiplied.operands):
        if repeated.op != "broadcast" or repeated.attrs["axes"] != axes or not _is_read_along_rows(matrix):
            continue
        above = [repeated]
        while above[-1].op in ("broadcast", "cast", "reshape"):
            above.append(above[-1].operands[0])
        attention = above[-1]
        if attention.op != "attention" or attention.shape[-2] != 1 or (rounded or float32) != attention.dtype:
            continue
        is_whole = matrix.type.size == attention.type.size * matrix.shape[-1]
        if is_whole and _is_only_widened(attention, above[1:]) and attention.attrs[ROUNDED] == bool(rounded):
            return _Projection(attention, matrix, residual, (*between, multiplied, *above))
    return None


def _is_only_widened(attention: Node, above: Iterable[Node]) -> bool:
    """Whether nodes have the elements of attention, each once, in its dtype or in float32."""
    return all(node.type.size == attention.type.size and node.dtype in (attention.dtype, float32) for node in above)


def _is_read_along_rows(matrix: Node) -> bool:
    """Whether it is the transposition of an array in memory, or of one whose elements words in memory hold several of:
    so what is added up are neighbours."""
    found, turns = matrix, 0
    while found.op in ("cast", "transpose"):
        turns += found.op == "transpose"
        if found.op == "transpose" and found.attrs["axes"] != (*range(1, found.type.rank), 0):
            return False
        (found,) = found.operands
    return turns == 1 and (found.op == INPUT or _is_made_of_words(found))


def _is_made_of_words(rows: Node) -> bool:
    """Whether its elements are computed from words that each hold some neighbours of a row, and from what rows or
    groups of them share."""
    ahead, seen, widest = [rows], {rows}, 0
    while ahead:
        node = ahead.pop()
        if node.op == INPUT:
            widest = max(widest, node.type.size)
        elif node.op == "broadcast" and node.operands[0].op == INPUT and node.type.size == rows.type.size:
            if node.attrs["axes"] != tuple(range(node.operands[0].type.rank)):
                return False
        elif node.op not in ("constant", "iota", "broadcast") and not is_elementwise(node):
            return False
        ahead += (each for each in node.operands if each not in seen)
        seen.update(node.operands)
    return 1 < widest < rows.type.size
