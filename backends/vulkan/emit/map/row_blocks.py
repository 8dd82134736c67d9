"""Maps that read neighbouring rows, as stencils do, on CPU drivers: an invocation has a vector of each of some rows.

What one of them reads as the row below is the next one's own. Vectors that begin between aligned ones are put together
of these, and of single elements at their ends.

Where four does not divide the length of rows, it divides that of four rows: it is known how far behind a multiple of
four each of them begins, and with it where its vectors are stored. Of rows of few elements, such as points, an
invocation has as many whole ones as fill vectors, and knows of each element in which place of its row it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lcm

from lavax.backends.vulkan.emit.map.wide_stores import is_in_order, store_together
from lavax.backends.vulkan.glsl.accesses import WORD_BYTES
from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE, LANE_NAME, GlslValue, is_multiple, lane_step
from lavax.backends.vulkan.glsl.launch import at_row, placed
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.accesses import accesses, roots_of
from lavax.passes.kernels.index import ZERO, Index, add, constant, linear, quotient, remainder, substitute, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates


@dataclass(frozen=True)
class RowBlocks:
    """The maps whose invocations have several rows. docs/performance/grids_on_cpus.md, "Neighbouring rows"."""

    rows: tuple[int, ...] = (4, 2)
    axis: int = 8  # all rows of an axis that has so many, as parts that are stacked are known then
    reads: float = 0.9  # the most positions that are read, over those of as many invocations of one row
    whole: float = 0.5  # the most vectors read by whole rows of few elements, over the vectors put together of elements
    saved: int = 24  # elements that a block of rows that four does not divide need not read, at least
    statements: int = 384  # of the graph, times the rows
    invocations: int = 64  # that must be left


ROW_BLOCKS = RowBlocks()


@dataclass(frozen=True)
class Block:
    """What an invocation computes at a time: in each of some neighbouring rows, as many vectors as one store writes.

    Whole rows of few elements count as one, of several stores.
    """

    rows: int = 1
    vectors: int = 1
    stores: int = 1


def block_of(kernel: Kernel, of_store: int) -> Block:
    """The block that reads least for a vector; `of_store`: how many vectors a store may write."""
    extents = [extent for extent in kernel.domain.outer if extent > 1]
    if len(extents) < 2 or any(_keeps_apart(node, of_store) for node in kernel.graph.nodes):
        return Block(1, of_store)
    whole = _block_of_whole_rows(kernel, extents[-1], of_store)
    if whole is not None:
        return whole
    read = _read_often(kernel)
    all_rows = (extents[-2],) if extents[-2] <= ROW_BLOCKS.axis else ()
    choices = dict.fromkeys((*all_rows, *ROW_BLOCKS.rows))
    blocks = (Block(rows, vectors) for vectors in dict.fromkeys((of_store, 1)) for rows in choices)
    suiting = (block for block in blocks if read and _suits(kernel, extents, block))
    return next((block for block in suiting if _shares_reads(kernel, read, block)), Block(1, of_store))


def _block_of_whole_rows(kernel: Kernel, width: int, of_store: int) -> Block | None:
    """The block of as many whole rows of that width as fill some stores, if single elements that rows read are then
    components of vectors; None otherwise."""
    if width > ROW_BLOCKS.axis or width % VECTOR == 0:
        return None
    vectors = lcm(width, VECTOR * of_store) // VECTOR
    is_short = vectors * len(kernel.graph.nodes) <= ROW_BLOCKS.statements
    if not is_short or kernel.domain.rows < VECTOR * vectors * ROW_BLOCKS.invocations:
        return None
    if not all(is_in_order(kernel, output) for output in kernel.graph.outputs):
        return None
    block = Block(1, vectors, vectors // of_store)
    number = variable("i", kernel.domain.rows // (VECTOR * vectors))
    read = {node: list(found) for node, found in accesses(kernel, roots_of(kernel)).items()}
    positions = _positions(kernel, read, elements_of_block(kernel, number, block))
    apart = [(node, at) for node, at in positions if LANE_NAME in at.variables and lane_step(at) != 1]
    singles, aligned = [at for at in apart if _aligned_around([at])], _aligned_around(positions)
    return block if singles and len(aligned) <= ROW_BLOCKS.whole * len(singles) else None


def _aligned_around(positions: Sequence[tuple[Node, Index]]) -> dict[tuple[Node, str], Index]:
    """The aligned vectors within arrays in which elements of some vectors are known to be."""
    found: dict[tuple[Node, str], Index] = {}
    for node, at in positions:
        if LANE_NAME not in at.variables:
            continue
        for lane in range(VECTOR):
            place = substitute(at, {LANE_NAME: constant(lane)})
            base = add(place, -(place.constant % VECTOR))
            if is_multiple(base, VECTOR) and base.low >= 0 and base.high + VECTOR <= node.type.size:
                vector = linear([(base, 1), (LANE, 1)])
                found[node, vector.key] = vector
    return found


def ragged_block_of(kernel: Kernel) -> Block:
    """The block of a map whose rows four does not divide: four rows, whose lengths together it does."""
    extents = [extent for extent in kernel.domain.outer if extent > 1]
    if len(extents) < 2 or extents[-1] % VECTOR == 0 or any(map(_goes_to_many_places, kernel.graph.nodes)):
        return Block()
    block = Block(VECTOR)
    is_whole = extents[-2] >= VECTOR if len(extents) == 2 else extents[-2] % VECTOR == 0
    is_long = extents[-1] >= 4 * VECTOR and kernel.domain.rows >= VECTOR * VECTOR * ROW_BLOCKS.invocations
    is_short = VECTOR * len(kernel.graph.nodes) <= ROW_BLOCKS.statements
    in_words = all(output.dtype.storage.itemsize == WORD_BYTES for output in kernel.graph.outputs)
    in_order = all(is_in_order(kernel, output) for output in kernel.graph.outputs)
    if not (is_whole and is_long and is_short and in_words and in_order):
        return Block()
    read, number = _read_often(kernel), variable("i", kernel.domain.rows // (VECTOR * VECTOR))
    lanes = [{LANE_NAME: constant(lane)} for lane in range(VECTOR)]
    positions = _positions(kernel, read, elements_of_block(kernel, number, block))
    elements = {(node, substitute(position, lane)) for node, position in positions for lane in lanes}
    one_by_one = VECTOR * VECTOR * sum(map(len, read.values()))
    return block if one_by_one - len(elements) >= ROW_BLOCKS.saved else Block()


def _keeps_apart(node: Node, of_store: int) -> bool:
    """Whether rows are best computed one by one for the sake of a node: a row that is looked up is read again for each
    of them, but as texels if results are stored through descriptors, which takes less time than narrower stores."""
    return _goes_to_many_places(node) or (node.op == "gather" and of_store > 1)


def _goes_to_many_places(node: Node) -> bool:
    """Whether a node gathers more than one row, or column: nothing is known of where such lie."""
    return node.op == "gather" and any(index.type.size > 1 for index in node.operands[1:])


def _suits(kernel: Kernel, extents: Sequence[int], block: Block) -> bool:
    """Whether such blocks divide the map, which is long enough for them, and short enough to be written out."""
    vectors = block.rows * block.vectors
    divided = extents[-2] % block.rows == 0 and extents[-1] % (VECTOR * block.vectors) == 0
    enough = kernel.domain.rows >= VECTOR * vectors * ROW_BLOCKS.invocations
    return divided and enough and vectors * len(kernel.graph.nodes) <= ROW_BLOCKS.statements


def _shares_reads(kernel: Kernel, read: Mapping[Node, Sequence[Index]], block: Block) -> bool:
    rows = len(_positions_of_block(kernel, read, block))
    return rows <= ROW_BLOCKS.reads * block.rows * len(_positions_of_block(kernel, read, Block(1, block.vectors)))


def elements_of_block(kernel: Kernel, number: Index, block: Block) -> list[list[Index]]:
    """For each row of the invocation of that number, where its vectors begin, with an element for each component."""
    step = VECTOR * block.vectors
    if block.rows == 1:
        firsts = [linear([(number, step), (LANE, 1)])]
    else:
        width = [extent for extent in kernel.domain.outer if extent > 1][-1]
        above, column = quotient(number, width // step), remainder(number, width // step)
        places = [(above, block.rows * width), (column, step), (LANE, 1)]
        firsts = [linear(places, row * width) for row in range(block.rows)]
    return [[add(first, VECTOR * vector) for vector in range(block.vectors)] for first in firsts]


def compute_block(
    body: Body, kernel: Kernel, block: Block, elements: Sequence[Sequence[Index]], outputs: Mapping[Node, str]
) -> None:
    """Computes the results at all of these vectors, then writes them."""
    if block.rows > 1:
        read = _positions(kernel, _read_often(kernel), elements)
        body.aligned_reads = {(node, at.key): at for node, at in read if body.is_aligned(node, at)}
    elif block.stores > 1:
        of_all = {node: list(found) for node, found in accesses(kernel, roots_of(kernel)).items()}
        around = _aligned_around(_positions(kernel, of_all, elements))
        body.aligned_reads = {key: at for key, at in around.items() if key[0] not in body.unaligned}
    results: list[tuple[Node, Index, list[tuple[Coordinates, GlslValue]]]] = []
    for row in elements:
        found: dict[Node, list[tuple[Coordinates, GlslValue]]] = {output: [] for output in kernel.graph.outputs}
        for element in row:
            values = at_row(element, kernel)
            for output, of_row in found.items():
                at = placed(kernel.coordinates[output], values)
                of_row.append((at, body.value(output, at)))
        results += [(output, substitute(row[0], {"lane": ZERO}), of_row) for output, of_row in found.items()]
    for output, first, of_row in results:
        of_store = block.vectors // block.stores
        for begin in range(0, block.vectors, of_store):
            if of_store > 1:
                together = [value for _, value in of_row[begin : begin + of_store]]
                store_together(body, output, together, add(first, VECTOR * begin), outputs[output])
            else:
                body.store(output, *of_row[begin], outputs[output])


def _read_often(kernel: Kernel) -> dict[Node, list[Index]]:
    """The arrays that are read at several positions, and those."""
    return {node: list(found) for node, found in accesses(kernel, roots_of(kernel)).items() if len(found) > 1}


def _positions_of_block(
    kernel: Kernel, read: Mapping[Node, Sequence[Index]], block: Block
) -> list[tuple[Node, Index]]:
    """The vectors that an invocation with such a block reads."""
    number = variable("i", kernel.domain.rows // (VECTOR * block.rows * block.vectors))
    return _positions(kernel, read, elements_of_block(kernel, number, block))


def _positions(
    kernel: Kernel, read: Mapping[Node, Sequence[Index]], elements: Sequence[Sequence[Index]]
) -> list[tuple[Node, Index]]:
    """The positions at which these vectors of results read arrays, each once."""
    found: dict[tuple[Node, Index], None] = {}
    for element in (element for row in elements for element in row):
        values = at_row(element, kernel)
        for node, positions in read.items():
            found |= {(node, substitute(position, values)): None for position in positions}
    return list(found)
