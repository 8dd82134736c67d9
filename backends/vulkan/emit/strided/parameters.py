"""The parameters of a strided product in the shader that it shares: how its arrays are accessed, and its numbers."""

from __future__ import annotations

from lavax.backends.vulkan.emit.contract.tiles import BroadcastTile
from lavax.backends.vulkan.emit.strided.element_tile import ElementTile
from lavax.backends.vulkan.emit.strided.product import Strided, StridedProduct
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.plan.plan import BASE_WORD
from lavax.base.quick_dataclasses import dataclass

# What elementwise functions make. The word `functions` says which one applies, in FUNCTION_BITS per role, and from bit
# ALONG_SUM on whether an operand's neighbours in memory lie along the sum.
ROLES = ("left", "right", "result")
FUNCTION_BITS, ALONG_SUM = 8, 24

_MOST_TILES = 65535  # workgroups in a grid of one dimension
# Products of fewer multiplications take less than a millisecond, however their arrays are accessed. Chosen by
# `python -m benchmarks comparison --only mlp-step --only matmul-256`.
_SMALL = 1 << 20


@dataclass(frozen=True)
class OperandAccess:
    """Which arrays are accessed in vectors: the left operand, the right one, and all others with the result."""

    left: bool
    right: bool
    rest: bool


_BY_ELEMENTS = OperandAccess(False, False, False)


def access_of(product: StridedProduct, tile: BroadcastTile | ElementTile) -> OperandAccess:
    """How a product's arrays are accessed.

    If any array of a small product goes by elements, all do, so that small products share a shader.
    """
    if isinstance(tile, ElementTile):
        return _BY_ELEMENTS
    sizes = product.sizes
    whole_sum = sizes.k % VECTOR == 0
    left = whole_sum and sizes.m >= tile.rows and _has_vectors(product.left, sizes.m)
    right = whole_sum and sizes.n >= tile.columns and _has_vectors(product.right, sizes.n)
    rest = sizes.n >= tile.columns and sizes.n % VECTOR == 0 and all(
        array.second == 1 and all(step % VECTOR == 0 for step in (array.first, array.batch, array.inner))
        for array, of_row in zip((*product.others, product.result), (*_of_rows(product), False), strict=True)
        if not of_row
    )
    small = sizes.b * sizes.m * sizes.n * sizes.k < _SMALL or not (whole_sum or product.by_descriptor)
    return _BY_ELEMENTS if small and not (left and right and rest) else OperandAccess(left, right, rest)


def one_per_row(product: StridedProduct, access: OperandAccess) -> tuple[bool, ...]:
    """Which of the arrays that the epilogue reads are not accessed in vectors, though the others are."""
    return _of_rows(product) if access.rest else (False,) * len(product.others)


def _of_rows(product: StridedProduct) -> tuple[bool, ...]:
    """Which of the arrays that the epilogue reads have one element for all columns of a row."""
    return tuple(array.second == 0 for array in product.others)


def _has_vectors(operand: Strided, extent: int) -> bool:
    """Whether an operand has neighbours along one of its axes, in lines that start at multiples of four."""
    along, across = sorted((operand.first, operand.second))
    whole = operand.second == 1 or extent % VECTOR == 0
    aligned = all(step % VECTOR == 0 for step in (across, operand.batch, operand.inner, operand.begin))
    return along == 1 and aligned and whole


def fits_tile(product: StridedProduct, tile: BroadcastTile | ElementTile) -> bool:
    """Whether the shared shader can compute a product by a tile."""
    return (isinstance(tile, ElementTile) or tile.has_fours) and tile.tiles(product.sizes) <= _MOST_TILES


def has_room(product: StridedProduct, tile: BroadcastTile | ElementTile, nested: bool) -> bool:
    """Whether push constants have room for the product's slots and parameters."""
    return len(product.order) + len(parameters(product, tile, nested)) <= BASE_WORD


def parameters(product: StridedProduct, tile: BroadcastTile | ElementTile, nested: bool) -> dict[str, int]:
    """The product's parameters by their names in the shader; strides count elements, or vectors.

    `nested` adds those of a batch in two axes and of operands that start behind the start of their arrays.
    """
    sizes, access = product.sizes, access_of(product, tile)
    words = {
        "functions": 0,
        "across": -(-sizes.n // tile.columns),
        "down": -(-sizes.m // tile.rows),
        "last_row": max(sizes.m - tile.rows, 0),
        "last_column": max(sizes.n - tile.columns, 0),
        "rows": min(tile.rows, sizes.m),
        "sum_end": sizes.k,
        # What is written of a four of rows: a parameter, because drivers unroll loops of known length.
        "parts": VECTOR if isinstance(tile, ElementTile) else VECTOR * tile.vectors,
    }
    words |= {} if access.left else {"left_end": sizes.m}
    words |= {} if access.right and access.rest else {"right_end": sizes.n}
    operands = ((product.left, access.left), (product.right, access.right))
    for side, (operand, in_vectors) in enumerate(operands):
        name, along_sum = ROLES[side], operand.second == 1
        words |= {f"{name}_batch": operand.batch, f"{name}_free": operand.first if along_sum or not in_vectors else 1}
        if in_vectors:  # strides to the next lane's vectors, between a lane's four, and between iterations
            words["functions"] |= along_sum << ALONG_SUM + side
            words[f"{name}_lane"] = operand.first if along_sum else 1
            words[f"{name}_next"] = (operand.first if along_sum else operand.second) // VECTOR
            words[f"{name}_turn"] = 1 if along_sum else operand.second
        else:
            words[f"{name}_sum"] = operand.second
    rest = (*product.others, product.result)
    units = [VECTOR if access.rest and not own else 1 for own in (*one_per_row(product, access), False)]
    for number, (array, unit) in enumerate(zip(rest, units, strict=True)):
        words |= {f"batch{number}": array.batch // unit, f"row{number}": array.first // unit}
        words |= {} if access.rest else {f"column{number}": array.second}
    if nested:
        words |= {"inner": product.inner, "left_inner": product.left.inner, "right_inner": product.right.inner}
        words |= {"left_begin": product.left.begin, "right_begin": product.right.begin}
        words |= {f"inner{n}": array.inner // unit for n, (array, unit) in enumerate(zip(rest, units, strict=True))}
    return words
