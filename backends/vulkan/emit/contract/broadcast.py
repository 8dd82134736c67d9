"""Contractions by broadcast tiles: the lanes of a subgroup are side by side along the columns of one tile.

Each lane has vectors of four columns, of all the tile's rows, in registers, and reads these columns of the right
operand by itself. All lanes need the left operand: each reads a share of it and passes it to the others by
`subgroupShuffle` with a constant lane. CPU drivers split the load of a vector into one load per lane and component. So
the number of loads grows with the tile's edges only, while invocations with separate tiles would read the same rows
again.

The tile is written in a loop over its rows, so that the epilogue is in the shader once per vector of columns.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.contract.prologue_epilogue import Contraction
from lavax.backends.vulkan.emit.contract.span import both
from lavax.backends.vulkan.emit.contract.tiles import BroadcastTile
from lavax.backends.vulkan.glsl.body import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR, type_name
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
    """The state of writing one contraction by broadcast tiles."""

    def __init__(self, contraction: Contraction, tile: BroadcastTile) -> None:
        self.contraction, self.tile, self.body = contraction, tile, contraction.body
        self.dtype = contraction.dot.dtype
        self.kind = type_name(self.dtype, VECTOR)
        self.steps = VECTOR if contraction.sizes.k % VECTOR == 0 else 1
        self.along_sum = [neighbours_of(contraction.dot, side).summed for side in range(2)]
        self.member = variable("member", tile.lanes)
        self.rows, self.columns = contraction.open_tile(tile)
        self.body.line("int member = int(gl_LocalInvocationID.x);")
        self.body.scopes[0].variables |= {"member"}

    def emit(self) -> Launch:
        self._declare_sums()
        self._sum_loop()
        self._write_tile()
        lines, lanes = self.body.scopes[0].lines, self.tile.lanes
        text = ShaderText(self.body.uses, lines, (lanes, 1), subgroup_size=lanes, shuffles=True)
        words, groups = tuple(self.body.parameters.words), self.contraction.groups(self.tile)
        return Launch(assemble(text), words, groups, text=text)

    def _column(self, vector: int) -> Index:
        """The offset in the tile of a vector of the lane's columns; neighbouring lanes have neighbouring vectors."""
        return linear([(self.member, VECTOR)], vector * VECTOR * self.tile.lanes)

    # -- the sum ------------------------------------------------------------------------------------------------------

    def _declare_sums(self) -> None:
        for row in range(self.tile.rows):
            names = ", ".join(f"s{row}_{vector} = {self.kind}(0)" for vector in range(self.tile.vectors))
            self.body.line(f"{self.kind} {names};")

    def _sum_loop(self) -> None:
        body, iterations = self.body, self.contraction.sizes.k // self.steps
        with body.block(f"for (int k = 0; k < {body.parameters.integer(iterations)}; ++k)", frozenset(("k",))):
            start = linear([(variable("k", iterations), self.steps)])
            shares = [self._share(first, start) for first in range(0, self.tile.rows, self.tile.lanes)]
            columns = [self._right(vector, start) for vector in range(self.tile.vectors)]
            for row in range(self.tile.rows):
                group, inside = divmod(row, self.tile.lanes)
                for step in range(self.steps):
                    self._multiply(row, shares[group].element(inside, step), [found[step] for found in columns])

    def _multiply(self, row: int, factor: str, columns: list[str]) -> None:
        if len(columns) > 1:
            factor = self.body.declare(self.body.scopes[-1], type_name(self.dtype, 1), factor)
        for vector, column in enumerate(columns):
            self.body.line(f"s{row}_{vector} += {factor} * {column};")

    def _share(self, first: int, start: Index) -> Share:
        """The lanes' shares of as many rows as there are lanes, from the tile's `first` on, in one iteration.

        Lanes read neighbours in memory as vectors. If these are along the sum, a lane has a row; if they are along the
        rows, it has four rows at one step of the sum.
        """
        height = min(self.tile.rows, self.tile.lanes)
        if self.steps == VECTOR and not self.along_sum[0] and height % VECTOR == 0:
            across = height // VECTOR
            step = remainder(quotient(self.member, across), VECTOR)
            rows = self.rows.at(linear([(remainder(self.member, across), VECTOR)], first), VECTOR)
            value = self.contraction.operand(0, rows, linear([(start, 1), (step, 1)]))
            return Share(value.text, value.width, across)
        row = self.rows.at(linear([(remainder(self.member, height), 1)], first))
        summed = linear([(start, 1), (LANE, 1)]) if self.steps == VECTOR else start
        value = self.contraction.operand(0, row, summed)
        return Share(value.text, value.width, 0)

    def _right(self, vector: int, start: Index) -> list[str]:
        """A vector of the lane's columns per step of an iteration, read along the axis of neighbours."""
        column = self._column(vector)
        if self.steps == VECTOR and self.along_sum[1]:
            summed = linear([(start, 1), (LANE, 1)])
            four = [self.contraction.operand(1, self.columns.at(add(column, n)), summed) for n in range(VECTOR)]
            texts = [widened(value, VECTOR, self.dtype) for value in four]
            return [f"{self.kind}({', '.join(f'{text}.{c}' for text in texts)})" for c in COMPONENTS]
        place = self.columns.at(column, VECTOR)
        values = (self.contraction.operand(1, place, add(start, step)) for step in range(self.steps))
        return [widened(value, VECTOR, self.dtype) for value in values]

    # -- the result ---------------------------------------------------------------------------------------------------

    def _write_tile(self) -> None:
        body, tile = self.body, self.tile
        count = min(tile.rows, self.contraction.sizes.m)
        row = variable("row", count)
        # Drivers that know the loop's end unroll it, and then take up to three times as long to compile it.
        end = body.parameters.unknown(count)
        with body.block(f"for (int row = 0; row < {end}; ++row)", frozenset(("row",))):
            for vector in range(tile.vectors):
                self._write(row, self._column(vector), self._chosen(vector))

    def _chosen(self, vector: int) -> str:
        """A vector of the current row. Drivers compile an array with a variable index far more slowly."""
        name = self.body.declare(self.body.scopes[-1], self.kind, f"s0_{vector}")
        for row in range(1, self.tile.rows):
            self.body.line(f"{name} = mix({name}, s{row}_{vector}, bvec4(row == {row}));")
        return name

    def _write(self, row: Index, column: Index, value: str) -> None:
        guards = both(self.rows.guards(self.body, row), self.columns.guards(self.body, column, VECTOR))
        self.contraction.write(self.rows.at(row), self.columns.at(column, VECTOR), GlslValue(value, VECTOR), guards)


def emit_broadcast(contraction: Contraction, tile: BroadcastTile) -> Launch:
    """The shader of a contraction by broadcast tiles."""
    return BroadcastTileEmitter(contraction, tile).emit()
