"""Explains how a graph was cut into kernels: what each kernel saves, and why other nodes are not in it."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node
from lavax.ir.operation import OPERATIONS
from lavax.ir.printer import value_names
from lavax.passes.fuse.costs import cost_of
from lavax.passes.fuse.extract import Piece, extract
from lavax.passes.fuse.fuse import fuse
from lavax.passes.fuse.kernel_draft import KernelDraft
from lavax.passes.fuse.reasons import Reason
from lavax.passes.kernels.reads import READS
from lavax.passes.reports.table import bytes_text, lines_text
from lavax.passes.schedule.schedule import dispatch_groups
from lavax.passes.target.target import ANY_DEVICE, Target

_UNKNOWN = "it is read at other coordinates than those at which the kernel computes it"


@dataclass(frozen=True)
class Border:
    """A value that one kernel writes and another reads, the first node that needs it, and why it is elsewhere."""

    value: Node
    reader: Node
    kernel: str
    reason: str


@dataclass(frozen=True)
class FusedKernel:
    """A kernel, the nodes it computes, and those it keeps to itself.

    `kept` holds values that no other kernel computes or reads, and that cost no memory traffic. `recomputed` holds
    values that other kernels compute too, which costs operations instead of memory traffic. Constants and movement
    count as neither.
    """

    name: str
    kind: str
    nodes: tuple[Node, ...]
    written: tuple[Node, ...]
    kept: tuple[Node, ...]
    recomputed: tuple[Node, ...]
    borders: tuple[Border, ...]


@dataclass(frozen=True)
class FusionReport:
    """All kernels in the order they run; its text explains them."""

    kernels: tuple[FusedKernel, ...]
    names: dict[Node, str]
    returned: frozenset[Node]
    storing: dict[Node, Reason]

    def __str__(self) -> str:
        return "\n".join(line for kernel in self.kernels for line in self.lines_of(kernel))

    def lines_of(self, kernel: FusedKernel) -> Iterator[str]:
        """The text of one kernel, a line at a time; the first names it."""
        yield f"kernel {kernel.name} kind={kernel.kind}"
        yield f"  computes {self._list(node for node in kernel.nodes if _is_computed(node))}"
        if kernel.kept:
            saved = bytes_text(sum(node.type.nbytes for node in kernel.kept))
            yield f"  keeps {self._list(kernel.kept)}: {saved} not written, and not read again"
        if kernel.recomputed:
            saved = bytes_text(sum(node.type.nbytes for node in kernel.recomputed))
            cost = sum(map(cost_of, kernel.recomputed))
            again = self._list(kernel.recomputed)
            yield f"  computes again {again}: a cost of {cost} an element in place of reading {saved}"
        for value in kernel.written:
            if value in self.returned:
                yield f"  writes {self._described(value)}: it is returned"
            elif value in self.storing:
                yield f"  writes {self._described(value)}: {self.storing[value].value}"
        for border in kernel.borders:
            name, reader = self.names[border.value], self._described(border.reader)
            yield f"  writes {name} for {border.kernel}, where {reader} needs it: {border.reason}"

    def _list(self, nodes: Iterable[Node], most: int = 8) -> str:
        named = [f"{self.names[node]} {node.op}" for node in nodes]
        return ", ".join(named[:most]) + (f" and {len(named) - most} more" if len(named) > most else "")

    def _described(self, node: Node) -> str:
        where = f" ({lines_text([node.location])})" if node.location else ""
        return f"{self.names[node]} {node.op}{where}"


def _is_computed(node: Node) -> bool:
    return OPERATIONS[node.op].family == "elementwise" or node.op not in READS


def fusion_report(graph: Graph, target: Target = ANY_DEVICE) -> FusionReport:
    """How a prepared graph is fused for a device, and why.

    Bodies of branches and loops are separate graphs and not part of the report.
    """
    cut = _Cut(graph, target)
    kernels = tuple(cut.kernel(piece) for piece in cut.names)
    return FusionReport(kernels, value_names(graph), frozenset(graph.outputs), cut.fusion.storing)


class _Cut:
    """A graph in pieces, with the nodes that each piece computes and the values that it reads."""

    def __init__(self, graph: Graph, target: Target) -> None:
        self.fusion = fuse(graph, target)
        groups, _ = dispatch_groups(extract(self.fusion, graph.outputs), graph.outputs, self.fusion.target)
        self.names = {piece: f"k{number}" for number, group in enumerate(groups) for piece in group}
        self.draft_of = {result: draft for draft in self.fusion.all_drafts for result in draft.results}
        self.position = graph.position
        self.nodes = {piece: self._nodes_of(piece) for piece in self.names}
        self.times = Counter(node for nodes in self.nodes.values() for node in nodes)
        self.readers: dict[Node, list[Piece]] = {}
        for piece in self.names:
            for value in piece.reads:
                self.readers.setdefault(value, []).append(piece)

    def _draft_of_piece(self, piece: Piece) -> KernelDraft:
        return self.draft_of[piece.writes[0]]

    def _nodes_of(self, piece: Piece) -> tuple[Node, ...]:
        computed, _ = self.fusion.cone(piece.writes, self._draft_of_piece(piece))
        return tuple(sorted(computed, key=self.position.__getitem__))

    def kernel(self, piece: Piece) -> FusedKernel:
        inner = [node for node in self.nodes[piece] if _is_computed(node) and node not in piece.writes]
        return FusedKernel(
            name=self.names[piece],
            kind=piece.kind,
            nodes=self.nodes[piece],
            written=piece.writes,
            kept=tuple(node for node in inner if self.times[node] == 1),
            recomputed=tuple(node for node in inner if self.times[node] > 1),
            borders=tuple(self._borders(piece)),
        )

    def _borders(self, piece: Piece) -> Iterator[Border]:
        for value in piece.writes:
            if value in self.fusion.storing:
                continue
            for other in self.readers.get(value, ()):
                reader, reason = self._first_refused(value, self._draft_of_piece(piece), self.nodes[other])
                yield Border(value, reader, self.names[other], _UNKNOWN if reason is None else reason.value)

    def _first_refused(self, value: Node, draft: KernelDraft, nodes: Sequence[Node]) -> tuple[Node, Reason | None]:
        """The first node of the reading kernel that was kept out of `draft`, else the first that reads the value."""
        for node in nodes:
            reason = self.fusion.refusals.get((node, draft))
            if reason is not None:
                return node, reason
        return next(node for node in nodes if value in node.operands), None
