"""Tiles of subgroups that multiply matrices, for attention in 16 bits on GPUs that have them.

A workgroup stages each operand of a block's columns once, and loads the next block's meanwhile. A subgroup has a row of
matrices. It keeps its rows of operands and results in matrices from the first block to the last. Only the device knows
how a matrix's elements are distributed over lanes; so tiles pass through the subgroup's own part of shared memory: as
float32 to the lanes, of which each has one row or part of it, and back as the left operand of the next product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lavax.backends.vulkan.compile.brain_floats import BRAIN_FLOATS
from lavax.backends.vulkan.emit.attention.cooperative_shape import STATISTICS, CooperativeShape
from lavax.backends.vulkan.emit.attention.problem import Problem, Stage
from lavax.backends.vulkan.emit.attention.tiles import BLOCK, AttentionTile, Tiles
from lavax.backends.vulkan.glsl.body import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import Launch, grid
from lavax.backends.vulkan.glsl.narrow_vectors import EIGHT, eight_in_memory, matrix_type, packed, source_of
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.ir.types import DTYPES
from lavax.passes.build.attention import named_operands
from lavax.passes.kernels.index import Index, add, clamp, linear, quotient, remainder, variable
from lavax.passes.kernels.kernel import Kernel

# The block whose vectors are loaded ahead.
_NEXT_BLOCK = "next_block"
_ROW_MAJOR, _COLUMN_MAJOR = (f"gl_CooperativeMatrixLayout{order}Major" for order in ("Row", "Column"))


class CooperativeTiles(Tiles):
    """A row of matrices per subgroup."""

    def __init__(
        self,
        kernel: Kernel,
        profile: DeviceProfile,
        lifted: bool,
        problem: Problem,
        stages: Sequence[Stage],
        shape: CooperativeShape,
    ) -> None:
        tile = AttentionTile(1, shape.groups, shape.rows, shape.columns, shape.local)
        super().__init__(kernel, lifted, problem, tile)
        self.shape, self.stages = shape, stages
        self.dtype = DTYPES[shape.shape.dtype]
        self.places = shape.staged(stages)
        node = kernel.graph.outputs[0]
        named = {name: operand for each in kernel.graph.outputs for name, operand in named_operands(each).items()}
        self.statistics = [named[name] for name in STATISTICS if name in named] if problem.by_keys else []
        self.statistics_at = shape.vectors(stages, problem.by_keys) - len(STATISTICS) * shape.columns // VECTOR
        assert node.attrs["precision"] == self.dtype.name, "matrices have the dtype that the operands are exact in"
        self.line("int subgroup = int(gl_SubgroupID);")
        self.line(f"int row = int(gl_SubgroupInvocationID) % {shape.shape.m};")
        self.line(f"int place = int(gl_SubgroupInvocationID) / {shape.shape.m};")
        self.line(f"int own = subgroup * {shape.own_vectors};")
        self.body.scopes[0].variables |= {"subgroup", "row", "place"}
        self.subgroup = variable("subgroup", shape.subgroups)
        self.own_row, self.place = variable("row", shape.shape.m), variable("place", shape.across)
        self.first_row = linear([(self.corner, 1), (self.subgroup, shape.shape.m)])

    def row_index(self, number: int) -> Index:
        return linear([(self.first_row, 1), (self.own_row, 1)])

    def _column(self, group: int) -> Index:
        """The first column of a vector, counted from the block's first: a lane has eight neighbours at a time."""
        pair, half = divmod(group, EIGHT // VECTOR)
        return linear([(self.place, EIGHT)], EIGHT * self.shape.across * pair + VECTOR * half)

    def first_column(self, group: int) -> Index:
        return linear([(self.block, self.width), (self._column(group), 1)])

    def rows_together(self) -> tuple[str, int]:
        return self.body.index(self.corner), self.shape.rows

    def folded(self, join: str, names: Sequence[str]) -> None:
        distance = self.shape.shape.m
        while distance < self.shape.lanes:
            for name in names:
                other = f"subgroupShuffleXor({name}, {distance}u)"
                self.line(f"{name} = {f'{name} + {other}' if join == '+' else f'{join}({name}, {other})'};")
            distance *= 2

    # -- from memory to shared memory ---------------------------------------------------------------------------------

    def open_blocks(self, start: str, stages: Sequence[Stage]) -> None:
        for operand in dict.fromkeys(stage.of_rows for stage in stages if stage.of_rows is not None):
            self._load_rows(operand)
        names = [name for name, *_ in self._copies()]
        self.line(f"uvec4 {', '.join(names)};")
        for number in range(len(self.statistics)):
            self.line(f"float statistic{number};")
        self._fetch(start)

    def _eight(self, operand: Node, row: Index, along: Index) -> str:
        """Eight elements of an operand's row in 16 bits."""
        halves = [(operand, (*self.batch, row, linear([(along, 1), (LANE, 1)], start))) for start in (0, VECTOR)]
        whole = eight_in_memory(self.body, halves, self.dtype)
        if whole is not None:
            return whole
        words = []
        for half in halves:
            node, at = source_of(*half, self.dtype)
            four = widened(self.body.value(node, at), VECTOR, node.dtype)
            words.append(packed(self.body, four, self.dtype))
        return f"uvec4({', '.join(words)})"

    def _load_rows(self, operand: Node) -> None:
        """Loads the subgroup's rows of an operand to matrices."""
        head, shape = operand.shape[-1], self.shape.shape
        line, stride = head // EIGHT, self.shape.operand_stride(head)
        lane = linear([(self.place, shape.m), (self.own_row, 1)])
        for start in range(0, shape.m * line, self.shape.lanes):
            number = add(lane, start)
            ends = start + self.shape.lanes > shape.m * line
            with self.body.block(f"if ({self.body.index(number)} < {shape.m * line})" if ends else ""):
                number = clamp(number, 0, shape.m * line - 1)
                row, along = quotient(number, line), remainder(number, line)
                at = self.inside(linear([(self.first_row, 1), (row, 1)]))
                text = self._eight(operand, at, linear([(along, EIGHT)]))
                self.line(f"staged[own + {self.body.index(linear([(row, stride), (along, 1)]))}] = {text};")
        self.line("subgroupBarrier();")
        for step in range(head // shape.k):
            name = self._row_matrix(operand, step)
            self.line(f"{matrix_type(self.body, 'A', shape.m, shape.k)} {name};")
            self.line(f"coopMatLoad({name}, staged, own + {step * shape.k // EIGHT}, {stride}, {_ROW_MAJOR});")
        self.line("subgroupBarrier();")

    def _row_matrix(self, operand: Node, step: int) -> str:
        rows = list(dict.fromkeys(stage.of_rows for stage in self.stages if stage.of_rows is not None))
        return f"rows{rows.index(operand)}_{step}"

    def _copies(self) -> Iterator[tuple[str, Node, Index, bool]]:
        """A register per vector that an invocation stages: the operand, the vector's number, and whether it may lie
        beyond the last one."""
        register = 0
        for operand in self.places:
            count = self.width * operand.shape[-1] // EIGHT
            for start in range(0, count, self.local):
                yield f"fetched{register}", operand, add(self.member, start), start + self.local > count
                register += 1

    def _fetch(self, block: str) -> None:
        """Loads an invocation's vectors of a block."""
        with self.body.block("", frozenset((_NEXT_BLOCK,))):
            self.line(f"int {_NEXT_BLOCK} = {block};")
            # One block more than there are: its vectors are not used.
            first = linear([(variable(_NEXT_BLOCK, self.blocks_of_columns + 1), self.width)])
            last = self.problem.columns - 1
            for register, operand, number, _ in self._copies():
                line = operand.shape[-1] // EIGHT
                inside = clamp(number, 0, self.width * line - 1)
                column = clamp(linear([(first, 1), (quotient(inside, line), 1)]), 0, last)
                text = self._eight(operand, column, linear([(remainder(inside, line), EIGHT)]))
                self.line(f"{register} = {text};")
            for statistic, operand in enumerate(self.statistics):
                column = clamp(linear([(first, 1), (remainder(self.member, self.width), 1)]), 0, last)
                self.line(f"statistic{statistic} = {self.body.value(operand, (*self.batch, column)).text};")

    def _stage(self) -> None:
        """Stores the loaded vectors to shared memory."""
        for register, operand, number, may_be_beyond in self._copies():
            line = operand.shape[-1] // EIGHT
            stride = self.shape.operand_stride(operand.shape[-1])
            at = linear([(quotient(number, line), stride), (remainder(number, line), 1)], self.places[operand])
            guard = f"if ({self.body.index(number)} < {self.width * line}) " if may_be_beyond else ""
            self.line(f"{guard}staged[{self.body.index(at)}] = {register};")
        for statistic in range(len(self.statistics)):
            begin = self.statistics_at + statistic * self.width // VECTOR
            value = f"floatBitsToUint(statistic{statistic})"
            guard = f"if (member < {self.width}) " if self.local > self.width else ""
            self.line(f"{guard}staged[{begin} + member / {VECTOR}][member % {VECTOR}] = {value};")

    def statistic_of_columns(self, operand: Node, group: int) -> str:
        if operand not in self.statistics:
            return super().statistic_of_columns(operand, group)
        at = linear([(quotient(self._column(group), VECTOR), 1)], self.statistics_at)
        at = add(at, self.statistics.index(operand) * self.width // VECTOR)
        return f"uintBitsToFloat(staged[{self.body.index(at)}])"

    def open_block(self) -> None:
        self.line("barrier();")
        self._stage()
        self.line("barrier();")
        self._fetch(f"{BLOCK} + 1")

    # -- products -----------------------------------------------------------------------------------------------------

    def product(self, name: str, of_rows: Node, of_columns: Node) -> None:
        shape, stride = self.shape.shape, self.shape.operand_stride(of_columns.shape[-1])
        kind, across = matrix_type(self.body, "Accumulator", shape.m, shape.n), self.width // shape.n
        sums = [f"{name}_sum{number}" for number in range(across)]
        self.line(f"{kind} {', '.join(f'{each} = {kind}(0.0)' for each in sums)};")
        for step in range(of_rows.shape[-1] // shape.k):
            for number, each in enumerate(sums):
                at = self.places[of_columns] + number * shape.n * stride + step * shape.k // EIGHT
                self._add_product(each, self._row_matrix(of_rows, step), at, stride, _COLUMN_MAJOR)
        self._hand_out(sums)
        for part in self.parts():
            self.line(f"vec4 {part.of(name)} = {self._handed(part.group)};")
        self.line("subgroupBarrier();")

    def _add_product(self, sums: str, left: str, at: int, stride: int, layout: str) -> None:
        """Adds the product of a matrix with one of an operand of columns, in shared memory."""
        shape, right = self.shape.shape, self.body.name()
        self.line(f"{matrix_type(self.body, 'B', shape.k, shape.n)} {right};")
        self.line(f"coopMatLoad({right}, staged, {at}, {stride}, {layout});")
        self.line(f"{sums} = coopMatMulAdd({left}, {right}, {sums});")

    def _hand_out(self, matrices: Sequence[str]) -> None:
        """Stores matrices side by side to the subgroup's part of shared memory."""
        for number, matrix in enumerate(matrices):
            at = f"own + {number * self.shape.shape.n // VECTOR}"
            self.line(f"coopMatStore({matrix}, staged, {at}, {self.shape.tile_stride}, {_ROW_MAJOR});")
        self.line("subgroupBarrier();")

    def _handed(self, group: int) -> str:
        """A lane's vector of what was handed out."""
        at = linear([(self.own_row, self.shape.tile_stride), (quotient(self._column(group), VECTOR), 1)])
        return f"uintBitsToFloat(staged[own + {self.body.index(at)}])"

    # -- sums ---------------------------------------------------------------------------------------------------------

    def _sums(self, node: Node) -> list[str]:
        return [f"{node.op}{number}" for number in range(node.shape[-1] // self.shape.shape.n)]

    def open_result(self, node: Node) -> None:
        kind = matrix_type(self.body, "Accumulator", self.shape.shape.m, self.shape.shape.n)
        self.line(f"{kind} {', '.join(f'{name} = {kind}(0.0)' for name in self._sums(node))};")

    def accumulate(self, node: Node, name: str, of_columns: Node, scaled: bool) -> None:
        shape, sums = self.shape.shape, self._sums(node)
        if scaled:
            self._scale(sums)
        self._hand_back(name)
        stride = self.shape.operand_stride(of_columns.shape[-1])
        for step in range(self.width // shape.k):
            left = self.body.name()
            self.line(f"{matrix_type(self.body, 'A', shape.m, shape.k)} {left};")
            at = f"own + {step * shape.k // EIGHT}"
            self.line(f"coopMatLoad({left}, staged, {at}, {self.shape.weights_stride}, {_ROW_MAJOR});")
            for number, each in enumerate(sums):
                begin = self.places[of_columns] + step * shape.k * stride + number * shape.n // EIGHT
                self._add_product(each, left, begin, stride, _ROW_MAJOR)
        self.line("subgroupBarrier();")

    def _hand_back(self, name: str) -> None:
        """Stores a tile in 16 bits to the subgroup's part of shared memory."""
        for group in range(0, self.groups, EIGHT // VECTOR):
            words = [packed(self.body, f"{name}0_{group + half}", self.dtype) for half in range(EIGHT // VECTOR)]
            at = linear([(self.own_row, self.shape.weights_stride), (quotient(self._column(group), EIGHT), 1)])
            self.line(f"staged[own + {self.body.index(at)}] = uvec4({', '.join(words)});")
        self.line("subgroupBarrier();")

    def _scale(self, sums: Sequence[str]) -> None:
        """Multiplies each row by its factor, which is repeated in a matrix for it."""
        shape = self.shape.shape
        vectors, stride = shape.n // VECTOR, shape.n // VECTOR | 1
        factor = self.body.name()
        for vector in range(0, vectors, self.shape.across):
            at = linear([(self.own_row, stride), (self.place, 1)], vector)
            guard = f"if (place < {vectors - vector}) " if vector + self.shape.across > vectors else ""
            self.line(f"{guard}staged[own + {self.body.index(at)}] = floatBitsToUint(vec4(scale0));")
        self.line("subgroupBarrier();")
        self.line(f"{matrix_type(self.body, 'Accumulator', shape.m, shape.n)} {factor};")
        self.line(f"coopMatLoad({factor}, staged, own, {stride}, {_ROW_MAJOR});")
        for each in sums:
            self.line(f"{each} = {each} * {factor};")
        self.line("subgroupBarrier();")

    # -- results ------------------------------------------------------------------------------------------------------

    def close_result(self, node: Node, factors: Sequence[str]) -> None:
        together, sums = self.width // self.shape.shape.n, self._sums(node)
        there = self.is_row(self.row_index(0))
        for first in range(0, len(sums), together):
            some = sums[first : first + together]
            self._hand_out(some)
            with self.body.block(f"if ({there})" if there else ""):
                for group in range(self.groups):
                    self._write(node, group, first * self.shape.shape.n, len(some) * self.shape.shape.n, factors)
            self.line("subgroupBarrier();")

    def _write(self, node: Node, group: int, first: int, length: int, factors: Sequence[str]) -> None:
        column = self._column(group)
        if column.low >= length:
            return
        with self.body.block(f"if ({self.body.index(column)} < {length})" if column.high >= length else ""):
            along = linear([(clamp(column, 0, length - VECTOR), 1), (LANE, 1)], first)
            value = GlslValue(f"{self._handed(group)}{f' * {factors[0]}' if factors else ''}", VECTOR)
            at = (*self.batch, self.inside(self.row_index(0)), along)
            self.body.store(node, at, value, self.outputs[node])

    def store_statistic(self, node: Node, values: Sequence[str]) -> None:
        row = self.row_index(0)
        there = self.is_row(row)
        guard = f"if (place == 0{f' && {there}' if there else ''})"
        self.line(f"{guard} {self.element(node, self.outputs[node], self.inside(row))} = {values[0]};")

    def close(self) -> Launch:
        shape = self.shape
        declarations = [f"shared uvec4 staged[{shape.vectors(self.stages, self.problem.by_keys)}];"]
        pragma = BRAIN_FLOATS if self.dtype.name == "bf16" else ""
        lines, local = self.body.scopes[0].lines, (shape.local, 1)
        text = ShaderText(self.body.uses, lines, local, declarations, shape.lanes, shuffles=True, pragma=pragma)
        return Launch(assemble(text), tuple(self.body.parameters.words), grid(self.count))
