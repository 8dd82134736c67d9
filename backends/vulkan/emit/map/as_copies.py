"""Maps that only move elements, as copies and fills, which CPU drivers do by vectors, and without a shader.

What a shader stores is a loop over the lanes there: a million floats take 1.2 ms, and a copy 0.1.
"""

from __future__ import annotations

import numpy as np

from lavax.backends.vulkan.plan.plan import Copies, Copy, Fill
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.copied_runs import Moved, Run, moved
from lavax.passes.kernels.kernel import Kernel

_WORD_BYTES = 4  # of a fill


@dataclass(frozen=True)
class Copied:
    """Bytes. Exercised by `python -m benchmarks selection` (roll of 10^6)."""

    run: int = 512  # on average; each costs a driver as much as a shader takes for 400 bytes
    results: int = 1 << 15  # the program is recorded for where its arrays lie, which small ones are not worth


COPIED = Copied()


def as_copies(kernel: Kernel, profile: DeviceProfile) -> Copies | None:
    """Copies and fills that give all results of a map, whose slots are the numbers of its arrays; None: it needs a
    shader, or is better off with it."""
    inputs, outputs = kernel.graph.inputs, kernel.graph.outputs
    if kernel.kind != "map" or kernel.moving or sum(node.type.nbytes for node in outputs) < COPIED.results:
        return None
    if max(node.type.nbytes for node in (*inputs, *outputs)) > profile.descriptor_range_bytes // 2:
        return None  # as always on GPUs, which have no such ranges
    numbers = {node: number for number, node in enumerate(inputs)}
    fills, copies = [], []
    for target, node in enumerate(outputs, len(inputs)):
        itemsize = node.dtype.storage.itemsize
        found = moved(node, -(-COPIED.run // itemsize))
        if found is None:
            return None
        if found.around is not None:
            fill = _fill(node, found, target)
            if fill is None:
                return None
            fills.append(fill)
        for array, runs in found.runs.items():
            copies.append(Copy(numbers[array], target, tuple(_in_bytes(run, itemsize) for run in runs)))
    return Copies(tuple(fills), tuple(copies))


def _in_bytes(run: Run, itemsize: int) -> tuple[int, int, int]:
    return run.source * itemsize, run.target * itemsize, run.count * itemsize


def _fill(node: Node, found: Moved, target: int) -> Fill | None:
    """The word that fills a result; None if there is no such word."""
    number = node.dtype.to_storage(np.array([found.around], node.dtype.numpy)).tobytes()
    words = number * max(1, _WORD_BYTES // len(number))
    first, nbytes = words[:_WORD_BYTES], node.type.nbytes
    if nbytes % _WORD_BYTES or words != first * (len(words) // _WORD_BYTES):
        return None
    return Fill(target, nbytes, int.from_bytes(first, "little"))
