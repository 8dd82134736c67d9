"""Tiles of scores: what the schedules of attention have in common.

A tile is `height` rows by `groups` vectors of four columns an invocation. The element of row r and vector g of the
tile `s` is the GLSL variable `s{r}_{g}`, four neighbouring columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

from lavax.backends.vulkan.glsl.body import LANE, is_multiple, quotient_exact, widened
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, open_body
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


@dataclass(frozen=True)
class Stage:
    """What a block is made of, in turn: a tile of products of two operands' rows, or, where no rows are given, an
    addition of a tile's product with the operand's rows, that are columns, to a result; with `to_columns`, where the
    operand's rows are rows, the product of the tile's transpose with them, which is a result's for the columns."""

    of_columns: Node
    of_rows: Node | None = None
    to_columns: bool = False


@dataclass(frozen=True)
class Problem:
    """What rows and columns are: `batch` of `rows` by `columns` scores, rows being keys if `by_keys`.

    `grows`: later rows see more columns.
    """

    batch: tuple[int, ...]
    rows: int
    columns: int
    by_keys: bool
    grows: bool = False

    @property
    def count(self) -> int:
        return prod(self.batch)

    @property
    def queries(self) -> int:
        return self.columns if self.by_keys else self.rows

    @property
    def keys(self) -> int:
        return self.rows if self.by_keys else self.columns


@dataclass(frozen=True)
class Tile:
    """An invocation's `height` rows by `groups` vectors, and its workgroup's: `local` invocations, `rows` in all, and
    `width` columns of a block."""

    height: int
    groups: int
    rows: int
    width: int
    local: int


