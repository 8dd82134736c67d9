"""The tiles of scores that all schedules of attention have in common.

A tile has `height` rows by `groups` vectors of four columns per invocation. The element of row r and vector g of the
tile `s` is the GLSL variable `s{r}_{g}`: four neighbouring columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from lavax.backends.vulkan.emit.attention.problem import Problem, Stage
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE, is_multiple, quotient_exact, widened
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, open_body
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.types import float32
from lavax.passes.kernels.index import (
    Index,
    add,
    clamp,
    constant,
    flatten,
    linear,
    quotient,
    remainder,
    substitute,
    unflatten,
    variable,
)
from lavax.passes.kernels.kernel import Kernel

BLOCK = "block"
# GLSL's comparisons of keys with a bound that their query has, and of queries with one that their key has.
BEHIND, BEFORE = ("greaterThanEqual", "lessThanEqual"), ("lessThanEqual", "greaterThanEqual")


@dataclass(frozen=True)
class AttentionTile:
    """The extents of a tile: `height` rows by `groups` vectors per invocation; `local` invocations, `rows` rows and
    `width` columns of a block per workgroup. Workgroups of so many `heads` with the same rows follow each other."""

    height: int
    groups: int
    rows: int
    width: int
    local: int
    heads: int = 1


class Tiles(ABC):
    """The state of writing the tiles of a kernel of attention."""

    def __init__(self, kernel: Kernel, lifted: bool, problem: Problem, tile: AttentionTile) -> None:
        self.body, self.outputs = open_body(kernel, lifted)
        self.problem, self.local = problem, tile.local
        self.height, self.groups, self.width = tile.height, tile.groups, tile.width
        self.blocks_of_columns = -(-problem.columns // tile.width)
        self._ends: dict[int, str] = {}
        self.visited = "", ""  # the first block that is not skipped, and the end of these, in GLSL
        down = -(-problem.rows // tile.rows)
        self.count = problem.count * down  # of workgroups
        self._open_group()
        group = variable("group", self.count)
        of_heads = remainder(group, tile.heads * down)
        head = linear([(quotient(group, tile.heads * down), tile.heads), (remainder(of_heads, tile.heads), 1)])
        self.batch = unflatten(head, problem.batch)
        self.tile_number = quotient(of_heads, tile.heads)
        self.corner = linear([(self.tile_number, tile.rows)])  # the workgroup's first row
        self.member = variable("member", tile.local)

    def _open_group(self) -> None:
        """Numbers workgroups and invocations, and ends surplus workgroups."""
        self.line(f"int group = int{WORKGROUP};")
        self.line(f"if (group >= {self.body.parameters.integer(self.count)}) return;")
        if self.problem.grows:  # the rows with most columns start first
            self.line(f"group = {self.body.parameters.integer(self.count - 1)} - group;")
        self.line("int member = int(gl_LocalInvocationID.x);")
        self.body.scopes[0].variables |= {"group", "member"}

    # -- asked of a schedule -------------------------------------------------------------------------------------------

    @abstractmethod
    def row_index(self, number: int) -> Index:
        """The row of an invocation's row number; it may lie beyond the last row."""

    @abstractmethod
    def first_column(self, group: int) -> Index:
        """The first column of a vector; it may lie beyond the last column."""

    @abstractmethod
    def rows_together(self) -> tuple[str, int]:
        """The first of the rows that share their blocks, in GLSL, and the number of these rows."""

    @abstractmethod
    def product(self, name: str, of_rows: Node, of_columns: Node) -> None:
        """Declares and fills a tile: the products of an operand's rows with another operand's rows, the tile's columns.

        Products and sums come in the order of the stages that `blocks` was given.
        """

    @abstractmethod
    def open_blocks(self, start: str, stages: Sequence[Stage]) -> None:
        """Writes the statements before the loop over blocks; `start` is the first block, in GLSL."""

    @abstractmethod
    def open_result(self, node: Node) -> None:
        """Begins a result's rows at zero."""

    @abstractmethod
    def accumulate(self, node: Node, name: str, of_columns: Node, scaled: bool) -> None:
        """Adds a tile's product with an operand's rows, the tile's columns, to a result's rows.

        If `scaled`, row r is multiplied by `scale{r}` first.
        """

    @abstractmethod
    def close_result(self, node: Node, factors: Sequence[str]) -> None:
        """Writes a result's rows, row r times `factors[r]`, if there are factors."""

    @abstractmethod
    def store_statistic(self, node: Node, values: Sequence[str]) -> None:
        """Writes one number per row."""

    @abstractmethod
    def folded(self, join: str, names: Sequence[str]) -> None:
        """Joins variables, `row_names`, with those of the other invocations that have parts of these rows."""

    @abstractmethod
    def close(self) -> Launch:
        """The shader."""

    # -- statements ---------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.body.line(text)

    def unknown(self, value: int) -> str:
        """A loop's end that the driver does not know, because it would unroll short loops, whatever their length."""
        if value not in self._ends:
            self._ends[value] = self.body.name()
            self.body.scopes[0].lines.append(f"int {self._ends[value]} = {self.body.parameters.unknown(value)};")
        return self._ends[value]

    def rows(self) -> Iterator[Row]:
        """The rows of an invocation, for each of which statements are written."""
        for number in range(self.height):
            yield Row(self, number)

    def row_names(self, name: str) -> list[str]:
        """The variables of that name, which together have a number per row."""
        return [f"{name}{row}" for row in range(self.height)]

    def open_rows(self, **numbers: str) -> None:
        """Declares variables with a number per row, each beginning at the given number."""
        for row in range(self.height):
            self.line(f"float {', '.join(f'{name}{row} = {number}' for name, number in numbers.items())};")

    def declare_rows(self, *names: str) -> None:  # noqa: B027  # most schedules declare each where it is written first
        """Declares variables with a number per row that statements of `rows` write first (`Row.first`)."""

    def parts(self, *statistics: Node) -> Iterator[Part]:
        """The vectors of a tile, row by row, for each of which statements are written; these use the statistics."""
        for row in range(self.height):
            for group in range(self.groups):
                yield Part(self, row, group)

    def parts_to_hide(self, of_scores: bool) -> Iterator[Part]:
        """The vectors of a tile of which elements are hidden by a score's conditions, if `of_scores`, or lie beyond the
        last column; others may be among them."""
        return self.parts()

    def load_statistics(self, *statistics: Node) -> None:
        """Loads the statistics of a block's columns before its products, whose barriers keep loads in their places."""
        for part in self.parts():
            for statistic in statistics:
                part.of_columns(statistic)

    def blocks(self, before: int | None, behind: int | None, stages: Sequence[Stage]) -> Iterator[None]:
        """The loops over blocks of columns: those from `before` columns before a row to `behind` behind it, or all.

        `stages` are the steps of a block, in order, which are written once for each loop.
        """
        first, count = self.rows_together()
        integer = self.body.parameters.integer
        start, end = "0", integer(self.blocks_of_columns)
        if before is not None:
            self.line(f"int start = max({first} - {integer(before)}, 0) / {integer(self.width)};")
            start = "start"
        if behind is not None:
            reach = f"{first} + {integer(count - 1 + behind)}"
            self.line(f"int end = {reach} < 0 ? 0 : min({end}, ({reach}) / {integer(self.width)} + 1);")
            end = "end"
        self.visited = start, end
        self.open_blocks(start, stages)
        for first_block, last in self.phases(start, end):
            head = f"{self.loop_hint()}for (int {BLOCK} = {first_block}; {BLOCK} < {last}; ++{BLOCK})"
            with self.body.block(head, frozenset((BLOCK,))):
                self.open_block()
                yield
        self.close_blocks()

    def phases(self, start: str, end: str) -> Iterator[tuple[str, str]]:
        """The first block and the end of each loop over blocks."""
        yield start, end

    def close_blocks(self) -> None:  # noqa: B027  # most schedules have nothing to do there
        """Writes the statements behind the loops over blocks."""

    def loop_hint(self) -> str:
        """What is written before the loop over blocks."""
        return ""

    def open_block(self) -> None:  # noqa: B027  # most schedules have nothing to do there
        """Writes the statements at the start of a block."""

    # -- coordinates --------------------------------------------------------------------------------------------------

    @property
    def block(self) -> Index:
        return variable(BLOCK, self.blocks_of_columns)

    def row(self, number: int) -> Index:
        """An invocation's row to read at: the last row if it lies beyond that."""
        return self.inside(self.row_index(number))

    def column(self, group: int) -> Index:
        """Four columns to read at: the last column for those beyond it."""
        return clamp(linear([(self.first_column(group), 1), (LANE, 1)]), 0, self.problem.columns - 1)

    def inside(self, row: Index) -> Index:
        """The row, or the last row if it lies beyond that."""
        return clamp(row, 0, self.problem.rows - 1)

    def is_row(self, row: Index) -> str:
        """The condition that a row exists; "" if it always does."""
        if row.high < self.problem.rows:
            return ""
        return f"{self.body.index(row)} < {self.body.parameters.integer(self.problem.rows)}"

    def of_row(self, operand: Node, number: int) -> str:
        """A statistic of a row."""
        return self.body.value(operand, (*self.batch, self.row(number))).text

    def statistic_of_columns(self, operand: Node, group: int) -> str:
        """A statistic of four columns."""
        return widened(self.body.value(operand, (*self.batch, self.column(group))), VECTOR, float32)

    def vector(self, operand: Node, row: Index, along: Index, width: int = VECTOR) -> str:
        """Elements of an operand's row, as a vector of a width."""
        return widened(self.body.value(operand, (*self.batch, row, along)), width, operand.dtype)

    def element(self, node: Node, address: str, row: Index, *along: Index) -> str:
        """An element of a result in memory, or four if `along` has lanes; it can be assigned to."""
        position = flatten((*self.batch, row, *along), node.shape)
        base = substitute(position, {"lane": constant(0)})
        if "lane" not in position.variables:
            return self.body.memory.element(node.dtype, address, self.body.index(base))
        if is_multiple(base, VECTOR) and node not in self.body.unaligned:
            vectors = self.body.uses.reference("f32", "x4")
            return f"{vectors}({address}).data[{self.body.index(quotient_exact(base, VECTOR))}]"
        place = self.body.memory.element_address(node.dtype, address, self.body.index(base))
        return f"{self.body.uses.reference('f32', 'x4u')}({place}).data[0]"


