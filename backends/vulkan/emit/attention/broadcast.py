"""Tiles of subgroups, for CPU drivers whose lanes exchange values: no shared memory, no barriers.

All lanes of a subgroup have the same rows. They split the columns of a tile, and the head of a result. Each lane loads
a part of the operands and passes it to the others. So a block's operands are loaded once for all rows, and results stay
in registers from the first block to the last. That pays because these drivers split the load of a vector by lane and
pair of components, which takes as long as dozens of multiplications of vectors in all lanes.

Values of a lane whose number is known only at run time are read by a shuffle too, which is one instruction;
`subgroupBroadcast` is a loop over the lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lavax.backends.vulkan.emit.attention.problem import Problem, Stage
from lavax.backends.vulkan.emit.attention.registers import RegisterTiles
from lavax.backends.vulkan.emit.attention.subgroup_shape import BroadcastShape, vectors_per_lane
from lavax.backends.vulkan.emit.attention.tiles import AttentionTile
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue
from lavax.backends.vulkan.glsl.launch import Launch, grid
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, add, clamp, linear, remainder, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.target.kernel_limits import ATTENTION


class BroadcastTiles(RegisterTiles):
    """One tile per subgroup."""

    def __init__(
        self,
        kernel: Kernel,
        profile: DeviceProfile,
        lifted: bool,
        problem: Problem,
        stages: Sequence[Stage],
        shape: BroadcastShape,
    ) -> None:
        lanes = profile.subgroup_size
        groups = max(ATTENTION.block_of_columns // (VECTOR * lanes), 1)
        tile = AttentionTile(shape.rows, groups, shape.rows, groups * VECTOR * lanes, lanes)
        super().__init__(kernel, lifted, problem, tile)
        self.lanes = lanes

    def row_index(self, number: int) -> Index:
        return add(self.corner, number)

    def first_column(self, group: int) -> Index:
        return linear([(self.block, self.width), (self.member, VECTOR)], VECTOR * self.lanes * group)

    def rows_together(self) -> tuple[str, int]:
        return self.body.index(self.corner), self.height

    def of_row(self, operand: Node, number: int) -> str:
        own = self.body.value(operand, (*self.batch, self._own_row(number - number % self.lanes)))
        return f"subgroupShuffle({own.text}, {number % self.lanes}u)"

    def _own_row(self, first: int) -> Index:
        """The row that a lane reads, of as many rows as there are lanes, from the tile's row `first` on."""
        row = remainder(self.member, min(self.height, self.lanes))
        return self.inside(linear([(self.corner, 1), (row, 1)], first))

    def folded(self, join: str, names: Sequence[str]) -> None:
        distance = 1
        while distance < self.lanes:
            for name in names:
                other = f"subgroupShuffleXor({name}, {distance}u)"
                self.line(f"{name} = {f'{name} + {other}' if join == '+' else f'{join}({name}, {other})'};")
            distance *= 2

    def open_blocks(self, start: str, stages: Sequence[Stage]) -> None:
        """Nothing is staged."""

    @contextmanager
    def _loop(self, name: str, turns: int) -> Iterator[Index]:
        with self.body.block(f"for (int {name} = 0; {name} < {self.unknown(turns)}; ++{name})", frozenset((name,))):
            yield variable(name, turns)

    # -- products -----------------------------------------------------------------------------------------------------

    def product(self, name: str, of_rows: Node, of_columns: Node) -> None:
        for part in self.parts():
            self.line(f"vec4 {part.of(name)} = vec4(0);")
        width = VECTOR if of_rows.shape[-1] % VECTOR == 0 else 1
        with self._loop("d", of_rows.shape[-1] // width) as step:
            along = linear([(step, VECTOR), (LANE, 1)]) if width == VECTOR else step
            firsts = range(0, self.height, self.lanes)
            shares = [self.vector(of_rows, self._own_row(first), along, width) for first in firsts]
            columns = [self._turned(of_columns, group, along, width) for group in range(self.groups)]
            for row in range(self.height):
                for number, component in enumerate(COMPONENTS[:width]):
                    share = shares[row // self.lanes] + (f".{component}" if width == VECTOR else "")
                    factor = f"subgroupShuffle({share}, {row % self.lanes}u)"
                    if self.groups > 1:
                        factor = self.body.declare(self.body.scopes[-1], "float", factor)
                    for group in range(self.groups):
                        self.line(f"{name}{row}_{group} += {factor} * {columns[group][number]};")

    def _turned(self, operand: Node, group: int, along: Index, width: int) -> list[str]:
        """A vector of the lane's columns at each of `width` elements of the head."""
        columns = (add(self.first_column(group), number) for number in range(VECTOR))
        last = self.problem.columns - 1
        four = [self.vector(operand, clamp(column, 0, last), along, width) for column in columns]
        dots = [f".{component}" for component in COMPONENTS] if width == VECTOR else [""]
        texts = (f"vec4({', '.join(f'{one}{dot}' for one in four)})" for dot in dots)
        return [self.body.declare(self.body.scopes[-1], "vec4", text) for text in texts]

    # -- sums ---------------------------------------------------------------------------------------------------------

    def _vectors(self, node: Node) -> range:
        """A lane's vectors of a row; neighbouring vectors belong to other lanes."""
        return range(vectors_per_lane(node, self.lanes))

    def accumulate(self, node: Node, name: str, of_columns: Node, scaled: bool) -> None:
        if scaled:
            self._scale(node, [f"scale{row}" for row in range(self.height)])
        with self._loop("c", self.width // VECTOR) as turn:
            lines = [self._line(of_columns, linear([(turn, VECTOR)], number)) for number in range(VECTOR)]
            for row in range(self.height):
                weights = self._weights(name, row)
                for vector in self._vectors(node):
                    for component, line in zip(COMPONENTS, lines, strict=True):
                        self.line(f"{self._sum(node, row, vector)} += {weights}.{component} * {line[vector]};")

    def _weights(self, name: str, row: int) -> str:
        """The four columns of iteration `c` in a row of a tile, read from the lane that has them."""
        vector, lane = f"{name}{row}_0", "uint(c)"
        for group in range(1, self.groups):
            vector = f"mix({vector}, {name}{row}_{group}, bvec4(c >= {group * self.lanes}))"
            lane = f"uint(c) % {self.lanes}u"
        return self.body.declare(self.body.scopes[-1], "vec4", f"subgroupShuffle({vector}, {lane})")

    def _line(self, operand: Node, column: Index) -> list[str]:
        """The lane's vectors of a column's row of the operand. Vectors beyond its end are arbitrary."""
        length = operand.shape[-1]
        column = clamp(linear([(self.block, self.width), (column, 1)]), 0, self.problem.columns - 1)
        found = []
        for vector in self._vectors(operand):
            place = clamp(self._place(vector), 0, -(-length // VECTOR) - 1)
            along = clamp(linear([(place, VECTOR), (LANE, 1)]), 0, length - 1)
            found.append(self.vector(operand, column, along))
        return found

    def _place(self, vector: int) -> Index:
        """The number of a lane's vector in its row."""
        return add(self.member, vector * self.lanes)

    # -- results ------------------------------------------------------------------------------------------------------

    def close_result(self, node: Node, factors: Sequence[str]) -> None:
        self._scale(node, factors)
        with self._loop("r", self.height) as number:
            place = linear([(self.corner, 1), (number, 1)])
            there = self.is_row(place)
            with self.body.block(f"if ({there})" if there else ""):
                for vector in self._vectors(node):
                    sums = [self._sum(node, row, vector) for row in range(self.height)]
                    self._write(node, self.inside(place), self._place(vector), self._chosen("vec4", sums, "r"))

    def _chosen(self, kind: str, texts: Sequence[str], number: str) -> str:
        """The text with that number. Drivers compile an array with a variable index far more slowly."""
        name = self.body.declare(self.body.scopes[-1], kind, texts[0])
        for position, text in enumerate(texts[1:], 1):
            test = f"{number} == {position}"
            self.line(f"{name} = mix({name}, {text}, {f'bvec4({test})' if kind == 'vec4' else test});")
        return name

    def _write(self, node: Node, row: Index, place: Index, value: str) -> None:
        length, address = node.shape[-1], self.outputs[node]
        first = linear([(place, VECTOR)])
        if length % VECTOR == 0:
            along = linear([(clamp(place, 0, length // VECTOR - 1), VECTOR), (LANE, 1)])
            with self._if_below(first, length):
                self.body.store(node, (*self.batch, row, along), GlslValue(value, VECTOR), address)
            return
        for number, component in enumerate(COMPONENTS):
            along = add(first, number)
            with self._if_below(along, length):
                at = (*self.batch, row, clamp(along, 0, length - 1))
                self.body.store(node, at, GlslValue(f"{value}.{component}", 1), address)

    def store_statistic(self, node: Node, values: Sequence[str]) -> None:
        for first in range(0, self.height, self.lanes):
            own = self._chosen("float", values[first : first + self.lanes], "member")
            row = linear([(self.corner, 1), (self.member, 1)], first)
            tests = [self.is_row(row), f"member < {self.height}" if self.height < self.lanes else ""]
            guard = " && ".join(filter(None, tests))
            with self.body.block(f"if ({guard})" if guard else ""):
                self.body.store(node, (*self.batch, self.inside(row)), GlslValue(own, 1), self.outputs[node])

    def close(self) -> Launch:
        lines, lanes = self.body.scopes[0].lines, self.lanes
        text = ShaderText(self.body.uses, lines, (lanes, 1), subgroup_size=lanes, shuffles=True)
        shader = assemble(text)
        return Launch(shader, tuple(self.body.parameters.words), grid(self.count))
