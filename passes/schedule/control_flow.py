"""Branches and loops as commands: their bodies are scheduled separately and bound to the program's buffers.

Each carried value of a loop has one buffer. A body writes it in place if that is allowed; otherwise it writes another
buffer, which is copied when the body is done. Views that move with a counter give access to the arrays that a scan
iterates over or stacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from lavax.ir.graph import Graph, Node, make_node
from lavax.passes.build.joined_turns import body_of_turns, may_be_joined, with_turns_joined
from lavax.passes.fuse.lane_loops import Prepare, lanes_of, most_turns, prepared_within, shape_of_lanes, with_turns
from lavax.passes.fuse.register_loops import most_turns_in_registers, register_kernel
from lavax.passes.fuse.register_tables import tables_of
from lavax.passes.fuse.sliced_loops import most_turns_of_slices
from lavax.passes.kernels.commands import (
    FLAG_BYTES,
    Command,
    Guard,
    Guarded,
    Repeat,
    Until,
    View,
    after_barrier,
    steps_of,
)
from lavax.passes.kernels.kernel import Kernel, KernelStep
from lavax.passes.prepare.single_places import with_single_places_chosen
from lavax.passes.schedule.embedding import (
    ControlFlow,
    LoweredControlFlow,
    Scheduler,
    begin,
    embedded,
    result_of,
    with_distinct_outputs,
)
from lavax.passes.schedule.rotated_scan import rotated
from lavax.passes.schedule.rotated_turns import halves_of
from lavax.passes.schedule.small_steps import (
    COUNTER,
    copy_steps,
    filled,
    incremented,
    lane_kernel,
    side_by_side,
    slice_kernel,
    step_of,
)
from lavax.passes.schedule.unrolled_scan import suits_unrolling, unrolled
from lavax.passes.schedule.wavefront_turns import lower_wavefront
from lavax.passes.simplify import simplify
from lavax.passes.target.target import Loops

# What several turns at once may store, over what one stores: parts of arrays, of which all is read.
_MORE_STORED = 1.25


def lower_control_flow(flow: ControlFlow, schedule: Scheduler, prepare: Prepare, loops: Loops) -> LoweredControlFlow:
    """The commands of a branch or loop. `prepare` rewrites a body as kernels take it."""
    lowered = LoweredControlFlow()
    prepared = flow.node if shape_of_lanes(flow.node) is None else prepared_within(flow.node, prepare)
    lanes = lanes_of(prepared) if prepared is not flow.node else None
    if flow.node.op == "wavefront":
        lower_wavefront(flow, loops, schedule, lowered)
    elif lanes is not None:
        by_lane = replace(flow, node=prepared)
        _in_kernels(by_lane, most_turns(prepared, lanes), lambda graph: lane_kernel(graph, lanes), schedule, lowered)
    elif written_out := loops.in_registers(flow.node, prepare):
        most = most_turns_in_registers(written_out)
        kept = tables_of(written_out)
        _in_kernels(replace(flow, node=written_out), most, register_kernel, schedule, lowered, kept)
    elif slices := loops.slices(flow.node):
        most = most_turns_of_slices(flow.node)
        _scan_in_kernels(flow, most, lambda graph: slice_kernel(graph, slices), lowered)
    elif (halves := halves_of(flow.node, loops)) is not None:
        lowered.commands += rotated(flow, halves, loops.turns, schedule, lowered).commands()
    elif found := _joined_turns(scan := _with_places_chosen(flow.node, loops), loops, schedule):
        _in_joined_turns(replace(flow, node=scan), *found, loops, schedule, lowered)
    else:
        _in_dispatches(flow, loops, schedule, lowered)
    lowered.commands = list(after_barrier(lowered.commands))
    return lowered


def _in_dispatches(flow: ControlFlow, loops: Loops, schedule: Scheduler, lowered: LoweredControlFlow) -> None:
    if suits_unrolling(flow.node, loops, schedule):
        lowered.commands += unrolled(flow, loops.turns, schedule, lowered).commands()
    else:
        _LOWER[flow.node.op](flow, schedule, lowered)


# -- several turns at once --------------------------------------------------------------------------------------------


def _with_places_chosen(loop: Node, loops: Loops) -> Node:
    """The scan, whose turns may be joined if they choose what they set."""
    if loop.op != "scan" or not loops.joined_turns:
        return loop
    attrs = {**loop.attrs, "body": with_single_places_chosen(loop.attrs["body"])}
    return make_node("scan", loop.operands, attrs, loop.type, loop.location)


def _joined_turns(scan: Node, loops: Loops, schedule: Scheduler) -> tuple[int, Node] | None:
    """How many turns of a scan its kernels take at once, and the scan of such turns: as many as store little more than
    one turn does; None if one."""
    if not loops.joined_turns or not may_be_joined(scan):
        return None
    most = _MORE_STORED * _stored_bytes(scan.attrs["body"], schedule)
    for turns in loops.joined_turns:
        joined = with_turns_joined(scan, turns)
        if joined is None:
            continue
        body = simplify(joined.attrs["body"])
        if _stored_bytes(body, schedule) <= most:
            attrs = {**joined.attrs, "body": body}
            return turns, make_node("scan", joined.operands, attrs, joined.type, joined.location)
    return None


def _stored_bytes(body: Graph, schedule: Scheduler) -> int:
    program = schedule(with_distinct_outputs(body, {}), {})
    return sum(program.sizes[name] for step in steps_of(program.steps) for part in step.writes for name in part)


def _in_joined_turns(
    flow: ControlFlow, turns: int, joined: Node, loops: Loops, schedule: Scheduler, lowered: LoweredControlFlow
) -> None:
    """The first turns, which are left over, by themselves, and the scan `joined` of turns that are several each."""
    rest, carries, operands = flow.node.attrs["length"] % turns, flow.node.attrs["carries"], flow.operands
    if rest:
        first = [f"{flow.prefix}first{position}" for position in range(carries)]
        lowered.sizes |= {name: type.nbytes for name, type in zip(first, flow.types, strict=True)}
        graph = with_distinct_outputs(simplify(body_of_turns(flow.node, rest)), {})
        program = schedule(graph, {})
        bound = dict(zip((node.name for node in graph.inputs), operands, strict=True))
        bound |= dict(zip(program.results, first, strict=True))
        lowered.commands += after_barrier(embedded(program, bound, f"{flow.prefix}first.", None, lowered))
        operands = (*first, *operands[carries:])
    within = replace(flow, node=joined, prefix=f"{flow.prefix}joined.", operands=operands)
    _in_dispatches(within, loops, schedule, lowered)


def _lower_switch(flow: ControlFlow, schedule: Scheduler, lowered: LoweredControlFlow) -> None:
    index, *arguments = flow.operands
    branches = flow.node.attrs["branches"]
    results = [result_of(flow, position, lowered) for position in range(len(flow.types))]
    for number, branch in enumerate(branches):
        flag = f"{flow.prefix}branch{number}"
        lowered.sizes[flag] = FLAG_BYTES
        guard = Guard(flag, flag, index, number, len(branches))
        body = with_distinct_outputs(branch, {})
        program = schedule(body, {})
        bound = dict(zip((node.name for node in body.inputs), arguments, strict=True))
        bound |= dict(zip(program.results, results, strict=True))
        commands = embedded(program, bound, f"{flag}.", flag, lowered)
        lowered.commands += [guard, Guarded(flag, after_barrier(commands))]


def _lower_while(flow: ControlFlow, schedule: Scheduler, lowered: LoweredControlFlow) -> None:
    carried = [result_of(flow, position, lowered) for position in range(len(flow.types))]
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
    lowered.commands += begin(flow, carried)
    asked = with_distinct_outputs(flow.node.attrs["condition"], {})
    program = schedule(asked, {})
    names = (*carried, *flow.operands[len(carried) :])
    bound = dict(zip((node.name for node in asked.inputs), names, strict=True))
    asking = embedded(program, bound | {program.results[0]: truth}, f"{truth}.", None, lowered)
    guard = Guard(running, running, truth, 1, 2)
    lowered.commands.append(Until(running, (*after_barrier(asking), guard, Guarded(running, tuple(turn(running))))))


def _lower_scan(flow: ControlFlow, schedule: Scheduler, lowered: LoweredControlFlow) -> None:
    attrs = flow.node.attrs
    carries, sequences, length = attrs["carries"], attrs["sequences"], attrs["length"]
    carried = [result_of(flow, position, lowered) for position in range(carries)]
    body, stacked = attrs["body"], [flow.results[position] for position in range(carries, len(flow.types))]
    lowered.commands += begin(flow, carried)
    if length == 0:
        return
    counter, moves = f"{flow.prefix}counter", sequences > 0 or len(stacked) > 0
    first, step = (length - 1, -1) if attrs["reverse"] else (0, 1)
    if moves:
        lowered.sizes[counter] = COUNTER.nbytes
        lowered.commands.append(step_of(f"{flow.prefix}start", filled(first), (), (counter,)))
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
    moved = [step_of(f"{flow.prefix}next", incremented(step), (counter,), (counter,))] if moves else []
    prefix = f"{flow.prefix}body."
    iteration = _iteration(body, names, carried, rows, prefix, None, schedule, lowered, flow, moved)
    commands = after_barrier([*held, *after_barrier(iteration)])
    lowered.commands += [Repeat(length, commands)] if commands else []


def _hold_cases(
    body: Graph, sequences: Iterable[int], seen: list[str], prefix: str, lowered: LoweredControlFlow
) -> list[KernelStep]:
    """Copies, in each iteration, the numbers in `seen` that choose branches in the body: guards cannot read views."""
    operands = {operand for node in body.nodes if node.op in _LOWER for operand in node.operands}
    cases = [p for p in sequences if body.inputs[p] in operands and body.inputs[p].type == COUNTER]
    views, own = [seen[position] for position in cases], [f"{prefix}{position}" for position in cases]
    lowered.sizes |= dict.fromkeys(own, COUNTER.nbytes)
    for position, name in zip(cases, own, strict=True):
        seen[position] = name
    return copy_steps(prefix, views, own, [COUNTER] * len(cases))


# -- loops that run lane by lane, in registers, or slice by slice -----------------------------------------------------


def _in_kernels(
    flow: ControlFlow,
    most: int,
    kernel_of: Callable[[Graph], Kernel],
    schedule: Scheduler,
    lowered: LoweredControlFlow,
    kept: frozenset[int] = frozenset(),
) -> None:
    """A loop as kernels that take many of its turns: of a scan, at most so many. They write the results `kept` even if
    nobody reads these."""
    if flow.node.op == "scan":
        _scan_in_kernels(flow, most, kernel_of, lowered, kept)
    else:
        _while_in_kernels(flow, kernel_of, schedule, lowered)


def _scan_in_kernels(
    flow: ControlFlow,
    most: int,
    kernel_of: Callable[[Graph], Kernel],
    lowered: LoweredControlFlow,
    kept: frozenset[int] = frozenset(),
) -> None:
    """One kernel or, if a dispatch takes at most so many turns, one that is repeated, and one for those that are left.

    A counter says which part of the sequences a dispatch goes through.
    """
    attrs = flow.node.attrs
    carries, sequences, length = attrs["carries"], attrs["sequences"], attrs["length"]
    times = -(-length // most)
    if times == 1:
        used = sorted(kept.union(flow.results))
        kernel = kernel_of(with_turns(flow.node, used, length))
        found = tuple(result_of(flow, position, lowered) for position in used)
        lowered.commands.append(step_of(f"{flow.prefix}loop", kernel, flow.operands, found))
        return
    turns = length // times
    results = [result_of(flow, position, lowered) for position in range(len(flow.types))]
    lowered.commands += begin(flow, results[:carries])
    counter = f"{flow.prefix}counter"
    lowered.sizes[counter] = COUNTER.nbytes
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
    lowered.commands.append(step_of(f"{flow.prefix}start", filled(first), (), (counter,)))
    next_part = step_of(f"{flow.prefix}next", incremented(step), (counter,), (counter,))
    whole = after_barrier(_some_turns(flow, kernel_of, turns, "loop", reads, writes, lowered, [next_part]))
    left: tuple[Command, ...] = ()
    if rest:
        left = after_barrier(_some_turns(flow, kernel_of, rest, "rest", reads, writes, lowered, [next_part]))
    parts: list[Command] = [Repeat(times, whole)]
    lowered.commands += [*left, *parts] if attrs["reverse"] else [*parts, *left]


def _some_turns(
    flow: ControlFlow,
    kernel_of: Callable[[Graph], Kernel],
    turns: int | None,
    name: str,
    reads: Sequence[str],
    writes: Sequence[str],
    lowered: LoweredControlFlow,
    ends: Sequence[KernelStep] = (),
) -> list[Command]:
    """Some turns. What is carried is written aside: other lanes may still read a scalar. The `ends` are side by side
    with copies of it."""
    carries = flow.node.attrs.get("carries", len(flow.types))
    aside = [f"{flow.prefix}aside{position}" for position in range(carries)]
    lowered.sizes |= {name: type.nbytes for name, type in zip(aside, flow.types, strict=False)}
    kernel = kernel_of(with_turns(flow.node, range(len(flow.types)), turns))
    step = step_of(f"{flow.prefix}{name}", kernel, tuple(reads), (*aside, *writes[carries:]))
    copies = copy_steps(f"{flow.prefix}{name}.carry", aside, writes[:carries], flow.types[:carries])
    return [step, *side_by_side([*copies, *ends])]


def _while_in_kernels(
    flow: ControlFlow, kernel_of: Callable[[Graph], Kernel], schedule: Scheduler, lowered: LoweredControlFlow
) -> None:
    """A kernel that ends early if the turns are too many for a dispatch, until the condition does not hold."""
    carried = [result_of(flow, position, lowered) for position in range(len(flow.types))]
    names = [*carried, *flow.operands[len(carried) :]]
    steps = _some_turns(flow, kernel_of, None, "loop", names, carried, lowered)
    _repeat_while(flow, carried, lambda running: after_barrier(steps), schedule, lowered)


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
    ends: Sequence[KernelStep] = (),
) -> list[Command]:
    """One iteration of a loop. `inputs` are the buffers of the body's inputs, carried ones first; `others` are the
    buffers of the outputs that are not carried. Its `ends` are side by side with copies of what is carried."""
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
    commands = list(after_barrier(embedded(program, bound, prefix, parent, lowered)))
    types = [flow.types[carried.index(target)] for target in targets]
    return [*commands, *side_by_side([*copy_steps(f"{prefix}carry", aside, targets, types), *ends])]
