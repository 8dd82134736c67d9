"""How the work of a contraction is shared out, and which way suits which sizes.

*Register tile*: each invocation by itself computes a tile of the result. *Shared tile*: a workgroup computes one, and
holds what it reads in shared memory; for GPUs. *Subgroup tile*: the lanes of a subgroup share the sums of a small tile,
where elements along the sum are neighbours and there are few rows or columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from lavax.backends.vulkan.emit.expressions import VECTOR
from lavax.backends.vulkan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.contractions import Sizes, neighbours_of, sizes_of

# The epilogue is written out for every element of a tile, and drivers compile slowly what is long.
_MOST_EPILOGUE = 768
# Up to so many rows or columns a product is one with a few vectors: reading the matrix is what takes time.
_FEW = 8
# How many sums the lanes of a subgroup share at once.
_MOST_SHARED_SUMS = 16
# Parts of sums: how long they are at least with shared tiles and with register tiles, how many more invocations than
# usual keep a device busy that mostly reads, and how many elements are read at least for each that is written.
_PART, _SHORT_PART, _BUSY_READING, _READ_FOR_WRITTEN = 256, 32, 2, 8
# From so many products on a second kernel, which adds up the parts, is worth its dispatch.
_WORTH_PARTS = 1 << 18
# A workgroup's tile pays from so many rows and columns on, where so much of it is of use; a narrow one below so many.
_SHARED_FROM, _LEAST_USE, _NARROW = 16, 0.6, 32


@dataclass(frozen=True)
class RegisterTile:
    """Rows and columns of the result that one invocation computes; columns are a multiple of 4, or N < 4."""

    rows: int
    columns: int

    def invocations(self, sizes: Sizes) -> int:
        return sizes.b * -(-sizes.m // self.rows) * -(-sizes.n // self.columns)


@dataclass(frozen=True)
class SharedTile:
    """Rows and columns of the result that a workgroup computes, and how much of the sum it stages at a time.

    Of these `register_rows` × `register_columns` are one invocation's. With two buffers the next part is staged
    while one is worked on, with one barrier a part and not two. All numbers are multiples of 4.
    """

    rows: int
    columns: int
    depth: int
    register_rows: int
    register_columns: int
    buffers: int = 2

    @property
    def threads_down(self) -> int:
        return self.rows // self.register_rows

    @property
    def threads_across(self) -> int:
        return self.columns // self.register_columns

    @property
    def threads(self) -> int:
        return self.threads_down * self.threads_across

    @property
    def shared_bytes(self) -> int:
        """Of 32-bit elements, at most: what is transposed on the way is padded by a vector."""
        return 4 * self.buffers * self.depth * (self.rows + self.columns + 2 * VECTOR)

    def tiles(self, sizes: Sizes) -> int:
        return sizes.b * -(-sizes.m // self.rows) * -(-sizes.n // self.columns)

    def invocations(self, sizes: Sizes) -> int:
        return self.tiles(sizes) * self.threads

    def use(self, sizes: Sizes) -> float:
        """How much of what the tiles compute is part of the result."""
        return sizes.b * sizes.m * sizes.n / (self.tiles(sizes) * self.rows * self.columns)


@dataclass(frozen=True)
class SubgroupTile:
    """Rows and columns of the result whose sums the lanes of one subgroup share."""

    rows: int
    columns: int
    lanes: int

    def invocations(self, sizes: Sizes) -> int:
        return self.lanes * sizes.b * -(-sizes.m // self.rows) * -(-sizes.n // self.columns)


Schedule = Union[RegisterTile, SharedTile, SubgroupTile]  # noqa: UP007  # isinstance takes it too

# From the one that reads least to the one that leaves most invocations.
_TILES = ((8, 16), (8, 8), (4, 16), (4, 8), (8, 4), (4, 4), (2, 16), (1, 16), (2, 4), (1, 4))
REGISTER_TILES = tuple(RegisterTile(*tile) for tile in _TILES)
SHARED_TILES = (
    SharedTile(128, 128, 16, 8, 8, 1),
    SharedTile(64, 64, 16, 8, 4),
    SharedTile(32, 32, 16, 4, 4),
)
# Not chosen by sizes, but worth a try where candidates are timed.
OTHER_TILES = (
    SharedTile(128, 128, 16, 8, 8, 2),
    SharedTile(128, 128, 8, 8, 8, 2),
    SharedTile(128, 64, 16, 8, 8, 2),
    SharedTile(64, 128, 16, 8, 8, 2),
    SharedTile(256, 128, 8, 16, 8, 2),
    SharedTile(64, 64, 16, 4, 4, 2),
    SharedTile(64, 64, 16, 8, 8, 2),
)
# Where there are few rows or few columns.
NARROW_TILES = (SharedTile(16, 64, 16, 4, 4), SharedTile(64, 16, 16, 4, 4), SharedTile(32, 32, 16, 4, 4))


def choose_schedule(dot: Node, profile: DeviceProfile, epilogue: int = 0) -> Schedule:
    """The schedule of a contraction; `epilogue` is what is computed for each element of the result, in nodes."""
    sizes = sizes_of(dot)
    if _is_along_sums(dot, sizes, profile):
        return _subgroup_tile(sizes, profile)
    tiles = _shared_tiles(dot, sizes, profile, epilogue)
    if not tiles:
        return _register_tile(sizes, profile, epilogue)
    busy = (tile for tile in tiles if tile.invocations(sizes) >= profile.busy_invocations)
    return next(busy, max(tiles, key=lambda tile: tile.invocations(sizes)))


def candidates(dot: Node, epilogue: int, profile: DeviceProfile) -> list[Schedule]:
    """The schedules worth a try, first the one that is chosen without trying."""
    sizes = sizes_of(dot)
    found: list[Schedule] = [choose_schedule(dot, profile, epilogue)]
    if _is_along_sums(dot, sizes, profile):
        extents = ((rows, columns) for rows in (1, 2, 4, 8) for columns in (1, 2, 4, 8))
        found += [
            SubgroupTile(rows, columns, profile.subgroup_size)
            for rows, columns in extents
            if rows <= sizes.m and columns <= sizes.n and rows * columns <= _MOST_SHARED_SUMS
        ]
    elif _shared_tiles(dot, sizes, profile, epilogue):
        tiles = (*SHARED_TILES, *NARROW_TILES, *OTHER_TILES)
        fitting = [tile for tile in tiles if _fits(tile, profile)]
        found += [
            tile
            for tile in fitting
            if 2 * tile.use(sizes) >= _LEAST_USE
            and tile.register_rows * tile.register_columns * epilogue <= _MOST_EPILOGUE
        ]
    else:
        found += [
            tile
            for tile in _register_tiles(sizes, profile)
            if tile.rows * tile.columns * epilogue <= _MOST_EPILOGUE
            and tile.invocations(sizes) >= profile.subgroup_size
        ]
    return list(dict.fromkeys(found))


def parts_candidates(dot: Node, profile: DeviceProfile) -> list[int]:
    """Numbers of parts of the sum that are worth a try, first the one that is chosen without trying."""
    chosen, sizes = choose_parts(dot, profile), sizes_of(dot)
    if profile.kind == "cpu" or _is_along_sums(dot, sizes, profile):
        return [chosen]
    others = (1, chosen // 4, chosen // 2, 2 * chosen, 4 * chosen)
    possible = [parts for parts in others if parts == 1 or (parts > 1 and sizes.k // parts >= _SHORT_PART)]
    return list(dict.fromkeys([chosen, *possible]))


def choose_parts(dot: Node, profile: DeviceProfile) -> int:
    """Into how many parts the sum of a contraction is best split, so that its tiles keep the device busy."""
    sizes = sizes_of(dot)
    small = sizes.b * sizes.m * sizes.n * sizes.k < _WORTH_PARTS
    if small or profile.kind == "cpu" or _is_along_sums(dot, sizes, profile):
        return 1
    tiles = _shared_tiles(dot, sizes, profile, 0)
    if not tiles:
        invocations = _register_tiles(sizes, profile)[0].invocations(sizes)
        return _parts(invocations, _BUSY_READING * profile.busy_invocations, sizes, _SHORT_PART)
    parts = 1
    for tile in tiles:
        invocations = tile.invocations(sizes)
        parts = _parts(invocations, profile.busy_invocations, sizes, _PART)
        if invocations * parts >= profile.busy_invocations:
            break
    return parts


def _parts(invocations: int, busy: int, sizes: Sizes, shortest: int) -> int:
    """As many parts as keep the device busy, unless they become short or their results too many."""
    read, written = sizes.b * (sizes.m + sizes.n) * sizes.k, sizes.b * sizes.m * sizes.n
    return max(min(-(-busy // invocations), sizes.k // shortest, read // (_READ_FOR_WRITTEN * written)), 1)


def _is_along_sums(dot: Node, sizes: Sizes, profile: DeviceProfile) -> bool:
    """Whether there are few rows or columns, and neighbours of both operands lie along the sum."""
    if min(sizes.m, sizes.n) > _FEW or sizes.k < VECTOR * profile.subgroup_size or not profile.subgroup_shuffle:
        return False
    return dot.dtype.bits == 32 and all(neighbours_of(dot, side).summed for side in range(2))


def _subgroup_tile(sizes: Sizes, profile: DeviceProfile) -> SubgroupTile:
    """The largest tile that leaves the device enough to do. Its extents are powers of two, so that shaders of eager
    products are few."""
    tile = SubgroupTile(1, 1, profile.subgroup_size)
    for extent in (8, 4, 2, 1):
        rows, columns = (1 << min(free, extent).bit_length() - 1 for free in (sizes.m, sizes.n))
        tile = SubgroupTile(rows, columns, profile.subgroup_size)
        if rows * columns <= _MOST_SHARED_SUMS and tile.invocations(sizes) >= profile.busy_invocations:
            break
    return tile


def _shared_tiles(dot: Node, sizes: Sizes, profile: DeviceProfile, epilogue: int) -> list[SharedTile]:
    """Those that the device and the contraction allow for, largest first."""
    if profile.kind == "cpu" or dot.dtype.bits != 32 or min(sizes.m, sizes.n, sizes.k) < _SHARED_FROM:
        return []
    fitting = [
        tile
        for tile in (NARROW_TILES if min(sizes.m, sizes.n) < _NARROW else SHARED_TILES)
        if _fits(tile, profile)
    ]
    suited = [
        tile
        for tile in fitting
        if tile.register_rows * tile.register_columns * epilogue <= _MOST_EPILOGUE and tile.use(sizes) >= _LEAST_USE
    ]
    return suited or sorted(fitting, key=lambda tile: tile.use(sizes))[-1:]


def _fits(tile: SharedTile, profile: DeviceProfile) -> bool:
    return tile.shared_bytes <= profile.shared_memory_bytes and tile.threads <= profile.max_workgroup_invocations


def _register_tiles(sizes: Sizes, profile: DeviceProfile) -> list[RegisterTile]:
    """Those that lie within the result, largest first. On a GPU neighbours with few rows read neighbouring vectors."""
    apart = profile.kind == "gpu" and sizes.m < _SHARED_FROM
    within = [tile for tile in REGISTER_TILES if tile.rows <= sizes.m and tile.columns <= sizes.n]
    return [tile for tile in within if tile.columns <= VECTOR or not apart] or [RegisterTile(1, min(sizes.n, VECTOR))]


def _register_tile(sizes: Sizes, profile: DeviceProfile, epilogue: int) -> RegisterTile:
    """The largest tile that leaves the device enough to do."""
    tiles = _register_tiles(sizes, profile)
    short = [tile for tile in tiles if tile.rows * tile.columns * epilogue <= _MOST_EPILOGUE]
    return next((tile for tile in short if tile.invocations(sizes) >= profile.busy_invocations), tiles[-1])
