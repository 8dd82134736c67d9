"""What all schedules of contractions share: operands and results at rows and columns, and tiles at the edges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lavax.backends.vulkan.emit.contract.tiles import Tile
from lavax.backends.vulkan.glsl.body import LANE, Body, GlslValue
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR
from lavax.backends.vulkan.glsl.launch import WORKGROUP, grid, open_body
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import INPUT, Node
from lavax.passes.build.contraction_geometry import operand_at, sizes_of
from lavax.passes.kernels.index import (
    Index,
    add,
    clamp,
    constant,
    flatten,
    grows_by_one,
    linear,
    quotient,
    remainder,
    substitute,
    unflatten,
    variable,
)
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import READS, Coordinates

# A condition on the lanes of a vector, or on all of it (None).
Guard = tuple[int | None, str]


@dataclass(frozen=True)
class Span:
    """The elements of a tile, `size` of `extent`, along a group of axes; `number` says which tile it is.

    Where tiles do not divide the extent, the last one is moved back to lie inside, and its elements that are another
    tile's are not its own. A tile larger than the extent ends in copies of the last elements, which nobody owns.
    """

    extent: int
    size: int
    number: Index
    unit: int = VECTOR  # tiles begin at multiples of it where they can

    @property
    def first(self) -> Index:
        """Where the tile begins."""
        last = max(self.extent - self.size, 0)
        for unit in (self.unit, VECTOR):
            if self.size % unit == 0 and last % unit == 0:
                whole = clamp(linear([(self.number, self.size // unit)]), 0, last // unit)
                return linear([(whole, unit)])
        return clamp(linear([(self.number, self.size)]), 0, last)

    def at(self, offset: Index, width: int = 1) -> Index:
        """The element at that offset in the tile, or four from there on; the offset is then a multiple of four."""
        lanes = [(LANE, 1)] if width == VECTOR else []
        place = linear([(self.first, 1), (offset, 1)])
        if width == VECTOR and self.extent % VECTOR == 0:
            return linear([(_vectors_within(place, self.extent, VECTOR), 1), *lanes])
        return clamp(linear([(place, 1), *lanes]), 0, self.extent - 1)

    def eight(self, offset: Index, half: int) -> Index:
        """Half of the eight elements from that offset on, which is a multiple of eight, in lanes."""
        place = linear([(self.first, 1), (offset, 1)])
        if self.extent % (2 * VECTOR) == 0:
            return linear([(_vectors_within(place, self.extent, 2 * VECTOR), 1), (LANE, 1)], VECTOR * half)
        return clamp(linear([(place, 1), (LANE, 1)], VECTOR * half), 0, self.extent - 1)

    def guards(self, body: Body, offset: Index, width: int = 1) -> list[Guard]:
        """Which elements from that offset on are the tile's own: lanes, or all (None), and the condition, if any."""
        if self.extent % self.size == 0:
            return [(None, "")]
        if width == 1 or (self.extent % width == 0 and self.size % width == 0):
            return [(None, self._own(body, offset))]
        return [(lane, self._own(body, add(offset, lane))) for lane in range(width)]

    def _own(self, body: Body, offset: Index) -> str:
        if self.size > self.extent:
            return f"{body.index(offset)} < {body.parameters.integer(self.extent)}"
        place, start = linear([(self.first, 1), (offset, 1)]), linear([(self.number, self.size)])
        return f"{body.index(place)} >= {body.index(start)}"


