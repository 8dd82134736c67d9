"""Attention in plain code: softmax(scale · q·kᵀ + bias, masked)·v becomes the operation `attention`.

The pattern is followed from the product with the values back to that of queries and keys:

    weights = e / sum(e), e = exp(s - max(s)), both over the keys' axis, and s the scores
    scores = sums with biases, products with positive constants and choices by masks, of one dot

with transpositions, casts between floats and axes of extent 1 anywhere, and batch axes at any position. It counts as
attention only if no value in between has another user, because that value would have to be computed anyway, and if it
pays: moving the scores to memory and back twice costs more than what attention reads and writes. The result is the same
up to rounding, including NaN: a row of scores that are all -inf gives NaN. Values that are not finite reach only
queries that see their keys, whereas the plain product spreads them as NaN through weights of 0 too.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import reduce
from math import inf, isfinite, prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.types import DType, float32
from lavax.passes.build.builder import (
    add,
    build,
    cast,
    free_axes_of,
    located,
    logical_and,
    logical_not,
    reshape,
    scale,
    set_location,
    transpose,
)
from lavax.passes.simplify.recognise.score_axes import Axes, Placed, in_order, repeated_from, same_axes, settled
from lavax.passes.simplify.recognise.visible_keys import visible_keys

# Scores in memory are written twice and read twice.
_TIMES_MOVED = 4
# The most operations between the two products.
_MOST_STEPS = 32


@dataclass(frozen=True)
class _Scores:
    """The operations found between the softmax and the product of queries and keys."""

    product: Placed
    scale: float = 1.0
    biases: tuple[tuple[Placed, float], ...] = ()  # with their factors
    masks: tuple[tuple[Placed, bool], ...] = ()  # with the truth value that keeps a score
    fill: float = -inf
    inside: tuple[Node, ...] = ()


@dataclass
class _Pattern:
    """A product with values that may be attention."""

    node: Node  # the product of weights and values
    side: int  # which operand is the weights
    inside: list[Node] = field(default_factory=list)

    def follow(self, placed: Placed) -> Placed:
        """The value behind movement; the nodes passed on the way belong to the pattern."""
        chain = settled(placed)
        self.inside += [step.node for step in chain]
        return chain[0]


def recognise_attention(graph: Graph) -> Graph:
    """The graph with each attention as one operation. Takes time linear in the number of nodes."""
    if sum(node.op == "dot" for node in graph.nodes) < 2 or not any(node.op == "exp" for node in graph.nodes):
        return graph
    found = dict(_found(graph))
    if not found:
        return graph
    return _replaced(graph, found)


def _replaced(graph: Graph, found: dict[Node, Node]) -> Graph:
    """The graph with nodes replaced. The replacements read nodes of the graph that may be replaced too."""
    rebuilt: dict[Node, Node] = {node: node for node in graph.inputs}

    def settle(node: Node) -> Node:
        stack = [node]
        while stack:
            top = stack[-1]
            if top in rebuilt:
                stack.pop()
                continue
            source = found.get(top, top)
            missing = [operand for operand in source.operands if operand not in rebuilt]
            if missing:
                stack += missing
                continue
            rebuilt[top] = with_operands(source, tuple(rebuilt[operand] for operand in source.operands))
            stack.pop()
        return rebuilt[node]

    return graph_of(graph.inputs, [settle(output) for output in graph.outputs])


def _found(graph: Graph) -> Iterator[tuple[Node, Node]]:
    """The products with values that are attention, mapped to their replacements."""
    users, outputs = graph.users, frozenset(graph.outputs)
    with located():
        for node in graph.nodes:
            if node.op != "dot":
                continue
            set_location(node.location)
            for side in (0, 1):
                pattern = _Pattern(node, side)
                attention = _attention(pattern)
                if attention is None:
                    continue
                inside = {*pattern.inside, node}
                closed = all(inside.issuperset(users[step]) and step not in outputs for step in pattern.inside)
                if closed:
                    yield node, attention
                    break


def _attention(pattern: _Pattern) -> Node | None:
    """The pattern's value as attention; None if it is something else or does not pay."""
    node, side = pattern.node, pattern.side
    weights = node.operands[side]
    contracted = node.attrs["contract"][side]
    if len(contracted) != 1 or not weights.dtype.is_float or node.attrs["precision"]:
        return None
    (keys,) = contracted
    softmax = _softmax(pattern, Placed(weights, tuple(range(weights.type.rank))), keys)
    if softmax is None:
        return None
    scores = _scores(_Scores(softmax))
    if scores is None:
        return None
    pattern.inside += scores.inside
    return _built(pattern, scores, keys)


