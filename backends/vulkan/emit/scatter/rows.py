"""Updates that are rows, joined to their places in memory: the shader of join_rows.

Lanes stand side by side along a row, with up to eight of its elements each, and go through the updates of a share in
their order. Each array has a share of its own, and no lane touches what another one does: several arrays stand side by
side in a subgroup, those of long rows, and their strips, in several.
"""

from __future__ import annotations

from dataclasses import replace

from lavax.backends.vulkan.emit.map.kernel import emit_copy
from lavax.backends.vulkan.emit.scatter.lines import JOINS
from lavax.backends.vulkan.glsl.bounds import inside
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.glsl.lanes import LANE, widened
from lavax.backends.vulkan.glsl.launch import Launch, local_invocations
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.ops.lowered.scatter import TOGETHER, share_of_rows
from lavax.passes.kernels.index import Index, add, linear
from lavax.passes.kernels.kernel import Kernel

_EIGHT = 2 * VECTOR  # words that a lane reads and writes at once, through a descriptor


class _Rows:
    """The state of writing the kernel."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        self.routine: RoutineShader = open_routine(kernel, profile, lifted, local_invocations(profile))
        self.body = self.routine.body
        self.array, self.updates, self.places = self.routine.operands
        self.copies, self.rows, self.line = self.array.shape
        (self.count, self.extent), self.share = self.updates.shape, share_of_rows(self.array.shape, self.updates.shape)
        # What is read is written in the same way: through the descriptor, or all of it by address.
        self.seen = self.body.memory.write_descriptors.pop(self.routine.target, None)
        self.words = self._words_of_lane(lifted)
        self.cells = self.line // self.words
        self.strips = -(-self.cells // self.routine.local)
        self.beside = min(self.copies, max(1, self.routine.local // self.cells))
        self.together = not lifted and self.count % TOGETHER == 0

    def _words_of_lane(self, lifted: bool) -> int:
        if lifted or self.line % VECTOR:
            return 1
        return _EIGHT if self.line % _EIGHT == 0 and self.seen is not None else VECTOR

    def emit(self) -> Launch:
        routine, body, lanes = self.routine, self.body, self.routine.local
        invocations = -(-self.copies // self.beside) * self.strips * lanes
        routine.open(invocations)
        routine.integer("rows", self.rows)
        routine.integer("cells", self.cells)
        routine.integer("strips", self.strips)
        body.line(f"int group = i / {lanes}, lane = i % {lanes};")
        if self.strips > 1:
            body.line(f"int own_copy = group / strips, own_cell = group % strips * {lanes} + lane;")
            body.line("if (own_cell >= cells) return;")
        else:
            body.line(f"int beside = lane / cells, own_copy = group * {self.beside} + beside, own_cell = lane % cells;")
            body.line(f"if (beside >= {self.beside} || own_copy >= {body.parameters.integer(self.copies)}) return;")
        self.copy = routine.position("copy", "own_copy", self.copies)
        self.cell = routine.position("cell", "own_cell", self.cells)
        share = body.parameters.integer(self.share)
        body.line(f"int first = copy * {share}, end = min(first + {share}, {body.parameters.integer(self.count)});")
        # Reads and writes have an index each, as where glsl/accesses.py adds bits that are 0.
        body.line(f"int spare = {body.parameters.unknown(0)};")
        with body.block(f"for (int four = first; four < end; four += {TOGETHER})"):
            self._join_four()
        return routine.close(invocations)

    def _join_four(self) -> None:
        """Four updates, one after the other; a share begins at a multiple of four."""
        body, routine = self.body, self.routine
        if self.together:
            fours = linear([(routine.position("fours", f"four / {TOGETHER}", self.count // TOGETHER), TOGETHER)])
            at = linear([(fours, 1), (LANE, 1)])
            body.line(f"ivec4 places = {widened(body.value(self.places, (at,)), VECTOR, self.places.dtype)};")
        for number in range(TOGETHER):
            with body.block("" if self.together else f"if (four + {number} < end)"):
                at = add(fours, number) if self.together else routine.position("at", f"four + {number}", self.count)
                place = f"places.{COMPONENTS[number]}" if self.together else routine.read(self.places, (at,))
                body.line(f"int place = {place};")
                with body.block("if (place >= 0 && place < rows)"):
                    self._join(at)

    def _join(self, number: Index) -> None:
        """Joins one update."""
        body, routine, node = self.body, self.routine, self.routine.node
        row = routine.position("row", "place", self.rows)
        updates = [self._update(number, vector) for vector in range(max(1, self.words // VECTOR))]
        cell = linear([(self.copy, self.rows * self.cells), (row, self.cells), (self.cell, 1)])
        position = body.index(inside(cell, node.type.size // self.words))
        is_set = node.attrs["join"] == "set"
        helds = [] if is_set else self._held(position)
        if not is_set:
            join = JOINS[node.attrs["join"]]
            updates = [join(held, update, node.dtype, body.uses) for held, update in zip(helds, updates, strict=True)]
        self._store(position, updates)

    def _update(self, number: Index, vector: int) -> str:
        """Four elements of an update, or one; beyond its end, where the array's line goes on, its last one again."""
        body, node = self.body, self.updates
        if self.words == 1:
            column = self.cell if self.line == self.extent else self._column(self.cell, "column")
            return widened(body.value(node, (number, column)), 1, node.dtype)
        own = add(linear([(self.cell, self.words // VECTOR)]), vector)
        if self.line == self.extent:
            return widened(body.value(node, (number, linear([(own, VECTOR), (LANE, 1)]))), VECTOR, node.dtype)
        elements = []
        for component in range(VECTOR):
            column = self._column(add(linear([(own, VECTOR)]), component), f"column{vector}{component}")
            elements.append(widened(body.value(node, (number, column)), 1, node.dtype))
        return f"{type_name(node.dtype, VECTOR)}({', '.join(elements)})"

    def _column(self, at: Index, name: str) -> Index:
        last = self.body.parameters.integer(self.extent - 1)
        return self.routine.position(name, f"min({self.body.index(at)}, {last})", self.extent)

    def _held(self, position: str) -> list[str]:
        """What the array has there, in vectors of four or as one element."""
        memory, dtype, target = self.body.memory, self.array.dtype, self.routine.target
        if self.words == 1:
            return [memory.loaded(dtype, target, f"{position} + spare")]
        if self.seen is None:
            return [memory.as_read(memory.four(dtype, target, f"{position} + spare"), VECTOR, dtype)]
        kind, name = ("u64vec4", "octets") if self.words == _EIGHT else ("u64vec2", "quartets")
        self.body.line(f"{kind} held = {self._seen(name, position)};")
        four = self.body.uses.access("four_words")
        pairs = (("x", "y"), ("z", "w"))[: self.words // VECTOR]
        return [memory.four_of_words(dtype, f"{four}(held.{low}, held.{high})") for low, high in pairs]

    def _seen(self, name: str, position: str) -> str:
        shift = " >> 1" if self.words == _EIGHT else ""
        return f"{self.body.uses.descriptor(name, self.seen or 0)}.data[(w{self.seen}{shift}) + {position}]"

    def _store(self, position: str, vectors: list[str]) -> None:
        body, memory, dtype, target = self.body, self.body.memory, self.array.dtype, self.routine.target
        if self.words == 1:
            body.line(memory.stored(dtype, target, position, vectors[0]))
        elif self.seen is None:
            body.line(memory.stored_four(dtype, target, position, memory.as_stored(vectors[0], VECTOR, dtype)))
        else:
            words = ", ".join(memory.words_of_four(dtype, vector) for vector in vectors)
            packed, name = ("eight_words", "octets") if self.words == _EIGHT else ("two_pairs", "quartets")
            body.line(f"{self._seen(name, position)} = {body.uses.access(packed)}({words});")


def emit_join_rows(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shaders of join_rows: the arrays are copied first."""
    (node,) = kernel.graph.outputs
    copied = emit_copy(kernel, node.operands[0], profile, lifted)
    return replace(_Rows(kernel, profile, lifted).emit(), before=copied)
