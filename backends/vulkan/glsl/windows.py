"""Which of a kernel's arrays its shader sees in windows, through descriptors, and not by address alone."""

from __future__ import annotations

from lavax.backends.vulkan.glsl.accesses import WORD_BYTES
from lavax.backends.vulkan.glsl.shader import REST_WORD
from lavax.ir.graph import Node
from lavax.passes.kernels.accesses import updated_in_place
from lavax.passes.kernels.kernel import Kernel

# Elements of the largest array from which on faster reads outweigh descriptors: of maps, sums and products half as many
# still took about the same time either way.
_LEAST_ELEMENTS = 1 << 12


def windowed_arrays(kernel: Kernel, window_bytes: int) -> tuple[int, ...]:
    """The numbers of the inputs and outputs that are seen in windows of that length: large work's of 32-bit elements.

    An array of up to half a window's length lies in one wherever it begins; one that moves has no place of its own.
    """
    arrays = (*kernel.graph.inputs, *kernel.graph.outputs)
    if max((node.type.size for node in arrays), default=0) < _LEAST_ELEMENTS:
        return ()
    found = tuple(number for number, node in enumerate(arrays) if _is_windowed(node, kernel, window_bytes))
    counters = sum(map(len, kernel.moving.values()))
    return found if len(arrays) + counters + len(found) <= REST_WORD else ()


def _is_windowed(node: Node, kernel: Kernel, window_bytes: int) -> bool:
    if kernel.kind == "routine" and (node in kernel.graph.outputs or node is updated_in_place(kernel)):
        return False  # routines read their results
    fits = node.type.nbytes <= window_bytes // 2
    return fits and node.dtype.storage.itemsize == WORD_BYTES and node not in kernel.moving
