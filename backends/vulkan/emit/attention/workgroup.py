"""Tiles of workgroups, for GPUs: both operands of products go through shared memory, and sums are in registers.

A workgroup is lines of invocations. The invocations of a line share rows, `down` apart, and split the columns by fours.
A product reads a few elements of the heads at a time from shared memory. A tile that is multiplied by an operand's rows
goes through shared memory as well. Each invocation loads the vectors of the next step to registers before it works on
the present one, across stages and blocks (staging.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lavax.backends.vulkan.emit.attention.problem import Problem, Stage
from lavax.backends.vulkan.emit.attention.registers import RegisterTiles
from lavax.backends.vulkan.emit.attention.staging import Staging, stagings
from lavax.backends.vulkan.emit.attention.tiles import BLOCK, AttentionTile, joined
from lavax.backends.vulkan.emit.attention.workgroup_shape import GIVEN_HEIGHT, WorkgroupShape
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE
from lavax.backends.vulkan.glsl.launch import Launch, grid
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, add, clamp, constant, linear, quotient, remainder, variable
from lavax.passes.kernels.kernel import Kernel

# The block and the part of it whose vectors are loaded ahead.
_NEXT_BLOCK, _NEXT_PART = "next_block", "next_part"


class WorkgroupTiles(RegisterTiles):
    """One tile per workgroup."""

    def __init__(
        self,
        kernel: Kernel,
        profile: DeviceProfile,
        lifted: bool,
        problem: Problem,
        stages: Sequence[Stage],
        shape: WorkgroupShape,
    ) -> None:
        tile = AttentionTile(shape.height, shape.groups, shape.rows, shape.columns, shape.local, problem.heads_in_turn)
        super().__init__(kernel, lifted, problem, tile)
        self.shape, self.stages, self.subgroup = shape, stages, profile.subgroup_size
        self.at_stage = 0  # the number of the stages of a block that are written
        self.tile_at = shape.line_vectors(stages)  # its position in shared memory
        self.line(f"int line = member / {shape.across}, place = member % {shape.across};")
        self.body.scopes[0].variables |= {"line", "place"}
        self.line_index, self.place_index = variable("line", shape.down), variable("place", shape.across)

    def row_index(self, number: int) -> Index:
        return linear([(self.corner, 1), (self.line_index, 1)], number * self.shape.down)

    def first_column(self, group: int) -> Index:
        return linear([(self.block, self.width), (self.place_index, VECTOR)], VECTOR * self.shape.across * group)

    def rows_together(self) -> tuple[str, int]:
        return self.body.index(self.corner), self.shape.rows

    def folded(self, join: str, names: Sequence[str]) -> None:
        across, distance = self.shape.across, 1
        while distance < min(across, self.subgroup):
            for name in names:
                self.line(f"{name} = {joined(join, name, f'subgroupShuffleXor({name}, {distance}u)')};")
            distance *= 2
        if self.subgroup < across:
            self._exchange(join, names)

    def _exchange(self, join: str, names: Sequence[str]) -> None:
        """Joins the values of a line's subgroups through shared memory."""
        parts = self.shape.across // self.subgroup
        self.line("barrier();")
        for row, name in enumerate(names):
            at = f"({row * self.shape.down} + line) * {parts} + place / {self.subgroup}"
            self.line(f"if (place % {self.subgroup} == 0) exchanged[{at}] = {name};")
        self.line("barrier();")
        for row, name in enumerate(names):
            at = f"({row * self.shape.down} + line) * {parts}"
            self.line(f"{name} = exchanged[{at}];")
            for part in range(1, parts):
                self.line(f"{name} = {joined(join, name, f'exchanged[{at} + {part}]')};")

    # -- from memory to shared memory ---------------------------------------------------------------------------------

    def open_blocks(self, start: str, stages: Sequence[Stage]) -> None:
        most = max(sum(self._turns(staging) for staging, _ in stagings(stage, self.shape)) for stage in stages)
        self.line(f"vec4 {', '.join(f'fetched{number}' for number in range(most))};")
        self._fetch("", stages[0], start, "0")

    def _turns(self, staging: Staging) -> int:
        return -(-staging.count // self.shape.local)

    def _number(self, turn: int) -> Index:
        return add(self.member, turn * self.shape.local)

    def _fetched(self, stage: Stage) -> Iterator[tuple[str, Staging, bool, Index]]:
        """An invocation's registers for a part of a stage: the staging of each, and its number there."""
        register = 0
        for staging, of_columns in stagings(stage, self.shape):
            for turn in range(self._turns(staging)):
                yield f"fetched{register}", staging, of_columns, self._number(turn)
                register += 1

    def _fetch(self, head: str, stage: Stage, block: str, part: str) -> None:
        """Loads an invocation's vectors of a part of a stage, in a block of statements after `head`."""
        with self.body.block(head, frozenset((_NEXT_BLOCK, _NEXT_PART))):
            self.line(f"int {_NEXT_BLOCK} = {block}, {_NEXT_PART} = {part};")
            # One block more than there are: its vectors are not used.
            columns = linear([(variable(_NEXT_BLOCK, self.blocks_of_columns + 1), self.width)])
            for register, staging, of_columns, number in self._fetched(stage):
                at = variable(_NEXT_PART, self._parts(stage))
                first = columns if of_columns else self.corner
                inside = clamp(number, 0, staging.count - 1)
                self.line(f"{register} = {self._loaded(staging, inside, at, first)};")

    def _parts(self, stage: Stage) -> int:
        """The number of parts in which a stage's operands are staged."""
        if stage.to_columns:
            return self.shape.rows // self.shape.given
        if stage.of_rows is None:
            return self.width // self.shape.share
        return self.shape.steps(stage.of_columns.shape[-1])

    def _loaded(self, staging: Staging, number: Index, part: Index, first: Index) -> str:
        end = self.problem.rows if first is self.corner else self.problem.columns
        row = clamp(linear([(first, 1), (staging.row(number, part), 1)]), 0, end - 1)
        return self.vector(staging.operand, row, staging.along(number, part))

    def _stage(self, stage: Stage, part: Index) -> None:
        """Stores the loaded vectors to shared memory."""
        for register, staging, _, number in self._fetched(stage):
            with self._if_below(number, staging.count):
                self._put(staging, number, register, part)

    def _put(self, staging: Staging, number: Index, value: str, part: Index) -> None:
        if staging.is_cut:
            first = self.body.index(linear([(staging.vector(number, part), VECTOR)]))
            length = staging.operand.shape[-1]
            value = f"mix(vec4(0), {value}, lessThan(ivec4({first}) + ivec4(0, 1, 2, 3), ivec4({length})))"
        self.line(f"staged[{self.body.index(staging.place(number))}] = {value};")

    def _fetch_next(self, part: str, last: bool | None) -> None:
        """Loads a part of the present stage by its number, or after the last one the first part of the next stage."""
        stage, following = self.stages[self.at_stage], (self.at_stage + 1) % len(self.stages)
        block = BLOCK if following else f"{BLOCK} + 1"
        parts = self._parts(stage)
        if last is None:
            self._fetch(f"if ({part} < {self.body.parameters.integer(parts)})", stage, BLOCK, part)
        elif not last:
            self._fetch("", stage, BLOCK, part)
        if last is not False:
            self._fetch("else" if last is None else "", self.stages[following], block, "0")

    # -- products -----------------------------------------------------------------------------------------------------

    def product(self, name: str, of_rows: Node, of_columns: Node) -> None:
        stage = self.stages[self.at_stage]
        assert stage.of_rows is of_rows and stage.of_columns is of_columns, "stages come in the order that was said"
        for part in self.parts():
            self.line(f"vec4 {part.of(name)} = vec4(0);")
        steps = self._parts(stage)
        with self.body.block(f"for (int d = 0; d < {self.body.parameters.integer(steps)}; ++d)", frozenset(("d",))):
            self.line("barrier();")
            self._stage(stage, variable("d", steps))
            self.line("barrier();")
            self._fetch_next("d + 1", True if steps == 1 else None)
            self._multiply(name)
        self.at_stage += 1

    def _multiply(self, name: str) -> None:
        """Adds the products of the staged vectors to a tile, four elements per iteration."""
        shape, vectors = self.shape, self.shape.depth // VECTOR
        stride = shape.slice_stride
        self.line(f"int rows_at = line * {stride}, columns_at = {shape.rows * stride} + place * {stride};")
        with self.body.block(f"{self.body.uses.unroll}for (int k = 0; k < {vectors}; ++k)"):
            for group in range(self.groups):
                for number in range(VECTOR):
                    slot = (group * VECTOR + number) * shape.across
                    self.line(f"vec4 c{group}_{number} = staged[columns_at + {slot * stride} + k];")
                for component in COMPONENTS:
                    four = ", ".join(f"c{group}_{number}.{component}" for number in range(VECTOR))
                    self.line(f"vec4 {component}{group} = vec4({four});")
            for row in range(self.height):
                self.line(f"vec4 r{row} = staged[rows_at + {row * shape.down * stride} + k];")
                for component in COMPONENTS:
                    for group in range(self.groups):
                        self.line(f"{name}{row}_{group} += r{row}.{component} * {component}{group};")

    # -- sums ---------------------------------------------------------------------------------------------------------

    def _vectors(self, node: Node) -> range:
        """An invocation's vectors of a result's row."""
        return range(self.shape.vectors(node.shape[-1]))

    def accumulate(self, node: Node, name: str, of_columns: Node, scaled: bool) -> None:
        shape, stage = self.shape, self.stages[self.at_stage]
        assert stage.of_rows is None and stage.of_columns is of_columns, "stages come in the order that was said"
        if scaled:
            self._scale(node, [f"scale{row}" for row in range(self.height)])
        turns = shape.chunk // shape.share
        for chunk in range(self.width // shape.chunk):
            self.line("barrier();")
            self._share(name, chunk)
            with self.body.block(f"for (int c = 0; c < {turns}; ++c)", frozenset(("c",))):
                if turns > 1:
                    self.line("if (c > 0) barrier();")
                turn = linear([(variable("c", turns), 1)], chunk * turns)
                self._stage(stage, turn)
                self.line("barrier();")
                is_last = (chunk + 1) * shape.chunk == self.width
                self._fetch_next(f"c + {chunk * turns + 1}", (True if turns == 1 else None) if is_last else False)
                self._add_columns(node)
        self.at_stage += 1

    def _share(self, name: str, chunk: int) -> None:
        """Writes some columns of a tile to shared memory, a line per slot."""
        shape, first = self.shape, chunk * self.shape.chunk
        for group in range(self.groups):
            for number, component in enumerate(COMPONENTS):
                slot = (group * VECTOR + number) * shape.across - first
                if not 0 <= slot < shape.chunk:
                    continue
                for vector in range(self.height // VECTOR):
                    rows = range(VECTOR * vector, VECTOR * (vector + 1))
                    four = ", ".join(f"{name}{row}_{group}.{component}" for row in rows)
                    at = f"({slot} + place) * {shape.tile_stride} + {vector * shape.down} + line"
                    self.line(f"staged[{self.tile_at} + {at}] = vec4({four});")

    def _add_columns(self, node: Node) -> None:
        """Adds the staged vectors, times their columns of the tile, to the result's rows."""
        shape, length = self.shape, self.shape.across * self.shape.vectors(node.shape[-1])
        self.line(f"int weights_at = {self.tile_at} + c * {shape.share * shape.tile_stride} + line;")
        with self.body.block(f"{self.body.uses.unroll}for (int k = 0; k < {shape.share}; ++k)"):
            for vector in range(self.height // VECTOR):
                at = f"weights_at + k * {shape.tile_stride} + {vector * shape.down}"
                self.line(f"vec4 w{vector} = staged[{at}];")
            for vector in self._vectors(node):
                self.line(f"vec4 o{vector} = staged[place + k * {length} + {vector * shape.across}];")
            for row in range(self.height):
                for vector in self._vectors(node):
                    weight = f"w{row // VECTOR}.{COMPONENTS[row % VECTOR]}"
                    self.line(f"{self._sum(node, row, vector)} += {weight} * o{vector};")

    # -- sums for the columns -----------------------------------------------------------------------------------------

    def give(self, node: Node, name: str, of_rows: Node) -> None:
        """Writes the product of a tile's transpose with the operand's rows: the block's columns of a part of `node`."""
        shape, stage = self.shape, self.stages[self.at_stage]
        assert stage.to_columns and stage.of_columns is of_rows, "stages come in the order that was said"
        down, vectors = shape.given_vectors(node.shape[-1])
        given = [(d, v, number) for d in range(down) for v in range(vectors) for number in range(VECTOR)]
        for d, v, number in given:
            self.line(f"vec4 given{d}_{v}_{number} = vec4(0);")
        parts = self._parts(stage)
        for part in range(parts):
            self.line("barrier();")
            self._share_rows(name, part)
            self._stage(stage, constant(part))
            self.line("barrier();")
            self._fetch_next(str(part + 1), part == parts - 1)
            self._add_rows(down, vectors)
        for d, v, number in given:
            column = linear([(self.block, self.width), (self.line_index, VECTOR)], VECTOR * d * shape.down + number)
            self._write_given(node, column, v, f"given{d}_{v}_{number}")
        self.at_stage += 1

    def _share_rows(self, name: str, part: int) -> None:
        """Writes some rows of a tile to shared memory; rows beyond the last one are zeros."""
        shape = self.shape
        for number in range(GIVEN_HEIGHT):
            row = part * GIVEN_HEIGHT + number
            there = self.is_row(self.row_index(row))
            for group in range(self.groups):
                at = f"({number * shape.down} + line) * {shape.across * shape.groups} + {group * shape.across} + place"
                vector = f"{name}{row}_{group}"
                value = f"({there} ? {vector} : vec4(0))" if there else vector
                self.line(f"staged[{self.tile_at} + {at}] = {value};")

    def _add_rows(self, down: int, vectors: int) -> None:
        """Adds the products of the tile's and the operand's rows that are in shared memory."""
        shape = self.shape
        with self.body.block(f"{self.body.uses.unroll}for (int k = 0; k < {shape.given}; ++k)"):
            for d in range(down):
                at = f"{self.tile_at} + k * {shape.across * shape.groups} + {d * shape.down} + line"
                self.line(f"vec4 w{d} = staged[{at}];")
            for v in range(vectors):
                self.line(f"vec4 o{v} = staged[k * {vectors * shape.across} + {v * shape.across} + place];")
                for d in range(down):
                    for number, component in enumerate(COMPONENTS):
                        self.line(f"given{d}_{v}_{number} += w{d}.{component} * o{v};")

    def _write_given(self, node: Node, column: Index, vector: int, value: str) -> None:
        along = linear([(self.place_index, VECTOR), (LANE, 1)], vector * VECTOR * self.shape.across)
        with self._if_below(column, self.problem.columns):
            inside = clamp(column, 0, self.problem.columns - 1)
            self.line(f"{self.element(node, self.outputs[node], self.tile_number, inside, along)} = {value};")

    def give_nothing(self, node: Node) -> None:
        """Writes zeros for the columns of all blocks that are skipped."""
        start, end = self.visited
        line, columns = node.shape[-1] // VECTOR, self.problem.columns
        length, block = (self.body.parameters.integer(count * line) for count in (columns, self.width))
        self.line(f"int seen = min({start} * {block}, {length}), seen_end = max(min({end} * {block}, {length}), seen);")
        for first, last in (("0", "seen"), ("seen_end", length)):
            head = f"for (int z = {first} + member; z < {last}; z += {self.shape.local})"
            with self.body.block(head, frozenset(("z",))):
                z = variable("z", columns * line)
                along = linear([(remainder(z, line), VECTOR), (LANE, 1)])
                at = self.element(node, self.outputs[node], self.tile_number, quotient(z, line), along)
                self.line(f"{at} = vec4(0);")

    # -- results ------------------------------------------------------------------------------------------------------

    def close_result(self, node: Node, factors: Sequence[str]) -> None:
        length = node.shape[-1]
        for row in range(self.height):
            place = self.row_index(row)
            there = self.is_row(place)
            with self.body.block(f"if ({there})" if there else ""):
                for vector in self._vectors(node):
                    name = self._sum(node, row, vector)
                    if factors:
                        self.line(f"{name} *= {factors[row]};")
                    self._write(node, place, vector, name, length)

    def _write(self, node: Node, row: Index, vector: int, name: str, length: int) -> None:
        first = linear([(self.place_index, VECTOR)], vector * VECTOR * self.shape.across)
        row, address = self.inside(row), self.outputs[node]
        if length % VECTOR == 0:
            with self._if_below(first, length):
                along = linear([(clamp(first, 0, length - VECTOR), 1), (LANE, 1)])
                self.line(f"{self.element(node, address, row, along)} = {name};")
            return
        for number, component in enumerate(COMPONENTS):
            along = add(first, number)
            target = self.element(node, address, row, clamp(along, 0, length - 1))
            with self._if_below(along, length):
                self.line(f"{target} = {name}.{component};")

    def store_statistic(self, node: Node, values: Sequence[str]) -> None:
        for number, value in enumerate(values):
            row = self.row_index(number)
            there = self.is_row(row)
            guard = f"if (place == 0{f' && {there}' if there else ''})"
            self.line(f"{guard} {self.element(node, self.outputs[node], self.inside(row))} = {value};")

    def close(self) -> Launch:
        shape = self.shape
        sizes = {
            "vec4 staged": shape.staged_vectors(self.stages),
            "float exchanged": shape.exchanged_floats(self.subgroup),
        }
        declarations = [f"shared {name}[{size}];" for name, size in sizes.items() if size]
        lines, local = self.body.scopes[0].lines, (shape.local, 1)
        shader = assemble(ShaderText(self.body.uses, lines, local, declarations, self.subgroup, shuffles=True))
        return Launch(shader, tuple(self.body.parameters.words), grid(self.count))
