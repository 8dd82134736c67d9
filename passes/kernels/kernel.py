"""Kernels: pieces of a graph, each a small loop nest, and the dispatches that run them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Literal

from lavax.ir.graph import Graph, Node
from lavax.ir.printer import structural_key
from lavax.passes.kernels.reads import Coordinates

Kind = Literal["map", "row", "contract", "routine", "region"]


@dataclass(frozen=True)
class Domain:
    """A kernel's loops: one variable an outer axis, then (rows only) one a reduced axis."""

    outer: tuple[int, ...]
    reduced: tuple[int, ...]
    outer_variables: Coordinates
    reduced_variables: Coordinates

    @property
    def rows(self) -> int:
        return prod(self.outer)

    @property
    def length(self) -> int:
        """How many elements are reduced in a row."""
        return prod(self.reduced)


@dataclass(frozen=True, eq=False)
class Kernel:
    """A piece of a graph that runs as one dispatch.

    `graph` has the arrays it reads as inputs and the arrays it writes as outputs. `places` says at which
    coordinates, in the loop variables of `domain`, each output and each reduction or contraction is computed.
    `moving` has the inputs and outputs that begin further on from turn to turn of loops: by how many bytes, for each
    loop they move with. `packed` are the widths in bits of elements that the device cannot address by themselves, but
    only in 32-bit words; `paired` is whether it is better to access four 32-bit elements as two of 64 bits. `windowed`
    are the numbers of those inputs and outputs, counted in this order, that are seen through descriptors.
    """

    kind: Kind
    graph: Graph
    domain: Domain
    places: Mapping[Node, Coordinates]
    moving: Mapping[Node, tuple[int, ...]] = field(default_factory=dict)
    packed: frozenset[int] = frozenset()
    paired: bool = False
    windowed: tuple[int, ...] = ()

    def is_row_level(self, node: Node) -> bool:
        """Whether a placed node has one element a row, and not one for each element reduced."""
        reduced = {name for index in self.domain.reduced_variables for name in index.variables}
        return all(index.variables.isdisjoint(reduced) for index in self.places[node])


def kernel_key(kernel: Kernel) -> Hashable | None:
    """What two kernels share just when the same code does for both; None where a place reads an array.

    Such places name that array's node, which is another one in every kernel.
    """
    if any(index.reads_array for at in kernel.places.values() for index in at):
        return None
    places = tuple(tuple(index.key for index in kernel.places[node]) for node in kernel.places)
    position = {node: number for number, node in enumerate((*kernel.graph.inputs, *kernel.graph.nodes))}
    placed = tuple(position[node] for node in kernel.places)
    moving = tuple((position[node], strides) for node, strides in kernel.moving.items())
    extents = kernel.domain.outer, kernel.domain.reduced
    memory = kernel.packed, kernel.paired, kernel.windowed
    return kernel.kind, structural_key(kernel.graph), extents, placed, places, moving, memory


@dataclass(frozen=True, eq=False)
class KernelStep:
    """One dispatch: a kernel, or several of the same form merged, with the buffers of each part."""

    name: str
    kernels: tuple[Kernel, ...]
    reads: tuple[tuple[str, ...], ...]  # for each part, the buffer of each input of its graph
    writes: tuple[tuple[str, ...], ...]
    barrier: bool  # the results of earlier steps must be visible before this one starts

    @property
    def kernel(self) -> Kernel:
        return self.kernels[0]
