"""The last rewrites before fusion: what kernels have no form for becomes something they have.

One table entry an operation, node -> node. Gradients are taken by now, so stop_gradient goes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from lavax.ir.graph import Graph, Node, graph_of, make_node, users_of
from lavax.ir.monoids import REDUCTIONS
from lavax.ir.ops.contraction import free_axes
from lavax.passes.build.builder import (
    broadcast,
    build,
    located,
    precision_of,
    reshaped,
    set_location,
    transposed,
    zeros,
)
from lavax.passes.build.contraction_geometry import in_parts, neighbours_of, sizes_of
from lavax.passes.numerics.clipping import comparing_clipped_values
from lavax.passes.numerics.rounding import with_rounded_operands
from lavax.passes.numerics.signs import by_signs
from lavax.passes.numerics.widen import widen
from lavax.passes.prepare.decompose import RULES as DECOMPOSE
from lavax.passes.prepare.decompose.attention import with_read_shapes
from lavax.passes.prepare.decompose.attention_parts import RULES as PARTS
from lavax.passes.prepare.decompose.attention_parts import with_query_parts
from lavax.passes.prepare.decompose.attention_scores import with_stored_scores
from lavax.passes.prepare.decompose.cumulative import RULES as CUMULATIVE
from lavax.passes.prepare.decompose.phases import axis_of_phases, convolution_in_phases
from lavax.passes.prepare.decompose.scatter import RULES as SCATTER
from lavax.passes.prepare.decompose.sorting import RULES as SORTING
from lavax.passes.prepare.decompose.sorting import sharing_orders
from lavax.passes.prepare.decompose.window import convolution_as_dot
from lavax.passes.simplify.contraction import as_product
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS
from lavax.passes.target.target import ANY_DEVICE, Target

# A sum is split where one workgroup a row would leave a device idle and make a long chain of additions.
_LONG_ROW, _FEW_ROWS, _PART = 1 << 15, 256, 1 << 12
# A vector times a matrix of so many elements, with so long a sum, is a contraction and not a sum over rows.
_LARGE_MATRIX, _LONG_SUM = 1 << 16, 128
# Of so many columns neighbours are read together by a sum over rows, too.
_MANY_COLUMNS = 32
# Sums over leading axes: where there are fewer than so many columns, and at least so many elements in each, parts are
# made so small that together they are so many, but not smaller than this.
_FEW_COLUMNS, _LONG_COLUMN, _COLUMNS_OF_PARTS, _LEAST_PART = 1 << 12, 1 << 13, 1 << 14, 1 << 8
# A concatenation reads as many arrays as it has operands.
_JOINED_AT_ONCE = 8


def _prepare_stop_gradient(node: Node) -> Node:
    return node.operands[0]


def _prepare_known_value(node: Node) -> Node:
    return node.operands[1]


def _prepare_concatenate(node: Node) -> Node:
    operands = node.operands
    while len(operands) > _JOINED_AT_ONCE:
        groups = [operands[start : start + _JOINED_AT_ONCE] for start in range(0, len(operands), _JOINED_AT_ONCE)]
        operands = tuple(build("concatenate", *group, **node.attrs) for group in groups)
    return node if operands is node.operands else build("concatenate", *operands, **node.attrs)


def _prepare_reduction(node: Node, target: Target = ANY_DEVICE) -> Node:
    """Splits a long row: parts first, then the sum of the parts. Every run adds in the same order."""
    (operand,) = node.operands
    axes = node.attrs["axes"]
    length = prod(operand.shape[axis] for axis in axes)
    rows = node.type.size
    if length == 0:
        return build("constant", type=node.type, value=REDUCTIONS[node.op].identity(node.dtype))
    columns = len(operand.shape) - 1 not in axes
    longest = MAX_LOOP_ITERATIONS if columns else target.rows.longest
    long = length >= _LONG_ROW if rows <= _FEW_ROWS else length > longest
    if columns and 0 < rows < _FEW_COLUMNS and length >= _LONG_COLUMN:
        part = 1 << (length * rows // _COLUMNS_OF_PARTS).bit_length() >> 1
        return _in_parts(node, length, rows, max(min(part, _PART), _LEAST_PART))
    return _in_parts(node, length, rows, _PART) if long and rows else node


def _prepare_position(node: Node) -> Node:
    """The first position of a long row's extremum: where the row equals it, or holds a NaN, the least position."""
    (operand,) = node.operands
    axis = node.attrs["axis"]
    length = operand.shape[axis]
    if length <= MAX_LOOP_ITERATIONS:
        return node
    best = _prepare_reduction(build("max" if node.op == "argmax" else "min", operand, axes=(axis,)))
    others = tuple(other for other in range(len(operand.shape)) if other != axis)
    hit = build(
        "or", build("equal", operand, broadcast(best, operand.shape, others)), build("not_equal", operand, operand)
    )
    type = operand.type.with_dtype(node.dtype)
    nowhere = build("constant", type=type, value=length)
    places = build("where", hit, build("iota", type=type, axis=axis), nowhere)
    return _prepare_reduction(build("min", places, axes=(axis,)))


