"""Maps of narrow results on CPU drivers: an invocation computes all that four words hold, and stores them at once.

A store is a loop over the lanes there, which takes nearly as long for one word as for four.
"""

from __future__ import annotations

from collections.abc import Mapping

from lavax.backends.vulkan.glsl.body import LANE, Body
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import at_row, placed
from lavax.backends.vulkan.glsl.narrow_texels import is_narrow
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, flatten, linear, variable
from lavax.passes.kernels.kernel import Kernel

_BYTES = 16  # of four words


@dataclass(frozen=True)
class WideStores:
    """The maps that store four words at once. docs/performance/lavapipe_operations.md, "Elements of 8 and 16 bits"."""

    statements: int = 128  # of the graph, times the vectors that are computed for a store


WIDE_STORES = WideStores()


def vectors_of_store(kernel: Kernel) -> int:
    """How many vectors of a map's results one store writes: as many as four words hold, or one."""
    outputs, inputs = kernel.graph.outputs, len(kernel.graph.inputs)
    sizes = {output.dtype.storage.itemsize for output in outputs}
    numbers = range(inputs, inputs + len(outputs))
    if len(sizes) != 1 or not all(is_narrow(output.dtype) for output in outputs):
        return 1
    vectors = _BYTES // (VECTOR * sizes.pop())
    divided = kernel.domain.rows % (VECTOR * vectors) == 0 and set(numbers) <= set(kernel.by_descriptor)
    short = vectors * len(kernel.graph.nodes) <= WIDE_STORES.statements
    return vectors if divided and short and all(_is_in_order(kernel, output) for output in outputs) else 1


def _is_in_order(kernel: Kernel, output: Node) -> bool:
    """Whether the map's elements are the result's, in the order in which they lie in memory."""
    element = variable("i", kernel.domain.rows)
    return flatten(placed(kernel.coordinates[output], at_row(element, kernel)), output.shape) == element


def compute_and_store(body: Body, kernel: Kernel, number: Index, vectors: int, outputs: Mapping[Node, str]) -> None:
    """Computes and writes the results that four words at that number hold."""
    words: dict[Node, list[str]] = {output: [] for output in kernel.graph.outputs}
    for vector in range(vectors):
        element = linear([(number, VECTOR * vectors), (LANE, 1)], VECTOR * vector)
        values = at_row(element, kernel)
        for output in kernel.graph.outputs:
            result = body.value(output, placed(kernel.coordinates[output], values))
            words[output].append(body.words_of(output, result))
    for output, held in words.items():
        body.store_words(number, held, outputs[output])
