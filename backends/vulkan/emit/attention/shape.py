"""How a workgroup's part of attention is shared out among its invocations, and which way suits which sizes.

What bounds a tile of h rows by w columns an invocation is shared memory: each four steps of a product read h + w
vectors for 4·h·w multiply-adds. Registers bound h and w: an invocation holds its part of the tiles that are alive at
once and of the results' rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from lavax.backends.vulkan.emit.attention.tiles import Problem, Stage
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.plan.profile import DeviceProfile

_VECTOR_BYTES, _FLOAT_BYTES = 16, 4
# Registers for tiles, what is added up and what is multiplied.
_MOST_REGISTERS = 208
# An invocation's rows of a tile that go through shared memory at a time, to be multiplied for the columns.
GIVEN_HEIGHT = 2


@dataclass(frozen=True)
class Shape:
    """Lines of invocations, `down` × `across`, each with `height` rows and `groups` vectors of four columns.

    Of the heads `depth` elements are in shared memory at a time for a product, and `share` columns of a block for a
    sum; of a tile `chunk` columns, a multiple of `across` and of `share`.
    """

    down: int
    across: int
    height: int
    groups: int
    depth: int
    share: int
    chunk: int

    @property
    def local(self) -> int:
        return self.down * self.across

    @property
    def rows(self) -> int:
        return self.down * self.height

    @property
    def columns(self) -> int:
        return self.across * VECTOR * self.groups

    # Lines in shared memory have an odd number of vectors, so that neighbours lie in other banks.

    @property
    def slice_stride(self) -> int:
        """Vectors of a row's elements that are staged for a product."""
        return self.depth // VECTOR | 1

    @property
    def tile_stride(self) -> int:
        """Vectors of a column of a tile."""
        return self.rows // VECTOR | 1

    def steps(self, head: int) -> int:
        """In how many parts the elements of a head are staged."""
        return -(-head // self.depth)

    def vectors(self, head: int) -> int:
        """Vectors of a result's row that an invocation has, `across` vectors apart."""
        return -(-head // (VECTOR * self.across))

    def line_vectors(self, stages: Sequence[Stage]) -> int:
        """Vectors of the columns that are staged for a sum."""
        sums = ((stage, stage.of_columns.shape[-1]) for stage in stages if stage.of_rows is None)
        return max((self._lines(stage) * self.across * self.vectors(head) for stage, head in sums), default=0)

    def _lines(self, stage: Stage) -> int:
        """How many rows of an operand are staged at a time for a sum."""
        return self.given if stage.to_columns else self.share

    @property
    def given(self) -> int:
        """Rows of a tile that are in shared memory at a time, to be multiplied by an operand's rows for the columns."""
        return GIVEN_HEIGHT * self.down

    def given_vectors(self, head: int) -> tuple[int, int]:
        """Of the columns' sums an invocation's vectors: four columns each, `down` vectors apart, by those of a head."""
        return self.columns // VECTOR // self.down, self.vectors(head)

    def staged_vectors(self, stages: Sequence[Stage]) -> int:
        """Either both operands' elements for a product, or columns for a sum and those of the tile behind them."""
        for_products = (self.rows + self.columns) * self.slice_stride
        tile = self.chunk * self.tile_stride
        if any(stage.to_columns for stage in stages):
            tile = max(tile, self.given * self.across * self.groups)
        return max(for_products, self.line_vectors(stages) + tile)

    def exchanged_floats(self, subgroup: int) -> int:
        """One number a row from each subgroup that has a part of it, if these are several."""
        return self.rows * self.across // subgroup if subgroup < self.across else 0

    def shared_bytes(self, stages: Sequence[Stage], subgroup: int) -> int:
        return _VECTOR_BYTES * self.staged_vectors(stages) + _FLOAT_BYTES * self.exchanged_floats(subgroup)

    def registers(self, stages: Sequence[Stage]) -> int:
        """Of an invocation: the results' rows, the tiles alive at once, and what a step of a product reads."""
        products = sum(stage.of_rows is not None for stage in stages)
        heads = [stage.of_columns.shape[-1] for stage in stages if stage.of_rows is None and not stage.to_columns]
        sums = sum(self.vectors(head) for head in heads)
        given = sum(VECTOR * prod(self.given_vectors(s.of_columns.shape[-1])) for s in stages if s.to_columns)
        return VECTOR * (self.height * (sums + products * self.groups) + VECTOR * self.groups + 2 + given)

    def suits(self, stage: Stage) -> bool:
        """Whether the lines and the columns divide what a stage is for the columns."""
        head = stage.of_columns.shape[-1]
        lines = self.columns // VECTOR % self.down == 0 and self.height % GIVEN_HEIGHT == 0
        return not stage.to_columns or (lines and head % (VECTOR * self.across) == 0)


# By the longest head they are for, from the one that reads least to the one that leaves most workgroups.
SHAPES: Mapping[int, tuple[Shape, ...]] = {
    32: (
        Shape(16, 8, 8, 2, depth=16, share=16, chunk=16),
        Shape(32, 8, 4, 2, depth=16, share=16, chunk=32),
        Shape(16, 8, 4, 2, depth=16, share=16, chunk=32),
        Shape(16, 8, 4, 1, depth=16, share=16, chunk=32),
    ),
    96: (
        Shape(16, 16, 8, 1, depth=32, share=32, chunk=32),
        Shape(32, 8, 4, 2, depth=16, share=16, chunk=32),
        Shape(16, 8, 4, 2, depth=16, share=16, chunk=32),
        Shape(8, 16, 4, 1, depth=16, share=16, chunk=32),
    ),
    128: (
        Shape(16, 16, 8, 1, depth=32, share=32, chunk=32),
        Shape(16, 16, 8, 1, depth=16, share=16, chunk=32),
        Shape(8, 32, 8, 1, depth=16, share=8, chunk=32),
        Shape(16, 16, 4, 1, depth=16, share=16, chunk=32),
        Shape(8, 16, 4, 1, depth=16, share=16, chunk=32),
    ),
    256: (
        Shape(8, 32, 8, 1, depth=16, share=8, chunk=32),
        Shape(8, 32, 4, 1, depth=16, share=8, chunk=32),
        Shape(4, 32, 4, 1, depth=16, share=8, chunk=32),
    ),
}

# Of the kernel that also computes parts of the gradient of queries: its code is longer, and what is staged in larger
# steps is written out in more of it. Where the loop over blocks grew beyond some 6,000 multiplications of vectors'
# components, kernels took twice as long (docs/rejected.md).
SHAPES_OF_PARTS: Mapping[int, tuple[Shape, ...]] = {
    32: (Shape(16, 8, 4, 2, depth=16, share=16, chunk=16),),
    96: (Shape(16, 16, 8, 1, depth=16, share=16, chunk=32), Shape(16, 16, 4, 1, depth=16, share=16, chunk=32)),
    128: (Shape(16, 16, 4, 1, depth=16, share=16, chunk=32),),
}

# In no table: they are tried where shapes are chosen by measurement.
_OTHER_SHAPES = (
    Shape(16, 8, 8, 2, depth=16, share=16, chunk=16),
    Shape(16, 8, 4, 2, depth=16, share=16, chunk=16),
    Shape(32, 8, 4, 2, depth=16, share=16, chunk=16),
    Shape(16, 16, 8, 1, depth=16, share=16, chunk=16),
    Shape(16, 16, 8, 1, depth=8, share=16, chunk=16),
    Shape(16, 16, 8, 1, depth=32, share=32, chunk=32),
    Shape(8, 16, 8, 1, depth=16, share=16, chunk=16),
    Shape(16, 16, 4, 2, depth=16, share=16, chunk=16),
    Shape(16, 16, 8, 2, depth=16, share=16, chunk=16),
    Shape(32, 16, 4, 2, depth=16, share=16, chunk=16),
)


def fitting_shapes(profile: DeviceProfile, stages: Sequence[Stage]) -> list[Shape]:
    """Shapes that fit the device and whose lines suit the heads, in no order."""
    head = max(stage.of_columns.shape[-1] for stage in stages)
    known = (*(shape for shapes in SHAPES.values() for shape in shapes), *_OTHER_SHAPES)
    suited = (shape for shape in known if head // 8 <= VECTOR * shape.across <= head)
    found = (fitted(shape, profile, stages) for shape in suited)
    return list(dict.fromkeys(shape for shape in found if shape is not None))


def choose_shape(
    profile: DeviceProfile, problem: Problem, stages: Sequence[Stage], rows: int | None = None
) -> Shape | None:
    """The largest of those that fit which keeps the device busy, or the smallest of those that come nearest.

    None where the device lacks what workgroups need, or no shape has so many `rows`, if that is said.
    """
    if not profile.subgroup_shuffle:
        return None
    longest = max(stage.of_columns.shape[-1] for stage in stages)
    table = SHAPES_OF_PARTS if any(stage.to_columns for stage in stages) else SHAPES
    shapes = next((shapes for head, shapes in table.items() if longest <= head), ())
    fitting = [shape for shape in (fitted(shape, profile, stages) for shape in shapes) if shape is not None]
    fitting = [shape for shape in fitting if rows is None or shape.rows == rows]
    busy = (shape for shape in fitting if keeps_busy(shape, problem, profile))
    smallest_first = reversed(fitting)
    return next(busy, max(smallest_first, key=lambda shape: _invocations(shape, problem), default=None))


def keeps_busy(shape: Shape, problem: Problem, profile: DeviceProfile) -> bool:
    return _invocations(shape, problem) >= profile.busy_invocations


def _invocations(shape: Shape, problem: Problem) -> int:
    return problem.count * -(-problem.rows // shape.rows) * shape.local


def fitted(shape: Shape, profile: DeviceProfile, stages: Sequence[Stage]) -> Shape | None:
    """The shape with no more elements at a time than heads have, or half as many where these divide them and all do
    not; None where it does not fit the device."""
    longest = max(stage.of_columns.shape[-1] for stage in stages if stage.of_rows is not None)
    depth = min(shape.depth, -(-longest // VECTOR) * VECTOR)
    half = depth // 2
    shape = replace(shape, depth=half if longest % depth and longest % half == 0 and half % VECTOR == 0 else depth)
    fits = (
        all(shape.suits(stage) for stage in stages)
        and shape.local <= profile.max_workgroup_invocations
        and shape.registers(stages) <= _MOST_REGISTERS
        and shape.shared_bytes(stages, profile.subgroup_size) <= profile.shared_memory_bytes
    )
    return shape if fits else None
