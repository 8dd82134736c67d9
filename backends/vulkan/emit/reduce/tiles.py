"""Tiles of rows of one invocation, for rows of all pairs of two arrays, as of distances and of products by other sums.

Rows lie along the last two axes. What an element of a row reads for one of them, all rows along the other share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lavax.backends.vulkan.emit.reduce.row_group import RowGroup
from lavax.backends.vulkan.emit.reduce.row_schedule import RowSchedule
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE
from lavax.backends.vulkan.glsl.launch import open_invocations
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, linear, quotient, remainder, variable


@dataclass(frozen=True, kw_only=True)
class TiledRows(RowSchedule):
    """An invocation has a row, or a vector of rows, in each of `lines` neighbouring lines of `columns` rows."""

    lines: int
    columns: int

    def tile(self, rows: int, name: str) -> list[Index]:
        """The rows of each line of a tile; `name` is the shader's variable for the number of the tile."""
        across = self.columns // self.row_width
        number = variable(name, rows // (self.row_width * self.lines))
        lanes = [(LANE, 1)] if self.row_width == VECTOR else []
        places = [
            (quotient(number, across), self.lines * self.columns), (remainder(number, across), self.row_width), *lanes
        ]
        return [linear(places, line * self.columns) for line in range(self.lines)]


class TileGroup(RowGroup[TiledRows]):
    """Writes an invocation's own tile."""

    @contextmanager
    def opened(self, rows: int) -> Iterator[list[str]]:
        open_invocations(self.body, rows // self.schedule.lines, self.schedule.local, "i")
        yield ["i"]

    def places(self, rows: int, names: Sequence[str]) -> list[Index]:
        return [row for name in names for row in self.schedule.tile(rows, name)]

    def join(self, partial: Sequence[tuple[Node, str]]) -> None:
        """An invocation's results are the rows'."""

    @property
    def reads_early(self) -> bool:
        return True

    def workgroups(self, rows: int) -> int:
        return super().workgroups(rows // self.schedule.lines)
