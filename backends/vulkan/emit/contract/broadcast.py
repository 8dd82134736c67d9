"""Contractions by broadcast tiles: the lanes of a subgroup are side by side along the columns of one tile.

Each lane has vectors of four columns, of all the tile's rows, in registers, and reads these columns of the right
operand by itself. All lanes need the left operand: each reads a share of it and passes it to the others by
`subgroupShuffle` with a constant lane. CPU drivers split the load of a vector into one load per lane and component. So
the number of loads grows with the tile's edges only, while invocations with separate tiles would read the same rows
again.

The tile is written in a loop over its rows, so that the epilogue is in the shader once per vector of columns.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from lavax.backends.vulkan.emit.contract.prologue_epilogue import Contraction
from lavax.backends.vulkan.emit.contract.span import Guard, both
from lavax.backends.vulkan.emit.contract.tiles import BroadcastTile
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.build.contraction_geometry import neighbours_of
from lavax.passes.kernels.index import Index, add, linear, quotient, remainder, variable


@dataclass(frozen=True)
class Share:
    """The lanes' shares of the left operand: the variables, with the same names in each lane, and who has what."""

    text: str
    width: int
    lanes_along_sum: int  # 0: a lane has a row, and the steps of the sum are its vector's; else lanes from step to step

    def element(self, row: int, step: int) -> str:
        """The element of a row of the share at a step of the sum, for every lane."""
        along_rows = self.lanes_along_sum > 0
        lane = step * self.lanes_along_sum + row // VECTOR if along_rows else row
        component = row % VECTOR if along_rows else step
        suffix = f".{COMPONENTS[component]}" if self.width == VECTOR else ""
        return f"subgroupShuffle({self.text}{suffix}, {lane}u)"


