"""Which of a kernel's arrays its shader sees in windows, through descriptors, and not by address alone."""

from __future__ import annotations

from math import prod

from lavax.backends.vulkan.emit.shader import REST_WORD, WORD_BYTES
from lavax.ir.graph import Node
from lavax.passes.kernels.kernel import Kernel

# Elements of the largest array from which on faster reads outweigh descriptors, which take a call 1 to 2 µs a kernel.
_LEAST_ELEMENTS = 1 << 14
# Routines whose operands are read in windows; in others results may lie where operands do.
_ATTENTION = "attention"


def windowed_arrays(kernel: Kernel) -> tuple[Node, ...]:
    """The inputs and outputs that are seen in windows, in their order: large work's arrays of 32-bit elements.

    An array of up to half a window's length lies in one wherever it begins; one that moves has no place of its own.
    """
    arrays = (*kernel.graph.inputs, *kernel.graph.outputs)
    if max((prod(node.shape) for node in arrays), default=0) < _LEAST_ELEMENTS:
        return ()
    found = tuple(node for node in arrays if _is_windowed(node, kernel))
    counters = sum(map(len, kernel.moving.values()))
    return found if len(arrays) + counters + len(found) <= REST_WORD else ()


def _is_windowed(node: Node, kernel: Kernel) -> bool:
    if kernel.kind == "routine" and (
        node in kernel.graph.outputs or not kernel.graph.outputs[0].op.startswith(_ATTENTION)
    ):
        return False
    fits = node.type.nbytes <= kernel.window_bytes // 2
    return fits and node.dtype.storage.itemsize == WORD_BYTES and node not in kernel.moving