class Tiles(ABC):
    """A kernel of attention while it is being written."""

    def __init__(self, kernel: Kernel, lifted: bool, problem: Problem, tile: Tile) -> None:
        self.body, self.outputs = open_body(kernel, lifted)
        self.problem, self.local = problem, tile.local
        self.height, self.groups, self.width = tile.height, tile.groups, tile.width
        self.blocks_of_columns = -(-problem.columns // tile.width)
        self._ends: dict[int, str] = {}
        self.visited = "", ""  # the first block that is not gone past, and the first behind these, in GLSL
        down = -(-problem.rows // tile.rows)
        self.count = problem.count * down  # of workgroups
        self._open_group()
        group = variable("group", self.count)
        self.batch = unflatten(quotient(group, down), problem.batch)
        self.tile_number = remainder(group, down)
        self.corner = linear([(self.tile_number, tile.rows)])  # the workgroup's first row
        self.member = variable("member", tile.local)

    def _open_group(self) -> None:
        """Numbers workgroups and invocations, and ends those that are too many."""
        self.line(f"int group = int{WORKGROUP};")
        self.line(f"if (group >= {self.body.parameters.integer(self.count)}) return;")
        if self.problem.grows:  # what takes longest starts first
            self.line(f"group = {self.body.parameters.integer(self.count - 1)} - group;")
        self.line("int member = int(gl_LocalInvocationID.x);")
        self.body.scopes[0].variables |= {"group", "member"}

    # -- what a schedule says -----------------------------------------------------------------------------------------

    @abstractmethod
    def row_index(self, number: int) -> Index:
        """The row of that number of the invocation's, which may lie beyond the last one there is."""

    @abstractmethod
    def first_column(self, group: int) -> Index:
        """The first column of a vector, which may lie beyond the last one there is."""

    @abstractmethod
    def rows_together(self) -> tuple[str, int]:
        """The first of the rows that go over the same blocks, in GLSL, and how many they are."""

    @abstractmethod
    def product(self, name: str, of_rows: Node, of_columns: Node) -> None:
        """Declares and fills a tile: the products of rows of one operand and rows, that are columns, of another.

        Products and what is accumulated come as the stages given to `blocks` say.
        """

    @abstractmethod
    def open_blocks(self, start: str, stages: Sequence[Stage]) -> None:
        """What comes before the loop over blocks, of which `start` is the first, in GLSL."""

    @abstractmethod
    def open_result(self, node: Node) -> None:
        """Begins a result's rows at zero."""

    @abstractmethod
    def accumulate(self, node: Node, name: str, of_columns: Node, scaled: bool) -> None:
        """Adds a tile's product with an operand's rows, that are columns, to a result's rows.

        Where `scaled`, the rows r so far are multiplied by `scale{r}` first.
        """

    @abstractmethod
    def close_result(self, node: Node, factors: Sequence[str]) -> None:
        """Writes a result's rows, row r times `factors[r]`, if there are factors."""

    @abstractmethod
    def store_statistic(self, node: Node, values: Sequence[str]) -> None:
        """Writes one number a row."""

    @abstractmethod
    def folded(self, join: str, names: Sequence[str]) -> None:
        """Joins variables, one a row, with those of the other invocations that have parts of the same rows."""

    @abstractmethod
    def close(self) -> Launch:
        """The shader."""

    # -- statements ---------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.body.line(text)

    def unknown(self, value: int) -> str:
        """A loop's end that is no constant to the driver, which would unroll short loops to code of any length."""
        if value not in self._ends:
            self._ends[value] = self.body.name()
            self.body.scopes[0].lines.append(f"int {self._ends[value]} = {self.body.parameters.unknown(value)};")
        return self._ends[value]

    def parts(self) -> Iterator[Part]:
        """The vectors of a tile, row by row."""
        for row in range(self.height):
            for group in range(self.groups):
                yield Part(self, row, group)

    @contextmanager
    def blocks(self, before: int | None, behind: int | None, stages: Sequence[Stage]) -> Iterator[None]:
        """The loop over blocks of columns: those from `before` columns before a row to `behind` behind it, or all.

        `stages` are what will be asked for in a block, in that order.
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
        with self.body.block(f"for (int {BLOCK} = {start}; {BLOCK} < {end}; ++{BLOCK})", frozenset((BLOCK,))):
            yield

    # -- places -------------------------------------------------------------------------------------------------------

    @property
    def block(self) -> Index:
        return variable(BLOCK, self.blocks_of_columns)

    def row(self, number: int) -> Index:
        """A row of the invocation to read at: those that are not there are the last one."""
        return self.inside(self.row_index(number))

    def column(self, group: int) -> Index:
        """Four columns to read at: those that are not there are the last one."""
        return clamp(linear([(self.first_column(group), 1), (LANE, 1)]), 0, self.problem.columns - 1)

    def inside(self, row: Index) -> Index:
        """A row that is there: this one, or the last."""
        return clamp(row, 0, self.problem.rows - 1)

    def is_row(self, row: Index) -> str:
        """The condition that a row is there, if it may not be."""
        if row.high < self.problem.rows:
            return ""
        return f"{self.body.index(row)} < {self.body.parameters.integer(self.problem.rows)}"

    def of_row(self, operand: Node, number: int) -> str:
        """A statistic of a row."""
        return self.body.value(operand, (*self.batch, self.row(number))).text

    def vector(self, operand: Node, row: Index, along: Index, width: int = VECTOR) -> str:
        """Elements of an operand's row, as a vector of that width."""
        return widened(self.body.value(operand, (*self.batch, row, along)), width, operand.dtype)

    def element(self, node: Node, address: str, row: Index, *along: Index) -> str:
        """An element of a result in memory, or four of them where `along` has lanes; may be assigned to."""
        position = flatten((*self.batch, row, *along), node.shape)
        base = substitute(position, {"lane": constant(0)})
        if "lane" not in position.variables:
            return self.body.element(node.dtype, address, self.body.index(base))
        if is_multiple(base, VECTOR) and node not in self.body.unaligned:
            vectors = self.body.uses.reference("f32", "x4")
            return f"{vectors}({address}).data[{self.body.index(quotient_exact(base, VECTOR))}]"
        place = self.body.element_address(node.dtype, address, self.body.index(base))
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

    def score(self, operand: Node) -> str:
        """What an operand with one element a score has there."""
        tiles = self.tiles
        row, column = tiles.row(self.row), tiles.column(self.group)
        at = (column, row) if tiles.problem.by_keys else (row, column)
        return widened(tiles.body.value(operand, (*tiles.batch, *at)), VECTOR, operand.dtype)

    def of_columns(self, operand: Node) -> str:
        """A statistic of the columns."""
        tiles = self.tiles
        value = tiles.body.value(operand, (*tiles.batch, tiles.column(self.group)))
        return widened(value, VECTOR, float32)

    def of_row(self, operand: Node) -> str:
        return self.tiles.of_row(operand, self.row)

    def key_behind_query(self, distance: int) -> str:
        """Where the key comes at least `distance` after the query."""
        return self._compared("greaterThanEqual", "lessThanEqual", distance)

    def key_before_query(self, distance: int) -> str:
        """Where the key comes at most `distance` after the query."""
        return self._compared("lessThanEqual", "greaterThanEqual", distance)

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
        """Where columns are not there; "": they all are."""
        tiles = self.tiles
        columns = tiles.problem.columns
        if add(tiles.first_column(self.group), VECTOR - 1).high < columns:
            return ""
        return f"greaterThanEqual({self._columns()}, ivec4({tiles.body.parameters.integer(columns)}))"
