"""Products of a turn of a scan that workgroups run slice by slice.

Each invocation has a few columns and a part of the sum, so that all read the factor together that is the same in all
turns; they keep what they can of it in registers, from before the first turn. Vectors of 16-bit floats are kept as
numbers as long as there is room for all of them, and then as two words each. A second step adds up the parts.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from lavax.backends.vulkan.emit.loop.slice_body import BARRIER, THREAD, SliceBody
from lavax.backends.vulkan.emit.loop.slices_choice import columns_of, inputs_of
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.glsl.lanes import LANE, LANE_NAME, GlslValue, quotient_exact, widened
from lavax.backends.vulkan.glsl.launch import at_row
from lavax.backends.vulkan.glsl.loads_ahead import load_ahead
from lavax.ir.graph import INPUT, Node
from lavax.passes.build.contraction_geometry import operand_at, sizes_of
from lavax.passes.kernels.index import Index, constant, flatten, linear, substitute, unflatten, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates
from lavax.passes.numerics.narrow_movement import is_widening

_WORDS = 2  # of a vector of 16-bit floats


class SliceProduct:
    """A product of a turn. `count` elements are added up in `parts`, by invocations with `width` columns each.

    They keep what fits in `registers` words of what is the same in all turns: the inputs `unchanging`.
    """

    def __init__(
        self, body: SliceBody, kernel: Kernel, threads: int, number: int, unchanging: set[Node], registers: int
    ) -> None:
        self.body, self.kernel, self.threads = body, kernel, threads
        self.dot = next(node for node in kernel.graph.nodes if node.op == "dot")
        self.sizes = sizes_of(self.dot)
        self.count, (self.width, self.groups, self.parts) = prod(kernel.domain.outer), columns_of(self.dot)
        self.steps = self.sizes.k // self.parts
        self.column, self.part = f"column{number}", f"part{number}"
        self.sum = f"sum{number}"
        body.line(f"int {self.column} = {THREAD} % {self.groups};")
        body.line(f"int {self.part} = min({THREAD} / {self.groups}, {self.parts - 1});")
        self.element, self.is_one_each = f"e{number}", self.count <= threads
        if self.is_one_each:
            body.line(f"int {self.element} = min({THREAD}, {self.count - 1});")
        body.scopes[0].variables |= {self.column, self.part, self.element}
        self.words: dict[tuple[int, int], str] = {}  # by side and step: vectors of 16 bits that are kept so
        same = [side for side in range(2) if inputs_of(self.dot.operands[side]) <= unchanging]
        for side in same:
            self._keep(side, registers // len(same))

    def _keep(self, side: int, registers: int) -> None:
        """Loads an operand's vectors for as many steps as registers hold."""
        narrow, whole = self._narrow_at(side, 0) is not None, registers // self.width
        if narrow and self.steps > whole:
            whole = max(0, (registers - _WORDS * self.steps) // (self.width - _WORDS))
        for step in range(min(whole, self.steps)):
            self._operand(side, step)
        in_words = min(self.steps, whole + (registers - self.width * whole) // _WORDS) if narrow else 0
        for step in range(whole, in_words):
            found = self._narrow_at(side, step)
            assert found is not None, "an operand has vectors of one kind in all steps"
            self.words[side, step] = self.body.declare(self.body.scopes[-1], "uvec2", found[1])

    def _narrow_at(self, side: int, step: int) -> tuple[Node, str] | None:
        """The array that holds an operand's vector in 16 bits, and its two words in memory; None if there is none."""
        body, source = self.body, _source(self.dot.operands[side])
        if self.width != VECTOR or source.op != INPUT or source.dtype.storage.itemsize != 2 or source in body.held:
            return None
        position = flatten(self._where(side, self._at_step(step)), source.shape)
        base = substitute(position, {LANE_NAME: constant(0)})
        if not body.is_aligned(source, position):
            return None
        place = body.index(quotient_exact(base, VECTOR))
        return source, f"{body.uses.reference('u32', 'x2')}({body.addresses[source]}).data[{place}]"

    def _at_columns(self) -> Coordinates:
        *ahead, last = self.kernel.domain.outer
        *at, along = unflatten(variable(self.column, self.groups), (*ahead, last // self.width))
        return (*at, linear([(along, self.width), (LANE, 1)]) if self.width > 1 else along)

    def _where(self, side: int, summed: Index) -> Coordinates:
        """Where an operand has its elements at the invocation's columns, at a place along the sum."""
        at, sizes = self._at_columns(), self.sizes
        batch, rows = len(sizes.batch), len(sizes.batch) + len(sizes.rows)
        free = at[batch:rows] if side == 0 else at[rows:]
        return operand_at(self.dot, side, at[:batch], free, unflatten(summed, sizes.summed))

    def _at_step(self, step: int) -> Index:
        return linear([(variable(self.part, self.parts), self.steps)], step)

    def _operand(self, side: int, step: int) -> GlslValue:
        """An operand's elements at the invocation's columns, at a step of its part of the sum."""
        body, words = self.body, self.words.get((side, step))
        if words is not None:
            dtype = _source(self.dot.operands[side]).dtype
            text = body.memory.as_read(f"{body.uses.access('halves_of')}({words})", VECTOR, dtype)
            return GlslValue(text, VECTOR)
        with body.at({}):
            return body.value(self.dot.operands[side], self._where(side, self._at_step(step)))

    def _four_of_left(self, step: int) -> str | None:
        """The name of the left operand's elements at four steps, if shared memory has them as one vector."""
        body, operand = self.body, self.dot.operands[0]
        source = _source(operand)
        name, _ = body.held.get(source, ("", ""))
        if name not in body.in_fours or step + VECTOR > self.steps:
            return None
        at = self._where(0, linear([(self._at_step(step), 1), (LANE, 1)]))
        if any(LANE_NAME in index.variables for index in self._where(0, self._at_step(step))):
            return None  # it has neighbouring columns
        position = flatten(at, source.shape)
        if not body.is_aligned(source, position):
            return None
        return body.declare(body.scopes[-1], "vec4", body.load_at(source, position).text)

    def emit(self, write: Callable[[], None]) -> None:
        """Adds up the elements, and writes what follows from each by `write`."""
        body, threads = self.body, self.threads
        kind = type_name(self.dot.dtype, self.width)
        if self.is_one_each:
            with body.at(at_row(variable(self.element, self.count), self.kernel)):
                load_ahead(body, self.kernel, body.held)
        with body.pinned_block(""):
            body.line(f"{kind} {self.sum} = {kind}(0);")
            four: str | None = None
            for step in range(self.steps):
                if step % VECTOR == 0:
                    four = self._four_of_left(step)
                left = self._operand(0, step) if four is None else GlslValue(f"{four}.{COMPONENTS[step % VECTOR]}", 1)
                texts = [widened(value, self.width, self.dot.dtype) for value in (left, self._operand(1, step))]
                body.line(f"{self.sum} += {texts[0]} * {texts[1]};")
            used = self.groups * self.parts
            with body.block("" if used == threads else f"if ({THREAD} < {used})"):
                place = f"{self.part} * {self.groups} + {self.column}"
                if self.width == VECTOR:
                    body.line(f"parts[{place}] = {self.sum};")
                else:
                    body.lines([f"int at = {place};", f"parts[at >> 2][at & 3] = {self.sum};"])
        body.lines(BARRIER)
        e = self.element
        head = f"for (int {e} = {THREAD}; {e} < {self.count}; {e} += {threads})"
        with body.pinned_block(f"if ({THREAD} < {self.count})" if self.is_one_each else head):
            kind = type_name(self.dot.dtype, 1)
            body.line(f"{kind} whole = parts[{e} >> 2][{e} & 3];")
            for part in range(1, self.parts):
                first = part * self.count
                body.line(f"whole += parts[({first} + {e}) >> 2][({first} + {e}) & 3];")
            with body.at(at_row(variable(e, self.count), self.kernel)):
                body.define(self.dot, self.kernel.coordinates[self.dot], GlslValue("whole", 1))
                write()


def _source(operand: Node) -> Node:
    """What a factor of 32 bits is in fewer, if it is that."""
    return operand.operands[0] if is_widening(operand) else operand
