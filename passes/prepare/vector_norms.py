"""Norms of a vector, computed by the products that read the normed vector.

A product of one row is a sum over rows, and each of its row groups reads the whole vector. So it can add up the squares
of the vector as well, beside the product, and a norm needs no kernel before the product. A factor that all elements
share, such as the root of the mean square, is applied to the product, so one walk over the row is enough:

    sum(w · (x / n(x) · a))  =  sum(w · (x · a)) / n(x)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.passes.build.builder import broadcast, build, located, reshaped, set_location, splat
from lavax.passes.target.target import Target


@dataclass(frozen=True)
class VectorNorms:
    """The sums that are worth repeating in each row of a product.

    Exercised by `python -m benchmarks models` (decoding).
    """

    longest: int = 1 << 14  # elements of the vector
    repeated: int = 1 << 27  # elements that all rows add up
    # The same where rows are at most so many together, as those of a layer, not of a vocabulary: their sums go beside
    # loads that are waited for anyway, and one kernel less waits for another.
    few_rows: int = 1 << 15
    repeated_in_few: int = 1 << 30
    rounding: int = 8  # such elements that rounding one to fewer bits takes as long as


VECTOR_NORMS = VectorNorms()
# Values computed from these are in memory: the kernel that computes the operation writes them.
_HEAVY = frozenset(("reduction", "contraction", "routine", "lowered", "region"))
_OF_HEADS = "attention_head_products"


def with_norms_in_products(graph: Graph, target: Target) -> Graph:
    """The graph with each sum over a vector that only products of the vector need computed in their rows."""
    norms = norms_of(graph)
    if not norms:
        return graph
    products = frozenset().union(*(norm.products for norm in norms))
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    rows = _Rows(_repeated(norms, _made_of_heads(graph)), found)
    with located():
        for node in graph.nodes:
            set_location(node.location)
            operands = tuple(found[operand] for operand in node.operands)
            found[node] = rows.product(node) if node in products else with_operands(node, operands)
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


@dataclass(frozen=True)
class Norm:
    """A sum over a vector, the values that are made of it, and the products that read those and nothing else does."""

    total: Node
    behind: frozenset[Node]
    products: frozenset[Node]


def norms_of(graph: Graph) -> list[Norm]:
    """The sums over vectors that only products of the vectors need, with what is made of them."""
    users, outputs = graph.users, frozenset(graph.outputs)
    found = (_norm_of(node, users, outputs) for node in graph.nodes if _is_vector_sum(node))
    return [norm for norm in found if norm is not None]


def _is_vector_sum(node: Node) -> bool:
    """Whether it adds up all elements of a short vector."""
    return node.op == "sum" and node.type.size == 1 and 1 < node.operands[0].type.size <= VECTOR_NORMS.longest


def _family(node: Node) -> str:
    return OPERATIONS[node.op].family if node.op in OPERATIONS else "source"


def is_elementwise(node: Node) -> bool:
    return _family(node) == "elementwise" or node.op == "reshape"


def _norm_of(total: Node, users: Mapping[Node, Sequence[Node]], outputs: Collection[Node]) -> Norm | None:
    """The sum with what is made of it; None if something else than products needs it, or they are too large."""
    length = total.operands[0].type.size
    products: set[Node] = set()
    ahead, behind = [total], {total}
    while ahead:
        node = ahead.pop()
        if node in outputs:
            return None
        for user in users.get(node, ()):
            if user.op == "broadcast" and user.type.size > length == node.type.size:
                sums = sums_of(user, users)
                if sums is None:
                    return None
                products |= sums
            elif user not in behind:
                is_kept = is_elementwise(user) or user.op == "broadcast" or _is_vector_sum(user)
                if not is_kept or user.type.size not in (1, length):
                    return None
                behind.add(user)
                ahead.append(user)
    roundings = sum(node.op == "cast" and node.dtype.bits < 32 and node.type.size == length for node in behind)
    rows = sum(product.type.size for product in products)
    most = VECTOR_NORMS.repeated_in_few if rows <= VECTOR_NORMS.few_rows else VECTOR_NORMS.repeated
    is_small = rows * length * (1 + VECTOR_NORMS.rounding * roundings) <= most
    return Norm(total, frozenset(behind), frozenset(products)) if is_small else None


def sums_of(repeated: Node, users: Mapping[Node, Sequence[Node]]) -> set[Node] | None:
    """The sums over rows that a repeated vector is multiplied for; None if it is read otherwise."""
    found: set[Node] = set()
    for product in users.get(repeated, ()):
        totals = users.get(product, ())
        if product.op != "multiply" or product.operands[0] is product.operands[1] or not totals:
            return None
        for total in totals:
            if total.op != "sum" or total.attrs["axes"] != repeated.attrs["axes"] or total.type.size < 2:
                return None
        found.update(totals)
    return found


def _made_of_heads(graph: Graph) -> frozenset[Node]:
    """What is computed, element by element, from the products of attention's heads alone and other vectors: rows read
    those in place of their sum, which no kernel writes (head_products.py)."""
    found: set[Node] = set()
    for node in graph.nodes if any(each.op == _OF_HEADS for each in graph.nodes) else ():
        of_heads = [each for each in node.operands if each in found or _is_line_of_heads(each)]
        others = (each for each in node.operands if each not in of_heads)
        if is_elementwise(node) and of_heads and not any(map(is_written, others)):
            found.add(node)
    return frozenset(found)


def _is_line_of_heads(node: Node) -> bool:
    return node.op == "slice" and _source(node.operands[0]).op == _OF_HEADS


def is_written(node: Node) -> bool:
    """Whether it is what a kernel writes, in another shape or dtype."""
    return _family(_source(node)) in _HEAVY


def _repeated(norms: Sequence[Norm], of_heads: Collection[Node]) -> frozenset[Node]:
    """The values that rows compute for themselves: what is made of the sums, and what is added up."""
    behind = frozenset().union(*(norm.behind for norm in norms))
    read = {_source(operand) for node in behind for operand in node.operands if not _is_vector_sum(node)}
    repeated = set(behind)
    for norm in norms:
        stack = [*norm.total.operands]
        stack += (operand for node in norm.behind for operand in node.operands if operand in of_heads)
        while stack:
            node = stack.pop()
            is_read = node not in of_heads and (_source(node) in read or any(map(is_written, node.operands)))
            if node in repeated or not is_elementwise(node) or (is_read and node is not norm.total.operands[0]):
                continue
            repeated.add(node)
            stack += (each for each in node.operands if node not in of_heads or each in of_heads)
    return frozenset(repeated)


def _source(node: Node) -> Node:
    """The value that a node has in another shape or another dtype."""
    while node.op in ("reshape", "cast"):
        (node,) = node.operands
    return node


@dataclass(frozen=True)
class _Place:
    """Rows of a product: the shape of the matrix, and the axes that are added up."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]

    @property
    def kept_axes(self) -> tuple[int, ...]:
        return tuple(axis for axis in range(len(self.shape)) if axis not in self.axes)

    @property
    def kept(self) -> tuple[int, ...]:
        return tuple(self.shape[axis] for axis in self.kept_axes)

    @property
    def summed(self) -> tuple[int, ...]:
        return tuple(self.shape[axis] for axis in self.axes)


