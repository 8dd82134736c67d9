"""Puts kernels in order and assigns their buffers: the whole program except its code."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Graph, Node
from lavax.passes.fuse.extract import Piece, extract
from lavax.passes.fuse.fuse import fuse
from lavax.passes.fuse.reasons import Reason
from lavax.passes.kernels.accesses import UPDATES, updated_in_place
from lavax.passes.kernels.commands import Command
from lavax.passes.kernels.kernel import Kernel, KernelStep
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.abreast import group_abreast, is_abreast
from lavax.passes.schedule.control_flow import lower_control_flow
from lavax.passes.schedule.embedding import ControlFlow, LoweredControlFlow, with_distinct_outputs
from lavax.passes.schedule.factors_in_order import with_factors_in_order
from lavax.passes.schedule.levels.beside_products import levels_beside_products
from lavax.passes.schedule.lines_in_turn import group_in_turn, in_turn_phases, is_in_turn
from lavax.passes.schedule.memory import choose_donors, plan_arena, written_over
from lavax.passes.schedule.merge import group_mergeable
from lavax.passes.schedule.rematerialization import with_recomputed_values
from lavax.passes.schedule.results_once import with_results_once
from lavax.passes.schedule.sizes import refuse_too_large, refuse_uncountable
from lavax.passes.schedule.stacked_gates import with_gates_stacked
from lavax.passes.schedule.touched import ARENA, Memory, Touched
from lavax.passes.schedule.unread_carries import without_unread
from lavax.passes.schedule.vectors_as_rows import with_vectors_as_rows
from lavax.passes.schedule.wavefront import with_wavefronts
from lavax.passes.target.target import ANY_DEVICE, Target


@dataclass(frozen=True)
class WaitingKernels:
    """How long kernels wait that no kernel waits for, such as an optimizer's updates, so that they are dispatched
    together: small ones until the end, other maps for one of every so many levels, which frees the gradients that they
    read. Other kernels that are large keep the device busy beside those that the next level waits for.

    Chosen by the kernels and the memory of a training step of SmolLM2-135M, 1 x 128, whose layers have 25 levels.
    """

    kept_bytes: int = 1 << 18  # of the temporaries that a small kernel reads
    all_kept_bytes: int = 1 << 23  # of those that all small kernels read, but for maps at the end
    levels: int = 16


WAITING_KERNELS = WaitingKernels()
_WAITING_KINDS = frozenset({"contract", "row"})  # of kernels that others wait for, which wait too


def schedule(
    graph: Graph,
    donated: Sequence[int] = (),
    pairs: Mapping[int, int] | None = None,
    target: Target = ANY_DEVICE,
) -> KernelProgram:
    """Fuses a prepared graph into kernels for `target`, and plans their order, buffers and barriers.

    `donated` holds the positions of inputs whose memory the results may take over. `pairs` (output position -> input
    position) allows an output to take over the memory of that input only. The bodies of branches and loops are
    prepared for `target` too. If values are recomputed, because memory would hold them over its peak, the
    graph is fused again.
    """
    graph = without_unread(with_vectors_as_rows(graph, target.loops))
    graph = with_factors_in_order(graph, target.loops.slices)
    graph = with_wavefronts(with_gates_stacked(graph, target.loops), target.loops)
    known: dict[Hashable, Kernel] = {}
    pieces, repeated = _pieces(graph, target, pairs or {}, known)
    worth = target.fusion.operations_per_byte
    if worth:
        phases = _levels(pieces, target)
        changed = with_recomputed_values(graph, pieces, phases, repeated, target.fusion.epilogue_cost, worth)
        if changed is not graph:
            graph, (pieces, _) = changed, _pieces(changed, target, pairs or {}, known)
    groups, phases = dispatch_groups(pieces, graph.outputs, target)
    donors = _donors(graph, donated, pairs, groups, phases)
    names = _buffer_names(graph, groups)
    control_flow = {
        group[0]: _lower(group[0], f"%k{number}.", names, target)
        for number, group in enumerate(groups)
        if _is_control_flow(group)
    }
    refuse_too_large(names, target.largest_allocation)
    refuse_uncountable(pieces, names)
    offsets, arena_bytes = _arena(groups, phases, names, control_flow, target)
    return KernelProgram(
        graph=graph,
        steps=tuple(_commands(groups, names, donors, offsets, control_flow)),
        results=tuple(names[output] for output in graph.outputs),
        sizes={name: node.type.nbytes for node, name in names.items()} | _sizes_within(control_flow.values()),
        donors={names[result]: names[donor] for result, donor in donors.items()},
        offsets=offsets,
        arena_bytes=arena_bytes,
        block_bytes=target.largest_allocation,
        views={name: view for lowered in control_flow.values() for name, view in lowered.views.items()},
    )


def _pieces(
    graph: Graph, target: Target, pairs: Mapping[int, int], known: dict[Hashable, Kernel]
) -> tuple[list[Piece], set[Node]]:
    """The graph's kernels, and what they write because it would be computed for very many elements."""
    carried = {graph.outputs[position]: graph.inputs[of] for position, of in pairs.items()}
    fusion = fuse(graph, target, carried)
    repeated = {node for node, reason in fusion.storing.items() if reason is Reason.REPEATED}
    return extract(fusion, graph.outputs, known), repeated


