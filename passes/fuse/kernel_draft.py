"""A kernel under construction."""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache

from lavax.base.kept import kept
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, variable
from lavax.passes.kernels.kernel import Domain, Kind
from lavax.passes.kernels.reads import Coordinates

# (level, number). A kernel depends only on kernels of smaller order, so no join can close a cycle.
Order = tuple[int, int]
FIRST: Order = (-1, -1)


@dataclass(eq=False)
class KernelDraft:
    """The kernel that nodes are computed in, while fusion adds nodes to it.

    `members` maps each node to the coordinates, in the domain's variables, at which it is computed. `heavy` holds its
    reductions or its contraction; `results` the members that other kernels read from memory; `recomputed` the members
    of other kernels that this one computes for itself instead of reading them. `legal` remembers nodes and
    coordinates that have passed the legality check. `computed` are all nodes that a map computes; `most_nodes` and
    `most_work` are bounds of the number and cost of those that another kernel computes.
    """

    kind: Kind
    order: Order
    domain: Domain
    full: Coordinates  # of the reduced operand, if this is a row kernel
    members: dict[Node, Coordinates] = field(default_factory=dict)
    heavy: set[Node] = field(default_factory=set)
    results: dict[Node, None] = field(default_factory=dict)
    recomputed: set[Node] = field(default_factory=set)
    legal: set[tuple[Node, Coordinates]] = field(default_factory=set)
    arrays: set[Node] = field(default_factory=set)  # read from memory, approximately
    cost: int = 0  # of the elementwise members
    cost_at: dict[Node, int] = field(default_factory=dict)  # of those up to each of them
    computed: set[Node] = field(default_factory=set)
    most_nodes: int = 0
    most_work: int = 0

    @kept
    def reduced_names(self) -> frozenset[str]:
        return frozenset().union(*(index.variables for index in self.domain.reduced_variables))


def variables_of(extents: tuple[int, ...], prefix: str = "o") -> tuple[Index, ...]:
    """One loop variable per axis."""
    return tuple(variable(f"{prefix}{number}", extent) for number, extent in enumerate(extents))


def flat_draft(kind: Kind, order: Order, shape: tuple[int, ...]) -> KernelDraft:
    """A kernel over all elements of a shape: a map, or the result of a contraction or routine."""
    domain = _flat_domain(shape)
    return KernelDraft(kind, order, domain, domain.outer_variables)


@lru_cache(maxsize=1 << 10)
def _flat_domain(shape: tuple[int, ...]) -> Domain:
    """One for all kernels over a shape, such as those of a network's layers."""
    return Domain(shape, (), variables_of(shape), ())


def row_draft(order: Order, shape: tuple[int, ...], axes: tuple[int, ...]) -> KernelDraft:
    """A kernel that reduces `axes` of a shape."""
    return KernelDraft("row", order, *_row_domain(shape, axes))


@lru_cache(maxsize=1 << 10)
def _row_domain(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[Domain, Coordinates]:
    """The domain, and the coordinates of the reduced operand."""
    outer = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    reduced = tuple(shape[axis] for axis in axes)
    outer_variables, reduced_variables = variables_of(outer), variables_of(reduced, "r")
    outside, inside = iter(outer_variables), iter(reduced_variables)
    full = tuple(next(inside) if axis in axes else next(outside) for axis in range(len(shape)))
    return Domain(outer, reduced, outer_variables, reduced_variables), full
