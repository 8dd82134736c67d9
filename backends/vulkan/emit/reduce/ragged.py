"""Rows that begin between vectors of four, because four does not divide their length, on CPU drivers.

A store is a loop over the lanes there, of one element or of four, and a read of a word takes nearly as long as one of
four. Four divides four rows, so it is known how far behind a multiple of four each of four neighbouring rows begins. A
subgroup has as many rows as together are vectors. Of each it takes whole vectors, which lie as memory's own, and up to
seven single elements at both ends of the row, one a lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import gcd

from lavax.backends.vulkan.emit.reduce.row_group import RowGroup
from lavax.backends.vulkan.emit.reduce.row_schedule import RowSchedule
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import open_invocations
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, linear, variable

_FIRST = "first"  # the shader's variable for the number of the subgroup's rows


@dataclass(frozen=True, kw_only=True)
class RaggedRows(RowSchedule):
    """A subgroup shares `together` neighbouring rows of `length` elements, which begin `stride` elements apart.

    The first row of a subgroup begins `offset` elements behind a multiple of four.
    """

    subgroup: int
    length: int
    stride: int
    offset: int = 0

    @property
    def together(self) -> int:
        """The rows after which the next one begins at a multiple of four again."""
        return VECTOR // gcd(VECTOR, self.stride)

    def before(self, number: int) -> int:
        """The elements of one of a subgroup's rows before its first whole vector."""
        return -(self.offset + number * self.stride) % VECTOR

    @property
    def vectors(self) -> int:
        """The whole vectors of a row, as many as every row has."""
        return min((self.length - self.before(number)) // VECTOR for number in range(self.together))

    @property
    def ends(self) -> int:
        """The elements of a row that belong to none of these."""
        return self.length - VECTOR * self.vectors

    def steps(self, length: int) -> int:
        return self.vectors

    def element_of(self, number: int, step: Index) -> Index:
        element = self.element_index(step)
        return linear([(element, 1)], self.before(number))


class RaggedGroup(RowGroup[RaggedRows]):
    """Writes such rows."""

    @contextmanager
    def opened(self, rows: int) -> Iterator[list[str]]:
        schedule, body = self.schedule, self.body
        subgroup = None if schedule.local == schedule.subgroup else schedule.subgroup
        open_invocations(body, -(-rows // schedule.together) * schedule.members, schedule.local, "i", subgroup)
        body.line(f"int {_FIRST} = i / {schedule.members};")
        body.line(f"int lane_of_row = i % {schedule.members};")
        body.scopes[0].variables |= {_FIRST}
        yield [_FIRST]

    @property
    def own_rows(self) -> int:
        together = self.schedule.together
        return together if 1 < together <= self.schedule.members and not self.schedule.in_turn else 0

    @property
    def first_row(self) -> str:
        return f"{_FIRST} * {self.schedule.together}"

    def places(self, rows: int, names: Sequence[str]) -> list[Index]:
        """Rows beyond the last one are read as if they were there, since what reads them is bounded by the driver."""
        together = self.schedule.together
        first = variable(_FIRST, -(-rows // together))
        return [linear([(first, together)], number) for number in range(together)]

    def join(self, partial: Sequence[tuple[Node, str]]) -> None:
        for node, name in partial:
            self._exchange(node, name, self.schedule.members)

    @property
    def reads_early(self) -> bool:
        return False

    @property
    def subgroup(self) -> int | None:
        return self.schedule.subgroup

    def exists_of(self, number: int, rows: int) -> str:
        together = self.schedule.together
        return f"{_FIRST} * {together} + {number} < {rows}" if number >= rows % together > 0 else ""

    def workgroups(self, rows: int) -> int:
        return -(-(-(-rows // self.schedule.together) * self.schedule.members) // self.schedule.local)