@dataclass(frozen=True)
class Part:
    """A vector of a tile: four columns of a row."""

    tiles: Tiles
    row: int
    group: int

    def of(self, name: str) -> str:
        """The vector of the tile of that name."""
        return f"{name}{self.row}_{self.group}"

    def filled(self, number: str) -> str:
        """A vector of one number."""
        return f"vec4({number})"

    def score(self, operand: Node) -> str:
        """The elements of an operand with one element per score."""
        tiles = self.tiles
        row, column = tiles.row(self.row), tiles.column(self.group)
        at = (column, row) if tiles.problem.by_keys else (row, column)
        return widened(tiles.body.value(operand, (*tiles.batch, *at)), VECTOR, operand.dtype)

    def of_columns(self, operand: Node) -> str:
        """A statistic of the columns."""
        return self.tiles.statistic_of_columns(operand, self.group)

    def of_row(self, operand: Node) -> str:
        return self.tiles.of_row(operand, self.row)

    def key_behind_query(self, distance: int) -> str:
        """The condition that the key comes at least `distance` after the query."""
        return self._compared(*BEHIND, distance)

    def key_before_query(self, distance: int) -> str:
        """The condition that the key comes at most `distance` after the query."""
        return self._compared(*BEFORE, distance)

    def _compared(self, of_keys: str, of_queries: str, distance: int) -> str:
        tiles = self.tiles
        by_keys = tiles.problem.by_keys
        bound = add(tiles.row_index(self.row), -distance if by_keys else distance)
        compare = of_queries if by_keys else of_keys
        return f"{compare}({self._columns()}, ivec4({tiles.body.index(bound)}))"

    def _columns(self) -> str:
        return f"(ivec4({self.tiles.body.index(self.tiles.first_column(self.group))}) + ivec4(0, 1, 2, 3))"

    @property
    def beyond(self) -> str:
        """The condition that columns do not exist; "" if all do."""
        tiles = self.tiles
        columns = tiles.problem.columns
        if add(tiles.first_column(self.group), VECTOR - 1).high < columns:
            return ""
        return f"greaterThanEqual({self._columns()}, ivec4({tiles.body.parameters.integer(columns)}))"