# -- from the weights to the scores -----------------------------------------------------------------------------------


def _softmax(pattern: _Pattern, weights: Placed, keys: int) -> Placed | None:
    """The scores, if the weights are their softmax over the axis `keys`."""
    quotient = pattern.follow(weights)
    if quotient.node.op != "divide":
        return None
    grown = pattern.follow(Placed(quotient.node.operands[0], quotient.axes))
    total = Placed(quotient.node.operands[1], quotient.axes)
    if grown.node.op != "exp" or not _is_reduction(pattern, "sum", total, grown, keys):
        return None
    shifted = pattern.follow(Placed(grown.node.operands[0], grown.axes))
    if shifted.node.op != "subtract":
        return None
    scores = Placed(shifted.node.operands[0], shifted.axes)
    peak = Placed(shifted.node.operands[1], shifted.axes)
    if not _is_reduction(pattern, "max", peak, settled(scores)[0], keys):
        return None
    return scores


def _is_reduction(pattern: _Pattern, op: str, repeated: Placed, of: Placed, keys: int) -> bool:
    """Whether a value is the reduction of another one over the axis `keys`, broadcast along it."""
    steps: list[Node] = []
    placed = repeated
    while True:
        placed = settled(placed)[0] if placed.node.op != "stop_gradient" else placed
        if placed.node.op == "stop_gradient":
            steps.append(placed.node)
            placed = Placed(placed.node.operands[0], placed.axes)
            continue
        source = repeated_from(placed)
        if source is None:
            break
        steps.append(placed.node)
        placed = source
    node = placed.node
    if node.op != op or len(node.attrs["axes"]) != 1 or keys in placed.axes:
        return False
    (axis,) = node.attrs["axes"]
    below = Placed(node.operands[0], (*placed.axes[:axis], keys, *placed.axes[axis:]))
    chain = settled(below)
    if chain[0].node is not of.node or not same_axes(chain[0].axes, of.axes):
        return False
    pattern.inside += [*_between(repeated.node, node), *(step.node for step in chain)]
    return True


def _between(last: Node, first: Node) -> list[Node]:
    """The nodes from `last` back to `first`, along first operands."""
    found = [last]
    while found[-1] is not first:
        found.append(found[-1].operands[0])
    return found


# -- from the scores to the product of queries and keys ---------------------------------------------------------------


def _scores(so_far: _Scores, steps: int = _MOST_STEPS) -> _Scores | None:
    """The operations from `so_far.product`, the current node, back to a dot."""
    chain = settled(so_far.product)
    here = replace(so_far, product=chain[0], inside=(*so_far.inside, *(placed.node for placed in chain)))
    node, axes = chain[0].node, chain[0].axes
    if node.op == "dot":
        return None if node.attrs["precision"] else here
    if not steps:
        return None
    for further in _one_step(here, node, axes):
        found = _scores(further, steps - 1)
        if found is not None:
            return found
    return None


def _one_step(here: _Scores, node: Node, axes: Axes) -> Iterator[_Scores]:
    """The possible next steps through one operation."""
    if node.op in ("multiply", "divide"):
        for side, other in ((0, 1), (1, 0)) if node.op == "multiply" else ((0, 1),):
            factor = _constant(node.operands[other])
            if factor is not None:
                by = factor if node.op == "multiply" else 1 / factor
                if isfinite(by) and by > 0:
                    yield replace(here, product=Placed(node.operands[side], axes), scale=here.scale * by)
    elif node.op in ("add", "subtract"):
        for side, other in ((0, 1), (1, 0)) if node.op == "add" else ((0, 1),):
            factor = here.scale if node.op == "add" else -here.scale
            bias = (Placed(node.operands[other], axes), factor)
            yield replace(here, product=Placed(node.operands[side], axes), biases=(*here.biases, bias))
    elif node.op == "where":
        mask = Placed(node.operands[0], axes)
        for side, other in ((1, 2), (2, 1)):
            fill = _constant(node.operands[other])
            if fill is None:
                continue
            # A mask before a bias or another mask has the same meaning only if it sets scores to -inf.
            fill *= here.scale
            if (here.masks or here.biases) and (fill != -inf or here.fill != -inf):
                continue
            masks = (*here.masks, (mask, side == 1))
            yield replace(here, product=Placed(node.operands[side], axes), masks=masks, fill=fill)