class _Rows:
    """Values of vectors as each row of a product computes them; products of one shape share them.

    `repeated` are computed in rows, all others read; `found` are nodes of the new graph by those of the old one.
    """

    def __init__(self, repeated: frozenset[Node], found: Mapping[Node, Node]) -> None:
        self._repeated, self._found = repeated, found
        self._elements: dict[tuple[Node, _Place], Node] = {}  # of the vector, in the matrix's shape
        self._single: dict[tuple[Node, _Place], Node] = {}  # one per row

    def product(self, total: Node) -> Node:
        """The sum of a matrix times a repeated vector, with what the vector is made of computed in the rows."""
        (product,) = total.operands
        place = _Place(product.shape, total.attrs["axes"])
        sides = [operand.op == "broadcast" and operand.attrs["axes"] == place.axes for operand in product.operands]
        side = sides.index(True)
        factors: list[tuple[str, Node]] = []
        operands = [self._found[operand] for operand in product.operands]
        operands[side] = self._without_factors(product.operands[side].operands[0], place, factors)
        found = build("sum", build("multiply", *operands), axes=place.axes)
        for op, factor in factors:
            found = build(op, found, self._row(factor, place))
        return found

    def _without_factors(self, node: Node, place: _Place, factors: list[tuple[str, Node]]) -> Node:
        """The vector without the numbers that all its elements are multiplied with or divided by, which are noted."""
        if node.op == "reshape":
            return self._without_factors(node.operands[0], place, factors)
        if node.op not in ("multiply", "divide") or node not in self._repeated:
            return self._element(node, place)
        left, right = node.operands
        for kept, factor in ((left, right), (right, left)) if node.op == "multiply" else ((left, right),):
            if _repeats_one(factor):
                factors.append((node.op, factor.operands[0]))
                return self._without_factors(kept, place, factors)
        divides = node.op == "divide"
        other = self._element(right, place) if divides else self._without_factors(right, place, factors)
        return build(node.op, self._without_factors(left, place, factors), other)

    def _element(self, node: Node, place: _Place) -> Node:
        """A value of the vector at each element of the matrix."""
        if (node, place) not in self._elements:
            self._elements[node, place] = self._new_element(node, place)
        return self._elements[node, place]

    def _new_element(self, node: Node, place: _Place) -> Node:
        if node.op == "reshape":
            return self._element(node.operands[0], place)
        if _repeats_one(node):
            return broadcast(self._row(node.operands[0], place), place.shape, place.kept_axes)
        if node.op == "constant":
            return splat(node.attrs["value"], node.type.with_shape(place.shape))
        if node not in self._repeated:
            return broadcast(reshaped(self._found[node], place.summed), place.shape, place.axes)
        operands = [self._element(operand, place) for operand in node.operands]
        return build(node.op, *operands, type=node.type.with_shape(place.shape), **node.attrs)

    def _row(self, node: Node, place: _Place) -> Node:
        """A value of one element in each row."""
        if (node, place) not in self._single:
            self._single[node, place] = self._new_row(node, place)
        return self._single[node, place]

    def _new_row(self, node: Node, place: _Place) -> Node:
        if node.op == "reshape" or _repeats_one(node):
            return self._row(node.operands[0], place)
        if node.op == "constant":
            return splat(node.attrs["value"], node.type.with_shape(place.kept))
        if node not in self._repeated:
            return broadcast(reshaped(self._found[node], ()), place.kept, ())
        if _is_vector_sum(node):
            return build("sum", self._element(node.operands[0], place), axes=place.axes)
        operands = [self._row(operand, place) for operand in node.operands]
        return build(node.op, *operands, type=node.type.with_shape(place.kept), **node.attrs)


def _repeats_one(node: Node) -> bool:
    return node.op == "broadcast" and node.operands[0].type.size == 1
