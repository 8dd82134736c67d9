"""Kernels: pieces of a graph, each a small loop nest, and a program made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from lavax.ir.graph import Graph, Node
from lavax.ir.printer import print_graph
from lavax.passes.kernels.index import Index
from lavax.passes.kernels.reads import Coordinates

Kind = Literal["map", "row", "contract", "routine"]


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
    """

    kind: Kind
    graph: Graph
    domain: Domain
    places: Mapping[Node, Coordinates]

    def is_row_level(self, node: Node) -> bool:
        """Whether a placed node has one element a row, and not one for each element reduced."""
        reduced = {name for index in self.domain.reduced_variables for name in index.variables}
        return all(index.variables.isdisjoint(reduced) for index in self.places[node])


@dataclass(frozen=True, eq=False)
class Step:
    """One dispatch: a kernel, or several of the same form merged, with the buffers of each part."""

    name: str
    kernels: tuple[Kernel, ...]
    reads: tuple[tuple[str, ...], ...]  # for each part, the buffer of each input of its graph
    writes: tuple[tuple[str, ...], ...]
    barrier: bool  # the results of earlier steps must be visible before this one starts

    @property
    def kernel(self) -> Kernel:
        return self.kernels[0]


@dataclass(frozen=True, eq=False)
class KernelProgram:
    """A graph as kernels in the order they run, with the buffers between them.

    Buffers are known by name: the graph's inputs by theirs, results as %r0…, temporaries as %t0….
    `results` gives one buffer an output of the graph: a result, or an input returned as it is.
    `donors` names the input whose memory a result takes over. Temporaries lie in one arena.
    """

    graph: Graph
    steps: tuple[Step, ...]
    results: tuple[str, ...]
    sizes: Mapping[str, int]  # bytes of every buffer
    donors: Mapping[str, str]
    offsets: Mapping[str, int]  # of temporaries, in the arena
    arena_bytes: int

    def __str__(self) -> str:
        return print_program(self)


def _extents(extents: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, extents))}]"


def print_step(step: Step) -> str:
    """`kernel NAME kind=… outer=… reduced=… reads=… writes=…`, then the kernel's graph."""
    kernel = step.kernel
    parts = f" parts={len(step.kernels)}" if len(step.kernels) > 1 else ""
    reduced = f" reduced={_extents(kernel.domain.reduced)}" if kernel.domain.reduced else ""
    head = f"kernel {step.name} kind={kernel.kind}{parts} outer={_extents(kernel.domain.outer)}{reduced}"
    lines = [head + (" after_barrier" if step.barrier else "")]
    for part, reads, writes in zip(step.kernels, step.reads, step.writes, strict=True):
        lines.append(f"  {_extents(part.domain.outer)} ({', '.join(reads)}) -> ({', '.join(writes)})")
    return "\n".join([*lines, print_graph(kernel.graph, indent="  ")])


def print_program(program: KernelProgram) -> str:
    """The text of all kernels; parts of a merged kernel differ in extents and buffers only."""
    inputs = ", ".join(f"{node.name}: {node.type}" for node in program.graph.inputs)
    lines = [f"program ({inputs}) -> ({', '.join(program.results)}) arena={program.arena_bytes}"]
    lines += [f"donated {donor} -> {result}" for result, donor in program.donors.items()]
    return "\n".join([*lines, *(print_step(step) for step in program.steps)])


__all__ = ["Domain", "Index", "Kernel", "KernelProgram", "Kind", "Step", "print_program", "print_step"]