def _constant(node: Node) -> float | None:
    """The value of a floating constant, unless it is 0 or NaN."""
    if node.op != "constant" or not node.dtype.is_float:
        return None
    value = float(node.attrs["value"])
    return value if value != 0 and value == value else None


# -- building ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sides:
    """Queries and keys of a product: the operands with their score axes."""

    query: Placed
    key: Placed
    summed: tuple[tuple[int, ...], tuple[int, ...]]  # the axes of each that are summed


def _sides(product: Placed, keys: int) -> _Sides | None:
    """Which operand is the queries. Operands have the score axes of their product."""
    node = product.node
    batch, free = node.attrs["batch"], free_axes_of(node)
    count = len(batch[0])
    placed: list[Placed] = []
    starts = (count, count + len(free[0]))
    for side, operand in enumerate(node.operands):
        axes: list[int | None] = [None] * operand.type.rank
        for place, axis in enumerate(batch[side]):
            axes[axis] = product.axes[place]
        for place, axis in enumerate(free[side]):
            axes[axis] = product.axes[starts[side] + place]
        placed.append(Placed(operand, tuple(axes)))
    of_keys = [side for side in (0, 1) if keys in placed[side].axes]
    if len(of_keys) != 1:
        return None
    (key,) = of_keys
    summed = node.attrs["contract"]
    return _Sides(placed[1 - key], placed[key], (summed[1 - key], summed[key]))


def _unscaled(placed: Placed) -> tuple[Placed, float]:
    """The value without a constant factor, and the factor."""
    node = placed.node
    if node.op == "multiply":
        for side, other in ((0, 1), (1, 0)):
            factor = _constant(node.operands[other])
            if factor is not None and isfinite(factor):
                return Placed(node.operands[side], placed.axes), factor
    return placed, 1.0


def _as_rows(placed: Placed, summed: Sequence[int], order: Sequence[int], extents: Sequence[int]) -> Node:
    """The operand as [score axes in `order`, summed axes as one]; `order` holds all of its score axes."""
    node, length = placed.node, prod(placed.node.shape[axis] for axis in summed)
    kept = [axis for axis in range(node.type.rank) if axis not in summed]
    flat = reshape(transpose(node, [*kept, *summed]), [*(node.shape[axis] for axis in kept), length])
    axes = (*(placed.axes[axis] for axis in kept), len(extents))
    return in_order(Placed(flat, axes), (*order, len(extents)), (*extents, length))


def _built(pattern: _Pattern, scores: _Scores, keys: int) -> Node | None:
    """The pattern as attention; None if the products do not fit together or it does not pay."""
    node, side = pattern.node, pattern.side
    extents = node.operands[side].shape
    sides = _sides(scores.product, keys)
    queries = None if sides is None else _queries(sides, node.attrs["batch"][side], extents)
    if sides is None or queries is None or not _pays(sides, node, side, prod(extents)):
        return None
    dtype = _dtype_of(pattern, sides, scores)
    if dtype is None:
        return None
    (query, by_query), (key, by_key) = _unscaled(sides.query), _unscaled(sides.key)
    values = _placed_values(node, side, keys)
    order = [axis for axis in range(len(extents)) if axis not in (queries, keys)]
    rows = (
        _as_rows(query, sides.summed[0], (*order, queries), extents),
        _as_rows(key, sides.summed[1], (*order, keys), extents),
        _as_rows(values, free_axes_of(node)[1 - side], (*order, keys), extents),
    )
    full = (*order, queries, keys)
    bias, mask = _bias(scores, full, extents, dtype), _mask(scores, full, extents)
    visible = visible_keys(mask) if scores.fill == -inf and mask is not None else None
    if visible is not None:
        mask = visible.mask
    result = build(
        "attention",
        *(cast(operand, dtype) for operand in rows),
        *(operand for operand in (bias, mask) if operand is not None),
        scale=scores.scale * by_query * by_key,
        fill=scores.fill,
        lowest=1 - extents[queries] if visible is None else visible.lowest,
        highest=extents[keys] - 1 if visible is None else visible.highest,
        biased=bias is not None,
        masked=mask is not None,
        empty=False,
    )
    return _as_product(cast(result, node.dtype), node, side, (*order, queries))