def _in_parts(node: Node, length: int, rows: int, part: int) -> Node:
    """Sums of parts, then their sum, itself in parts if they are many: chains of additions stay short."""
    (operand,) = node.operands
    axes = node.attrs["axes"]
    outer = tuple(axis for axis in range(len(operand.shape)) if axis not in axes)
    inner_first = bool(outer) and axes[0] < outer[0]
    order = (*axes, *outer) if inner_first else (*outer, *axes)
    moved = transposed(operand, order)
    parts = -(-length // part)
    shape, padding = (
        ((length, rows), ((parts * part - length, 0)))
        if inner_first
        else ((rows, length), (0, parts * part - length))
    )
    padded = build(
        "pad",
        reshaped(moved, shape),
        low=(0, 0),
        high=padding,
        interior=(0, 0),
        value=REDUCTIONS[node.op].identity(node.dtype),
    )
    split = (parts, part, rows) if inner_first else (rows, parts, part)
    partial = build(
        node.op,
        reshaped(padded if max(padding) else padded.operands[0], split),
        axes=(1,) if inner_first else (2,),
    )
    whole = build(node.op, partial, axes=(0,) if inner_first else (1,))
    if parts > _PART:
        whole = _in_parts(whole, parts, rows, _PART)
    return reshaped(whole, node.shape)


def _prepare_dot(node: Node, target: Target) -> Node:
    """Long sums in parts. A small product with a vector is a sum over rows, which is fused with other sums."""
    if any(0 in operand.shape for operand in node.operands):
        return zeros(node.type)
    if node.attrs["precision"]:
        exact = build("dot", *node.operands, contract=node.attrs["contract"], batch=node.attrs["batch"])
        product = as_product(exact)
        if product is not None:
            return product
    sizes = sizes_of(node)
    if sizes.m > 1 and sizes.n > 1:
        return _in_parts_for(node, target)
    matrix = 1 if sizes.m == 1 else 0
    small = node.operands[matrix].type.size < _LARGE_MATRIX or sizes.k < _LONG_SUM
    along_sums = neighbours_of(node, matrix).summed
    as_sum = target.products.vectors_as_sums and (along_sums or sizes.m * sizes.n >= _MANY_COLUMNS)
    if as_sum or small or sizes.m * sizes.n == 1:
        return _vector_as_sum(node, target)
    if along_sums and node.dtype.bits != 32:  # subgroups share sums of 32 bits
        return _vector_as_sum(node, target)
    kept = along_sums or matrix == 1
    return reshaped(_in_parts_for(node if kept else _exchanged(node), target), node.shape)


def _in_parts_for(node: Node, target: Target) -> Node:
    length = sizes_of(node).k
    parts = max(target.products.parts(node), -(-length // MAX_LOOP_ITERATIONS))
    return in_parts(node, parts) if parts > 1 else node


def _exchanged(node: Node) -> Node:
    """A matrix times a vector as the vector times the matrix, so that the result's columns are the matrix's."""
    left, right = node.operands
    (left_batch, right_batch), (left_sum, right_sum) = node.attrs["batch"], node.attrs["contract"]
    free = free_axes(right.type, right_batch, right_sum)
    kept = (*right_batch, *right_sum)
    vector = reshaped(transposed(right, (*kept, *free)), tuple(right.shape[axis] for axis in kept))
    batch, summed = range(len(right_batch)), range(len(right_batch), len(kept))
    contract, batched = (tuple(summed), left_sum), (tuple(batch), left_batch)
    return build("dot", vector, left, contract=contract, batch=batched, **precision_of(node))


def _vector_as_sum(node: Node, target: Target) -> Node:
    left, right = node.operands
    (left_batch, right_batch), (left_sum, right_sum) = node.attrs["batch"], node.attrs["contract"]
    left_free, right_free = free_axes(left.type, left_batch, left_sum), free_axes(right.type, right_batch, right_sum)
    # All axes in the order batch, free of the left, free of the right, summed; a vector's free axes are ones.
    batch = tuple(left.shape[a] for a in left_batch)
    summed = tuple(left.shape[a] for a in left_sum)
    vector_left = prod(left.shape[a] for a in left_free) == 1
    order = (*right_batch, *right_sum, *right_free) if vector_left else (*left_batch, *left_free, *left_sum)
    matrix = transposed(right if vector_left else left, order)
    other = (*left_batch, *left_sum, *left_free) if vector_left else (*right_batch, *right_sum, *right_free)
    vector = reshaped(transposed(left if vector_left else right, other), (*batch, *summed))
    first = len(batch)
    summed_axes = (
        tuple(range(first, first + len(summed)))
        if vector_left
        else tuple(range(len(matrix.shape) - len(summed), len(matrix.shape)))
    )
    repeated = broadcast(vector, matrix.shape, (*range(first), *summed_axes))
    product = build("multiply", matrix, repeated)
    return reshaped(_prepare_reduction(build("sum", product, axes=summed_axes), target), node.shape)


def _prepare_conv(node: Node, target: Target, turned: bool = False) -> Node:
    """`turned`: whether all that becomes of the result is a value with its windows' axes behind the others."""
    if 0 in (*node.operands[0].shape, *node.operands[1].shape):
        return zeros(node.type)
    place = axis_of_phases(node)
    if place is not None:
        return convolution_in_phases(node, place, lambda phase: _prepare_conv(phase, target, turned))
    product, order = convolution_as_dot(node, target.products.stages_operands and not turned)
    return transposed(_prepare_dot(product, target), order)


_PREPARE: dict[str, Callable[[Node], Node]] = {
    "stop_gradient": _prepare_stop_gradient,
    "known_value": _prepare_known_value,
    "concatenate": _prepare_concatenate,
    "argmax": _prepare_position,
    "argmin": _prepare_position,
    **DECOMPOSE,
}

# Those whose best form depends on the device.
_BY_TARGET: dict[str, Callable[[Node, Target], Node]] = {
    "dot": _prepare_dot,
    "conv": _prepare_conv,
    **dict.fromkeys(REDUCTIONS, _prepare_reduction),
    **CUMULATIVE,
    **PARTS,
    **SCATTER,
    **SORTING,
}


def _turned(graph: Graph) -> set[Node]:
    """Convolutions of which all readers move the windows' axes behind the others: channels come first there."""
    users, outputs = users_of(graph.nodes), frozenset(graph.outputs)
    found = set()
    for node in graph.nodes:
        readers = users.get(node, ())
        if node.op == "conv" and readers and node not in outputs:
            (_, batch), (_, window), (_, summed) = (node.attrs[name] for name in ("batch", "window", "contract"))
            last = node.type.rank - 1 - len(free_axes(node.operands[1].type, (*batch, *window), summed))
            if all(reader.op == "transpose" and reader.attrs["axes"][-1] == last for reader in readers):
                found.add(node)
    return found


def prepare(graph: Graph, target: Target = ANY_DEVICE) -> Graph:
    """The graph as fusion takes it: no stop_gradient, no long concatenations, few products with vectors, no values
    without elements but as constants, long sums and long routines in parts, no arithmetic in fewer than 32 bits."""
    graph = comparing_clipped_values(sharing_orders(widen(graph)))
    graph = with_query_parts(with_stored_scores(graph, target), target)
    graph = with_rounded_operands(by_signs(with_read_shapes(graph)))
    turned = _turned(graph)
    found = {node: node if node.type.size else zeros(node.type) for node in graph.inputs}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            operands = tuple(found[operand] for operand in node.operands)
            if node.type.size == 0:
                found[node] = zeros(node.type)
                continue
            rebuilt = make_node(node.op, operands, node.attrs, node.type, node.location)
            found[node] = _prepare_conv(rebuilt, target, True) if node in turned else _prepared(rebuilt, target)
    found.update((node, node) for node in graph.inputs)  # an input that is returned stays that input
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _prepared(node: Node, target: Target) -> Node:
    if node.op in _BY_TARGET:
        return _BY_TARGET[node.op](node, target)
    return _PREPARE[node.op](node) if node.op in _PREPARE else node