def dispatch_groups(
    pieces: Sequence[Piece], outputs: Sequence[Node], target: Target
) -> tuple[list[tuple[Piece, ...]], dict[Piece, int]]:
    """The pieces grouped by dispatch, in order of execution, and the number of levels of kernels before each piece.

    Group i is the kernel k{i}, unless it is control flow.
    """
    phases = _levels(pieces, target)
    read = {node for piece in pieces for node in piece.reads}
    groups = sorted(group_mergeable(pieces, phases), key=lambda group: _place(group, phases, read, target))
    found = group_in_turn(group_abreast(groups, phases, target), phases, outputs, target)
    return found, in_turn_phases(found, phases)


def _place(
    group: Sequence[Piece], phases: Mapping[Piece, int], read: set[Node], target: Target
) -> tuple[int, bool]:
    """By which dispatches are in order. Where those of one level run at the same time, what no kernel waits for comes
    last."""
    is_last = target.dispatches.overlap and read.isdisjoint(node for piece in group for node in piece.writes)
    return phases[group[0]], is_last


def _is_control_flow(group: Sequence[Piece]) -> bool:
    return group[0].kind == "region"


def _lower(piece: Piece, prefix: str, names: dict[Node, str], target: Target) -> LoweredControlFlow:
    """The commands of a branch or loop, over the program's buffers."""
    graph = piece.kernel.graph
    buffers = dict(zip(graph.inputs, (names[node] for node in piece.reads), strict=True))
    items = [node.attrs["index"] for node in graph.outputs]
    results = dict(zip(items, (names[node] for node in piece.writes), strict=True))
    (node,) = (node for node in graph.nodes if node.op != "item")
    flow = ControlFlow(node, prefix, tuple(buffers[operand] for operand in node.operands), results)
    within = target if node.op == "switch" else target.in_loops()
    return lower_control_flow(
        flow,
        lambda body, pairs: _schedule_body(body, pairs, within),
        lambda body: prepare(body, target),
        target.loops,
    )


def with_results_apart(prepared: Graph, kept: Mapping[int, Node]) -> Graph:
    """The prepared graph with distinct outputs, none of which is an input, except inputs `kept` at their position.

    Preparing a graph may find outputs to be inputs, or each other, and so may loops without what they stack twice.
    """
    return with_distinct_outputs(with_results_once(without_unread(prepared)), kept)


def _schedule_body(body: Graph, pairs: Mapping[int, int], target: Target) -> KernelProgram:
    """The program of a branch or an iteration."""
    prepared = prepare(body, target)
    kept = {output: prepared.inputs[position] for output, position in pairs.items()}
    return schedule(with_results_apart(prepared, kept), pairs=pairs, target=target)


