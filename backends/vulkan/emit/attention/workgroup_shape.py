"""The schedules of attention on GPUs: the division of a workgroup's work among its invocations. Writes no GLSL.

The speed of a tile of h rows by w columns per invocation is bounded by shared memory: four steps of a product read
h + w vectors for 4·h·w multiply-adds. Registers bound h and w, because an invocation holds its part of all tiles that
are alive at once and of the results' rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from lavax.backends.vulkan.emit.attention.problem import Problem, Stage
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass

_VECTOR_BYTES, _FLOAT_BYTES = 16, 4
# The most registers for tiles, sums and operands. Chosen by `python -m benchmarks.attention_tiles`.
_MOST_REGISTERS = 208
# The rows of a tile per invocation that go through shared memory at a time, when they are multiplied for the columns.
GIVEN_HEIGHT = 2


@dataclass(frozen=True)
class WorkgroupShape:
    """Lines of invocations, `down` × `across`, each with `height` rows and `groups` vectors of four columns.

    Shared memory holds `depth` elements of the heads at a time for a product, and `share` columns of a block for a sum.
    It holds `chunk` columns of a tile, a multiple of `across` and of `share`.
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
        """The vectors of a row that are staged for a product."""
        return self.depth // VECTOR | 1

    @property
    def tile_stride(self) -> int:
        """The vectors of a column of a tile."""
        return self.rows // VECTOR | 1

    def steps(self, head: int) -> int:
        """The number of parts in which the elements of a head are staged."""
        return -(-head // self.depth)

    def vectors(self, head: int) -> int:
        """The vectors of a result's row per invocation; they are `across` vectors apart."""
        return -(-head // (VECTOR * self.across))

    def line_vectors(self, stages: Sequence[Stage]) -> int:
        """The vectors of columns that are staged for a sum."""
        sums = ((stage, stage.of_columns.shape[-1]) for stage in stages if stage.of_rows is None)
        return max((self._lines(stage) * self.across * self.vectors(head) for stage, head in sums), default=0)

    def _lines(self, stage: Stage) -> int:
        """The rows of an operand that are staged at a time for a sum."""
        return self.given if stage.to_columns else self.share

    @property
    def given(self) -> int:
        """The rows of a tile in shared memory at a time, if the tile is multiplied for the columns."""
        return GIVEN_HEIGHT * self.down

    def given_vectors(self, head: int) -> tuple[int, int]:
        """An invocation's vectors of the columns' sums: vectors of four columns, `down` apart, by those of a head."""
        return self.columns // VECTOR // self.down, self.vectors(head)

    def staged_vectors(self, stages: Sequence[Stage]) -> int:
        """The vectors in shared memory: both operands of a product, or the columns and tile of a sum."""
        for_products = (self.rows + self.columns) * self.slice_stride
        tile = self.chunk * self.tile_stride
        if any(stage.to_columns for stage in stages):
            tile = max(tile, self.given * self.across * self.groups)
        return max(for_products, self.line_vectors(stages) + tile)

    def exchanged_floats(self, subgroup: int) -> int:
        """One number per row from each subgroup that has a part of it, if there are several."""
        return self.rows * self.across // subgroup if subgroup < self.across else 0

    def shared_bytes(self, stages: Sequence[Stage], subgroup: int) -> int:
        return _VECTOR_BYTES * self.staged_vectors(stages) + _FLOAT_BYTES * self.exchanged_floats(subgroup)

    def registers(self, stages: Sequence[Stage]) -> int:
        """An invocation's registers: the results' rows, the tiles alive at once, and the operands of a step."""
        products = sum(stage.of_rows is not None for stage in stages)
        heads = [stage.of_columns.shape[-1] for stage in stages if stage.of_rows is None and not stage.to_columns]
        sums = sum(self.vectors(head) for head in heads)
        given = sum(VECTOR * prod(self.given_vectors(s.of_columns.shape[-1])) for s in stages if s.to_columns)
        return VECTOR * (self.height * (sums + products * self.groups) + VECTOR * self.groups + 2 + given)

    def suits(self, stage: Stage) -> bool:
        """Whether the lines and columns divide the extents of a stage for the columns."""
        head = stage.of_columns.shape[-1]
        lines = self.columns // VECTOR % self.down == 0 and self.height % GIVEN_HEIGHT == 0
        return not stage.to_columns or (lines and head % (VECTOR * self.across) == 0)


# By the longest head, from the shape that reads least to the one that leaves most workgroups. Chosen by `python -m
# benchmarks.attention_tiles`.
_SHAPES: Mapping[int, tuple[WorkgroupShape, ...]] = {
    32: (
        WorkgroupShape(16, 8, 8, 2, depth=16, share=16, chunk=16),
        WorkgroupShape(32, 8, 4, 2, depth=16, share=16, chunk=32),
        WorkgroupShape(16, 8, 4, 2, depth=16, share=16, chunk=32),
        WorkgroupShape(16, 8, 4, 1, depth=16, share=16, chunk=32),
    ),
    96: (
        WorkgroupShape(16, 16, 8, 1, depth=32, share=32, chunk=32),
        WorkgroupShape(32, 8, 4, 2, depth=16, share=16, chunk=32),
        WorkgroupShape(16, 8, 4, 2, depth=16, share=16, chunk=32),
        WorkgroupShape(8, 16, 4, 1, depth=16, share=16, chunk=32),
    ),
    128: (
        WorkgroupShape(16, 16, 8, 1, depth=32, share=32, chunk=32),
        WorkgroupShape(16, 16, 8, 1, depth=16, share=16, chunk=32),
        WorkgroupShape(8, 32, 8, 1, depth=16, share=8, chunk=32),
        WorkgroupShape(16, 16, 4, 1, depth=16, share=16, chunk=32),
        WorkgroupShape(8, 16, 4, 1, depth=16, share=16, chunk=32),
    ),
    256: (
        WorkgroupShape(8, 32, 8, 1, depth=16, share=8, chunk=32),
        WorkgroupShape(8, 32, 4, 1, depth=16, share=8, chunk=32),
        WorkgroupShape(4, 32, 4, 1, depth=16, share=8, chunk=32),
    ),
}

# The same for the kernel that also computes parts of the gradient of queries. Its code is longer, and grows with the
# size of the steps. If the loop over blocks has more than some 6,000 multiplications of components, kernels take
# twice as long (docs/rejected/attention.md).
_SHAPES_OF_PARTS: Mapping[int, tuple[WorkgroupShape, ...]] = {
    32: (WorkgroupShape(16, 8, 4, 2, depth=16, share=16, chunk=16),),
    96: (
        WorkgroupShape(16, 16, 8, 1, depth=16, share=16, chunk=32),
        WorkgroupShape(16, 16, 4, 1, depth=16, share=16, chunk=32),
    ),
    128: (WorkgroupShape(16, 16, 4, 1, depth=16, share=16, chunk=32),),
}

# Others that are timed when shapes are chosen by measurement.
_OTHER_SHAPES = (
    WorkgroupShape(16, 8, 8, 2, depth=16, share=16, chunk=16),
    WorkgroupShape(16, 8, 4, 2, depth=16, share=16, chunk=16),
    WorkgroupShape(32, 8, 4, 2, depth=16, share=16, chunk=16),
    WorkgroupShape(16, 16, 8, 1, depth=16, share=16, chunk=16),
    WorkgroupShape(16, 16, 8, 1, depth=8, share=16, chunk=16),
    WorkgroupShape(16, 16, 8, 1, depth=32, share=32, chunk=32),
    WorkgroupShape(8, 16, 8, 1, depth=16, share=16, chunk=16),
    WorkgroupShape(16, 16, 4, 2, depth=16, share=16, chunk=16),
    WorkgroupShape(16, 16, 8, 2, depth=16, share=16, chunk=16),
    WorkgroupShape(32, 16, 4, 2, depth=16, share=16, chunk=16),
)


def fitting_shapes(profile: DeviceProfile, stages: Sequence[Stage]) -> list[WorkgroupShape]:
    """The shapes that fit the device and whose lines suit the heads, in no order."""
    head = max(stage.of_columns.shape[-1] for stage in stages)
    known = (*(shape for shapes in _SHAPES.values() for shape in shapes), *_OTHER_SHAPES)
    suited = (shape for shape in known if head // 8 <= VECTOR * shape.across <= head)
    found = (fitted(shape, profile, stages) for shape in suited)
    return list(dict.fromkeys(shape for shape in found if shape is not None))


def choose_workgroup_shape(
    profile: DeviceProfile, problem: Problem, stages: Sequence[Stage], rows: int | None = None
) -> WorkgroupShape | None:
    """The largest fitting shape that keeps the device busy, or else the smallest of those with most invocations.

    None if the device lacks shuffles, or if no shape has the number of `rows` that is asked for.
    """
    if not profile.subgroup_shuffle:
        return None
    longest = max(stage.of_columns.shape[-1] for stage in stages)
    table = _SHAPES_OF_PARTS if any(stage.to_columns for stage in stages) else _SHAPES
    shapes = next((shapes for head, shapes in table.items() if longest <= head), ())
    fitting = [shape for shape in (fitted(shape, profile, stages) for shape in shapes) if shape is not None]
    fitting = [shape for shape in fitting if rows is None or shape.rows == rows]
    busy = (shape for shape in fitting if keeps_busy(shape, problem, profile))
    smallest_first = reversed(fitting)
    return next(busy, max(smallest_first, key=lambda shape: _invocations(shape, problem), default=None))


def keeps_busy(shape: WorkgroupShape, problem: Problem, profile: DeviceProfile) -> bool:
    return _invocations(shape, problem) >= profile.busy_invocations


def _invocations(shape: WorkgroupShape, problem: Problem) -> int:
    return problem.count * -(-problem.rows // shape.rows) * shape.local


def fitted(shape: WorkgroupShape, profile: DeviceProfile, stages: Sequence[Stage]) -> WorkgroupShape | None:
    """The shape with steps no longer than heads, halved if that divides heads and the whole does not.

    None if the device has no room for it.
    """
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
