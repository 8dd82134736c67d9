"""Control flow on its way to commands: its buffers, and scheduled bodies bound to the buffers of the program around."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Graph, Node, graph_of, make_node
from lavax.ir.types import TensorType, TupleType
from lavax.passes.kernels.commands import Command, Guard, Guarded, Repeat, Until, View
from lavax.passes.kernels.kernel import KernelStep
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.schedule.small_steps import copy_steps

# schedule(graph, output position -> the input whose memory it may take over)
Scheduler = Callable[[Graph, Mapping[int, int]], KernelProgram]


@dataclass
class LoweredControlFlow:
    """A branch or loop as commands, with the sizes of its buffers, offsets in the arenas of bodies, and views."""

    commands: list[Command] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    placed: dict[str, tuple[str, int]] = field(default_factory=dict)  # buffer of a body -> its arena, offset in it
    placed_sizes: dict[str, int] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)


@dataclass(frozen=True)
class ControlFlow:
    """A node that holds graphs, with the buffers of its operands and of the results that are used."""

    node: Node
    prefix: str
    operands: tuple[str, ...]
    results: Mapping[int, str]

    @property
    def types(self) -> tuple[TensorType, ...]:
        assert isinstance(self.node.type, TupleType)
        return self.node.type.parts


def result_of(flow: ControlFlow, position: int, lowered: LoweredControlFlow) -> str:
    """The buffer of a result; an additional one if the result is not used."""
    if position in flow.results:
        return flow.results[position]
    name = f"{flow.prefix}result{position}"
    lowered.sizes[name] = flow.types[position].nbytes
    return name


def begin(flow: ControlFlow, carried: Sequence[str]) -> list[KernelStep]:
    """Copies the initial values to the buffers that carry them."""
    count = len(carried)
    return copy_steps(f"{flow.prefix}begin", flow.operands[:count], carried, flow.types[:count])


def with_distinct_outputs(graph: Graph, kept: Mapping[int, Node]) -> Graph:
    """The graph with distinct outputs, none of which is an input, except inputs `kept` at their position."""
    seen: set[Node] = set()
    outputs = []
    for position, output in enumerate(graph.outputs):
        stays = kept.get(position) is output
        if not stays and (output.op == INPUT or output in seen):
            output = _copied(output)
        seen.add(output)
        outputs.append(output)
    return graph if tuple(outputs) == graph.outputs else graph_of(graph.inputs, outputs)


def _copied(x: Node) -> Node:
    if x.type.size == 0:
        return make_node("constant", (), {"value": x.dtype.number(0)}, x.type)
    return make_node("cast", (x,), {}, x.type)


def embedded(
    program: KernelProgram,
    bound: Mapping[str, str],
    prefix: str,
    parent: str | None,
    lowered: LoweredControlFlow,
    turn: str = "",
) -> list[Command]:
    """A body's commands, over the buffers `bound` to its names. Its temporaries get an arena within the program's,
    which all turns share; the names of kernels begin with that of their `turn`."""
    names = dict(bound)
    arena = f"{prefix}arena"
    if program.arena_bytes:
        lowered.sizes[arena] = program.arena_bytes
    for name, offset in program.offsets.items():
        names[name] = prefix + name
        lowered.placed[names[name]] = (arena, offset)
        lowered.placed_sizes[names[name]] = program.sizes[name]
    for name in program.views:
        names[name] = prefix + name
    for name, view in program.views.items():
        lowered.views[names[name]] = View(names[view.buffer], names[view.counter], view.stride)
    return [_renamed(command, names, prefix + turn, parent) for command in program.steps]


def _renamed(command: Command, names: Mapping[str, str], prefix: str, parent: str | None) -> Command:
    match command:
        case KernelStep():
            reads = tuple(tuple(names[name] for name in part) for part in command.reads)
            writes = tuple(tuple(names[name] for name in part) for part in command.writes)
            return replace(command, name=prefix + command.name, reads=reads, writes=writes)
        case Guard():
            over = parent if command.parent is None else names[command.parent]
            return replace(
                command, name=prefix + command.name, flag=names[command.flag], index=names[command.index], parent=over
            )
        case Repeat():
            return replace(command, commands=tuple(_renamed(c, names, prefix, parent) for c in command.commands))
        case Guarded() | Until():
            inner = tuple(_renamed(c, names, prefix, parent) for c in command.commands)
            return replace(command, flag=names[command.flag], commands=inner)
    raise TypeError(f"unknown command {command!r}")
