"""What a scan keeps of its turns for its gradient, and sums over turns that are taken after the loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, topological, with_operands
from lavax.ir.operation import names_of_family
from lavax.passes.build.builder import add, dot, negate, reshape, sum_over, transpose

_HEAVY = names_of_family("contraction") | names_of_family("reduction") | names_of_family("routine")
_MOVES = frozenset({"broadcast", "reshape", "transpose"})
_OF_ROWS = frozenset({"dot", "sum"})  # of what turns computed; other terms are made of sums over turns


@dataclass(frozen=True)
class KeptValues:
    """When a scan keeps values of its turns that its gradient would have to compute again."""

    nbytes: int = 1 << 26  # of all turns
    per_heavy_byte: float = 1.25  # of what elementwise functions made, in bytes of the sums that they made it of


KEPT_VALUES = KeptValues()


def heavy_values(body: Graph) -> set[Node]:
    """The values of a turn that sums were computed for: to read them is less work than to compute them again."""
    found: set[Node] = set()
    for node in body.nodes:
        if node.op in _HEAVY or not found.isdisjoint(node.operands):
            found.add(node)
    return found


def worth_keeping(body: Graph, gradient: Graph, length: int) -> list[Node]:
    """The values of a turn that its gradient reads, as far as sums were computed for them."""
    heavy, forward = heavy_values(body), {*body.inputs, *body.nodes}
    read: dict[Node, None] = {}
    for node in gradient.nodes:
        if node not in forward:
            read |= dict.fromkeys(operand for operand in node.operands if operand in heavy)
    read = dict.fromkeys(_before_movement(node) for node in [*read, *(o for o in gradient.outputs if o in heavy)])
    needed = topological(read, stop=body.inputs)
    sums = [node for node in needed if node.op in _HEAVY]
    kept = list(read)
    if _nbytes(kept) > KEPT_VALUES.per_heavy_byte * _nbytes(sums):
        kept = sums
    return kept if _nbytes(kept) * length <= KEPT_VALUES.nbytes else []


def _before_movement(node: Node) -> Node:
    while node.op in _MOVES:
        (node,) = node.operands
    return node


def _nbytes(nodes: Sequence[Node]) -> int:
    return sum(node.type.nbytes for node in nodes)


def reading(graph: Graph, inputs: Sequence[Node], given: dict[Node, Node]) -> Graph:
    """The graph over other inputs, with values replaced by those that are given."""
    found = {node: node for node in graph.inputs} | given
    for node in graph.nodes:
        if node not in found:
            found[node] = with_operands(node, tuple(found[operand] for operand in node.operands))
    return graph_of(inputs, [found[output] for output in graph.outputs])


# -- sums over turns ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SumAfterLoop:
    """A sum over turns of what each computes from `rows`: given all rows, the whole sum."""

    rows: tuple[Node, ...]
    total: Callable[[Sequence[Node]], Node]


def sums_after_loop(
    parts: Sequence[Node], from_sequences: Sequence[Node], invariant: Sequence[Node]
) -> tuple[list[SumAfterLoop | None], tuple[Node, ...]]:
    """For each part of a turn how its sum over all turns follows from rows, None if it is to be carried; and the rows
    that must be stacked for that, besides those that the scan goes through.

    A carried sum is read and written in each turn, a row only written: so rows may have twice the bytes of the sums.
    """
    found = [_sum_after_loop(part) for part in parts]
    found = [None if how is None or not {*how.rows}.isdisjoint(invariant) else how for how in found]
    rows = dict.fromkeys(row for how in found if how is not None for row in how.rows if row not in {*from_sequences})
    sums = [part for part, how in zip(parts, found, strict=True) if how is not None]
    if _nbytes([*rows]) > 2 * _nbytes(sums):
        return [None] * len(found), ()
    return found, tuple(rows)


def _sum_after_loop(part: Node) -> SumAfterLoop | None:
    """How the sum of a turn's part over all turns follows from stacked rows; None if it does not.

    A product's sum over turns is one product, which also sums over the turns.
    """
    rows: dict[Node, None] = {}
    terms: dict[Node, None] = {}  # operands first
    stack = [(part, False)]
    while stack:
        node, is_open = stack.pop()
        if is_open:
            terms[node] = None
            continue
        if node in terms:
            continue
        stack.append((node, True))
        match node.op:
            case "add" | "transpose" | "reshape" | "negate":
                stack += [(operand, False) for operand in node.operands]
            case op if op in _OF_ROWS:
                rows |= dict.fromkeys(node.operands)
            case _:
                return None

    def total(stacked: Sequence[Node]) -> Node:
        rows_of = dict(zip(rows, stacked, strict=True))
        found: dict[Node, Node] = {}
        for node in terms:  # a product's operand may be a term, too: the product takes its rows
            known = rows_of if node.op in _OF_ROWS else found
            found[node] = _TOTALS[node.op](node, [known[operand] for operand in node.operands])
        return found[part]

    return SumAfterLoop(tuple(rows), total)


def _product(node: Node, rows: Sequence[Node]) -> Node:
    contract, batch = ([[axis + 1 for axis in axes] for axes in node.attrs[name]] for name in ("contract", "batch"))
    rounding = {name: node.attrs[name] for name in ("precision", "backward")}
    left, right = rows
    summed, shared = ([0, *contract[0]], [0, *contract[1]]), (batch[0], batch[1])
    return dot(left, right, summed, shared, **rounding)


# From what a node's operands became: rows of all turns, or sums over turns.
_TOTALS: dict[str, Callable[[Node, Sequence[Node]], Node]] = {
    "add": lambda node, terms: add(*terms),
    "negate": lambda node, terms: negate(*terms),
    "transpose": lambda node, terms: transpose(terms[0], node.attrs["axes"]),
    "reshape": lambda node, terms: reshape(terms[0], node.shape),
    "dot": _product,
    "sum": lambda node, rows: sum_over(rows[0], [0, *(axis + 1 for axis in node.attrs["axes"])]),
}
