"""Puts kernels in order and says where each reads and writes: the whole program but for its code."""

from __future__ import annotations

from collections.abc import Sequence

from lavax.ir.graph import INPUT, Graph, Node
from lavax.passes.fuse.extract import Piece, extract
from lavax.passes.fuse.fuse import fuse
from lavax.passes.kernels.kernel import KernelProgram, Step
from lavax.passes.memory import choose_donors, plan_arena
from lavax.passes.merge import merge


def schedule(graph: Graph, donated: Sequence[int] = ()) -> KernelProgram:
    """Fuses a prepared graph into kernels and plans their order, buffers and barriers.

    `donated` are the positions of inputs whose memory the results may take over.
    """
    pieces = extract(fuse(graph))
    groups = merge(pieces, _levels(pieces))
    groups = [group for _, group in sorted(_by_level(groups), key=lambda entry: entry[0])]
    phases = {piece: level for level, group in _by_level(groups) for piece in group}
    donors = _donors(graph, donated, groups, phases)
    names = _buffer_names(graph, groups)
    offsets, arena_bytes = _arena(groups, phases, names)
    return KernelProgram(
        graph=graph,
        steps=tuple(_steps(groups, names, donors, offsets)),
        results=tuple(names[output] for output in graph.outputs),
        sizes={name: node.type.nbytes for node, name in names.items()},
        donors={names[result]: names[donor] for result, donor in donors.items()},
        offsets=offsets,
        arena_bytes=arena_bytes,
    )


def _levels(pieces: Sequence[Piece]) -> dict[Piece, int]:
    """How many kernels must run one after the other before each; those that nobody waits for come last."""
    writer = {node: piece for piece in pieces for node in piece.writes}
    levels: dict[Piece, int] = {}
    awaited: set[Piece] = set()
    for piece in pieces:
        before = [writer[node] for node in piece.reads if node in writer]
        awaited.update(before)
        levels[piece] = 1 + max((levels[other] for other in before), default=-1)
    last = max(levels.values(), default=0)
    return {piece: level if piece in awaited else last for piece, level in levels.items()}


def _by_level(groups: Sequence[tuple[Piece, ...]]) -> list[tuple[int, tuple[Piece, ...]]]:
    levels = _levels([piece for group in groups for piece in group])
    return [(levels[group[0]], group) for group in groups]


def _donors(
    graph: Graph, donated: Sequence[int], groups: Sequence[tuple[Piece, ...]], phases: dict[Piece, int]
) -> dict[Node, Node]:
    outputs = set(graph.outputs)
    last_read: dict[Node, int] = {}
    results = []
    for group in groups:
        for piece in group:
            for node in piece.reads:
                last_read[node] = max(last_read.get(node, -1), phases[piece])
            results += [(node, piece, phases[piece]) for node in piece.writes if node in outputs]
    free = [graph.inputs[position] for position in donated if graph.inputs[position] not in outputs]
    readers = {
        node: sum(node in piece.reads for piece in phases if phases[piece] == last_read[node]) for node in last_read
    }
    return choose_donors([node for node in free if readers.get(node, 0) <= 1], results, last_read)


def _buffer_names(graph: Graph, groups: Sequence[tuple[Piece, ...]]) -> dict[Node, str]:
    names = {node: node.name for node in graph.inputs}
    results = [output for output in dict.fromkeys(graph.outputs) if output.op != INPUT]
    names.update((node, f"%r{number}") for number, node in enumerate(results))
    written = [node for group in groups for piece in group for node in piece.writes if node not in names]
    names.update((node, f"%t{number}") for number, node in enumerate(written))
    return names


def _arena(
    groups: Sequence[tuple[Piece, ...]], phases: dict[Piece, int], names: dict[Node, str]
) -> tuple[dict[str, int], int]:
    lifetimes: dict[str, tuple[int, int]] = {}
    sizes: dict[str, int] = {}
    for group in groups:
        for piece in group:
            for node in (*piece.writes, *piece.reads):
                name, phase = names[node], phases[piece]
                if not _is_temporary(name, node):
                    continue
                first, last = lifetimes.get(name, (phase, phase))
                lifetimes[name] = (min(first, phase), max(last, phase))
                sizes[name] = node.type.nbytes
    return plan_arena(sizes, lifetimes)


def _is_temporary(name: str, node: Node) -> bool:
    return node.op != INPUT and name.startswith("%t")


def _steps(
    groups: Sequence[tuple[Piece, ...]], names: dict[Node, str], donors: dict[Node, Node], offsets: dict[str, int]
) -> list[Step]:
    """Barriers stand only where a step touches memory that steps since the last barrier wrote, or writes it."""
    memory = {names[node]: _memory(node, names, donors, offsets) for node in names}
    steps = []
    read: list[tuple[str, int, int]] = []
    written: list[tuple[str, int, int]] = []
    for number, group in enumerate(groups):
        reads = tuple(tuple(names[node] for node in piece.reads) for piece in group)
        writes = tuple(tuple(names[node] for node in piece.writes) for piece in group)
        now_read = [memory[name] for part in reads for name in part]
        now_written = [memory[name] for part in writes for name in part]
        barrier = _touch(now_read, written) or _touch(now_written, written) or _touch(now_written, read)
        if barrier:
            read, written = [], []
        read += now_read
        written += now_written
        steps.append(Step(f"k{number}", tuple(piece.kernel for piece in group), reads, writes, barrier))
    return steps


def _memory(
    node: Node, names: dict[Node, str], donors: dict[Node, Node], offsets: dict[str, int]
) -> tuple[str, int, int]:
    """What memory a buffer is: an allocation's name, and from where to where."""
    name = names[node]
    if name in offsets and node.op != INPUT:
        return ("arena", offsets[name], offsets[name] + max(node.type.nbytes, 1))
    return (names[donors.get(node, node)], 0, max(node.type.nbytes, 1))


def _touch(some: list[tuple[str, int, int]], others: list[tuple[str, int, int]]) -> bool:
    if not some or not others:
        return False
    whole = {name for name, _, _ in others if name != "arena"}
    ranges = [(start, end) for name, start, end in others if name == "arena"]
    return any(
        name in whole if name != "arena" else any(start < other_end and other < end for other, other_end in ranges)
        for name, start, end in some
    )