@dataclass(frozen=True)
class Row:
    """A row of an invocation, or its part of one."""

    tiles: Tiles
    number: int

    def of(self, name: str) -> str:
        """The row's variable of that name."""
        return f"{name}{self.number}"

    def first(self, name: str) -> str:
        """The same where it is written for the first time."""
        return f"float {self.of(name)}"

    def vectors(self, name: str) -> list[str]:
        """The row's part of a tile."""
        return [f"{name}{self.number}_{group}" for group in range(self.tiles.groups)]

    def greatest(self, name: str) -> str:
        """The greatest element of the row's part of a tile."""
        most = f"most{self.number}"
        self.tiles.line(f"vec4 {most} = {folded_pairs('max', self.vectors(name))};")
        return folded_pairs("max", [f"{most}.{component}" for component in COMPONENTS])

    def sum(self, name: str) -> str:
        """The sum of the row's part of a tile."""
        sums = f"sums{self.number}"
        self.tiles.line(f"vec4 {sums} = {' + '.join(self.vectors(name))};")
        return f"(({sums}.x + {sums}.y) + ({sums}.z + {sums}.w))"


def folded_pairs(function: str, texts: Sequence[str]) -> str:
    """The texts joined in pairs, then pairs of pairs."""
    if len(texts) == 1:
        return texts[0]
    half = len(texts) // 2
    return f"{function}({folded_pairs(function, texts[:half])}, {folded_pairs(function, texts[half:])})"


def joined(join: str, left: str, right: str) -> str:
    return f"{left} + {right}" if join == "+" else f"{join}({left}, {right})"
