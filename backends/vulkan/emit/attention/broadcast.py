"""Tiles of subgroups, for CPU drivers whose lanes exchange values: no shared memory, no barriers.

All lanes of a subgroup have the same rows; of a tile they stand side by side along the columns, of a result along the
head. What all need, each loads a share of, or has a part of, and hands to the others. So a block's operands are loaded
once for all rows, and results stay in registers from the first block to the last: such drivers make a load of a vector
one a lane and pair of components, which takes as long as dozens of multiplications of vectors of all lanes.

A lane that is known when the kernel runs is read by a shuffle, too, which is one instruction; `subgroupBroadcast` is a
loop over the lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lavax.backends.vulkan.emit.attention.registers import RegisterTiles
from lavax.backends.vulkan.emit.attention.tiles import Problem, Stage, Tile
from lavax.backends.vulkan.glsl.body import LANE, GlslValue
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR
from lavax.backends.vulkan.glsl.launch import Launch, grid
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, add, clamp, linear, remainder, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.target.kernel_limits import ATTENTION

_ROWS = (32, 16, 8, 4, 2, 1)
# Of a result with so many vectors of a row in each lane at most the tallest tiles are used, which take few loads for
# what they compute. Drivers compile tall ones of longer heads too long, and find that the first cache has no room.
_FEW_VECTORS = 2
# Lower tiles take nearly as long.
_LEAST_ROWS = 8


@dataclass(frozen=True)
class BroadcastShape:
    """How many rows a subgroup has."""

    rows: int


def broadcast_shapes(profile: DeviceProfile, problem: Problem, stages: Sequence[Stage]) -> list[BroadcastShape]:
    """Those worth a try; first the tallest of moderate size that leaves enough subgroups, or else the lowest."""
    least = min(_LEAST_ROWS, problem.rows)
    worth = [rows for rows in _ROWS if rows >= least and (rows < 2 * problem.rows or rows == _ROWS[-1])]
    results = (_vectors(stage.of_columns, profile.subgroup_size) for stage in stages if stage.of_rows is None)
    most = _ROWS[0] if max(results, default=0) <= _FEW_VECTORS else _ROWS[1]
    subgroups = profile.busy_invocations // profile.subgroup_size
    moderate = [rows for rows in worth if rows <= most]
    busy = (rows for rows in moderate if problem.count * -(-problem.rows // rows) >= subgroups)
    chosen = next(busy, moderate[-1])
    return [BroadcastShape(rows) for rows in (chosen, *(other for other in worth if other != chosen))]


def _vectors(node: Node, lanes: int) -> int:
    """How many vectors of a row each of so many lanes has."""
    return -(-node.shape[-1] // (VECTOR * lanes))


class BroadcastTiles(RegisterTiles):
    """One tile a subgroup."""

    def __init__(
        self, kernel: Kernel, profile: DeviceProfile, lifted: bool, problem: Problem, shape: BroadcastShape
    ) -> None:
        lanes = profile.subgroup_size
        groups = max(ATTENTION.block_of_columns // (VECTOR * lanes), 1)
        super().__init__(kernel, lifted, problem, Tile(shape.rows, groups, shape.rows, groups * VECTOR * lanes, lanes))
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
        """Of as many rows as there are lanes, from the tile's `first` on, the lane's to read at."""
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
        """A lane's vectors of a row, neighbours being other lanes'."""
        return range(_vectors(node, self.lanes))

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
        """What a row of a tile has in the four columns of turn `c`, from the lane that has these."""
        vector, lane = f"{name}{row}_0", "uint(c)"
        for group in range(1, self.groups):
            vector = f"mix({vector}, {name}{row}_{group}, bvec4(c >= {group * self.lanes}))"
            lane = f"uint(c) % {self.lanes}u"
        return self.body.declare(self.body.scopes[-1], "vec4", f"subgroupShuffle({vector}, {lane})")

    def _line(self, operand: Node, column: Index) -> list[str]:
        """The lane's vectors of what a column has. Those beyond its end are some others."""
        length = operand.shape[-1]
        column = clamp(linear([(self.block, self.width), (column, 1)]), 0, self.problem.columns - 1)
        found = []
        for vector in self._vectors(operand):
            place = clamp(self._place(vector), 0, -(-length // VECTOR) - 1)
            along = clamp(linear([(place, VECTOR), (LANE, 1)]), 0, length - 1)
            found.append(self.vector(operand, column, along))
        return found

    def _place(self, vector: int) -> Index:
        """Which vector of a row a lane's is."""
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
        """The text of that number. Drivers compile an array that is read at a variable place far more slowly."""
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
