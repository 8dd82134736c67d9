"""A graph as kernels in the order they run, and its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import indent

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph
from lavax.ir.printer import print_graph
from lavax.passes.kernels.commands import Command, Guard, Guarded, Repeat, Until, View
from lavax.passes.kernels.kernel import Kernel, KernelStep


@dataclass(frozen=True, eq=False)
class KernelProgram:
    """A graph as kernels in the order they run, with the buffers between them.

    Buffers have names: inputs keep theirs, results are %r0…, temporaries %t0…. `results` gives one buffer per output
    of the graph: a result, or an input that is returned unchanged. `donors` names the input whose memory a result takes
    over. Temporaries share one arena, which is several allocations of `block_bytes` if it needs more: no temporary lies
    across the end of one. `views` names the moving parts of buffers that loops use.
    """

    graph: Graph
    steps: tuple[Command, ...]
    results: tuple[str, ...]
    sizes: Mapping[str, int]  # bytes of every buffer
    donors: Mapping[str, str]
    offsets: Mapping[str, int]  # of temporaries, in the arena
    arena_bytes: int
    block_bytes: int
    views: Mapping[str, View]

    def __str__(self) -> str:
        return print_program(self)


def _extents(extents: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, extents))}]"


def print_step(step: KernelStep) -> str:
    """`kernel NAME kind=… outer=… reduced=… reads=… writes=…`, then the kernel's graph, or those of kernels
    that differ."""
    kernel, differ = step.kernel, step.abreast or step.in_turn
    parts = f" parts={len(step.kernels)}" if len(step.kernels) > 1 else ""
    lines = [f"kernel {step.name} {_loops(kernel, parts)}{' after_barrier' if step.barrier else ''}"]
    for number, (part, reads, writes) in enumerate(zip(step.kernels, step.reads, step.writes, strict=True)):
        if differ and number:
            lines.append(f"  {'beside' if step.abreast else 'then, line by line,'} {_loops(part)}")
        lines.append(f"  {_extents(part.domain.outer)} ({', '.join(reads)}) -> ({', '.join(writes)})")
        lines += [print_graph(part.graph, indent="  ")] if differ else []
    return "\n".join([*lines, *([] if differ else [print_graph(kernel.graph, indent="  ")])])


def _loops(kernel: Kernel, parts: str = "") -> str:
    reduced = f" reduced={_extents(kernel.domain.reduced)}" if kernel.domain.reduced else ""
    return f"kind={kernel.kind}{parts} outer={_extents(kernel.domain.outer)}{reduced}"


def print_command(command: Command) -> str:
    """A step, or a command with its inner commands indented under it."""
    match command:
        case KernelStep():
            return print_step(command)
        case Guard():
            under = f" under {command.parent}" if command.parent else ""
            return f"guard {command.flag} if {command.index} is {command.equals} of {command.count}{under}"
        case Guarded():
            return _with_inner(f"if {command.flag}", command.commands)
        case Repeat():
            return _with_inner(f"repeat {command.count}", command.commands)
        case Until():
            return _with_inner(f"while {command.flag}", command.commands)
    raise TypeError(f"unknown command {command!r}")


def _with_inner(head: str, commands: Sequence[Command]) -> str:
    return "\n".join([head, *(indent(print_command(command), "  ") for command in commands)])


def print_program(program: KernelProgram) -> str:
    """The text of all kernels; the parts of a merged kernel differ only in extents and buffers."""
    inputs = ", ".join(f"{node.name}: {node.type}" for node in program.graph.inputs)
    lines = [f"program ({inputs}) -> ({', '.join(program.results)}) arena={program.arena_bytes}"]
    lines += [f"donated {donor} -> {result}" for result, donor in program.donors.items()]
    lines += [f"view {name} = {v.buffer} + {v.stride} * {v.counter}" for name, v in program.views.items()]
    return "\n".join([*lines, *(print_command(command) for command in program.steps)])
