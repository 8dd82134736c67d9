"""Products in scans that wait for nothing that is carried: computed for all turns at once, ahead of the loop.

A recurrent cell multiplies each turn's row of its input by a matrix. All rows together are one large product, and so is
its gradient. What is computed from matrices alone, such as a slice or a cast of one, is computed once. Cells that
multiply the input and the state together, end to end, have two products in one:

    concatenate(x, h) @ w  =  x @ w[:n] + h @ w[n:]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, further_inputs, graph_of, make_node, topological, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.ir.ops.contraction import free_axes
from lavax.ir.types import TensorType, float32, tuple_of
from lavax.passes.build.builder import add, broadcast, build, cast, located, set_location, slice_along, transposed
from lavax.passes.build.control_flow import parts_of


@dataclass(frozen=True)
class ProductsAhead:
    """The products that are worth it. Exercised by `python -m benchmarks architectures`."""

    products: int = 1 << 10  # of a turn, at least
    nbytes: int = 1 << 28  # of all rows, at most
    nodes: int = 32  # of what is computed ahead, at most


PRODUCTS_AHEAD = ProductsAhead()
_MOVED = frozenset(("reshape", "transpose", "broadcast", "slice", "concatenate"))


def with_products_ahead(scan: Node) -> Node | None:
    """The scan over rows of such products; None if it has none."""
    if scan.attrs["length"] < 2 or not scan.attrs["carries"]:
        return None
    with located():
        split = _with_products_split(scan.attrs["body"], scan.attrs["carries"], scan.attrs["sequences"])
        return _ahead(scan, split)


@dataclass(frozen=True)
class _Origins:
    """The values of a body that depend on what is carried, and those that depend on rows of sequences."""

    carried: frozenset[Node]
    rows: frozenset[Node]

    def are_ahead(self, node: Node) -> bool:
        return node in self.rows and node not in self.carried


def _origins(body: Graph, carries: int, sequences: int) -> _Origins:
    carried, rows = {*body.inputs[:carries]}, {*body.inputs[carries : carries + sequences]}
    for node in body.nodes:
        for found in (carried, rows):
            if not found.isdisjoint(node.operands):
                found.add(node)
    return _Origins(frozenset(carried), frozenset(rows))


# -- products of values end to end -------------------------------------------------------------------------------------


def _with_products_split(body: Graph, carries: int, sequences: int) -> Graph:
    """The body with products of rows end to end with what is carried as sums of two."""
    origins = _origins(body, carries, sequences)
    found: dict[Node, Node] = {node: node for node in body.inputs}
    for node in body.nodes:
        set_location(node.location)
        built = with_operands(node, tuple(found[operand] for operand in node.operands))
        found[node] = (_split(node, found, origins) or built) if node.op == "dot" else built
    return graph_of(body.inputs, [found[output] for output in body.outputs])


def _split(dot: Node, found: Mapping[Node, Node], origins: _Origins) -> Node | None:
    joined = dot.operands[0]
    if joined.op != "concatenate" or dot.operands[1] in origins.carried | origins.rows:
        return None
    axis = joined.attrs["axis"]
    if dot.attrs["contract"][0] != (axis,) or dot.attrs["batch"] != ((), ()) or not _is_large(dot):
        return None
    groups = [[part for part in joined.operands if origins.are_ahead(part) is ahead] for ahead in (True, False)]
    if not all(groups) or len(joined.operands) > 2:
        return None
    right, (along,) = found[dot.operands[1]], dot.attrs["contract"][1]
    attrs, total, start = dict(dot.attrs), None, 0
    narrow = joined.dtype.is_float and joined.dtype.bits < float32.bits
    if narrow:
        attrs["precision"] = joined.dtype.name  # each product is rounded once, as one was
    for part in joined.operands:
        end = start + part.shape[axis]
        factors = found[part], slice_along(right, along, start, end)
        product = build("dot", *((cast(factor, float32) for factor in factors) if narrow else factors), **attrs)
        total, start = product if total is None else add(total, product), end
    assert total is not None
    return cast(total, dot.dtype) if narrow else total


# -- what is computed ahead --------------------------------------------------------------------------------------------


def _ahead(scan: Node, body: Graph) -> Node | None:
    carries, sequences, length = (int(scan.attrs[name]) for name in ("carries", "sequences", "length"))
    origins = _origins(body, carries, sequences)
    products = {node for node in body.nodes if node.op == "dot" and origins.are_ahead(node) and _is_large(node)}
    awaited = frozenset(topological(body.outputs[:carries], stop=body.inputs))
    values = [
        value
        for value in _values_ahead(body, products, origins)
        if value in awaited and _suits(value, length, body, origins)
    ]
    factors = _factors_once(body, origins)
    if not values and not factors:
        return None
    first = carries + sequences
    further = further_inputs("ahead", (value.type for value in (*values, *factors)), body.inputs)
    rows, once = further[: len(values)], further[len(values) :]
    computed = _of_all_turns((*values, *factors), body, carries, first, scan)
    found = {node: node for node in body.inputs} | dict(zip((*values, *factors), further, strict=True))
    for node in body.nodes:
        if node not in found:
            found[node] = with_operands(node, tuple(found[operand] for operand in node.operands))
    outputs = [found[output] for output in body.outputs]
    inputs = (*body.inputs[:first], *rows, *body.inputs[first:], *once)
    read = {*outputs, *(operand for node in topological(outputs, stop=inputs) for operand in node.operands)}
    operands = (*scan.operands[:first], *computed[: len(rows)], *scan.operands[first:], *computed[len(rows) :])
    kept = [place for place, node in enumerate(inputs) if place < carries or node in read]
    attrs = {
        **scan.attrs,
        "sequences": sum(carries <= place < first + len(rows) for place in kept),
        "body": graph_of([inputs[place] for place in kept], outputs),
    }
    types = tuple_of(parts_of(scan))
    return make_node("scan", [operands[place] for place in kept], attrs, types, scan.location)


def _is_large(dot: Node) -> bool:
    terms: int = prod(dot.operands[0].shape[axis] for axis in dot.attrs["contract"][0])
    return dot.type.size * terms >= PRODUCTS_AHEAD.products


def _factors_once(body: Graph, origins: _Origins) -> list[Node]:
    """The factors of products with what is carried that are computed from what is the same in all turns, and no
    larger than that."""
    moving = origins.carried | origins.rows
    factors = dict.fromkeys(x for dot in body.nodes if dot.op == "dot" and _is_large(dot) for x in dot.operands)
    return [factor for factor in factors if factor not in moving and _is_made_once(factor, body)]


def _is_made_once(factor: Node, body: Graph) -> bool:
    cone = topological([factor], stop=body.inputs)
    given = [operand for node in cone for operand in node.operands if operand in body.inputs]
    families = {OPERATIONS[node.op].family for node in cone}
    small = len(cone) <= PRODUCTS_AHEAD.nodes and factor.type.size <= sum(each.type.size for each in {*given})
    return bool(given) and small and families <= {"elementwise", "movement", "source"}


def _values_ahead(body: Graph, products: set[Node], origins: _Origins) -> list[Node]:
    """The last values that are computed from products element by element before what is carried comes in."""
    last = {*products}
    for node in body.nodes:
        is_next = OPERATIONS[node.op].family == "elementwise" and not last.isdisjoint(node.operands)
        if is_next and origins.are_ahead(node):
            last.add(node)
    return [node for node in body.nodes if node in last and not last.issuperset(body.users.get(node, ()))]


def _suits(value: Node, length: int, body: Graph, origins: _Origins) -> bool:
    """Whether all rows fit in memory, and all that the value is computed from has a form for all turns."""
    if value.type.nbytes * length > PRODUCTS_AHEAD.nbytes:
        return False
    cone = topological([value], stop=body.inputs)
    return len(cone) <= PRODUCTS_AHEAD.nodes and all(_has_form(node, origins) for node in cone)


def _has_form(node: Node, origins: _Origins) -> bool:
    if not origins.are_ahead(node):
        return node not in origins.carried and OPERATIONS[node.op].family != "region"
    if node.op == "dot":
        return sum(origins.are_ahead(operand) for operand in node.operands) == 1
    return node.op in _MOVED or OPERATIONS[node.op].family == "elementwise"


def _of_all_turns(values: Sequence[Node], body: Graph, carries: int, first: int, scan: Node) -> list[Node]:
    """The values for all turns, each with an axis of turns in front."""
    given = dict(zip(body.inputs, scan.operands, strict=True))
    rows, length = {*body.inputs[carries:first]}, int(scan.attrs["length"])
    for node in topological(values, stop=body.inputs):
        if node in given:
            continue
        set_location(node.location)
        operands = [given[operand] for operand in node.operands]
        moving = [operand in rows for operand in node.operands]
        if not any(moving):
            given[node] = with_operands(node, tuple(operands))
            continue
        rows.add(node)
        if node.op == "dot":
            given[node] = _product_of_all(node, operands, moving)
            continue
        operands = [each if moves else _repeated(each, length) for each, moves in zip(operands, moving, strict=True)]
        type = TensorType((length, *node.shape), node.dtype)
        given[node] = make_node(node.op, operands, _attrs_of_all(node, length), type, node.location)
    return [given[value] for value in values]


def _repeated(x: Node, length: int) -> Node:
    return broadcast(x, (length, *x.shape), range(1, x.type.rank + 1))


def _product_of_all(dot: Node, operands: Sequence[Node], moving: Sequence[bool]) -> Node:
    """The product of an operand with an axis of turns in front and one that is the same in all turns."""
    side = moving.index(True)
    attrs = dict(dot.attrs)
    for name in ("batch", "contract"):
        axes = list(attrs[name])
        axes[side] = tuple(axis + 1 for axis in axes[side])
        attrs[name] = tuple(axes)
    product = build("dot", *operands, **attrs)
    before = len(dot.attrs["batch"][0])
    if side:
        before += len(free_axes(dot.operands[0].type, dot.attrs["batch"][0], dot.attrs["contract"][0]))
    return transposed(product, (before, *(axis for axis in range(product.type.rank) if axis != before)))


def _attrs_of_all(node: Node, length: int) -> dict[str, object]:
    """The attributes of an operation that keeps an axis of turns in front."""
    attrs = dict(node.attrs)
    if node.op == "transpose":
        attrs["axes"] = (0, *(axis + 1 for axis in attrs["axes"]))
    if node.op == "broadcast":
        attrs["axes"] = (0, *(axis + 1 for axis in attrs["axes"]))
    if node.op == "concatenate":
        attrs["axis"] += 1
    if node.op == "slice":
        attrs |= {"start": (0, *attrs["start"]), "limit": (length, *attrs["limit"]), "stride": (1, *attrs["stride"])}
    return attrs
