"""Maps that read neighbouring rows, as stencils do, on CPU drivers: an invocation has a vector of each of some rows.

What one of them reads as the row below is the next one's own. Vectors that begin between aligned ones are put together
of these, and of single elements at their ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lavax.backends.vulkan.glsl.body import LANE, Body, GlslValue
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import at_row, placed
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.accesses import accesses, roots_of
from lavax.passes.kernels.index import Index, linear, quotient, remainder, substitute, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates


@dataclass(frozen=True)
class RowBlocks:
    """The maps whose invocations have several rows. docs/performance/lavapipe_loops.md, "Neighbouring rows"."""

    rows: tuple[int, ...] = (4, 2)
    reads: float = 0.9  # the most positions that are read, over those of as many invocations of one row
    statements: int = 384  # of the graph, times the rows
    invocations: int = 64  # that must be left


ROW_BLOCKS = RowBlocks()


def rows_of_block(kernel: Kernel) -> int:
    """How many rows an invocation has: 1 if rows have no reads in common."""
    extents = [extent for extent in kernel.domain.outer if extent > 1]
    if len(extents) < 2 or extents[-1] % VECTOR or any(node.op == "gather" for node in kernel.graph.nodes):
        return 1
    read = _read_often(kernel)
    for rows in ROW_BLOCKS.rows if read else ():
        divided = extents[-2] % rows == 0 and kernel.domain.rows >= VECTOR * rows * ROW_BLOCKS.invocations
        short = rows * len(kernel.graph.nodes) <= ROW_BLOCKS.statements
        if divided and short and _reads(kernel, read, rows) <= ROW_BLOCKS.reads * rows * _reads(kernel, read, 1):
            return rows
    return 1


def elements_of_block(kernel: Kernel, number: Index, rows: int) -> list[Index]:
    """Where the vectors of an invocation begin, with an element for each component."""
    width = [extent for extent in kernel.domain.outer if extent > 1][-1]
    block, column = quotient(number, width // VECTOR), remainder(number, width // VECTOR)
    return [linear([(block, rows * width), (column, VECTOR), (LANE, 1)], row * width) for row in range(rows)]


def compute_block(body: Body, kernel: Kernel, elements: Sequence[Index], outputs: Mapping[Node, str]) -> None:
    """Computes the results at all of these vectors, then writes them."""
    read = _positions(kernel, _read_often(kernel), elements)
    body.aligned_reads = {(node, at.key): at for node, at in read if body.is_aligned(node, at)}
    results: list[tuple[Node, Coordinates, GlslValue]] = []
    for element in elements:
        values = at_row(element, kernel)
        coordinates = {output: placed(kernel.coordinates[output], values) for output in kernel.graph.outputs}
        results += [(output, at, body.value(output, at)) for output, at in coordinates.items()]
    for output, at, result in results:
        body.store(output, at, result, outputs[output])


def _read_often(kernel: Kernel) -> dict[Node, list[Index]]:
    """The arrays that are read at several positions, and those."""
    return {node: list(found) for node, found in accesses(kernel, roots_of(kernel)).items() if len(found) > 1}


def _reads(kernel: Kernel, read: Mapping[Node, Sequence[Index]], rows: int) -> int:
    """How many vectors an invocation with so many rows reads."""
    number = variable("i", kernel.domain.rows // (VECTOR * rows))
    return len(_positions(kernel, read, elements_of_block(kernel, number, rows)))


def _positions(
    kernel: Kernel, read: Mapping[Node, Sequence[Index]], elements: Sequence[Index]
) -> list[tuple[Node, Index]]:
    """The positions at which these vectors of results read arrays, each once."""
    found: dict[tuple[Node, Index], None] = {}
    for element in elements:
        values = at_row(element, kernel)
        for node, positions in read.items():
            found |= {(node, substitute(position, values)): None for position in positions}
    return list(found)
