"""Attention of one query, multiplied by a weight, whose heads are added up by what reads the sum.

Where heads meet to be added up, the workgroup that ends last reads what all of them have left, and the next kernel
waits for it. If that computes the norm of the sum in the rows of its products (vector_norms.py), it may as well read
the products of all heads: a few vectors in place of one, for each workgroup.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce

from lavax.ir.graph import Graph, Node
from lavax.ir.ops.attention import ROUNDED
from lavax.ir.types import DType
from lavax.passes.build.attention import named_operands
from lavax.passes.build.builder import add, build, cast, reshape
from lavax.passes.build.rebuild import rebuilt
from lavax.passes.prepare.vector_norms import Norm, is_elementwise, is_written, norms_of
from lavax.passes.target.target import Target


def with_heads_added_by_readers(graph: Graph, target: Target) -> Graph:
    """The graph with terms in place of sums over heads that norms read which rows of products compute."""
    if not any(node.op == "attention_projected" for node in graph.nodes):
        return graph
    norms, users, outputs = norms_of(graph), graph.users, frozenset(graph.outputs)
    ends = {
        node
        for node in graph.nodes
        if node.op == "attention_projected"
        and (rows := _rows_of_readers(node, norms, users, outputs))
        and target.attention.leaves_heads(node, rows)
    }
    return rebuilt(graph, lambda node, new: _in_terms(new) if node in ends else new) if ends else graph


def _rows_of_readers(
    end: Node, norms: Iterable[Norm], users: Mapping[Node, Sequence[Node]], outputs: Collection[Node]
) -> int:
    """The rows of the products that compute the sum's norm; 0 if there are none, or something else needs the sum than
    those and what other kernels compute element by element."""
    of_norms = {node: norm for norm in norms for node in (norm.total, *norm.behind)}
    products: set[Node] = set()
    ahead, seen = [end], {end}
    while ahead:
        node = ahead.pop()
        if node in outputs:
            return 0
        for user in users.get(node, ()):
            if user in of_norms:
                products |= of_norms[user].products
            elif not is_elementwise(user) or user.type.size != end.type.size:
                return 0
            elif user not in seen and not any(is_written(each) for each in user.operands if each not in seen):
                seen.add(user)
                ahead.append(user)
    return sum(product.type.size for product in products)


def _in_terms(end: Node) -> Node:
    operands, attrs, columns = named_operands(end), end.attrs, end.type.size
    residual = operands.pop("residual")
    products = build("attention_head_products", *operands.values(), **attrs)
    heads = products.type.size // columns
    lines = reshape(products, (heads, columns))
    total = reduce(add, (reshape(_line(lines, head), (columns,)) for head in range(heads)))
    kept = end.dtype if attrs[ROUNDED] else None
    return _rounded(add(residual, cast(_rounded(total, kept), residual.dtype)), kept)


def _line(lines: Node, number: int) -> Node:
    return build("slice", lines, start=(number, 0), limit=(number + 1, lines.shape[-1]), stride=(1, 1))


def _rounded(node: Node, dtype: DType | None) -> Node:
    return node if dtype is None else cast(node, dtype)