def _queries(sides: _Sides, batch_of_values: Sequence[int], extents: Sequence[int]) -> int | None:
    """The axis of the queries: the longest axis that neither keys nor values have."""
    own = [
        axis
        for axis in range(len(extents))
        if axis in sides.query.axes and axis not in sides.key.axes and axis not in batch_of_values
    ]
    return max(own, key=lambda axis: extents[axis], default=None)


def _placed_values(node: Node, side: int, keys: int) -> Placed:
    """The values, with the score axes that they share."""
    values = node.operands[1 - side]
    axes: list[int | None] = [None] * values.type.rank
    for of_weights, of_values in zip(node.attrs["batch"][side], node.attrs["batch"][1 - side], strict=True):
        axes[of_values] = of_weights
    (met,) = node.attrs["contract"][1 - side]
    axes[met] = keys
    return Placed(values, tuple(axes))


def _bias(scores: _Scores, order: Sequence[int], extents: Sequence[int], dtype: DType) -> Node | None:
    """The sum of the biases times their factors."""
    terms = [scale(cast(in_order(placed, order, extents), dtype), factor) for placed, factor in scores.biases]
    return reduce(add, terms) if terms else None


def _mask(scores: _Scores, order: Sequence[int], extents: Sequence[int]) -> Node | None:
    """Where all masks keep a score."""
    parts = [(in_order(placed, order, extents), keeps) for placed, keeps in scores.masks]
    kept = [part if keeps else logical_not(part) for part, keeps in parts]
    return reduce(logical_and, kept) if kept else None


def _as_product(result: Node, node: Node, side: int, order: Sequence[int]) -> Node:
    """[score axes in `order`, other axes of the values] in the order of the product's axes."""
    free = free_axes_of(node)
    own = [*node.attrs["batch"][side], *free[side]]  # score axes in the order of the product without the values' axes
    of_values = [node.operands[1 - side].shape[axis] for axis in free[1 - side]]
    spread = reshape(result, [*result.shape[:-1], *of_values])
    extra = list(range(len(order), len(order) + len(of_values)))
    batch, alone = len(node.attrs["batch"][side]), [order.index(axis) for axis in own]
    if side == 0:
        return transpose(spread, [*alone, *extra])
    return transpose(spread, [*alone[:batch], *extra, *alone[batch:]])


def _dtype_of(pattern: _Pattern, sides: _Sides, scores: _Scores) -> DType | None:
    """The dtype of both products, if they agree: attention computes the softmax between them in float32 anyway.

    Else the widest in the whole computation, at most 32 bits wide."""
    of_products = {node.dtype for node in (pattern.node, sides.query.node, sides.key.node, scores.product.node)}
    of_biases = {placed.node.dtype for placed, _ in scores.biases}
    if len(of_products) == 1 and of_biases <= of_products:
        return scores.product.node.dtype
    dtypes = of_products | {node.dtype for node in pattern.inside if node.dtype.is_float}
    return float32 if all(dtype.bits <= 32 for dtype in dtypes) else None


def _pays(sides: _Sides, node: Node, side: int, scores: int) -> bool:
    """Whether moving the scores costs more than moving attention's operands and result."""
    moved = sum(part.type.size for part in (sides.query.node, sides.key.node, node.operands[1 - side], node))
    return _TIMES_MOVED * scores >= moved


__all__ = ["recognise_attention"]