def _vectors_within(place: Index, extent: int, width: int) -> Index:
    """A multiple of the width, held where a whole vector lies inside the extent."""
    if place.high <= extent - width:
        return place
    return linear([(clamp(quotient(place, width), 0, extent // width - 1), width)])


@dataclass(frozen=True)
class Vector:
    """Neighbouring elements of an operand that one invocation stages: where they begin along the free axis and the
    sum."""

    free: Index
    summed: Index


class Contraction:
    """The state of writing one contract kernel. `batch` is set once the tiles are numbered."""

    def __init__(self, kernel: Kernel, dot: Node, profile: DeviceProfile, lifted: bool) -> None:
        self.kernel, self.dot, self.profile = kernel, dot, profile
        self.sizes = sizes_of(dot)
        self.body, self.outputs = open_body(kernel, lifted)
        self.batch: Coordinates = ()

    def open_tile(self, tile: Tile, unit: int = VECTOR) -> tuple[Span, Span]:
        """Gives every workgroup of `groups` a tile, whose number is `t`, and ends those beyond the last one."""
        count, (across, down, _) = tile.tiles(self.sizes), self.groups(tile)
        self.body.line(f"int t = int{WORKGROUP};")
        if across * down > count:
            self.body.line(f"if (t >= {self.body.parameters.integer(count)}) return;")
        self.body.scopes[0].variables |= {"t"}
        return self.spans(variable("t", count), tile.rows, tile.columns, unit)

    def groups(self, tile: Tile) -> tuple[int, int, int]:
        """A grid with a workgroup for each tile."""
        return grid(tile.tiles(self.sizes))

    def spans(self, tile: Index, rows: int, columns: int, unit: int = VECTOR) -> tuple[Span, Span]:
        """The tile of that number, of all the tiles of this size: its rows and its columns."""
        sizes = self.sizes
        across, down = -(-sizes.n // columns), -(-sizes.m // rows)
        rest = quotient(tile, across)
        self.batch = unflatten(quotient(rest, down), sizes.batch)
        across_at, down_at = remainder(tile, across), remainder(rest, down)
        return Span(sizes.m, rows, down_at, unit), Span(sizes.n, columns, across_at, unit)

    def operand(self, side: int, free: Index, summed: Index) -> GlslValue:
        """An element of the left (0) or right (1) operand."""
        return self.body.value(*self.element(side, free, summed))

    def element(self, side: int, free: Index, summed: Index) -> tuple[Node, Coordinates]:
        """An operand, and the coordinates of its element there."""
        return self.dot.operands[side], self._place(side, free, summed)

    def _place(self, side: int, free: Index, summed: Index) -> Coordinates:
        extents = self.sizes.rows if side == 0 else self.sizes.columns
        return operand_at(self.dot, side, self.batch, unflatten(free, extents), unflatten(summed, self.sizes.summed))

    def load(self, side: int, free: Index, summed: Index) -> None:
        """Reads from memory what an element is computed from, where that depends on nothing else."""
        for node, at in self._reads(self.dot.operands[side], self._place(side, free, summed)):
            self.body.value(node, at)

    def load_for_results(self, m: Index, n: Index) -> int:
        """Reads from memory what the results are computed from besides an element of the contraction, or four, and
        tells how many loads that took. What several of them read, such as a bias, is left out."""
        places, before = self.kernel.places, self.body.loads()
        with self.body.at(self.place_of(m, n, self.batch)):
            for output in self.kernel.graph.outputs:
                for node, at in self._reads(output, places[output]):
                    if node.type.size >= self.dot.type.size:
                        self.body.value(node, at)
        return self.body.loads() - before

    def _reads(self, node: Node, at: Coordinates) -> Iterator[tuple[Node, Coordinates]]:
        """What an element is computed from, in memory, at coordinates that depend on no other element."""
        seen: set[tuple[Node, Coordinates]] = set()
        stack = [(node, at)]
        while stack:
            node, at = stack.pop()
            if (node, at) in seen or node.op == "gather" or node is self.dot:
                continue
            seen.add((node, at))
            if node.op == INPUT:
                yield node, at
            else:
                stack.extend(reversed(READS[node.op](node, at)))

    def lies_along_rows(self) -> bool:
        """Whether neighbours in the results' memory are rows of the contraction, and not columns."""
        row, column = variable("row", self.sizes.m), variable("column", self.sizes.n)
        batch = tuple(variable(f"batch{number}", extent) for number, extent in enumerate(self.sizes.batch))
        place = self.place_of(row, column, batch)
        positions = [
            flatten(tuple(substitute(index, place) for index in self.kernel.places[output]), output.shape)
            for output in self.kernel.graph.outputs
        ]
        along = [sum(grows_by_one(position, name) for position in positions) for name in ("row", "column")]
        return along[0] > along[1]

    def place_of(self, m: Index, n: Index, batch: Coordinates) -> dict[str, Index]:
        """The kernel's loop variables at an element of the contraction."""
        indices = (*batch, *unflatten(m, self.sizes.rows), *unflatten(n, self.sizes.columns))
        pairs = zip(self.kernel.domain.outer_variables, indices, strict=True)
        return {variable.key: index for variable, index in pairs if not variable.is_constant}

    def write(self, m: Index, n: Index, value: GlslValue, guards: list[Guard]) -> None:
        """The results made of one element of the contraction, or of four: those lanes where the condition holds."""
        places = self.kernel.places
        with self.body.at(self.place_of(m, n, self.batch)):
            self.body.define(self.dot, places[self.dot], value)
            results = {output: self.body.value(output, places[output]) for output in self.kernel.graph.outputs}
            for lane, condition in guards:
                for output, result in results.items():
                    if condition:
                        with self.body.block(f"if ({condition})"):
                            self._store(output, result, lane)
                    else:
                        self._store(output, result, lane)

    def _store(self, output: Node, value: GlslValue, lane: int | None) -> None:
        """Writes a vector, or one lane of it."""
        at = tuple(self.body.real(index) for index in self.kernel.places[output])
        if lane is not None:
            at = tuple(substitute(index, {"lane": constant(lane)}) for index in at)
            value = GlslValue(f"{value.text}.{COMPONENTS[lane]}", 1) if value.width == VECTOR else value
        with self.body.at({}):
            self.body.store(output, at, value, self.outputs[output])


def both(rows: list[Guard], columns: list[Guard]) -> list[Guard]:
    """The conditions on a row and on columns of it together."""
    ((_, row),) = rows
    return [(lane, " && ".join(filter(None, (row, column)))) for lane, column in columns]