def _levels(pieces: Sequence[Piece], target: Target) -> dict[Piece, int]:
    """How many kernels must run one after the other before each piece.

    Pieces that no other piece waits for come last, unless they would keep large temporaries alive until then
    (`WaitingKernels`), and so do contractions and rows that only such pieces wait for. Where kernels of one level run
    at the same time, large ones come beside products (`levels_beside_products`).
    """
    writer = {node: piece for piece in pieces for node in piece.writes}
    levels: dict[Piece, int] = {}
    readers: dict[Piece, list[Piece]] = {}
    for piece in pieces:
        before = [writer[node] for node in piece.reads if node in writer]
        for other in before:
            readers.setdefault(other, []).append(piece)
        levels[piece] = 1 + max((levels[other] for other in before), default=-1)
    last, room = max(levels.values(), default=0), WAITING_KERNELS.all_kept_bytes
    waiting: dict[Piece, int] = {}
    regular: dict[Piece, int] = {}
    for piece in reversed(pieces):
        level, kept = levels[piece], sum(node.type.nbytes for node in piece.reads if node in writer)
        later = readers.get(piece, ())
        is_last_map = piece.kind == "map" and not later
        fits = kept <= WAITING_KERNELS.kept_bytes and (is_last_map or kept <= room)
        may_wait = not later or (kept and piece.kind in _WAITING_KINDS)
        if fits and may_wait and all(waiting.get(reader, 0) > levels[reader] for reader in later):
            waiting[piece] = min((waiting[reader] for reader in later), default=last + 1) - 1
            room -= 0 if is_last_map else kept
        elif is_last_map:
            regular[piece] = min(-(-level // WAITING_KERNELS.levels) * WAITING_KERNELS.levels, last)
    levels |= waiting
    beside = levels_beside_products(levels, readers) if target.dispatches.overlap else {}
    return _after_other_readers(levels | regular | beside, readers)


def _after_other_readers(levels: dict[Piece, int], waited_for: Mapping[Piece, Sequence[Piece]]) -> dict[Piece, int]:
    """The levels, but with pieces that no other waits for, and that update an input, after those that only read it: so
    it may be updated in place."""
    readers: dict[Node, list[Piece]] = {}
    for piece in levels:
        for node in piece.reads:
            readers.setdefault(node, []).append(piece)
    found = dict(levels)
    for piece in levels:
        may_update = piece not in waited_for and piece.writes[0].op in UPDATES
        array = updated_in_place(piece.kernel) if may_update else None
        if array is not None:
            read = piece.reads[piece.kernel.graph.inputs.index(array)]
            others = [levels[other] for other in readers[read] if other is not piece]
            if read.op == INPUT and others:
                found[piece] = max(found[piece], 1 + max(others))
    return found


def _donors(
    graph: Graph,
    donated: Sequence[int],
    pairs: Mapping[int, int] | None,
    groups: Sequence[tuple[Piece, ...]],
    phases: dict[Piece, int],
) -> dict[Node, Node]:
    outputs = set(graph.outputs)
    last_read: dict[Node, int] = {}
    readers: dict[tuple[Node, int], int] = {}
    results = []
    for group in groups:
        for piece in group:
            for node in piece.reads:
                last_read[node] = phases[piece]
                readers[node, phases[piece]] = readers.get((node, phases[piece]), 0) + 1
            results += [(node, piece, phases[piece]) for node in piece.writes if node in outputs]
    given = donated if pairs is None else pairs.values()
    free = [graph.inputs[position] for position in given if graph.inputs[position] not in outputs]
    alone = [node for node in free if node not in last_read or readers[node, last_read[node]] == 1]
    only = None if pairs is None else {graph.outputs[k]: graph.inputs[position] for k, position in pairs.items()}
    return choose_donors(alone, results, last_read, only)


def _buffer_names(graph: Graph, groups: Sequence[tuple[Piece, ...]]) -> dict[Node, str]:
    names = {node: node.name for node in graph.inputs}
    results = [output for output in dict.fromkeys(graph.outputs) if output.op != INPUT]
    names.update((node, f"%r{number}") for number, node in enumerate(results))
    written = [node for group in groups for piece in group for node in piece.writes if node not in names]
    names.update((node, f"%t{number}") for number, node in enumerate(written))
    return names


def _arena(
    groups: Sequence[tuple[Piece, ...]],
    phases: dict[Piece, int],
    names: dict[Node, str],
    control_flow: Mapping[Piece, LoweredControlFlow],
    target: Target,
) -> tuple[dict[str, int], int]:
    lifetimes: dict[str, tuple[int, int]] = {}
    sizes: dict[str, int] = {}
    over = written_over(groups, names)
    for group in groups:
        for piece in group:
            for node in (*piece.writes, *piece.reads):
                name, phase = names[node], phases[piece]
                if not _is_temporary(name, node):
                    continue
                held = over.get(name, name)
                first, last = lifetimes.get(held, (phase, phase))
                lifetimes[held] = (min(first, phase), max(last, phase))
                sizes[held] = node.type.nbytes
    for piece, lowered in control_flow.items():
        sizes.update(lowered.sizes)
        lifetimes.update(dict.fromkeys(lowered.sizes, (phases[piece], phases[piece])))
    offsets, total = plan_arena(sizes, lifetimes, target)
    offsets.update((name, offsets[held]) for name, held in over.items())
    for lowered in control_flow.values():
        offsets.update((name, offsets[arena] + offset) for name, (arena, offset) in lowered.placed.items())
    return offsets, total


def _sizes_within(control_flow: Iterable[LoweredControlFlow]) -> dict[str, int]:
    """The sizes of the buffers that branches and loops need."""
    return {name: size for lowered in control_flow for name, size in (lowered.sizes | lowered.placed_sizes).items()}


def _is_temporary(name: str, node: Node) -> bool:
    return node.op != INPUT and name.startswith("%t")


def _commands(
    groups: Sequence[tuple[Piece, ...]],
    names: dict[Node, str],
    donors: dict[Node, Node],
    offsets: dict[str, int],
    control_flow: Mapping[Piece, LoweredControlFlow],
) -> list[Command]:
    """The commands in order, with the fewest barriers. A step needs one before it if it touches memory that steps since
    the last barrier wrote, or writes memory that they touched. Control flow has barriers before and after it."""
    memory = {names[node]: _memory(node, names, donors, offsets) for node in names}
    commands: list[Command] = []
    after_control_flow = False
    read, written = Touched(), Touched()
    for number, group in enumerate(groups):
        if group[0] in control_flow:
            commands += control_flow[group[0]].commands
            after_control_flow = True
            continue
        reads = tuple(tuple(names[node] for node in piece.reads) for piece in group)
        writes = tuple(tuple(names[node] for node in piece.writes) for piece in group)
        now_read = [memory[name] for part in reads for name in part]
        now_written = [memory[name] for part in writes for name in part]
        conflict = written.meets(now_read) or written.meets(now_written) or read.meets(now_written)
        barrier, after_control_flow = conflict or after_control_flow, False
        if barrier:
            read, written = Touched(), Touched()
        read.add(now_read)
        written.add(now_written)
        kernels, in_turn = tuple(piece.kernel for piece in group), is_in_turn(group)
        abreast = not in_turn and is_abreast(group)
        commands.append(KernelStep(f"k{number}", kernels, reads, writes, barrier, abreast, in_turn))
    return commands


def _memory(node: Node, names: dict[Node, str], donors: dict[Node, Node], offsets: dict[str, int]) -> Memory:
    name = names[node]
    if name in offsets and node.op != INPUT:
        return (ARENA, offsets[name], offsets[name] + max(node.type.nbytes, 1))
    return (names[donors.get(node, node)], 0, max(node.type.nbytes, 1))
