"""Tiles of subgroups that multiply matrices, for attention in 16 bits on GPUs that have them.

A workgroup stages each operand of a block's columns once, and loads the next block's meanwhile. A subgroup has a row of
matrices. It keeps its rows of operands and results in matrices from the first block to the last, and the tiles between
them as well: each lane works on the elements that it has of a tile (matrix_elements.py). Where shaders may neither
reduce rows of matrices nor multiply by a matrix of sums, these pass through the subgroup's own part of shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

from lavax.backends.vulkan.compile.brain_floats import BRAIN_FLOATS
from lavax.backends.vulkan.emit.attention.cooperative_shape import STATISTICS, CooperativeShape
from lavax.backends.vulkan.emit.attention.matrix_elements import BELOW, BESIDE, ELEMENT, ElementPart, ElementRow
from lavax.backends.vulkan.emit.attention.problem import Problem, Stage
from lavax.backends.vulkan.emit.attention.tiles import BEFORE, BEHIND, BLOCK, AttentionTile, Part, Row, Tiles, joined
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue, widened
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
# Where a block's buffer begins, counted from the first one.
_TURN = "turn"
_ROW_MAJOR, _COLUMN_MAJOR = (f"gl_CooperativeMatrixLayout{order}Major" for order in ("Row", "Column"))
# The functions that join two elements of a row, by the operation.
_JOINING = {"max": "greater_of", "+": "sum_of"}


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
        tile = AttentionTile(1, shape.groups, shape.rows, shape.columns, shape.local, problem.heads_in_turn)
        super().__init__(kernel, lifted, problem, tile)
        self.shape, self.stages, self.converts = shape, stages, profile.converts_matrices
        self.dtype = DTYPES[shape.shape.dtype]
        self.places = shape.staged(stages)
        node = kernel.graph.outputs[0]
        named = {name: operand for each in kernel.graph.outputs for name, operand in named_operands(each).items()}
        statistics = [named[name] for name in STATISTICS if name in named]
        self.statistics = statistics if problem.by_keys else []  # of columns, which each block has its own of
        self.statistics_of_rows = [] if problem.by_keys else statistics
        self.is_biased, self.is_masked = "bias" in named, "mask" in named  # their places follow from elements' places
        lowest, highest = node.attrs["lowest"], node.attrs["highest"]
        behind = [(BEHIND, lowest)] if lowest > 1 - problem.queries else []
        self.compared = [*behind, (BEFORE, highest)] if highest < problem.keys - 1 else behind
        self.joining: set[str] = set()
        self.buffer = shape.buffer_vectors(stages, problem.by_keys)
        end = shape.subgroups * shape.own_vectors + self.buffer
        self.statistics_at = end - len(STATISTICS) * shape.columns // VECTOR
        self.turn = f" + {_TURN}" if shape.buffers > 1 else ""
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
        """The first column of a matrix of the tile."""
        return linear([(self.block, self.width)], group * self.shape.shape.n)

    def rows_together(self) -> tuple[str, int]:
        return self.body.index(self.corner), self.shape.rows

    # -- elements of matrices -----------------------------------------------------------------------------------------

    @property
    def across(self) -> int:
        """The matrices of a tile, side by side."""
        return self.width // self.shape.shape.n

    def tile_matrices(self, name: str) -> list[str]:
        return [f"{name}{number}" for number in range(self.across)]

    def _sum_kind(self) -> str:
        return matrix_type(self.body, "Accumulator", self.shape.shape.m, self.shape.shape.n)

    def _repeated(self, name: str, at: str, layout: str) -> None:
        """Declares a matrix whose rows, or columns, all are the numbers at a place of shared memory."""
        self.line(f"{self._sum_kind()} {name};")
        self.line(f"coopMatLoad({name}, staged, {at}, 0, {layout});")

    def rows(self) -> Iterator[Row]:
        with self.body.block(f"for (int {ELEMENT} = 0; {ELEMENT} < peak.length(); ++{ELEMENT})", frozenset((ELEMENT,))):
            yield ElementRow(self, 0)

    def row_names(self, name: str) -> list[str]:
        return [name]

    def open_rows(self, **numbers: str) -> None:
        kind = self._sum_kind()
        for name, number in numbers.items():
            self.line(f"{kind} {name} = {kind}({number});")

    def declare_rows(self, *names: str) -> None:
        self.line(f"{self._sum_kind()} {', '.join(names)};")

    def parts(self, *statistics: Node) -> Iterator[Part]:
        for number in range(self.across):
            with self.body.block("") if statistics and self.statistics else nullcontext():
                for each, operand in enumerate(self.statistics):
                    if operand in statistics:
                        place = (each * self.width + number * self.shape.shape.n) // VECTOR
                        self._repeated(f"statistic_{each}", f"{self.statistics_at + place}{self.turn}", _ROW_MAJOR)
                with self._elements("", self.is_biased and not statistics):
                    yield ElementPart(self, 0, number)

    def parts_to_hide(self, of_scores: bool) -> Iterator[Part]:
        """Lanes of a subgroup go over a matrix if it has such elements, which is the same for all of them."""
        for number in range(self.across):
            part = ElementPart(self, 0, number)
            tests, masked = part.may_hide(of_scores), of_scores and self.is_masked
            if not tests and not masked:
                continue
            guard = "" if masked else f"if ({' || '.join(tests)}) "
            with self._elements(guard, masked):
                yield part

    @contextmanager
    def _elements(self, guard: str, by_places: bool) -> Iterator[None]:
        """A loop over a lane's elements of a matrix of a tile; `by_places` declares their rows and columns."""
        head = f"{guard}for (int {ELEMENT} = 0; {ELEMENT} < s0.length(); ++{ELEMENT})"
        with self.body.block(head, frozenset((ELEMENT, BELOW, BESIDE))):
            if by_places:
                self.line(f"int {BELOW} = int(down[{ELEMENT}]), {BESIDE} = int(over[{ELEMENT}]);")
            yield

    def load_statistics(self, *statistics: Node) -> None:
        """They are staged with the block's columns."""

    def statistic_of_columns(self, operand: Node, group: int) -> str:
        return f"statistic_{self.statistics.index(operand)}[{ELEMENT}]"

    def of_row(self, operand: Node, number: int) -> str:
        return f"statistic_{self.statistics_of_rows.index(operand)}[{ELEMENT}]"

    def _open_places(self) -> None:
        """Declares matrices of the elements' places, `down`, `over` and `ahead`."""
        over_is_used = self.is_biased or self.is_masked or self.problem.columns % self.width != 0
        if not over_is_used and not self.compared:
            return
        shape, lane = self.shape.shape, "int(gl_SubgroupInvocationID)"
        count = max(shape.m, shape.n)
        guard = f"if ({lane} < {count}) " if count < self.shape.lanes else ""
        for start in range(0, count, self.shape.lanes):
            at = f"{start} + {lane}" if start else lane
            self.line(f"{guard}staged[own + ({at}) / {VECTOR}][({at}) % {VECTOR}] = floatBitsToUint(float({at}));")
        self.line("subgroupBarrier();")
        self._repeated("over", "own", _ROW_MAJOR)
        self._repeated("down", "own", _COLUMN_MAJOR)
        if self.compared:
            self.line(f"{self._sum_kind()} ahead;")
            self.line("for (int e = 0; e < ahead.length(); ++e) ahead[e] = over[e] - down[e];")
        self.line("subgroupBarrier();")

    def _open_statistics_of_rows(self) -> None:
        for number, operand in enumerate(self.statistics_of_rows):
            value = self.body.value(operand, (*self.batch, self.row(0))).text
            self.line(f"staged[own + row / {VECTOR}][row % {VECTOR}] = floatBitsToUint({value});")
            self.line("subgroupBarrier();")
            self._repeated(f"statistic_{number}", "own", _COLUMN_MAJOR)
            self.line("subgroupBarrier();")

    def folded(self, join: str, names: Sequence[str]) -> None:
        (name,) = names
        if not self.converts:
            self._fold_in_shared_memory(join, name)
            return
        self.body.uses.extension("cooperative_matrix_2")
        self.joining.add(join)
        reduced = self.body.name()
        self.line(f"{self._sum_kind()} {reduced};")
        self.line(f"coopMatReduceNV({reduced}, {name}, gl_CooperativeMatrixReduceRowNV, {_JOINING[join]});")
        self.line(f"{name} = {reduced};")

    def _fold_in_shared_memory(self, join: str, name: str) -> None:
        """Each lane joins its part of a row, lanes of a row join theirs, and the results are repeated in the matrix."""
        own, four, across = self.body.name(), self.body.name(), self.shape.across
        vectors = self.shape.shape.n // VECTOR
        stride = vectors | 1
        self.line(f"coopMatStore({name}, staged, own, {stride}, {_ROW_MAJOR});")
        self.line("subgroupBarrier();")
        first = f"own + row * {stride} + place * {vectors} / {across}"
        self.line(f"vec4 {four} = uintBitsToFloat(staged[{first}]);")
        for number in range(1, -(-vectors // across)):
            self.line(f"{four} = {joined(join, four, f'uintBitsToFloat(staged[{first} + {number}])')};")
        halves = (joined(join, f"{four}.{a}", f"{four}.{b}") for a, b in ("xy", "zw"))
        self.line(f"float {own} = {joined(join, *halves)};")
        if across > vectors and join == "+":
            self.line(f"if (place % {across // vectors} != 0) {own} = 0.0;  // another lane has this vector, too")
        distance = self.shape.shape.m
        while distance < self.shape.lanes:
            self.line(f"{own} = {joined(join, own, f'subgroupShuffleXor({own}, {distance}u)')};")
            distance *= 2
        self.line("subgroupBarrier();")
        self.line(f"staged[own + row / {VECTOR}][row % {VECTOR}] = floatBitsToUint({own});")
        self.line("subgroupBarrier();")
        self.line(f"coopMatLoad({name}, staged, own, 0, {_COLUMN_MAJOR});")
        self.line("subgroupBarrier();")

    # -- from memory to shared memory ---------------------------------------------------------------------------------

    def open_blocks(self, start: str, stages: Sequence[Stage]) -> None:
        for operand in dict.fromkeys(stage.of_rows for stage in stages if stage.of_rows is not None):
            self._load_rows(operand)
        self._open_places()
        self._open_statistics_of_rows()
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
            return whole.chosen()
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
            self.line(f"{guard}staged[{self.body.index(at)}{self.turn}] = {register};")
        for statistic in range(len(self.statistics)):
            begin = self.statistics_at + statistic * self.width // VECTOR
            value = f"floatBitsToUint(statistic{statistic})"
            guard = f"if (member < {self.width}) " if self.local > self.width else ""
            self.line(f"{guard}staged[{begin}{self.turn} + member / {VECTOR}][member % {VECTOR}] = {value};")

    def loop_hint(self) -> str:
        """A driver that unrolled the loop made five times as much code, which a model's next layer reads anew."""
        return self.body.uses.keep_rolled

    def open_block(self) -> None:
        if self.turn:
            self.line(f"int {_TURN} = ({BLOCK} & 1) * {self.buffer};")
        else:
            self.line("barrier();")
        self._stage()
        self.line("barrier();")
        self._fetch(f"{BLOCK} + 1")

    # -- products -----------------------------------------------------------------------------------------------------

    def product(self, name: str, of_rows: Node, of_columns: Node) -> None:
        shape, stride = self.shape.shape, self.shape.operand_stride(of_columns.shape[-1])
        kind, sums = self._sum_kind(), self.tile_matrices(name)
        self.line(f"{kind} {', '.join(f'{each} = {kind}(0.0)' for each in sums)};")
        for step in range(of_rows.shape[-1] // shape.k):
            for number, each in enumerate(sums):
                at = self.places[of_columns] + number * shape.n * stride + step * shape.k // EIGHT
                self._add_product(each, self._row_matrix(of_rows, step), at, stride, _COLUMN_MAJOR)

    def _add_product(self, sums: str, left: str, at: int, stride: int, layout: str) -> None:
        """Adds the product of a matrix with one of an operand of columns, in shared memory."""
        shape, right = self.shape.shape, self.body.name()
        self.line(f"{matrix_type(self.body, 'B', shape.k, shape.n)} {right};")
        self.line(f"coopMatLoad({right}, staged, {at}{self.turn}, {stride}, {layout});")
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
            for each in sums:
                self.line(f"{each} = {each} * scale;")
        left, stride = self._as_operands(name), self.shape.operand_stride(of_columns.shape[-1])
        for step, each_left in enumerate(left):
            for number, each in enumerate(sums):
                begin = self.places[of_columns] + step * shape.k * stride + number * shape.n // EIGHT
                self._add_product(each, each_left, begin, stride, _ROW_MAJOR)

    def _as_operands(self, name: str) -> list[str]:
        """The matrices of a tile in 16 bits, as left operands."""
        shape, tile = self.shape.shape, self.tile_matrices(name)
        kind, found = matrix_type(self.body, "A", shape.m, shape.k), []
        converts = self.converts and shape.k == shape.n
        if converts:
            self.body.uses.extension("cooperative_matrix_2")
        else:
            self._hand_back(tile)
        for step in range(self.width // shape.k):
            found.append(self.body.name())
            if converts:
                self.line(f"{kind} {found[-1]} = {kind}({tile[step]});")
            else:
                at = f"own + {step * shape.k // EIGHT}"
                self.line(f"{kind} {found[-1]};")
                self.line(f"coopMatLoad({found[-1]}, staged, {at}, {self.shape.weights_stride}, {_ROW_MAJOR});")
        if not converts:
            self.line("subgroupBarrier();")
        return found

    def _hand_back(self, matrices: Sequence[str]) -> None:
        """Stores a tile in 16 bits to the subgroup's part of shared memory."""
        self._hand_out(matrices)
        words = [
            packed(self.body, self.body.declare(self.body.scopes[-1], "vec4", self._handed(group)), self.dtype)
            for group in range(self.groups)
        ]
        self.line("subgroupBarrier();")
        pair = EIGHT // VECTOR
        for group in range(0, self.groups, pair):
            at = linear([(self.own_row, self.shape.weights_stride), (quotient(self._column(group), EIGHT), 1)])
            self.line(f"staged[own + {self.body.index(at)}] = uvec4({', '.join(words[group : group + pair])});")
        self.line("subgroupBarrier();")

    # -- results ------------------------------------------------------------------------------------------------------

    def close_result(self, node: Node, factors: Sequence[str]) -> None:
        together, sums = self.across, self._sums(node)
        there = self.is_row(self.row_index(0))
        for factor in factors:
            for each in sums:
                self.line(f"{each} = {each} * {factor};")
        for first in range(0, len(sums), together):
            some = sums[first : first + together]
            self._hand_out(some)
            with self.body.block(f"if ({there})" if there else ""):
                for group in range(self.groups):
                    self._write(node, group, first * self.shape.shape.n, len(some) * self.shape.shape.n)
            self.line("subgroupBarrier();")

    def _write(self, node: Node, group: int, first: int, length: int) -> None:
        column = self._column(group)
        if column.low >= length:
            return
        with self.body.block(f"if ({self.body.index(column)} < {length})" if column.high >= length else ""):
            along = linear([(clamp(column, 0, length - VECTOR), 1), (LANE, 1)], first)
            value = GlslValue(self._handed(group), VECTOR)
            at = (*self.batch, self.inside(self.row_index(0)), along)
            self.body.store(node, at, value, self.outputs[node])

    def store_statistic(self, node: Node, values: Sequence[str]) -> None:
        row = self.row_index(0)
        there = self.is_row(row)
        guard = f"if (place == 0{f' && {there}' if there else ''})"
        stride = self.shape.shape.n // VECTOR | 1
        self.line(f"coopMatStore({values[0]}, staged, own, {stride}, {_ROW_MAJOR});")
        self.line("subgroupBarrier();")
        value = f"uintBitsToFloat(staged[own + row * {stride}].x)"
        self.line(f"{guard} {self.element(node, self.outputs[node], self.inside(row))} = {value};")
        self.line("subgroupBarrier();")

    def close(self) -> Launch:
        shape = self.shape
        declarations = [f"shared uvec4 staged[{shape.vectors(self.stages, self.problem.by_keys)}];"]
        for join in sorted(self.joining):
            given, found = "const in float left, const in float right", joined(join, "left", "right")
            declarations.append(f"float {_JOINING[join]}({given}) {{ return {found}; }}")
        pragma = BRAIN_FLOATS if self.dtype.name == "bf16" else ""
        lines, local = self.body.scopes[0].lines, (shape.local, 1)
        text = ShaderText(self.body.uses, lines, local, declarations, shape.lanes, shuffles=True, pragma=pragma)
        return Launch(assemble(text), tuple(self.body.parameters.words), grid(self.count))
