"""The choice of the arrays that a kernel's shader sees through descriptors, and not by address alone."""

from __future__ import annotations

from collections.abc import Collection

from lavax.backends.vulkan.glsl.accesses import WORD_BYTES
from lavax.backends.vulkan.glsl.shader import REST_WORD, SPARE_WORDS
from lavax.ir.graph import Node
from lavax.ir.types import float64
from lavax.passes.kernels.accesses import updated_in_place
from lavax.passes.kernels.kernel import Kernel

# From this many elements in the largest array on, faster reads outweigh the cost of descriptors. With half as many,
# maps, sums and products took about the same time either way. Chosen by `python -m benchmarks comparison --only
# elementwise --only sum-rows --only matmul-256`.
_LEAST_ELEMENTS = 1 << 12
# The same for loops lane by lane and in registers: drivers take 4 ms to compile the loads of 64 elements by address,
# and 0.1 by texels.
_LEAST_IN_REGISTERS = 1 << 7
_IN_REGISTERS = ("loop", "registers")
# The same for steps of Fourier transforms, which share a dispatch if their arrays are seen so.
_LEAST_TRANSFORMED = 1 << 9
# The same for a kernel in a workgroup's loop or in a run of small kernels, and the kinds of such kernels.
_LEAST_IN_LOOPS = 1 << 5
_IN_LOOPS = ("map", "row", "contract", "routine")
# Steps of Fourier transforms, which do not read their results.
STEPS_OF_TRANSFORMS = frozenset(
    ("fourier_cosines", "fourier_from_half", "fourier_from_reals", "fourier_join", "fourier_spectrum", "fourier_step")
    + ("fourier_to_half", "fourier_to_reals", "fourier_across_from_reals", "fourier_across_to_half")
    + ("fourier_across_from_half", "fourier_across_to_reals", "fourier_padded", "fourier_filtered", "fourier_cut")
    + ("fourier_from_cosines", "fourier_from_paired", "fourier_paired", "fourier_to_paired", "whole_spectrum")
)
# Routines of which only the copy that comes before them reads the array; what they do to its copy they do by address.
_AFTER_COPIES = frozenset(("join_places", "join_rows", "link_rows"))


def arrays_by_descriptor(kernel: Kernel, range_bytes: int) -> tuple[int, ...]:
    """The numbers of the inputs and outputs that are seen through descriptor ranges of that length.

    These are arrays of elements of up to 32 bits, and in Fourier transforms of float64, in large work. An array of up
    to half a range's length lies within a range wherever it starts; an array that moves with a loop has no fixed start.
    """
    arrays = (*kernel.graph.inputs, *kernel.graph.outputs)
    least = _LEAST_IN_REGISTERS if kernel.kind in _IN_REGISTERS else _LEAST_ELEMENTS
    if kernel.kind == "routine" and kernel.graph.outputs[0].op in STEPS_OF_TRANSFORMS:
        least = _LEAST_TRANSFORMED
    if max((node.type.size for node in arrays), default=0) < least:
        return ()
    found = tuple(number for number, node in enumerate(arrays) if _is_by_descriptor(node, kernel, range_bytes))
    counters = sum(map(len, kernel.moving.values()))
    return found if len(arrays) + counters + len(found) + SPARE_WORDS <= REST_WORD else ()


def read_by_descriptor_in_loop(
    kernel: Kernel, range_bytes: int, still: Collection[int], changing: Collection[int]
) -> tuple[int, ...]:
    """The numbers of the inputs of a kernel in a workgroup's loop that are seen so: of those that no turn writes, and
    of those that change."""
    if kernel.kind not in _IN_LOOPS:
        return ()
    arrays = kernel.graph.inputs
    whole = [number for number in changing if arrays[number].dtype.storage.itemsize == WORD_BYTES]
    found = (number for number in sorted({*still, *whole}) if _is_by_descriptor(arrays[number], kernel, range_bytes))
    return tuple(number for number in found if arrays[number].type.size >= _LEAST_IN_LOOPS)


def _is_by_descriptor(node: Node, kernel: Kernel, range_bytes: int) -> bool:
    if kernel.kind in _IN_REGISTERS and node in kernel.graph.outputs:
        return False  # single elements are stored by address
    copies = kernel.graph.outputs[0].op in _AFTER_COPIES
    if node is updated_in_place(kernel) and not copies:
        return False
    if kernel.kind == "routine" and node in kernel.graph.outputs and not copies and node.op not in STEPS_OF_TRANSFORMS:
        return False  # routines read their results
    fits = node.type.nbytes <= range_bytes // 2
    is_transformed = kernel.kind == "routine" and kernel.graph.outputs[0].op in STEPS_OF_TRANSFORMS
    is_read = node.dtype.storage.itemsize <= WORD_BYTES or (is_transformed and node.dtype == float64)
    return fits and is_read and node not in kernel.moving
