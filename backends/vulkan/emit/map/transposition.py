"""Which maps read an array along another axis than they write: transposes, by themselves or within larger maps."""

from __future__ import annotations

from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.accesses import accesses, roots_of
from lavax.passes.kernels.index import Index, Variable, flatten, order_of, unflatten
from lavax.passes.kernels.kernel import Kernel

# Arrays of one kernel that are read in tiles or blocks.
_MOST_STAGED = 4


@dataclass(frozen=True)
class Transposition:
    """A map whose results are neighbours along the axis `written`, and the elements of `staged` along the axis `read`.

    `staged` are arrays and the positions at which they are read, in the kernel's loop variables.
    """

    kernel: Kernel
    written: int
    read: int
    staged: tuple[tuple[Node, Index], ...]

    @property
    def written_extent(self) -> int:
        return self.kernel.domain.outer[self.written]

    @property
    def read_extent(self) -> int:
        return self.kernel.domain.outer[self.read]

    @property
    def _others(self) -> tuple[int, ...]:
        """The extents of the axes, with 1 for these two."""
        outer = enumerate(self.kernel.domain.outer)
        return tuple(1 if axis in (self.written, self.read) else extent for axis, extent in outer)

    @property
    def planes(self) -> int:
        """How many planes of the two axes there are."""
        return prod(self._others)

    def at(self, plane: Index, read: Index, written: Index) -> dict[str, Index]:
        """The loop variables at an element of a plane."""
        indices: list[Index] = list(unflatten(plane, self._others))
        indices[self.read], indices[self.written] = read, written
        pairs = zip(self.kernel.domain.outer_variables, indices, strict=True)
        return {variable.key: index for variable, index in pairs if not variable.is_constant}


def find_transposition(kernel: Kernel, least: int) -> Transposition | None:
    """How a map reads and writes along two axes of at least that extent; None if it does not."""
    coordinates = kernel.coordinates
    written = {_unit_axis(kernel, flatten(coordinates[output], output.shape)) for output in kernel.graph.outputs}
    along = written.pop()
    if written or along is None or kernel.domain.outer[along] < least:
        return None
    reads = [
        (node, position, _unit_axis(kernel, position))
        for node, position in _positions(kernel)
        if node.dtype.bits not in kernel.packed and _coefficient(kernel, position, along) not in (None, 0, 1)
    ]
    axes = [axis for _, _, axis in reads if axis is not None and kernel.domain.outer[axis] >= least]
    if not axes:
        return None
    read = max(axes, key=axes.count)
    staged = tuple((node, position) for node, position, axis in reads if axis == read)
    return Transposition(kernel, along, read, staged[:_MOST_STAGED])


def _positions(kernel: Kernel) -> list[tuple[Node, Index]]:
    """Every position at which an array is read, in the same order in every process."""
    found = accesses(kernel, roots_of(kernel))
    return [(node, index) for node, of in found.items() for index in sorted(of, key=order_of)]


def _unit_axis(kernel: Kernel, position: Index) -> int | None:
    """The axis along which the position grows by one."""
    axes = (axis for axis in range(len(kernel.domain.outer)) if _coefficient(kernel, position, axis) == 1)
    return next(axes, None)


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
