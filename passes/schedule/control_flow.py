"""Branches and loops as commands: their bodies are scheduled separately and bound to the program's buffers.

Each carried value of a loop has one buffer. A body writes it in place if that is allowed; otherwise it writes another
buffer, which is copied when the body is done. Views that move with a counter give access to the arrays that a scan
iterates over or stacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lavax.ir.graph import INPUT, Graph, Node, graph_of, input_node, make_node
from lavax.ir.types import TensorType, TupleType, int32
from lavax.passes.fuse.lane_loops import (
    Prepare,
    at_lane,
    lanes_of,
    most_turns,
    prepared_within,
    shape_of_lanes,
    with_turns,
)
from lavax.passes.kernels.commands import FLAG_BYTES, Command, Guard, Guarded, Repeat, Until, View, after_barrier
from lavax.passes.kernels.index import variable
from lavax.passes.kernels.kernel import Domain, Kernel, KernelStep
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.schedule.merge import merge_key

_COUNTER = TensorType((), int32)

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


def lower_control_flow(flow: ControlFlow, schedule: Scheduler, prepare: Prepare) -> LoweredControlFlow:
    """The commands of a branch or loop. `prepare` rewrites a body as kernels take it."""
    lowered = LoweredControlFlow()
    prepared = flow.node if shape_of_lanes(flow.node) is None else prepared_within(flow.node, prepare)
    lanes = lanes_of(prepared) if prepared is not flow.node else None
    if lanes is None:
        _LOWER[flow.node.op](flow, schedule, lowered)
    else:
        _LANES[flow.node.op](replace(flow, node=prepared), lanes, schedule, lowered)
    lowered.commands = list(after_barrier(lowered.commands))
    return lowered


def _result(flow: ControlFlow, position: int, lowered: LoweredControlFlow) -> str:
    """The buffer of a result; an additional one if the result is not used."""
    if position in flow.results:
        return flow.results[position]
    name = f"{flow.prefix}result{position}"
    lowered.sizes[name] = flow.types[position].nbytes
    return name


def _lower_switch(flow: ControlFlow, schedule: Scheduler, lowered: LoweredControlFlow) -> None:
    index, *arguments = flow.operands
    branches = flow.node.attrs["branches"]
    results = [_result(flow, position, lowered) for position in range(len(flow.types))]
    for number, branch in enumerate(branches):
        flag = f"{flow.prefix}branch{number}"
        lowered.sizes[flag] = FLAG_BYTES
        guard = Guard(flag, flag, index, number, len(branches))
        body = with_distinct_outputs(branch, {})
        program = schedule(body, {})
        bound = dict(zip((node.name for node in body.inputs), arguments, strict=True))
        bound |= dict(zip(program.results, results, strict=True))
        commands = _embed(program, bound, f"{flag}.", flag, lowered)
        lowered.commands += [guard, Guarded(flag, after_barrier(commands))]


def _lower_while(flow: ControlFlow, schedule: Scheduler, lowered: LoweredControlFlow) -> None:
    carried = [_result(flow, position, lowered) for position in range(len(flow.types))]
    names = [*carried, *flow.operands[len(carried) :]]
    body, prefix = flow.node.attrs["body"], f"{flow.prefix}body."

    def turn(running: str) -> Sequence[Command]:
        return _iteration(body, names, carried, {}, prefix, running, schedule, lowered, flow)

    _repeat_while(flow, carried, turn, schedule, lowered)


def _repeat_while(
    flow: ControlFlow,
    carried: Sequence[str],
    turn: Callable[[str], Sequence[Command]],
    schedule: Scheduler,
    lowered: LoweredControlFlow,
) -> None:
    """Commands, given the flag they run under, that are repeated while the loop's condition holds."""
    running, truth = f"{flow.prefix}running", f"{flow.prefix}condition"
    lowered.sizes |= {running: FLAG_BYTES, truth: FLAG_BYTES}
    lowered.commands += _begin(flow, carried)
    asked = with_distinct_outputs(flow.node.attrs["condition"], {})
    program = schedule(asked, {})
    names = (*carried, *flow.operands[len(carried) :])
    bound = dict(zip((node.name for node in asked.inputs), names, strict=True))
    asking = _embed(program, bound | {program.results[0]: truth}, f"{truth}.", None, lowered)
    guard = Guard(running, running, truth, 1, 2)
    lowered.commands.append(Until(running, (*after_barrier(asking), guard, Guarded(running, tuple(turn(running))))))


