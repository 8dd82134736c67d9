"""Maps on CPU drivers whose invocations compute all that eight words hold, or four, and store them at once.

A store is a loop over the lanes there, which takes nearly as long for one word as for four, and for four of 64 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from lavax.backends.vulkan.glsl.accesses import WORD_BYTES
from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.lanes import GlslValue, quotient_exact
from lavax.backends.vulkan.glsl.launch import at_row, local_invocations, placed
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, flatten, variable
from lavax.passes.kernels.kernel import Kernel

_FOUR_WORDS = VECTOR * WORD_BYTES  # in bytes


@dataclass(frozen=True)
class WideStores:
    """The maps that store several vectors at once. docs/performance/maps_on_cpus.md, "Eight words at once"."""

    statements: int = 128  # of the graph, times the vectors that are computed for a store


WIDE_STORES = WideStores()


def vectors_of_store(kernel: Kernel, profile: DeviceProfile) -> int:
    """How many vectors of a map's results one store writes: as many as eight words hold, or four words, or one."""
    outputs, inputs = kernel.graph.outputs, len(kernel.graph.inputs)
    sizes = {output.dtype.storage.itemsize for output in outputs}
    numbers = set(range(inputs, inputs + len(outputs)))
    if len(sizes) != 1 or max(sizes) > WORD_BYTES or not numbers <= set(kernel.by_descriptor):
        return 1
    if not all(is_in_order(kernel, output) for output in outputs):
        return 1
    if kernel.domain.rows < 2 * _FOUR_WORDS * local_invocations(profile):  # bytes: the first workgroup is whole
        return 1
    may_be_eight = profile.int64 and not numbers & (kernel.in_parts or frozenset())
    for nbytes in (2 * _FOUR_WORDS, _FOUR_WORDS) if may_be_eight else (_FOUR_WORDS,):
        vectors = nbytes // (VECTOR * max(sizes))
        is_short = vectors * len(kernel.graph.nodes) <= WIDE_STORES.statements
        if is_short and kernel.domain.rows % (VECTOR * vectors) <= _most_behind(vectors, profile):
            return vectors
    return 1


def vectors_of_any_length(kernel: Kernel, profile: DeviceProfile) -> int:
    """The same for a map that shares its shader with maps of other lengths."""
    is_narrow = any(output.dtype.storage.itemsize < WORD_BYTES for output in kernel.graph.outputs)
    vectors = 1 if is_narrow else vectors_of_store(kernel, profile)
    return vectors if _most_behind(vectors, profile) else 1


def _most_behind(vectors: int, profile: DeviceProfile) -> int:
    """How many elements may be left behind the last ones that are stored so: one for each lane of a workgroup."""
    return local_invocations(profile) - 1 if VECTOR * vectors <= local_invocations(profile) else 0


def is_in_order(kernel: Kernel, output: Node) -> bool:
    """Whether the map's elements are the result's, in the order in which they lie in memory."""
    element = variable("i", kernel.domain.rows)
    return flatten(placed(kernel.coordinates[output], at_row(element, kernel)), output.shape) == element


def store_together(
    body: Body, output: Node, results: Sequence[GlslValue], first: Index, address: str
) -> None:
    """Writes the vectors that one store writes, of which the first begins at that element of the result."""
    vectors, of_four = len(results), _FOUR_WORDS // (VECTOR * output.dtype.storage.itemsize)
    words = [body.words_of(output, result) for result in results]
    fours = [words[start : start + of_four] for start in range(0, vectors, of_four)]
    body.store_words(quotient_exact(first, VECTOR * vectors), fours, address)
