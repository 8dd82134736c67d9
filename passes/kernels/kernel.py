"""Kernels: pieces of a graph, each a small loop nest, and the dispatches that run them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import field
from functools import wraps
from math import prod
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

from lavax.base.kept import kept
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node
from lavax.ir.printer import structural_key
from lavax.passes.kernels.reads import Coordinates

_Asked = ParamSpec("_Asked")
_Found = TypeVar("_Found")
Kind = Literal["map", "row", "contract", "gates", "routine", "loop", "slices", "registers", "region"]


@dataclass(frozen=True)
class Domain:
    """A kernel's loops: one variable per outer axis, then, in row kernels, one per reduced axis."""

    outer: tuple[int, ...]
    reduced: tuple[int, ...]
    outer_variables: Coordinates
    reduced_variables: Coordinates

    @kept
    def rows(self) -> int:
        return prod(self.outer)

    @kept
    def length(self) -> int:
        """The number of elements reduced per row."""
        return prod(self.reduced)


@dataclass(frozen=True, eq=False)
class Kernel:
    """A piece of a graph that runs as one dispatch.

    The inputs of `graph` are the arrays it reads; its outputs, those it writes. `coordinates` are those at which
    each output and each reduction or contraction is computed, in the loop variables of `domain`. `moving` holds the
    inputs and outputs whose start moves from iteration to iteration of a loop, with the bytes it moves by in each such
    loop. `packed` holds the element widths, in bits, that the device can access only as parts of 32-bit words.
    `paired` says that four 32-bit elements are best accessed as two of 64 bits. `by_descriptor` lists the inputs and
    outputs, numbered in this order, that are accessed through descriptors, and `changing` those of the inputs among
    them that the same dispatch writes. `given` are constants that the shader gets when it runs. `beside` is how many
    kernels, itself counted, share the device, as in loops that take their turns together. A kernel with `in_parts` is
    run for some lines at a time, and of the arrays that this numbers in the same way only those lines are in memory.
    """

    kind: Kind
    graph: Graph
    domain: Domain
    coordinates: Mapping[Node, Coordinates]
    moving: Mapping[Node, tuple[int, ...]] = field(default_factory=dict)
    packed: frozenset[int] = frozenset()
    paired: bool = False
    by_descriptor: tuple[int, ...] = ()
    changing: frozenset[int] = frozenset()
    given: frozenset[Node] = frozenset()
    beside: int = 1
    in_parts: frozenset[int] | None = None
    _found: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)  # by `once_a_kernel`

    def is_row_level(self, node: Node) -> bool:
        """Whether a node of `coordinates` has one element per row, rather than one per reduced element."""
        reduced = {name for index in self.domain.reduced_variables for name in index.variables}
        return all(index.variables.isdisjoint(reduced) for index in self.coordinates[node])


def once_a_kernel(
    find: Callable[Concatenate[Kernel, _Asked], _Found],
) -> Callable[Concatenate[Kernel, _Asked], _Found]:
    """A function of a kernel, and of what can be hashed, whose results are kept with the kernel."""

    @wraps(find)
    def found(kernel: Kernel, /, *asked: _Asked.args, **named: _Asked.kwargs) -> _Found:
        assert not named, "further arguments are given by position"
        key = (find, *asked)
        if key not in kernel._found:
            kernel._found[key] = find(kernel, *asked, **named)
        result: _Found = kernel._found[key]
        return result

    return found


@once_a_kernel
def kernel_key(kernel: Kernel) -> Hashable | None:
    """Equal for two kernels exactly if the same code serves both; None if coordinates contain a number read from an
    array, because they name that array's node, which differs between kernels.
    """
    if any(index.reads_array for at in kernel.coordinates.values() for index in at):
        return None
    coordinates = tuple(tuple(index.key for index in kernel.coordinates[node]) for node in kernel.coordinates)
    position = {node: number for number, node in enumerate((*kernel.graph.inputs, *kernel.graph.nodes))}
    placed = tuple(position[node] for node in kernel.coordinates)
    moving = tuple((position[node], strides) for node, strides in kernel.moving.items())
    extents = kernel.domain.outer, kernel.domain.reduced
    memory = kernel.packed, kernel.paired, kernel.by_descriptor, kernel.changing, kernel.in_parts
    return kernel.kind, structural_key(kernel.graph), extents, placed, coordinates, moving, memory, kernel.beside


@dataclass(frozen=True, eq=False)
class KernelStep:
    """One dispatch: a kernel, or several, with the buffers of each.

    Several kernels are the same over other arrays, or, `abreast`, kernels that differ, each with workgroups of its own,
    or, `in_turn`, each reads what the one before it writes, for some lines at a time.
    """

    name: str
    kernels: tuple[Kernel, ...]
    reads: tuple[tuple[str, ...], ...]  # per merged kernel, the buffer of each input of its graph
    writes: tuple[tuple[str, ...], ...]
    barrier: bool  # the results of earlier steps must be visible before this one starts
    abreast: bool = False
    in_turn: bool = False

    @property
    def kernel(self) -> Kernel:
        return self.kernels[0]
