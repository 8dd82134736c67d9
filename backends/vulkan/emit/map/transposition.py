"""Which maps read an array along another axis than they write: transposes, by themselves or within larger maps.

The axis may be several in the map: a convolution's weights are read along windows of three by three elements and the
channels before them, which is one axis in memory, and written along other channels.
"""

from __future__ import annotations

from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.accesses import accesses, roots_of
from lavax.passes.kernels.index import Index, Variable, flatten, order_of, unflatten
from lavax.passes.kernels.kernel import Kernel

# Arrays of one kernel that are read in tiles or blocks.
_MOST_STAGED = 4


Group = tuple[int, ...]  # axes that are one axis in an array's memory, the outermost first


@dataclass(frozen=True)
class Transposition:
    """A map whose results are neighbours along the axes `written`, and the elements of `staged` along the axes `read`.

    Each of the two is one axis in memory. `staged` are arrays and the positions at which they are read, in the kernel's
    loop variables.
    """

    kernel: Kernel
    written: Group
    read: Group
    staged: tuple[tuple[Node, Index], ...]

    @property
    def written_extent(self) -> int:
        return prod(self._extents(self.written))

    @property
    def read_extent(self) -> int:
        return prod(self._extents(self.read))

    @property
    def has_single_axes(self) -> bool:
        """Whether the map is written along one axis of its own, and reads along another."""
        return len(self.written) == len(self.read) == 1

    def _extents(self, axes: Group) -> Group:
        return tuple(self.kernel.domain.outer[axis] for axis in axes)

    @property
    def _others(self) -> Group:
        """The extents of the axes, with 1 for these two groups."""
        outer = enumerate(self.kernel.domain.outer)
        return tuple(1 if axis in (*self.written, *self.read) else extent for axis, extent in outer)

    @property
    def planes(self) -> int:
        """How many planes of the two groups there are."""
        return prod(self._others)

    def at(self, plane: Index, read: Index, written: Index) -> dict[str, Index]:
        """The loop variables at an element of a plane."""
        indices: list[Index] = list(unflatten(plane, self._others))
        for axes, place in ((self.read, read), (self.written, written)):
            for axis, index in zip(axes, unflatten(place, self._extents(axes)), strict=True):
                indices[axis] = index
        pairs = zip(self.kernel.domain.outer_variables, indices, strict=True)
        return {variable.key: index for variable, index in pairs if not variable.is_constant}


def find_transposition(kernel: Kernel, least: int, merges: bool) -> Transposition | None:
    """How a map reads and writes along two axes of at least that extent; None if it does not.

    If it `merges`, short axes that are neighbours in memory count as one.
    """
    coordinates = kernel.coordinates
    outputs = (flatten(coordinates[output], output.shape) for output in kernel.graph.outputs)
    written = {_neighbouring(kernel, position, least, merges, ()) for position in outputs}
    along = written.pop()
    if written or not _is_long(kernel, along, least):
        return None
    reads = [
        (node, position, _neighbouring(kernel, position, least, merges, along))
        for node, position in _positions(kernel)
        if node.dtype.bits not in kernel.packed and _is_apart(kernel, position, along)
    ]
    groups = [group for _, _, group in reads if _is_long(kernel, group, least)]
    if not groups:
        return None
    read = max(groups, key=groups.count)
    staged = tuple((node, position) for node, position, group in reads if group == read)
    return Transposition(kernel, along, read, staged[:_MOST_STAGED])


def _is_long(kernel: Kernel, axes: Group, least: int) -> bool:
    return bool(axes) and prod(kernel.domain.outer[axis] for axis in axes) >= least


def _is_apart(kernel: Kernel, position: Index, axes: Group) -> bool:
    """Whether elements along the axes lie at constant distances in memory, and are no neighbours."""
    distances = [_coefficient(kernel, position, axis) for axis in axes]
    return None not in distances and distances[-1] not in (0, 1)


def _neighbouring(kernel: Kernel, position: Index, least: int, merges: bool, others: Group) -> Group:
    """The axes, none of the others, along which the position grows by one; () if there are none."""
    rank = range(len(kernel.domain.outer))
    found: Group = ()
    extent = 1
    while not found or (merges and extent < least):
        axes = (axis for axis in rank if axis not in (*found, *others))
        axis = next((axis for axis in axes if _coefficient(kernel, position, axis) == extent), None)
        if axis is None:
            break
        found = (axis, *found)
        extent *= kernel.domain.outer[axis]
    return found


def _positions(kernel: Kernel) -> list[tuple[Node, Index]]:
    """Every position at which an array is read, in the same order in every process."""
    found = accesses(kernel, roots_of(kernel))
    return [(node, index) for node, of in found.items() for index in sorted(of, key=order_of)]


def _coefficient(kernel: Kernel, position: Index, axis: int) -> int | None:
    """By how much the position grows along an axis; None if not always by the same."""
    names = kernel.domain.outer_variables[axis].variables
    found = 0
    for atom, coefficient in position.terms:
        if names.isdisjoint(atom.variables):
            continue
        if not isinstance(atom, Variable):
            return None
        found = coefficient
    return found
