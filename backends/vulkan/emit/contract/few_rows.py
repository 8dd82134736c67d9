"""Products of few rows or columns, whose time is that of reading the matrix: subgroups share sums."""

from __future__ import annotations

from lavax.backends.vulkan.emit.contract.tiles import SubgroupTile
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.build.contraction_geometry import Sizes, neighbours_of


@dataclass(frozen=True)
class FewRows:
    """When a subgroup's lanes share sums. Chosen by `python -m benchmarks comparison --only matmul-vector`."""

    rows: int = 8  # the most rows, or columns
    sums: int = 16  # the most sums that the lanes of a subgroup share at once


FEW_ROWS = FewRows()


def is_along_sums(dot: Node, sizes: Sizes, profile: DeviceProfile) -> bool:
    """Whether there are few rows or columns, and neighbours of both operands lie along the sum."""
    short = sizes.k < VECTOR * profile.subgroup_size
    if min(sizes.m, sizes.n) > FEW_ROWS.rows or short or not profile.subgroup_shuffle:
        return False
    return dot.dtype.bits == 32 and all(neighbours_of(dot, side).summed for side in range(2))


def subgroup_tile(sizes: Sizes, profile: DeviceProfile) -> SubgroupTile:
    """The largest tile that keeps the device busy. Its extents are powers of two, so that eager products have few
    shaders."""
    tile = SubgroupTile(1, 1, profile.subgroup_size)
    for extent in (8, 4, 2, 1):
        rows, columns = (1 << min(free, extent).bit_length() - 1 for free in (sizes.m, sizes.n))
        tile = SubgroupTile(rows, columns, profile.subgroup_size)
        if rows * columns <= FEW_ROWS.sums and tile.invocations(sizes) >= profile.busy_invocations:
            break
    return tile


def subgroup_tiles(sizes: Sizes, profile: DeviceProfile) -> list[SubgroupTile]:
    """The tiles worth timing."""
    extents = ((rows, columns) for rows in (1, 2, 4, 8) for columns in (1, 2, 4, 8))
    return [
        SubgroupTile(rows, columns, profile.subgroup_size)
        for rows, columns in extents
        if rows <= sizes.m and columns <= sizes.n and rows * columns <= FEW_ROWS.sums
    ]
