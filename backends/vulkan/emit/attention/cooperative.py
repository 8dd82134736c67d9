"""Tiles of subgroups that multiply matrices, for attention in 16 bits on GPUs that have them.

A workgroup stages each operand of a block's columns once, and loads the next block's meanwhile. A subgroup has a row of
matrices, or two, for which a matrix of columns is loaded once. It keeps its rows of operands and results in matrices
from the first block to the last, and the tiles between them as well: each lane works on the elements that it has of a
tile (matrix_elements.py). Where shaders may neither reduce rows of matrices nor multiply by a matrix of sums, these
pass through the subgroup's own part of shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from lavax.backends.vulkan.compile.brain_floats import BRAIN_FLOATS
from lavax.backends.vulkan.emit.attention.cooperative_shape import STATISTICS, CooperativeShape, operands_of_rows
from lavax.backends.vulkan.emit.attention.folded_rows import FoldedRows
from lavax.backends.vulkan.emit.attention.matrix_elements import BELOW, BESIDE, ELEMENT, ElementPart, ElementRow
from lavax.backends.vulkan.emit.attention.operands_of_rows import OperandsOfRows
from lavax.backends.vulkan.emit.attention.problem import Problem, Stage
from lavax.backends.vulkan.emit.attention.tiles import BEFORE, BEHIND, BLOCK, AttentionTile, Part, Row, Tiles
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.launch import Launch, grid
from lavax.backends.vulkan.glsl.narrow_vectors import (
    COLUMN_MAJOR,
    EIGHT,
    ROW_MAJOR,
    eight_in_memory,
    matrix_type,
    packed,
    source_of,
)
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


class CooperativeTiles(Tiles):
    """One or more rows of matrices per subgroup."""

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
        self.loads_places = shape.loads_places and not self.is_biased and not self.is_masked
        self.places_at = shape.vectors(stages, problem.by_keys) - shape.vectors_of_places
        self.folded_rows = FoldedRows(self)
        self.operands_of_rows = OperandsOfRows(self, operands_of_rows(stages))
        self.buffer = shape.buffer_vectors(stages, problem.by_keys)
        self.sees_all = False  # whether nothing is hidden in the blocks of the loop that is written
        self.statistics_at = shape.columns_at + self.buffer - len(STATISTICS) * shape.columns // VECTOR
        self.turn = f" + {_TURN}" if shape.buffers > 1 else ""
        assert node.attrs["precision"] == self.dtype.name, "matrices have the dtype that the operands are exact in"
        self.line("int subgroup = int(gl_SubgroupID);")
        self.line(f"int row = int(gl_SubgroupInvocationID) % {shape.shape.m};")
        self.line(f"int place = int(gl_SubgroupInvocationID) / {shape.shape.m};")
        self.line(f"int own = subgroup * {shape.own_vectors};")
        self.body.scopes[0].variables |= {"subgroup", "row", "place"}
        self.subgroup = variable("subgroup", shape.subgroups)
        self.own_row, self.place = variable("row", shape.shape.m), variable("place", shape.across)
        self.first_row = linear([(self.corner, 1), (self.subgroup, shape.down * shape.shape.m)])

    def row_index(self, number: int) -> Index:
        return linear([(self.first_row, 1), (self.own_row, 1)], number * self.shape.shape.m)

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

    def tile_matrices(self, name: str, row: int) -> list[str]:
        """The matrices of a row of a tile."""
        return [f"{self.of_matrices(name, row, '_')}{number}" for number in range(self.across)]

    def of_matrices(self, name: str, row: int, end: str = "") -> str:
        """The name of something of a row of matrices."""
        return f"{name}{row}{end}" if self.shape.down > 1 else name

    def sum_kind(self) -> str:
        return matrix_type(self.body, "Accumulator", self.shape.shape.m, self.shape.shape.n)

    def _begin(self, names: Sequence[str], number: str) -> None:
        kind = self.sum_kind()
        self.line(f"{kind} {', '.join(f'{name} = {kind}({number})' for name in names)};")

    def _repeated(self, name: str, at: str, layout: str) -> None:
        """Declares a matrix whose rows, or columns, all are the numbers at a place of shared memory."""
        self.line(f"{self.sum_kind()} {name};")
        self.line(f"coopMatLoad({name}, staged, {at}, 0, {layout});")

    def rows(self) -> Iterator[Row]:
        for row, peak in enumerate(self.row_names("peak")):
            with self._of_lane(peak):
                yield ElementRow(self, row)

    def _of_lane(self, matrix: str, *variables: str) -> AbstractContextManager[None]:
        """A loop over a lane's elements. If it were not written out, the driver would keep matrices in local memory."""
        head = f"for (int {ELEMENT} = 0; {ELEMENT} < {matrix}.length(); ++{ELEMENT})"
        return self.body.block(self.body.uses.unroll + head, frozenset((ELEMENT, *variables)))

    def row_names(self, name: str) -> list[str]:
        return [self.of_matrices(name, row) for row in range(self.shape.down)]

    def open_rows(self, **numbers: str) -> None:
        for name, number in numbers.items():
            self._begin(self.row_names(name), number)

    def declare_rows(self, *names: str) -> None:
        self.line(f"{self.sum_kind()} {', '.join(each for name in names for each in self.row_names(name))};")

    def parts(self, *statistics: Node) -> Iterator[ElementPart]:
        for number in range(self.across):
            with self.body.block("") if statistics and self.statistics else nullcontext():
                for each, operand in enumerate(self.statistics):
                    if operand in statistics:
                        place = (each * self.width + number * self.shape.shape.n) // VECTOR
                        self._repeated(f"statistic_{each}", f"{self.statistics_at + place}{self.turn}", ROW_MAJOR)
                for row in range(self.shape.down):
                    with self._elements(self.is_biased and not statistics):
                        yield ElementPart(self, row, number)

    def parts_to_hide(self, of_scores: bool) -> Iterator[Part]:
        """Lanes of a subgroup go over a tile's matrices if one has such elements, which is the same for all lanes."""
        if self.sees_all:
            return
        masked = of_scores and self.is_masked
        parts = [ElementPart(self, row, number) for number in range(self.across) for row in range(self.shape.down)]
        some = parts if masked else [part for part in parts if part.may_hide(of_scores)]
        # If any matrix has something hidden, one of these two has.
        ends = () if masked else (ElementPart(self, 0, self.across - 1), ElementPart(self, self.shape.down - 1, 0))
        tests = dict.fromkeys(test for part in ends for test in part.may_hide(of_scores))
        with self.body.block(f"if ({' || '.join(tests)})") if tests else nullcontext():
            if self.loads_places and some:
                self._declare_places(str(self.places_at))
            for part in some:
                with self._elements(masked):
                    yield part

    @contextmanager
    def _elements(self, by_places: bool) -> Iterator[None]:
        """A loop over a lane's elements of a matrix of a tile; `by_places` declares their rows and columns."""
        with self._of_lane(self.tile_matrices("s", 0)[0], BELOW, BESIDE):
            if by_places:
                self.line(f"int {BELOW} = int(down[{ELEMENT}]), {BESIDE} = int(over[{ELEMENT}]);")
            yield

    def load_statistics(self, *statistics: Node) -> None:
        """They are staged with the block's columns."""

    def statistic_of_columns(self, operand: Node, group: int) -> str:
        return f"statistic_{self.statistics.index(operand)}[{ELEMENT}]"

    def of_row(self, operand: Node, number: int) -> str:
        name = f"statistic{self.statistics_of_rows.index(operand)}_"
        return f"{self.of_matrices(name, number)}[{ELEMENT}]"

    def _open_places(self) -> None:
        """Declares matrices of the elements' places, `down`, `over` and `ahead`, or stages what to load them from."""
        over_is_used = self.is_biased or self.is_masked or self.problem.columns % self.width != 0
        if not over_is_used and not self.compared:
            return
        count = max(self.shape.shape.m, self.shape.shape.n)
        if self.loads_places:
            at = f"{self.places_at} + member / {VECTOR}"
            self.line(f"if (member < {count}) staged[{at}][member % {VECTOR}] = floatBitsToUint(float(member));")
            return
        lane = "int(gl_SubgroupInvocationID)"
        guard = f"if ({lane} < {count}) " if count < self.shape.lanes else ""
        for start in range(0, count, self.shape.lanes):
            at = f"{start} + {lane}" if start else lane
            self.line(f"{guard}staged[own + ({at}) / {VECTOR}][({at}) % {VECTOR}] = floatBitsToUint(float({at}));")
        self.line("subgroupBarrier();")
        self._declare_places("own")
        self.line("subgroupBarrier();")

    def _declare_places(self, at: str) -> None:
        self._repeated("over", at, ROW_MAJOR)
        if self.compared or self.is_biased or self.is_masked:
            self._repeated("down", at, COLUMN_MAJOR)
        if self.compared:
            self.line(f"{self.sum_kind()} ahead;")
            self.line("for (int e = 0; e < ahead.length(); ++e) ahead[e] = over[e] - down[e];")

    def _open_statistics_of_rows(self) -> None:
        for number, operand in enumerate(self.statistics_of_rows):
            for row, name in enumerate(self.row_names(f"statistic{number}_")):
                value = self.body.value(operand, (*self.batch, self.row(row))).text
                self.line(f"staged[own + row / {VECTOR}][row % {VECTOR}] = floatBitsToUint({value});")
                self.line("subgroupBarrier();")
                self._repeated(name, "own", COLUMN_MAJOR)
                self.line("subgroupBarrier();")

    def any_lane(self, condition: str) -> str:
        """Whether a condition holds for some lane of the subgroup."""
        self.body.uses.extension("ballot")
        return f"subgroupBallot({condition}) != uvec4(0u)"

    def folded(self, join: str, names: Sequence[str]) -> None:
        self.folded_rows.fold(join, names)

    # -- from memory to shared memory ---------------------------------------------------------------------------------

    def open_blocks(self, start: str, stages: Sequence[Stage]) -> None:
        self._open_places()
        self._open_statistics_of_rows()
        self.operands_of_rows.load()
        names = [name for name, *_ in self._copies()]
        self.line(f"uvec4 {', '.join(names)};")
        for number in range(len(self.statistics)):
            self.line(f"float statistic{number};")
        self._fetch(start)
        if self.shape.overlaps and self.turn:
            self.line("barrier();")

    def phases(self, start: str, end: str) -> Iterator[tuple[str, str]]:
        """Blocks whose columns all rows of the workgroup see come first, if only columns behind a row are hidden."""
        order, highest = self.compared[0] if len(self.compared) == 1 else (None, 0)
        if not self.shape.phases or order != BEFORE or self.is_biased or self.is_masked:
            yield start, end
            return
        seen = f"max({self.body.index(self.corner)} + {highest + 1}, 0) / {self.width}"
        self.line(f"int seen = clamp({seen}, {start}, min({self.problem.columns // self.width}, {end}));")
        self.sees_all = True
        yield start, "seen"
        self.sees_all = False
        yield "seen", end

    def close_blocks(self) -> None:
        if self.shape.overlaps:
            self.line("barrier();")

    def eight(self, operand: Node, row: Index, along: Index) -> str:
        """Eight elements of an operand's row in 16 bits, the last ones where they would lie beyond its end."""
        inside = clamp(along, 0, operand.shape[-1] - EIGHT)
        halves = [(operand, (*self.batch, row, linear([(inside, 1), (LANE, 1)], start))) for start in (0, VECTOR)]
        whole = eight_in_memory(self.body, halves, self.dtype)
        if whole is not None:
            return whole.chosen()
        words = []
        for half in halves:
            node, at = source_of(*half, self.dtype)
            four = widened(self.body.value(node, at), VECTOR, node.dtype)
            words.append(packed(self.body, four, self.dtype))
        return f"uvec4({', '.join(words)})"

    def within(self, operand: Node, along: Index, text: str) -> str:
        """The eight elements, or zeros beyond the row's end."""
        head = operand.shape[-1]
        return f"mix(uvec4(0), {text}, bvec4({self.body.index(along)} < {head}))" if along.high >= head else text

    def _copies(self) -> Iterator[tuple[str, Node, Index, bool]]:
        """A register per vector that an invocation stages: the operand, the vector's number, and whether it may lie
        beyond the last one."""
        register = 0
        for operand in self.places:
            count = self.width * self.shape.held(operand) // EIGHT
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
                line = self.shape.held(operand) // EIGHT
                inside = clamp(number, 0, self.width * line - 1)
                column = clamp(linear([(first, 1), (quotient(inside, line), 1)]), 0, last)
                text = self.eight(operand, column, linear([(remainder(inside, line), EIGHT)]))
                self.line(f"{register} = {text};")
            for statistic, operand in enumerate(self.statistics):
                column = clamp(linear([(first, 1), (remainder(self.member, self.width), 1)]), 0, last)
                self.line(f"statistic{statistic} = {self.body.value(operand, (*self.batch, column)).text};")

    def _stage(self) -> None:
        """Stores the loaded vectors to shared memory."""
        for register, operand, number, may_be_beyond in self._copies():
            line = self.shape.held(operand) // EIGHT
            stride = self.shape.operand_stride(self.shape.held(operand))
            at = linear([(quotient(number, line), stride), (remainder(number, line), 1)], self.places[operand])
            guard = f"if ({self.body.index(number)} < {self.width * line}) " if may_be_beyond else ""
            # Zeros are chosen here, where the loads have come, and not where they are begun.
            text = self.within(operand, linear([(remainder(number, line), EIGHT)]), register)
            self.line(f"{guard}staged[{self.body.index(at)}{self.turn}] = {text};")
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
        shape, stride = self.shape.shape, self.shape.operand_stride(self.shape.held(of_columns))
        rows = range(self.shape.down)
        sums = [self.tile_matrices(name, row) for row in rows]
        for some in sums:
            self._begin(some, "0.0")
        for step in range(self.shape.held(of_rows) // shape.k):
            left = [self.operands_of_rows.matrix(of_rows, row, step) for row in rows]
            for number in range(self.across):
                at = self.places[of_columns] + number * shape.n * stride + step * shape.k // EIGHT
                self._add_products([some[number] for some in sums], left, at, stride, COLUMN_MAJOR)

    def _add_products(self, sums: Sequence[str], left: Sequence[str], at: int, stride: int, layout: str) -> None:
        """Adds the products of matrices with one of an operand of columns, in shared memory."""
        shape, right = self.shape.shape, self.body.name()
        self.line(f"{matrix_type(self.body, 'B', shape.k, shape.n)} {right};")
        self.line(f"coopMatLoad({right}, staged, {at}{self.turn}, {stride}, {layout});")
        for total, each in zip(sums, left, strict=True):
            self.line(f"{total} = coopMatMulAdd({each}, {right}, {total});")

    def _hand_out(self, matrices: Sequence[str]) -> None:
        """Stores matrices side by side to the subgroup's part of shared memory."""
        for number, matrix in enumerate(matrices):
            at = f"own + {number * self.shape.shape.n // VECTOR}"
            self.line(f"coopMatStore({matrix}, staged, {at}, {self.shape.tile_stride}, {ROW_MAJOR});")
        self.line("subgroupBarrier();")

    def _handed(self, group: int) -> str:
        """A lane's vector of what was handed out."""
        at = linear([(self.own_row, self.shape.tile_stride), (quotient(self._column(group), VECTOR), 1)])
        return f"uintBitsToFloat(staged[own + {self.body.index(at)}])"

    # -- sums ---------------------------------------------------------------------------------------------------------

    def load_left(self, name: str, at: int, stride: int) -> None:
        """Declares a left operand and loads it from the subgroup's part of shared memory."""
        self.line(f"{matrix_type(self.body, 'A', self.shape.shape.m, self.shape.shape.k)} {name};")
        self.line(f"coopMatLoad({name}, staged, own + {at}, {stride}, {ROW_MAJOR});")

    def _sums(self, node: Node, row: int) -> list[str]:
        count = self.shape.held(node) // self.shape.shape.n
        return [f"{self.of_matrices(node.op, row, '_')}{number}" for number in range(count)]

    def open_result(self, node: Node) -> None:
        for row in range(self.shape.down):
            self._begin(self._sums(node, row), "0.0")

    def scale_result(self, node: Node, factors: Sequence[str]) -> None:
        """Multiplies each row of a result's matrices by its factor, if there are factors."""
        for row, factor in enumerate(factors):
            for each in self._sums(node, row):
                self.line(f"{each} = {each} * {factor};")

    def accumulate(self, node: Node, name: str, of_columns: Node, scaled: bool) -> None:
        if scaled:
            self.scale_result(node, self.row_names("scale"))
        self.accumulate_operands(node, self.as_operands(name), of_columns)

    def as_operands(self, name: str) -> list[list[str]]:
        """A tile in 16 bits: the left operands of each row of matrices."""
        return [self._as_operands(name, row) for row in range(self.shape.down)]

    @property
    def adds_ones(self) -> bool:
        """Whether rows of left operands are added up by products with ones."""
        shape = self.shape.shape
        return self.converts and shape.m == shape.n == shape.k

    def open_ones(self) -> None:
        """Declares a right operand of ones."""
        self.body.uses.extension("cooperative_matrix_2")
        self._begin(["whole"], "1.0")
        kind = matrix_type(self.body, "B", self.shape.shape.k, self.shape.shape.n)
        self.line(f"{kind} ones = {kind}(whole);")

    def add_rows(self, left: Sequence[Sequence[str]], totals: Sequence[str]) -> None:
        """Adds the sums of left operands' rows to matrices, all elements of whose rows hold the same sum."""
        for some, total in zip(left, totals, strict=True):
            for each in some:
                self.line(f"{total} = coopMatMulAdd({each}, ones, {total});")

    def accumulate_operands(self, node: Node, left: Sequence[Sequence[str]], of_columns: Node) -> None:
        """Adds a tile's product with an operand's rows, the tile's columns, to a result's rows."""
        shape, stride = self.shape.shape, self.shape.operand_stride(self.shape.held(of_columns))
        sums = [self._sums(node, row) for row in range(self.shape.down)]
        for step in range(self.width // shape.k):
            for number in range(len(sums[0])):
                begin = self.places[of_columns] + step * shape.k * stride + number * shape.n // EIGHT
                some, lefts = [each[number] for each in sums], [each[step] for each in left]
                self._add_products(some, lefts, begin, stride, ROW_MAJOR)

    def _as_operands(self, name: str, row: int) -> list[str]:
        """The matrices of a row of a tile in 16 bits, as left operands."""
        shape, tile = self.shape.shape, self.tile_matrices(name, row)
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
                self.load_left(found[-1], step * shape.k // EIGHT, self.shape.weights_stride)
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
        together = self.across
        self.scale_result(node, factors)
        if self.shape.rows_kept:
            self.line("subgroupBarrier();")
        for row in range(self.shape.down):
            there, sums = self.is_row(self.row_index(row)), self._sums(node, row)
            for first in range(0, len(sums), together):
                some = sums[first : first + together]
                self._hand_out(some)
                with self.body.block(f"if ({there})" if there else ""):
                    begin = first * self.shape.shape.n
                    length = min(len(some) * self.shape.shape.n, node.shape[-1] - begin)
                    for group in range(self.groups):
                        self._write(node, row, group, begin, length)
                self.line("subgroupBarrier();")

    def _write(self, node: Node, row: int, group: int, first: int, length: int) -> None:
        column = self._column(group)
        if column.low >= length:
            return
        with self.body.block(f"if ({self.body.index(column)} < {length})" if column.high >= length else ""):
            along = linear([(clamp(column, 0, length - VECTOR), 1), (LANE, 1)], first)
            value = GlslValue(self._handed(group), VECTOR)
            at = (*self.batch, self.inside(self.row_index(row)), along)
            self.body.store(node, at, value, self.outputs[node])

    def store_statistic(self, node: Node, values: Sequence[str]) -> None:
        stride = self.shape.shape.n // VECTOR | 1
        for number, matrix in enumerate(values):
            row = self.row_index(number)
            there = self.is_row(row)
            guard = f"if (place == 0{f' && {there}' if there else ''})"
            self.line(f"coopMatStore({matrix}, staged, own, {stride}, {ROW_MAJOR});")
            self.line("subgroupBarrier();")
            value = f"uintBitsToFloat(staged[own + row * {stride}].x)"
            self.line(f"{guard} {self.element(node, self.outputs[node], self.inside(row))} = {value};")
            self.line("subgroupBarrier();")

    def close(self) -> Launch:
        shape = self.shape
        staged = f"shared uvec4 staged[{shape.vectors(self.stages, self.problem.by_keys)}];"
        declarations = [staged, *self.folded_rows.functions()]
        pragma = BRAIN_FLOATS if self.dtype.name == "bf16" else ""
        lines, local = self.body.scopes[0].lines, (shape.local, 1)
        text = ShaderText(self.body.uses, lines, local, declarations, shape.lanes, shuffles=True, pragma=pragma)
        return Launch(assemble(text), tuple(self.body.parameters.words), grid(self.count))
