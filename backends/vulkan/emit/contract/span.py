"""The part of an axis that a tile covers, and the elements of it that the tile owns at the edges."""

from __future__ import annotations

from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE
from lavax.base.kept import kept
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.index import Index, add, clamp, linear, quotient

# A lane of a vector, or None for the whole vector, and the condition under which the tile owns it; "" for always.
Guard = tuple[int | None, str]


@dataclass(frozen=True)
class Span:
    """A tile's elements along one group of axes: tile `number`, with `size` of the `extent` elements.

    If tiles do not divide the extent, the last tile moves back to lie inside. It then overlaps the tile before, which
    owns the shared elements. A tile larger than the extent ends in copies of the last element, which no tile owns.
    """

    extent: int
    size: int
    number: Index
    unit: int = VECTOR  # tiles start at multiples of it if possible

    @kept
    def first(self) -> Index:
        """The index of the tile's first element."""
        last = max(self.extent - self.size, 0)
        for unit in (self.unit, VECTOR):
            if self.size % unit == 0 and last % unit == 0:
                whole = clamp(linear([(self.number, self.size // unit)]), 0, last // unit)
                return linear([(whole, unit)])
        return clamp(linear([(self.number, self.size)]), 0, last)

    def at(self, offset: Index, width: int = 1) -> Index:
        """The index of the element at an offset in the tile, or of four from an offset that is a multiple of four."""
        lanes = [(LANE, 1)] if width == VECTOR else []
        place = linear([(self.first, 1), (offset, 1)])
        if width == VECTOR and self.extent % VECTOR == 0:
            return linear([(_vectors_within(place, self.extent, VECTOR), 1), *lanes])
        return clamp(linear([(place, 1), *lanes]), 0, self.extent - 1)

    def eight(self, offset: Index, half: int) -> Index:
        """The indices, by lane, of one half of the eight elements from an offset on that is a multiple of eight."""
        place = linear([(self.first, 1), (offset, 1)])
        if self.extent % (2 * VECTOR) == 0:
            return linear([(_vectors_within(place, self.extent, 2 * VECTOR), 1), (LANE, 1)], VECTOR * half)
        return clamp(linear([(place, 1), (LANE, 1)], VECTOR * half), 0, self.extent - 1)

    def guards(self, body: Body, offset: Index, width: int = 1) -> list[Guard]:
        """The conditions under which the tile owns `width` elements from an offset on."""
        if self.extent % self.size == 0:
            return [(None, "")]
        if width == 1 or (self.extent % width == 0 and self.size % width == 0):
            return [(None, self._own(body, offset))]
        return [(lane, self._own(body, add(offset, lane))) for lane in range(width)]

    def _own(self, body: Body, offset: Index) -> str:
        if self.size > self.extent:
            return f"{body.index(offset)} < {body.parameters.integer(self.extent)}"
        place, start = linear([(self.first, 1), (offset, 1)]), linear([(self.number, self.size)])
        return f"{body.index(place)} >= {body.index(start)}"


@dataclass(frozen=True)
class StagedVector:
    """Neighbouring elements of an operand that one invocation stages: the tile offsets of the first one."""

    free: Index
    summed: Index


def _vectors_within(place: Index, extent: int, width: int) -> Index:
    """A multiple of the width, clamped so that a whole vector lies inside the extent."""
    if place.high <= extent - width:
        return place
    return linear([(clamp(quotient(place, width), 0, extent // width - 1), width)])


def both(rows: list[Guard], columns: list[Guard]) -> list[Guard]:
    """The conditions on a row and on columns of it, combined."""
    ((_, row),) = rows
    return [(lane, " && ".join(filter(None, (row, column)))) for lane, column in columns]