class BroadcastTileEmitter:
    """The state of writing one contraction by broadcast tiles.

    All lanes have the elements of the `shared` side, rows or columns, and vectors of their `own` on the other side.
    """

    def __init__(self, contraction: Contraction, tile: BroadcastTile) -> None:
        self.contraction, self.tile, self.body = contraction, tile, contraction.body
        self.dtype = contraction.dot.dtype
        self.kind = type_name(self.dtype, VECTOR)
        self.steps = VECTOR if contraction.sizes.k % VECTOR == 0 else 1
        self.along_sum = [neighbours_of(contraction.dot, side).summed for side in range(2)]
        self.member = variable("member", tile.lanes)
        self.spans = contraction.open_tile(tile)
        self.shared_side, self.own_side = (1, 0) if tile.turned else (0, 1)
        self.shared, self.own = self.spans[self.shared_side], self.spans[self.own_side]
        self.body.line("int member = int(gl_LocalInvocationID.x);")
        self.body.scopes[0].variables |= {"member"}

    def emit(self) -> Launch:
        self._declare_sums()
        self._sum_loop()
        if self.tile.turned and not self.contraction.lies_along_rows():
            self._write_across()
        else:
            self._write_along()
        lines, lanes = self.body.scopes[0].lines, self.tile.lanes
        text = ShaderText(self.body.uses, lines, (lanes, 1), subgroup_size=lanes, shuffles=True)
        words, groups = tuple(self.body.parameters.words), self.contraction.groups(self.tile)
        return Launch(assemble(text), words, groups, text=text)

    def _offset(self, vector: int) -> Index:
        """The offset in the tile of one of the lane's own vectors; neighbouring lanes have neighbouring vectors."""
        return linear([(self.member, VECTOR)], vector * VECTOR * self.tile.lanes)

    # -- the sum ------------------------------------------------------------------------------------------------------

    def _declare_sums(self) -> None:
        for row in range(self.tile.shared):
            names = ", ".join(f"s{row}_{vector} = {self.kind}(0)" for vector in range(self.tile.vectors))
            self.body.line(f"{self.kind} {names};")

    def _sum_loop(self) -> None:
        body, iterations = self.body, self.contraction.sizes.k // self.steps
        with body.block(f"for (int k = 0; k < {body.parameters.integer(iterations)}; ++k)", frozenset(("k",))):
            start = linear([(variable("k", iterations), self.steps)])
            shares = [self._share(first, start) for first in range(0, self.tile.shared, self.tile.lanes)]
            vectors = [self._vector(vector, start) for vector in range(self.tile.vectors)]
            for row in range(self.tile.shared):
                group, inside = divmod(row, self.tile.lanes)
                for step in range(self.steps):
                    self._multiply(row, shares[group].element(inside, step), [found[step] for found in vectors])

    def _multiply(self, row: int, factor: str, vectors: list[str]) -> None:
        if len(vectors) > 1:
            factor = self.body.declare(self.body.scopes[-1], type_name(self.dtype, 1), factor)
        for vector, elements in enumerate(vectors):
            self.body.line(f"s{row}_{vector} += {factor} * {elements};")

    def _share(self, first: int, start: Index) -> Share:
        """The lanes' shares of as many shared rows as there are lanes, from the tile's `first` on, in one iteration.

        Lanes read neighbours in memory as vectors. If these are along the sum, a lane has a row; if they are along the
        rows, it has four rows at one step of the sum.
        """
        height, side = min(self.tile.shared, self.tile.lanes), self.shared_side
        if self.steps == VECTOR and not self.along_sum[side] and height % VECTOR == 0:
            across = height // VECTOR
            step = remainder(quotient(self.member, across), VECTOR)
            rows = self.shared.at(linear([(remainder(self.member, across), VECTOR)], first), VECTOR)
            value = self.contraction.operand(side, rows, linear([(start, 1), (step, 1)]))
            return Share(value.text, value.width, across)
        row = self.shared.at(linear([(remainder(self.member, height), 1)], first))
        summed = linear([(start, 1), (LANE, 1)]) if self.steps == VECTOR else start
        value = self.contraction.operand(side, row, summed)
        return Share(value.text, value.width, 0)

    def _vector(self, vector: int, start: Index) -> list[str]:
        """One of the lane's own vectors per step of an iteration, read along the axis of neighbours."""
        offset, side = self._offset(vector), self.own_side
        if self.steps == VECTOR and self.along_sum[side]:
            summed = linear([(start, 1), (LANE, 1)])
            four = [self.contraction.operand(side, self.own.at(add(offset, n)), summed) for n in range(VECTOR)]
            texts = [widened(value, VECTOR, self.dtype) for value in four]
            return [f"{self.kind}({', '.join(f'{text}.{c}' for text in texts)})" for c in COMPONENTS]
        place = self.own.at(offset, VECTOR)
        values = (self.contraction.operand(side, place, add(start, step)) for step in range(self.steps))
        return [widened(value, VECTOR, self.dtype) for value in values]

    # -- the result ---------------------------------------------------------------------------------------------------

    def _write_along(self) -> None:
        """Writes the lanes' own vectors, in a loop over the shared rows."""
        count = min(self.tile.shared, self.shared.extent)
        row = variable("row", count)
        with self._loop("row", count):
            for vector in range(self.tile.vectors):
                sums = [f"s{number}_{vector}" for number in range(self.tile.shared)]
                offset, value = self._offset(vector), self._chosen(sums, "row")
                guards = both(self.shared.guards(self.body, row), self.own.guards(self.body, offset, VECTOR))
                self._write(self.shared.at(row), self.own.at(offset, VECTOR), value, guards)

    def _write_across(self) -> None:
        """Writes vectors of shared columns, in loops over these vectors and over four rows of a lane."""
        count = -(-min(self.tile.shared, self.shared.extent) // VECTOR)
        four, part = variable("four", count), variable("part", VECTOR)
        columns = linear([(four, VECTOR)])
        with self._loop("four", count):
            own = [[self._of_four(vector, number) for number in range(VECTOR)] for vector in range(self.tile.vectors)]
            with self._loop("part", VECTOR):
                for vector, sums in enumerate(own):
                    parts = [f"{self.kind}({', '.join(f'{name}.{c}' for name in sums)})" for c in COMPONENTS]
                    row = linear([(self._offset(vector), 1), (part, 1)])
                    guards = both(self.own.guards(self.body, row), self.shared.guards(self.body, columns, VECTOR))
                    self._write(self.shared.at(columns, VECTOR), self.own.at(row), self._chosen(parts, "part"), guards)

    def _of_four(self, vector: int, number: int) -> str:
        """The sums of one of the present four columns."""
        sums = [f"s{column}_{vector}" for column in range(number, self.tile.shared, VECTOR)]
        return self._chosen(sums, "four")

    def _loop(self, name: str, count: int) -> AbstractContextManager[None]:
        # Drivers that know the loop's end unroll it, and then take up to three times as long to compile it.
        end = self.body.parameters.unknown(count)
        return self.body.block(f"for (int {name} = 0; {name} < {end}; ++{name})", frozenset((name,)))

    def _chosen(self, vectors: list[str], number: str) -> str:
        """One of the vectors by its number. Drivers compile an array with a variable index far more slowly."""
        name = self.body.declare(self.body.scopes[-1], self.kind, vectors[0])
        for place, vector in enumerate(vectors[1:], start=1):
            self.body.line(f"{name} = mix({name}, {vector}, bvec4({number} == {place}));")
        return name

    def _write(self, shared: Index, own: Index, value: str, guards: list[Guard]) -> None:
        row, column = (own, shared) if self.tile.turned else (shared, own)
        self.contraction.write(row, column, GlslValue(value, VECTOR), guards)


def emit_broadcast(contraction: Contraction, tile: BroadcastTile) -> Launch:
    """The shader of a contraction by broadcast tiles."""
    return BroadcastTileEmitter(contraction, tile).emit()
