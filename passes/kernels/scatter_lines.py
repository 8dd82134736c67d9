"""Divides a scatter into lines, each of which a single invocation updates."""

from __future__ import annotations

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.index import variable
from lavax.passes.kernels.reads import counted


@dataclass(frozen=True)
class ScatterLines:
    """The lines of a scatter.

    `aligned` maps an axis of the array to the axis of the indices along which its index counts up. `along` lists the
    axes of the array that a line runs along, `serial` the axes of the indices that are iterated over in order.
    """

    aligned: dict[int, int]
    along: tuple[int, ...]
    serial: tuple[int, ...]


def lines_of(scatter: Node) -> ScatterLines:
    """The lines of a scatter."""
    array, _, *indices = scatter.operands
    shape = indices[0].shape
    names = tuple(variable(f"s{place}", extent) for place, extent in enumerate(shape))
    aligned: dict[int, int] = {}
    for index, axis in zip(indices, scatter.attrs["axes"], strict=True):
        counts = counted(index, names)
        for place, name in enumerate(names):
            fits = not name.is_constant and place not in aligned.values() and shape[place] <= array.shape[axis]
            if fits and counts == name:
                aligned[axis] = place
    along = tuple(axis for axis in scatter.attrs["axes"] if axis not in aligned)
    serial = tuple(place for place in range(len(shape)) if place not in aligned.values())
    return ScatterLines(aligned, along, serial)
