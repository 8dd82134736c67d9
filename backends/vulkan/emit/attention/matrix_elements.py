"""The elements that a lane has of a tile of matrices.

Only the device knows which these are. But all matrices of one shape have their elements in the same places, and so have
three whose elements say where they are: `down` and `over` hold an element's row and column within its matrix, `ahead`
the second minus the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lavax.backends.vulkan.emit.attention.tiles import Part, Row, folded_pairs
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, add, clamp, constant, linear, variable

if TYPE_CHECKING:
    from lavax.backends.vulkan.emit.attention.cooperative import CooperativeTiles

# An element's number within a lane's part of a matrix, and its row and column as integers.
ELEMENT, BELOW, BESIDE = "e", "below", "beside"
# GLSL's comparisons of vectors, for numbers.
_OPERATORS = {"greaterThanEqual": ">=", "lessThanEqual": "<="}


@dataclass(frozen=True)
class ElementRow(Row):
    """An element of each matrix of a tile: part of a row."""

    tiles: CooperativeTiles

    def of(self, name: str) -> str:
        return f"{self.tiles.of_matrices(name, self.number)}[{ELEMENT}]"

    def first(self, name: str) -> str:
        return self.of(name)

    def vectors(self, name: str) -> list[str]:
        return [f"{matrix}[{ELEMENT}]" for matrix in self.tiles.tile_matrices(name, self.number)]

    def greatest(self, name: str) -> str:
        return folded_pairs("max", self.vectors(name))

    def sum(self, name: str) -> str:
        return f"({' + '.join(self.vectors(name))})"


@dataclass(frozen=True)
class ElementPart(Part):
    """An element of a matrix of a tile: matrix number `group` of a row of matrices."""

    tiles: CooperativeTiles

    def of(self, name: str) -> str:
        return f"{self.tiles.tile_matrices(name, self.row)[self.group]}[{ELEMENT}]"

    def of_its_row(self, name: str) -> str:
        """The element's row's variable of that name."""
        return ElementRow(self.tiles, self.row).of(name)

    @property
    def first_row(self) -> Index:
        """The matrix's first row."""
        return add(self.tiles.first_row, self.row * self.tiles.shape.shape.m)

    def filled(self, number: str) -> str:
        return number

    def score(self, operand: Node) -> str:
        tiles, shape = self.tiles, self.tiles.shape.shape
        row = tiles.inside(linear([(self.first_row, 1), (variable(BELOW, shape.m), 1)]))
        column = linear([(tiles.first_column(self.group), 1), (variable(BESIDE, shape.n), 1)])
        column = clamp(column, 0, tiles.problem.columns - 1)
        at = (column, row) if tiles.problem.by_keys else (row, column)
        return tiles.body.value(operand, (*tiles.batch, *at)).text

    def _bound(self, of_keys: str, of_queries: str, distance: int) -> tuple[str, Index]:
        """GLSL's comparison of `ahead` with a place relative to the matrix's first column."""
        by_keys = self.tiles.problem.by_keys
        bound = add(self.first_row, -distance if by_keys else distance)
        return _OPERATORS[of_queries if by_keys else of_keys], self._from_column(bound)

    def _compared(self, of_keys: str, of_queries: str, distance: int) -> str:
        compare, bound = self._bound(of_keys, of_queries, distance)
        return f"ahead[{ELEMENT}] {compare} {self._float(bound)}"

    def may_hide(self, of_scores: bool) -> list[str]:
        """Conditions of which one holds, for all lanes alike, if the matrix has elements beyond the last column or, if
        `of_scores`, some that comparisons hide."""
        tiles, shape, conditions = self.tiles, self.tiles.shape.shape, []
        if self.beyond:
            conditions.append(f"{tiles.body.index(self._from_column(constant(tiles.problem.columns)))} < {shape.n}")
        for order, distance in tiles.compared if of_scores else ():
            compare, bound = self._bound(*order, distance)
            beyond = f"< {shape.n - 1}" if compare == "<=" else f"> {1 - shape.m}"
            conditions.append(f"{tiles.body.index(bound)} {beyond}")
        return conditions

    @property
    def beyond(self) -> str:
        tiles = self.tiles
        last = add(tiles.first_column(self.group), tiles.shape.shape.n - 1)
        if last.high < tiles.problem.columns:
            return ""
        return f"over[{ELEMENT}] >= {self._float(self._from_column(constant(tiles.problem.columns)))}"

    def _from_column(self, place: Index) -> Index:
        """A place relative to the matrix's first column."""
        return linear([(place, 1), (self.tiles.first_column(self.group), -1)])

    def _float(self, place: Index) -> str:
        """Exact, because float32 holds such numbers."""
        return f"float({self.tiles.body.index(place)})"
