"""A kernel while it is being put together."""

from __future__ import annotations

from dataclasses import dataclass, field

from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, variable
from lavax.passes.kernels.kernel import Domain, Kind
from lavax.passes.kernels.reads import Coordinates

# Kernels depend on kernels of smaller order only: (level, number). So no join can close a cycle.
Order = tuple[int, int]
FIRST: Order = (-1, -1)


@dataclass(eq=False)
class KernelDraft:
    """The kernel that nodes are computed in.

    `members` gives the coordinates, in the domain's variables, at which each node is computed; `heavy` are its
    reductions or its contraction; `results` are the members that others read from memory; `again` are members of other
    kernels that it computes for itself rather than reading them.
    """

    kind: Kind
    order: Order
    domain: Domain
    full: Coordinates  # of the reduced operand, in rows
    members: dict[Node, Coordinates] = field(default_factory=dict)
    heavy: set[Node] = field(default_factory=set)
    results: dict[Node, None] = field(default_factory=dict)
    again: set[Node] = field(default_factory=set)
    legal: set[tuple[Node, Coordinates]] = field(default_factory=set)
    arrays: set[Node] = field(default_factory=set)  # read from memory, roughly
    cost: int = 0

    @property
    def reduced_names(self) -> frozenset[str]:
        return frozenset().union(*(index.variables for index in self.domain.reduced_variables))


def variables_of(extents: tuple[int, ...], prefix: str = "o") -> tuple[Index, ...]:
    """One loop variable an axis."""
    return tuple(variable(f"{prefix}{number}", extent) for number, extent in enumerate(extents))


def flat_draft(kind: Kind, order: Order, shape: tuple[int, ...]) -> KernelDraft:
    """A kernel over all elements of a shape: a map, a contraction's result, a routine's."""
    variables = variables_of(shape)
    return KernelDraft(kind, order, Domain(shape, (), variables, ()), variables)


def row_draft(order: Order, shape: tuple[int, ...], axes: tuple[int, ...]) -> KernelDraft:
    """A kernel that reduces `axes` of a shape."""
    outer = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    reduced = tuple(shape[axis] for axis in axes)
    outer_variables, reduced_variables = variables_of(outer), variables_of(reduced, "r")
    outside, inside = iter(outer_variables), iter(reduced_variables)
    full = tuple(next(inside) if axis in axes else next(outside) for axis in range(len(shape)))
    return KernelDraft("row", order, Domain(outer, reduced, outer_variables, reduced_variables), full)
