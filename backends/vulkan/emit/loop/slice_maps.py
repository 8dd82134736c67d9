"""Maps of a turn of a scan that workgroups run slice by slice.

What a map reads of sequences is loaded a turn ahead, right behind the map that read the row before, if an invocation
has one element: memory takes as long as all else that a turn does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from lavax.backends.vulkan.emit.loop.slice_body import THREAD, SliceBody
from lavax.backends.vulkan.emit.loop.slice_parts import Part, parts_of
from lavax.backends.vulkan.glsl.expressions import type_name
from lavax.backends.vulkan.glsl.lanes import GlslValue
from lavax.backends.vulkan.glsl.launch import at_row
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.accesses import accesses
from lavax.passes.kernels.index import Index, variable
from lavax.passes.kernels.kernel import Kernel

_ELEMENT, _OF_PART = "e", "f"


@dataclass(frozen=True)
class _Load:
    """An element of a row that is loaded ahead: where it is, in the part's loop variables, and in which variable."""

    node: Node
    position: Index
    name: str


class SliceMap:
    """A map whose elements `threads` invocations share; of the buffers `rows` it reads a turn's rows."""

    def __init__(
        self, body: SliceBody, kernel: Kernel, reads: Sequence[str], rows: Collection[str], threads: int, number: int
    ) -> None:
        self.body, self.threads, self.count = body, threads, kernel.domain.rows
        self.parts = parts_of(kernel)
        self.buffers = dict(zip(kernel.graph.inputs, reads, strict=True))
        self.ahead: dict[Part, list[_Load]] = {part: [] for part in self.parts}
        self.variables: dict[str, str] = {}  # that are loaded ahead, and their types
        if self.count <= threads:
            for part in self.parts:
                self._find_loads(part, rows, number)

    def _find_loads(self, part: Part, rows: Collection[str], number: int) -> None:
        at, counts = part.kernel.coordinates, dict[str, int]()
        for node, positions in accesses(part.kernel, [(x, at[x]) for x in part.kernel.graph.outputs]).items():
            for position in positions if self.buffers[node] in rows and not _reads_array(positions) else ():
                kind = type_name(node.dtype, 1)
                name = f"ahead{number}_{kind}{counts.get(kind, 0)}"
                counts[kind] = counts.get(kind, 0) + 1
                self.variables[name] = kind
                self.ahead[part].append(_Load(node, position, name))

    def forget(self) -> None:
        """Loads nothing ahead."""
        self.variables = {}
        self.ahead = {part: [] for part in self.parts}

    @property
    def buffers_ahead(self) -> set[str]:
        """The buffers whose rows are loaded ahead."""
        return {self.buffers[load.node] for loads in self.ahead.values() for load in loads}

    def begin(self, addresses: Mapping[str, str]) -> None:
        """Loads what the first turn reads."""
        self.body.lines([f"{kind} {name};" for name, kind in self.variables.items()])
        if self.variables:
            self._at_elements(lambda part: self._load(part, addresses))

    def emit(self, write: Callable[[Part], None], following: Mapping[str, str]) -> None:
        """Writes the elements, and loads what the next turn reads."""

        def compute(part: Part) -> None:
            for load in self.ahead[part]:
                self.body.provide(load.node, self.body.real(load.position), GlslValue(load.name, 1))
            write(part)
            self._load(part, following)

        self._at_elements(compute)

    def _load(self, part: Part, addresses: Mapping[str, str]) -> None:
        for load in self.ahead[part]:
            self.body.addresses[load.node] = addresses[self.buffers[load.node]]
            self.body.line(f"{load.name} = {self.body.load_at(load.node, self.body.real(load.position)).text};")

    def _at_elements(self, act: Callable[[Part], None]) -> None:
        body, is_one_each = self.body, self.count <= self.threads
        head = f"for (int {_ELEMENT} = {THREAD}; {_ELEMENT} < {self.count}; {_ELEMENT} += {self.threads})"
        if is_one_each:
            head = f"if ({THREAD} < {self.count})"
        with body.pinned_block(head, frozenset((_ELEMENT,))):
            if is_one_each:
                body.line(f"int {_ELEMENT} = {THREAD};")
            if len(self.parts) == 1:
                (part,) = self.parts
                with body.at(at_row(variable(_ELEMENT, self.count), part.kernel)):
                    act(part)
                return
            for part in self.parts:
                width = part.kernel.domain.rows
                within = f"{_ELEMENT} >= {part.start} && {_ELEMENT} < {part.start + width}"
                with body.pinned_block(f"if ({within})", frozenset((_OF_PART,))):
                    body.line(f"int {_OF_PART} = {_ELEMENT} - {part.start};")
                    with body.at(at_row(variable(_OF_PART, width), part.kernel)):
                        act(part)


def _reads_array(positions: Collection[Index]) -> bool:
    return any(position.reads_array for position in positions)
