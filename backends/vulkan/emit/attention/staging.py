"""The copies from memory to shared memory that a workgroup of attention makes for a stage of a block, part by part.

Every invocation loads its vectors of the next part while it works on the present one. Columns are in *slots*: an
invocation's four neighbouring columns are as many slots apart as a line has invocations, so that neighbouring
invocations read neighbouring slots.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from lavax.backends.vulkan.emit.attention.problem import Stage
from lavax.backends.vulkan.emit.attention.workgroup_shape import WorkgroupShape
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, add, clamp, linear, quotient, remainder


def column_of(slot: Index, across: int) -> Index:
    """The column of a block that is in a slot."""
    line = VECTOR * across
    group, inside = quotient(slot, line), remainder(slot, line)
    return linear([(group, line), (remainder(inside, across), VECTOR), (quotient(inside, across), 1)])


@dataclass(frozen=True)
class Staging(ABC):
    """The vectors of an operand that are copied together, from `offset` on in shared memory."""

    operand: Node
    shape: WorkgroupShape
    offset: int

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of vectors of a part."""

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of vectors of a part that are neighbours in memory."""

    @abstractmethod
    def place(self, number: Index) -> Index:
        """The place in shared memory of a vector, by its number in the part."""

    @abstractmethod
    def row(self, number: Index, part: Index) -> Index:
        """The row or column of a vector, counted from the first of the tile or block."""

    @abstractmethod
    def vector(self, number: Index, part: Index) -> Index:
        """The number of a vector in its row; it may lie beyond the end."""

    @property
    def last(self) -> int:
        """The number of a row's last vector."""
        return -(-self.operand.shape[-1] // VECTOR) - 1

    def along(self, number: Index, part: Index) -> Index:
        """Four elements of the row to read; those beyond the end are arbitrary."""
        inside = linear([(clamp(self.vector(number, part), 0, self.last), VECTOR), (LANE, 1)])
        return clamp(inside, 0, self.operand.shape[-1] - 1)

    @property
    def is_cut(self) -> bool:
        """Whether elements beyond the end must be zero."""
        return False


@dataclass(frozen=True)
class Slices(Staging):
    """For a product: `depth` elements of each row, or of each slot's column."""

    of_columns: bool

    @property
    def width(self) -> int:
        return self.shape.depth // VECTOR

    @property
    def count(self) -> int:
        return (self.shape.columns if self.of_columns else self.shape.rows) * self.width

    def place(self, number: Index) -> Index:
        slot, vector = quotient(number, self.width), remainder(number, self.width)
        return linear([(slot, self.shape.slice_stride), (vector, 1)], self.offset)

    def row(self, number: Index, part: Index) -> Index:
        slot = quotient(number, self.width)
        return column_of(slot, self.shape.across) if self.of_columns else slot

    def vector(self, number: Index, part: Index) -> Index:
        return linear([(part, self.width), (remainder(number, self.width), 1)])

    @property
    def is_cut(self) -> bool:
        return self.operand.shape[-1] % self.shape.depth != 0


@dataclass(frozen=True)
class StagedLines(Staging):
    """For a sum: all elements of the columns in `share` slots."""

    @property
    def width(self) -> int:
        return self.last + 1

    @property
    def count(self) -> int:
        return self.shape.share * self.width

    def place(self, number: Index) -> Index:
        line = self.shape.across * self.shape.vectors(self.operand.shape[-1])
        return linear([(quotient(number, self.width), line), (remainder(number, self.width), 1)], self.offset)

    def row(self, number: Index, part: Index) -> Index:
        slot = linear([(part, self.shape.share), (quotient(number, self.width), 1)])
        return column_of(slot, self.shape.across)

    def vector(self, number: Index, part: Index) -> Index:
        return remainder(number, self.width)


@dataclass(frozen=True)
class GivenRows(Staging):
    """For sums of the columns: all elements of the rows in `given` lines of a tile."""

    @property
    def width(self) -> int:
        return self.last + 1

    @property
    def count(self) -> int:
        return self.shape.given * self.width

    def place(self, number: Index) -> Index:
        return add(number, self.offset)

    def row(self, number: Index, part: Index) -> Index:
        return linear([(part, self.shape.given), (quotient(number, self.width), 1)])

    def vector(self, number: Index, part: Index) -> Index:
        return remainder(number, self.width)


def stagings(stage: Stage, shape: WorkgroupShape) -> Iterator[tuple[Staging, bool]]:
    """The copies for a part of a stage, each with whether it is of columns."""
    if stage.to_columns:
        yield GivenRows(stage.of_columns, shape, 0), False
        return
    if stage.of_rows is None:
        yield StagedLines(stage.of_columns, shape, 0), True
        return
    yield Slices(stage.of_rows, shape, 0, of_columns=False), False
    yield Slices(stage.of_columns, shape, shape.rows * shape.slice_stride, of_columns=True), True
