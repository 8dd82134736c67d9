"""Rows joined to their places by lists of them: the shaders of link_rows and join_lists.

A subgroup puts the updates of its share in front of the lists of their places, from the last to the first, so that each
list has them in their order. Then lanes walk along the lists of a place, each with a strip of its row in registers, and
write it once. So a row is stored for each place, not for each update, and the result is that of joining one update
after the other.
"""

from __future__ import annotations

from dataclasses import replace

from lavax.backends.vulkan.emit.map.kernel import emit_copy
from lavax.backends.vulkan.emit.scatter.lines import JOINS
from lavax.backends.vulkan.glsl.bounds import inside
from lavax.backends.vulkan.glsl.expressions import VECTOR, type_name
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.launch import Launch, local_invocations
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.ir.ops.lowered.scatter import share_of_list
from lavax.passes.kernels.index import Index, add, linear
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS

_MOST_OF_LANE = 8  # vectors of four, or elements, of a row: sums in registers


def emit_link_rows(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shaders of link_rows: the array is copied first, and a subgroup makes each list of its share."""
    (node,) = kernel.graph.outputs
    copied = emit_copy(kernel, node.operands[0], profile, lifted)
    routine = open_routine(kernel, profile, lifted, local_invocations(profile))
    body, places, lanes = routine.body, routine.operands[1], routine.local
    (count,), lists, extent = places.shape, node.attrs["lists"], node.attrs["extent"]
    routine.open(lists * lanes)
    routine.integer("extent", extent)
    share = routine.integer("share", share_of_list(lists, count))
    end = body.parameters.integer(count)
    body.line(f"int list = i / {lanes}, first = list * {share}, last = min(first + {share}, {end}) - 1;")
    with body.block(f"for (int k = last - i % {lanes}; k >= first; k -= {lanes})"):
        at = routine.position("at", "k", count)
        body.line(f"int place = {routine.read(places, (at,))};")
        with body.block("if (place >= 0 && place < extent)"):
            body.line(f"int behind = atomicExchange({_link(routine, 'list * extent + place')}, at);")
            link = body.index(inside(add(at, lists * extent), node.type.size))
            body.line(body.memory.stored(node.dtype, routine.target, link, "behind"))
    return replace(routine.close(lists * lanes), before=copied)


def _link(routine: RoutineShader, position: str) -> str:
    return routine.body.memory.element(routine.node.dtype, routine.target, position)


class _Lists:
    """The state of writing join_lists."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        self.routine: RoutineShader = open_routine(kernel, profile, lifted, local_invocations(profile))
        self.body, self.node = self.routine.body, self.routine.node
        self.array, self.updates, self.links = self.routine.operands
        (self.rows, extent), self.count = self.array.shape, self.updates.shape[0]
        self.width = 1 if lifted or extent % VECTOR else VECTOR
        self.across = extent // self.width
        self.strips = self.across if lifted else -(-self.across // _MOST_OF_LANE)
        self.own = range(-(-self.across // self.strips))
        self.steps = -(-self.count // MAX_LOOP_ITERATIONS)

    def emit(self) -> Launch:
        routine, body, lists = self.routine, self.body, self.node.attrs["lists"]
        invocations = self.rows * self.strips
        routine.open(invocations)
        routine.integer("rows", self.rows)
        routine.integer("strips", self.strips)
        row = routine.position("row", "i / strips", self.rows)
        strip = routine.position("strip", "i % strips", self.strips)
        columns = [self._column(strip, number) for number in self.own]
        kind = type_name(self.node.dtype, self.width)
        for number, column in zip(self.own, columns, strict=True):
            body.line(f"{kind} total{number} = {self._value(self.array, row, column)};")
        with body.block(f"for (int list = 0; list < {lists}; ++list)"):
            begin = routine.position("begin", "list * rows + row", lists * self.rows)
            body.line(f"int next = {routine.read(self.links, (begin,))};")
            with body.block("while (next >= 0)"):
                self._step(0, columns)
                for number in range(1, self.steps):
                    with body.block("if (next >= 0)"):
                        self._step(number, columns)
        for number, column in zip(self.own, columns, strict=True):
            body.store(self.node, (row, column), GlslValue(f"total{number}", self.width), routine.target)
        return routine.close(invocations)

    def _column(self, strip: Index, number: int) -> Index:
        """The first of the elements of a strip with that number; beyond the row's end, the last ones once more."""
        cell = linear([(strip, len(self.own))], number)
        if len(self.own) * self.strips > self.across:
            last = self.body.parameters.integer(self.across - 1)
            cell = self.routine.position(f"cell{number}", f"min({self.body.index(cell)}, {last})", self.across)
        return cell if self.width == 1 else linear([(cell, VECTOR), (LANE, 1)])

    def _value(self, operand: Node, row: Index, column: Index) -> str:
        return widened(self.body.value(operand, (row, column)), self.width, operand.dtype)

    def _step(self, step: int, columns: list[Index]) -> None:
        """Joins one update, whose number is `next`, and finds the number of the one behind it."""
        body, routine, dtype = self.body, self.routine, self.node.dtype
        at = routine.position(f"at{step}", "next", self.count)
        link = add(at, self.node.attrs["lists"] * self.rows)
        body.line(f"next = {routine.read(self.links, (link,))};")
        join = JOINS[self.node.attrs["join"]]
        for number, column in zip(self.own, columns, strict=True):
            update = self._value(self.updates, at, column)
            body.line(f"total{number} = {join(f'total{number}', update, dtype, body.uses)};")


def emit_join_lists(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of join_lists."""
    return _Lists(kernel, profile, lifted).emit()