def _lower_scan(flow: ControlFlow, schedule: Scheduler, lowered: LoweredControlFlow) -> None:
    attrs = flow.node.attrs
    carries, sequences, length = attrs["carries"], attrs["sequences"], attrs["length"]
    carried = [_result(flow, position, lowered) for position in range(carries)]
    body, stacked = attrs["body"], [flow.results[position] for position in range(carries, len(flow.types))]
    lowered.commands += _begin(flow, carried)
    if length == 0:
        return
    counter, moves = f"{flow.prefix}counter", sequences > 0 or len(stacked) > 0
    first, step = (length - 1, -1) if attrs["reverse"] else (0, 1)
    if moves:
        lowered.sizes[counter] = _COUNTER.nbytes
        lowered.commands.append(_step(f"{flow.prefix}start", _fill(first), (), (counter,)))
    seen = list(flow.operands)
    for position in range(carries, carries + sequences):
        seen[position] = f"{flow.prefix}slice{position - carries}"
        nbytes = body.inputs[position].type.nbytes
        lowered.views[seen[position]] = View(flow.operands[position], counter, nbytes)
    held = _hold_cases(body, range(carries, carries + sequences), seen, f"{flow.prefix}case", lowered)
    rows = {}
    for number, whole in enumerate(stacked):
        rows[carries + number] = f"{flow.prefix}row{number}"
        lowered.views[rows[carries + number]] = View(whole, counter, body.outputs[carries + number].type.nbytes)
    names = [*carried, *seen[carries:]]
    iteration = _iteration(body, names, carried, rows, f"{flow.prefix}body.", None, schedule, lowered, flow)
    if moves:
        iteration.append(_step(f"{flow.prefix}next", _increment(step), (counter,), (counter,)))
    commands = after_barrier([*held, *after_barrier(iteration)])
    lowered.commands += [Repeat(length, commands)] if commands else []


def _hold_cases(
    body: Graph, sequences: Iterable[int], seen: list[str], prefix: str, lowered: LoweredControlFlow
) -> list[KernelStep]:
    """Copies, in each iteration, the numbers in `seen` that choose branches in the body: guards cannot read views."""
    operands = {operand for node in body.nodes if node.op in _LOWER for operand in node.operands}
    cases = [p for p in sequences if body.inputs[p] in operands and body.inputs[p].type == _COUNTER]
    views, own = [seen[position] for position in cases], [f"{prefix}{position}" for position in cases]
    lowered.sizes |= dict.fromkeys(own, _COUNTER.nbytes)
    for position, name in zip(cases, own, strict=True):
        seen[position] = name
    return _copy_steps(prefix, views, own, [_COUNTER] * len(cases))


# -- loops that run lane by lane ---------------------------------------------------------------------------------------


