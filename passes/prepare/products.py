"""Products as kernels have forms for them: long sums in parts, and small products with a vector as sums over rows."""

from __future__ import annotations

from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.ops.contraction import free_axes
from lavax.passes.build.builder import broadcast, build, precision_of, reshaped, transposed, zeros
from lavax.passes.build.contraction_geometry import in_parts, neighbours_of, sizes_of
from lavax.passes.prepare.reductions import prepare_reduction
from lavax.passes.prepare.small_products import written_out
from lavax.passes.simplify.contraction import as_product
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS
from lavax.passes.target.target import Target


@dataclass(frozen=True)
class VectorProducts:
    """When a matrix times a vector is a contraction, not a sum over rows.

    Chosen by `python -m benchmarks comparison --only matmul-vector`.
    """

    large_matrix: int = 1 << 16  # elements of the matrix
    long_sum: int = 128
    many_columns: int = 32  # a sum over rows of so many columns reads neighbours together


VECTOR_PRODUCTS = VectorProducts()


def prepare_product(node: Node, target: Target) -> Node:
    """Long sums in parts. A small product with a vector is a sum over rows, which is fused with other sums."""
    if any(0 in operand.shape for operand in node.operands):
        return zeros(node.type)
    if node.attrs["precision"]:
        exact = build("dot", *node.operands, contract=node.attrs["contract"], batch=node.attrs["batch"])
        product = as_product(exact)
        if product is not None:
            return product
    if target.products.writes_out(node):
        return written_out(node)
    sizes = sizes_of(node)
    if target.products.vectors_stay or target.products.are_gates(node) or (sizes.m > 1 and sizes.n > 1):
        return with_sum_in_parts(node, target)
    matrix = 1 if sizes.m == 1 else 0
    small = node.operands[matrix].type.size < VECTOR_PRODUCTS.large_matrix or sizes.k < VECTOR_PRODUCTS.long_sum
    along_sums = neighbours_of(node, matrix).summed
    as_sum = target.products.vectors_as_sums and (along_sums or sizes.m * sizes.n >= VECTOR_PRODUCTS.many_columns)
    if as_sum or small or sizes.m * sizes.n == 1:
        return _vector_as_sum(node, target)
    if along_sums and node.dtype.bits != 32:  # subgroups share sums of 32 bits
        return _vector_as_sum(node, target)
    kept = along_sums or matrix == 1
    return reshaped(with_sum_in_parts(node if kept else _exchanged(node), target), node.shape)


def with_sum_in_parts(node: Node, target: Target) -> Node:
    """The product, whose sum is split if it is long for its loop, or its results too few to keep the device busy."""
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
    return reshaped(prepare_reduction(build("sum", product, axes=summed_axes), target), node.shape)