def _lanes_of_scan(flow: ControlFlow, lanes: tuple[int, ...], schedule: Scheduler, lowered: LoweredControlFlow) -> None:
    """One kernel or, if the turns are too many for a dispatch, one that is repeated, and one for those that are left.

    A counter says which part of the sequences a dispatch goes through.
    """
    attrs = flow.node.attrs
    carries, sequences, length = attrs["carries"], attrs["sequences"], attrs["length"]
    times = -(-length // most_turns(flow.node, lanes))
    if times == 1:
        used = sorted(flow.results)
        kernel = lane_kernel(with_turns(flow.node, used, length), lanes)
        lowered.commands.append(_step(f"{flow.prefix}loop", kernel, flow.operands, _named(flow.results, used)))
        return
    turns = length // times
    results = [_result(flow, position, lowered) for position in range(len(flow.types))]
    lowered.commands += _begin(flow, results[:carries])
    counter = f"{flow.prefix}counter"
    lowered.sizes[counter] = _COUNTER.nbytes
    reads, writes = [*results[:carries], *flow.operands[carries:]], list(results)
    moving = [(reads, carries + number, f"slice{number}") for number in range(sequences)]
    moving += [(writes, number, f"row{number}") for number in range(carries, len(results))]
    types = {id(reads): [operand.type for operand in flow.node.operands], id(writes): list(flow.types)}
    for names, position, suffix in moving:
        row = types[id(names)][position].nbytes // length
        lowered.views[f"{flow.prefix}{suffix}"] = View(names[position], counter, turns * row)
        names[position] = f"{flow.prefix}{suffix}"
    rest = length - times * turns
    first, step = (times if rest else times - 1, -1) if attrs["reverse"] else (0, 1)
    lowered.commands.append(_step(f"{flow.prefix}start", _fill(first), (), (counter,)))
    next_part = _step(f"{flow.prefix}next", _increment(step), (counter,), (counter,))
    whole = after_barrier([*_lane_steps(flow, lanes, turns, "loop", reads, writes, lowered), next_part])
    left = after_barrier([*_lane_steps(flow, lanes, rest, "rest", reads, writes, lowered), next_part]) if rest else ()
    parts: list[Command] = [Repeat(times, whole)]
    lowered.commands += [*left, *parts] if attrs["reverse"] else [*parts, *left]


def _lane_steps(
    flow: ControlFlow,
    lanes: tuple[int, ...],
    turns: int | None,
    name: str,
    reads: Sequence[str],
    writes: Sequence[str],
    lowered: LoweredControlFlow,
) -> list[Command]:
    """Some turns. What is carried is written aside: other lanes may still read a scalar."""
    carries = flow.node.attrs.get("carries", len(flow.types))
    aside = [f"{flow.prefix}aside{position}" for position in range(carries)]
    lowered.sizes |= {name: type.nbytes for name, type in zip(aside, flow.types, strict=False)}
    kernel = lane_kernel(with_turns(flow.node, range(len(flow.types)), turns), lanes)
    step = _step(f"{flow.prefix}{name}", kernel, tuple(reads), (*aside, *writes[carries:]))
    return [step, *_copy_steps(f"{flow.prefix}{name}.carry", aside, writes[:carries], flow.types[:carries])]


def _lanes_of_while(
    flow: ControlFlow, lanes: tuple[int, ...], schedule: Scheduler, lowered: LoweredControlFlow
) -> None:
    """A kernel that ends early if the turns are too many for a dispatch, until the condition does not hold."""
    carried = [_result(flow, position, lowered) for position in range(len(flow.types))]
    names = [*carried, *flow.operands[len(carried) :]]
    steps = _lane_steps(flow, lanes, None, "loop", names, carried, lowered)
    _repeat_while(flow, carried, lambda running: after_barrier(steps), schedule, lowered)


def _named(results: Mapping[int, str], used: Sequence[int]) -> tuple[str, ...]:
    return tuple(results[position] for position in used)


_LANES: dict[str, Callable[[ControlFlow, tuple[int, ...], Scheduler, LoweredControlFlow], None]] = {
    "while": _lanes_of_while,
    "scan": _lanes_of_scan,
}
_LOWER: dict[str, Callable[[ControlFlow, Scheduler, LoweredControlFlow], None]] = {
    "switch": _lower_switch,
    "while": _lower_while,
    "scan": _lower_scan,
}


def _iteration(
    body: Graph,
    inputs: Sequence[str],
    carried: Sequence[str],
    others: Mapping[int, str],
    prefix: str,
    parent: str | None,
    schedule: Scheduler,
    lowered: LoweredControlFlow,
    flow: ControlFlow,
) -> list[Command]:
    """One iteration of a loop. `inputs` are the buffers of the body's inputs, carried ones first; `others` are the
    buffers of the outputs that are not carried."""
    kept = {position: body.inputs[position] for position in range(len(carried))}
    graph = with_distinct_outputs(body, kept)
    program = schedule(graph, {position: position for position in range(len(carried))})
    bound = dict(zip((node.name for node in graph.inputs), inputs, strict=True))
    aside: list[str] = []
    targets: list[str] = []
    for position, name in enumerate(program.results):
        if position >= len(carried):
            bound[name] = others[position]
        elif name == graph.inputs[position].name:
            continue  # carried unchanged
        elif program.donors.get(name) == graph.inputs[position].name:
            bound[name] = carried[position]
        else:
            bound[name] = f"{prefix}aside{position}"
            lowered.sizes[bound[name]] = flow.types[position].nbytes
            aside.append(bound[name])
            targets.append(carried[position])
    commands = list(after_barrier(_embed(program, bound, prefix, parent, lowered)))
    types = [flow.types[carried.index(target)] for target in targets]
    return [*commands, *_copy_steps(f"{prefix}carry", aside, targets, types)]


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
    return graph_of(graph.inputs, outputs)


def _copied(x: Node) -> Node:
    if x.type.size == 0:
        return make_node("constant", (), {"value": x.dtype.number(0)}, x.type)
    return make_node("cast", (x,), {}, x.type)


def _embed(
    program: KernelProgram, bound: Mapping[str, str], prefix: str, parent: str | None, lowered: LoweredControlFlow
) -> list[Command]:
    """A body's commands, over the buffers `bound` to its names. Its temporaries get an arena within the program's."""
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
    return [_renamed(command, names, prefix, parent) for command in program.steps]


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


# -- small kernels that control flow itself needs ----------------------------------------------------------------------


def _map_kernel(graph: Graph) -> Kernel:
    (output,) = graph.outputs
    variables = tuple(variable(f"o{number}", extent) for number, extent in enumerate(output.shape))
    return Kernel("map", graph, Domain(output.shape, (), variables, ()), {output: variables})


def lane_kernel(graph: Graph, lanes: tuple[int, ...]) -> Kernel:
    """The kernel of a loop that runs lane by lane; of its results, what is carried is a scalar or has the lanes'
    shape, and what is stacked has an axis of turns before that."""
    return Kernel("loop", graph, Domain(lanes, (), at_lane(lanes, lanes), ()), {})


def _identity(type: TensorType) -> Kernel:
    source = input_node("a0", type)
    return _map_kernel(graph_of((source,), (make_node("cast", (source,), {}, type),)))


def _fill(value: int) -> Kernel:
    return _map_kernel(graph_of((), (make_node("constant", (), {"value": value}, _COUNTER),)))


def _increment(step: int) -> Kernel:
    source = input_node("a0", _COUNTER)
    one = make_node("constant", (), {"value": step}, _COUNTER)
    return _map_kernel(graph_of((source,), (make_node("add", (source, one)),)))


def _step(name: str, kernel: Kernel, reads: tuple[str, ...], writes: tuple[str, ...]) -> KernelStep:
    return KernelStep(name, (kernel,), (reads,), (writes,), barrier=True)


def _begin(flow: ControlFlow, carried: Sequence[str]) -> list[KernelStep]:
    """Copies the initial values to the buffers that carry them."""
    count = len(carried)
    return _copy_steps(f"{flow.prefix}begin", flow.operands[:count], carried, flow.types[:count])


def _copy_steps(
    name: str, sources: Sequence[str], targets: Sequence[str], types: Sequence[TensorType]
) -> list[KernelStep]:
    """Copies buffers; mergeable copies share a dispatch."""
    groups: dict[str, list[tuple[Kernel, str, str]]] = {}
    for source, target, type in zip(sources, targets, types, strict=True):
        if type.size:
            kernel = _identity(type)
            groups.setdefault(merge_key(kernel) or target, []).append((kernel, source, target))
    steps = []
    for number, group in enumerate(groups.values()):
        kernels, froms, tos = zip(*group, strict=True)
        reads, writes = tuple((each,) for each in froms), tuple((each,) for each in tos)
        steps.append(KernelStep(f"{name}{number}", kernels, reads, writes, barrier=number == 0))
    return steps
