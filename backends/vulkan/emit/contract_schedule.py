"""How the work of a contraction is shared out, and which way suits which sizes.

*Register tile*: each invocation by itself computes a tile of the result. *Broadcast tile*: the lanes of a subgroup have
one side by side, and hand each other what all of them need; for CPU drivers. *Shared tile*: a workgroup computes one,
and holds what it reads in shared memory; for GPUs. *Cooperative tile*: the same with subgroups that multiply matrices,
for products whose operands are rounded to what the device has matrices of. *Subgroup tile*: the lanes of a subgroup
share the sums of a small tile, where elements along the sum are neighbours and there are few rows or columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

from lavax.backends.vulkan.emit.expressions import VECTOR
from lavax.backends.vulkan.profile import DeviceProfile, MatrixShape
from lavax.ir.graph import Node
from lavax.passes.contractions import Sizes, neighbours_of, number_of_parts, sizes_of

# Elements of 16 bits in a vector of 128.
EIGHT = 8
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
# CPU drivers: how many multiplications of vectors, a component for each lane, take as long as one load by one lane; of
# how many lanes a subgroup has at least that shares its loads; how many processors there are taken to be.
_PRODUCTS_A_LOAD, _LEAST_LANES, _PROCESSORS = 10, 4, 4
# The loads of a vector of four: two of 64 bits.
_LOADS = 2


@dataclass(frozen=True)
class RegisterTile:
    """Rows and columns of the result that one invocation computes; columns are a multiple of 4, or N < 4."""

    rows: int
    columns: int

    def invocations(self, sizes: Sizes) -> int:
        return sizes.b * -(-sizes.m // self.rows) * -(-sizes.n // self.columns)

    @property
    def loads(self) -> float:
        """Of an invocation, for a step of the sum, where vectors are loaded."""
        return _LOADS * (self.rows + self.columns) / VECTOR

    @property
    def products(self) -> int:
        """Of an invocation, for a step of the sum."""
        return self.rows * self.columns


@dataclass(frozen=True)
class SharedTile:
    """Rows and columns of the result that a workgroup computes, and how much of the sum it stages at a time.

    Of these `register_rows` × `register_columns` are one invocation's. With two buffers the next part is staged
    while one is worked on, with one barrier a part and not two. All these numbers are multiples of 4. With
    `interleaved` pairs of neighbouring invocations stand below each other, and read the same columns together.
    """

    rows: int
    columns: int
    depth: int
    register_rows: int
    register_columns: int
    buffers: int = 2
    interleaved: bool = False

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


@dataclass(frozen=True)
class CooperativeTile:
    """Rows and columns of the result that a workgroup computes with matrices, and the depth that it stages at a time.

    Its subgroups stand in a grid, and each has a part of the tile in matrices of `shape`, to which `lanes` belong.
    Rows, columns and depth are multiples of 8, and of the shape's.
    """

    rows: int
    columns: int
    depth: int
    subgroups_down: int
    subgroups_across: int
    buffers: int
    shape: MatrixShape
    lanes: int

    @property
    def subgroups(self) -> int:
        return self.subgroups_down * self.subgroups_across

    @property
    def threads(self) -> int:
        return self.subgroups * self.lanes

    @property
    def subgroup_rows(self) -> int:
        return self.rows // self.subgroups_down

    @property
    def subgroup_columns(self) -> int:
        return self.columns // self.subgroups_across

    @property
    def matrices_down(self) -> int:
        return self.subgroup_rows // self.shape.m

    @property
    def matrices_across(self) -> int:
        return self.subgroup_columns // self.shape.n

    @property
    def shared_bytes(self) -> int:
        """At most: of staged parts, every line longer by a vector, or of a row of matrices of each subgroup."""
        extents = (self.rows, self.columns)
        staged = sum(extent * self.depth + EIGHT * max(extent, self.depth) for extent in extents)
        passing = 4 * self.subgroups * self.shape.m * (self.subgroup_columns + VECTOR)
        return max(2 * self.buffers * staged, passing)

    def divides(self) -> bool:
        """Whether its subgroups have whole matrices."""
        shape = self.shape
        whole = self.subgroup_rows % shape.m == 0 and self.subgroup_columns % shape.n == 0
        return whole and self.depth % shape.k == 0 and self.matrices_down > 0 and self.matrices_across > 0

    def tiles(self, sizes: Sizes) -> int:
        return sizes.b * -(-sizes.m // self.rows) * -(-sizes.n // self.columns)

    def invocations(self, sizes: Sizes) -> int:
        return self.tiles(sizes) * self.threads

    def use(self, sizes: Sizes) -> float:
        """How much of what the tiles compute is part of the result."""
        return sizes.b * sizes.m * sizes.n / (self.tiles(sizes) * self.rows * self.columns)


@dataclass(frozen=True)
class BroadcastTile:
    """Rows of the result, and vectors of four columns a lane, that the lanes of one subgroup compute side by side.

    Rows and lanes are powers of two.
    """

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        return VECTOR * self.vectors * self.lanes

    def tiles(self, sizes: Sizes) -> int:
        return sizes.b * -(-sizes.m // self.rows) * -(-sizes.n // self.columns)

    def invocations(self, sizes: Sizes) -> int:
        return self.lanes * self.tiles(sizes)

    @property
    def loads(self) -> float:
        """Of a lane, for a step of the sum, where vectors are loaded."""
        return _LOADS * (max(self.rows / self.lanes, 1) / VECTOR + self.vectors)

    @property
    def products(self) -> int:
        """Of a lane, for a step of the sum."""
        return self.rows * VECTOR * self.vectors


Schedule = Union[  # noqa: UP007  # isinstance takes it too
    RegisterTile, SharedTile, SubgroupTile, BroadcastTile, CooperativeTile
]

# From the one that reads least to the one that leaves most invocations.
_TILES = ((8, 16), (8, 8), (4, 16), (4, 8), (8, 4), (4, 4), (2, 16), (1, 16), (2, 4), (1, 4))
REGISTER_TILES = tuple(RegisterTile(*tile) for tile in _TILES)
# Rows and vectors a lane. A driver takes a quarter of a second to compile 32 × 1, half a second 32 × 2, and three times
# as long what is twice as large.
BROADCAST_TILES = ((32, 2), (32, 1), (16, 2), (16, 1), (8, 4), (8, 2), (8, 1))
SHARED_TILES = (
    SharedTile(128, 128, 16, 8, 8, 1),
    SharedTile(128, 64, 16, 8, 8),
    SharedTile(64, 128, 16, 8, 8, interleaved=True),
    SharedTile(64, 64, 16, 8, 4, interleaved=True),
    SharedTile(32, 32, 16, 4, 4),
)
# Not chosen by sizes, but worth a try where candidates are timed.
OTHER_TILES = (
    SharedTile(128, 128, 16, 8, 8, 2),
    SharedTile(128, 128, 8, 8, 8, 2),
    SharedTile(128, 256, 16, 8, 16, 1),
    SharedTile(64, 128, 16, 8, 8, 2),
    SharedTile(256, 128, 8, 16, 8, 2),
    SharedTile(64, 64, 16, 4, 4, 2),
    SharedTile(64, 64, 16, 8, 8, 2),
    SharedTile(64, 64, 16, 8, 8, 2, interleaved=True),
)
# Rows, columns, depth, subgroups down and across, buffers.
COOPERATIVE_TILES = (
    (128, 128, 64, 2, 4, 1),
    (128, 128, 32, 2, 2, 1),
    (64, 64, 64, 2, 2, 1),
    (32, 32, 32, 2, 2, 1),
)
# How fast tiles are where there are enough of them, the largest ones being 1: what they read of shared memory, and how
# many threads there are to wait for it, makes the difference.
_RATES = {(128, 128): 1.0, (128, 64): 0.9, (64, 128): 0.92, (64, 64): 0.85, (32, 32): 0.5}
# The same of cooperative tiles, 1 being strict float32.
_MATRIX_RATES = {(128, 128): 4.9, (64, 64): 2.3, (32, 32): 1.3}
# So many invocations keep one processor of a device busy. While a partial result is written and read again, twice over,
# and while a second kernel begins, a device could do so many products.
_BUSY_PROCESSOR, _PARTIAL_COST, _SECOND_KERNEL_COST = 256, 90, 1 << 27
# Into how many parts a sum may go.
_PARTS_TO_TRY = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
# In place of the largest tile where what follows selects among values: a driver was seen to make the loop of that tile
# a quarter slower then, and not that of this one (docs/rejected.md). A processor has to have two of them.
SELECTING_TILE = SharedTile(128, 128, 16, 8, 16, 1)
# Where there are few rows or few columns.
NARROW_TILES = (SharedTile(16, 64, 16, 4, 4), SharedTile(64, 16, 16, 4, 4), SharedTile(32, 32, 16, 4, 4))


def choose_schedule(dot: Node, profile: DeviceProfile, epilogue: int = 0, selects: bool = False) -> Schedule:
    """The schedule of a contraction; `epilogue` is what is computed for each element of the result, in nodes, which
    may be to select among values (`selects`)."""
    sizes = sizes_of(dot)
    if _is_along_sums(dot, sizes, profile):
        return _subgroup_tile(sizes, profile)
    if profile.kind == "cpu":
        return _tile_for_cpu(dot, sizes, profile, epilogue)
    tiles = _workgroup_tiles(dot, sizes, profile, epilogue)
    if not tiles:
        return _register_tile(sizes, profile, epilogue)
    if tiles[0] in NARROW_TILES:
        busy = (tile for tile in tiles if tile.invocations(sizes) >= profile.busy_invocations)
        return next(busy, max(tiles, key=lambda tile: tile.invocations(sizes)))
    best = min(tiles, key=lambda tile: _cost(tile, sizes, 1, profile))
    return SELECTING_TILE if selects and best == SHARED_TILES[0] and _suits(SELECTING_TILE, sizes, profile) else best


def _suits(tile: SharedTile, sizes: Sizes, profile: DeviceProfile) -> bool:
    """Whether tiles of a few invocations are enough of them."""
    return tile.invocations(sizes) >= profile.busy_invocations


def candidates(dot: Node, profile: DeviceProfile, epilogue: int = 0, selects: bool = False) -> list[Schedule]:
    """The schedules worth a try, first the one that is chosen without trying."""
    sizes = sizes_of(dot)
    found: list[Schedule] = [choose_schedule(dot, profile, epilogue, selects)]
    if _is_along_sums(dot, sizes, profile):
        extents = ((rows, columns) for rows in (1, 2, 4, 8) for columns in (1, 2, 4, 8))
        found += [
            SubgroupTile(rows, columns, profile.subgroup_size)
            for rows, columns in extents
            if rows <= sizes.m and columns <= sizes.n and rows * columns <= _MOST_SHARED_SUMS
        ]
    elif _cooperative_tiles(dot, sizes, profile, epilogue):
        matrices = (cooperative_tile(tile, dot.attrs["precision"], profile) for tile in COOPERATIVE_TILES)
        found += [tile for tile in matrices if tile.divides() and fits(tile, profile)]
    elif _shared_tiles(dot, sizes, profile, epilogue):
        tiles = (*SHARED_TILES, *NARROW_TILES, SELECTING_TILE, *OTHER_TILES)
        fitting = [tile for tile in tiles if fits(tile, profile)]
        found += [
            tile
            for tile in fitting
            if 2 * tile.use(sizes) >= _LEAST_USE
            and tile.register_rows * tile.register_columns * epilogue <= _MOST_EPILOGUE
        ]
    else:
        on_cpu = _tiles_for_cpu(dot, sizes, profile, epilogue) if profile.kind == "cpu" else []
        own = on_cpu or _short_register_tiles(sizes, profile, epilogue)
        found += [tile for tile in own if tile.invocations(sizes) >= profile.subgroup_size]
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
    tiles = _workgroup_tiles(dot, sizes, profile, 0)
    if not tiles:
        invocations = _register_tiles(sizes, profile)[0].invocations(sizes)
        return _parts(invocations, _BUSY_READING * profile.busy_invocations, sizes, _SHORT_PART)
    if tiles[0] not in NARROW_TILES:
        wanted = (parts for parts in _PARTS_TO_TRY if parts == 1 or sizes.k >= parts * _PART)
        possible = sorted({number_of_parts(sizes.summed, parts) for parts in wanted})
        return min(possible, key=lambda parts: min(_cost(tile, sizes, parts, profile) for tile in tiles))
    parts = 1
    for tile in tiles:
        invocations = tile.invocations(sizes)
        parts = _parts(invocations, profile.busy_invocations, sizes, _PART)
        if invocations * parts >= profile.busy_invocations:
            break
    return parts


def _cost(tile: SharedTile | CooperativeTile, sizes: Sizes, parts: int, profile: DeviceProfile) -> float:
    """What a contraction takes with that tile and its sum in so many parts, in products that the device could do.

    It takes as long as the processor with most tiles; one with few invocations is not busy.
    """
    processors = profile.busy_invocations // _BUSY_PROCESSOR
    most = max(-(-tile.tiles(sizes) * parts // processors), _BUSY_PROCESSOR / tile.threads)
    rate = (_RATES if isinstance(tile, SharedTile) else _MATRIX_RATES)[tile.rows, tile.columns]
    products = processors * most * tile.rows * tile.columns * -(-sizes.k // parts) / rate
    return products + (parts > 1) * (_SECOND_KERNEL_COST + _PARTIAL_COST * parts * sizes.b * sizes.m * sizes.n)


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


def _workgroup_tiles(
    dot: Node, sizes: Sizes, profile: DeviceProfile, epilogue: int
) -> Sequence[SharedTile | CooperativeTile]:
    """Tiles of workgroups, largest first: those of cooperative matrices where the device has some that fit."""
    return _cooperative_tiles(dot, sizes, profile, epilogue) or _shared_tiles(dot, sizes, profile, epilogue)


def cooperative_tile(
    tile: tuple[int, int, int, int, int, int], dtype: str, profile: DeviceProfile
) -> CooperativeTile:
    """A tile of COOPERATIVE_TILES' form with the device's matrices of the dtype."""
    shape = next(shape for shape in profile.matrices if shape.dtype == dtype)
    return CooperativeTile(*tile, shape, profile.subgroup_size)


def fits(tile: SharedTile | CooperativeTile, profile: DeviceProfile) -> bool:
    """Whether the device can run workgroups of the tile."""
    return tile.shared_bytes <= profile.shared_memory_bytes and tile.threads <= profile.max_workgroup_invocations


def _cooperative_tiles(dot: Node, sizes: Sizes, profile: DeviceProfile, epilogue: int) -> list[CooperativeTile]:
    """Those that the device and the contraction allow for, largest first."""
    dtype = dot.attrs["precision"]
    has_matrices = any(shape.dtype == dtype for shape in profile.matrices)
    if profile.kind == "cpu" or not has_matrices or min(sizes.m, sizes.n, sizes.k) < _SHARED_FROM:
        return []
    tiles = (cooperative_tile(tile, dtype, profile) for tile in COOPERATIVE_TILES)
    fitting = [tile for tile in tiles if tile.divides() and fits(tile, profile)]
    suited = [
        tile
        for tile in fitting
        if tile.matrices_down * epilogue <= _MOST_EPILOGUE and tile.use(sizes) >= _LEAST_USE
    ]
    return suited or sorted(fitting, key=lambda tile: tile.use(sizes))[-1:]


def _shared_tiles(dot: Node, sizes: Sizes, profile: DeviceProfile, epilogue: int) -> list[SharedTile]:
    """Those that the device and the contraction allow for, largest first."""
    if profile.kind == "cpu" or dot.dtype.bits != 32 or min(sizes.m, sizes.n, sizes.k) < _SHARED_FROM:
        return []
    fitting = [
        tile
        for tile in (NARROW_TILES if min(sizes.m, sizes.n) < _NARROW else SHARED_TILES)
        if fits(tile, profile)
    ]
    suited = [
        tile
        for tile in fitting
        if tile.register_rows * tile.register_columns * epilogue <= _MOST_EPILOGUE and tile.use(sizes) >= _LEAST_USE
    ]
    return suited or sorted(fitting, key=lambda tile: tile.use(sizes))[-1:]


def _register_tiles(sizes: Sizes, profile: DeviceProfile) -> list[RegisterTile]:
    """Those that lie within the result, largest first. On a GPU neighbours with few rows read neighbouring vectors."""
    apart = profile.kind == "gpu" and sizes.m < _SHARED_FROM
    within = [tile for tile in REGISTER_TILES if tile.rows <= sizes.m and tile.columns <= sizes.n]
    return [tile for tile in within if tile.columns <= VECTOR or not apart] or [RegisterTile(1, min(sizes.n, VECTOR))]


def _register_tile(sizes: Sizes, profile: DeviceProfile, epilogue: int) -> RegisterTile:
    """The largest tile that leaves the device enough to do."""
    tiles = _short_register_tiles(sizes, profile, epilogue)
    return next((tile for tile in tiles if tile.invocations(sizes) >= profile.busy_invocations), tiles[-1])


def _short_register_tiles(sizes: Sizes, profile: DeviceProfile, epilogue: int) -> list[RegisterTile]:
    """Those whose epilogue, written out for each element, is not too long; one at least."""
    tiles = _register_tiles(sizes, profile)
    return [tile for tile in tiles if tile.rows * tile.columns * epilogue <= _MOST_EPILOGUE] or tiles[-1:]


def _tile_for_cpu(dot: Node, sizes: Sizes, profile: DeviceProfile, epilogue: int) -> RegisterTile | BroadcastTile:
    """The tile that takes least time for a step of the sum."""
    tiles = _tiles_for_cpu(dot, sizes, profile, epilogue)
    return min(tiles, key=lambda tile: _step(tile, sizes, profile.subgroup_size))


def _tiles_for_cpu(
    dot: Node, sizes: Sizes, profile: DeviceProfile, epilogue: int
) -> list[RegisterTile | BroadcastTile]:
    lanes = profile.subgroup_size
    tiles: list[RegisterTile | BroadcastTile] = [
        tile
        for tile in (BroadcastTile(rows, vectors, lanes) for rows, vectors in BROADCAST_TILES)
        if tile.rows <= 2 * sizes.m and tile.columns <= 2 * sizes.n
    ]
    if lanes < _LEAST_LANES or not profile.subgroup_shuffle or dot.dtype.bits > 32:
        tiles = []
    return [*tiles, *_short_register_tiles(sizes, profile, epilogue)]


def _step(tile: RegisterTile | BroadcastTile, sizes: Sizes, lanes: int) -> float:
    """How long a step of all sums takes, in multiplications of vectors, where each processor has a subgroup at a time.

    Such a driver loads a vector lane by lane, and multiplies all lanes' at once.
    """
    subgroups = -(-tile.invocations(sizes) // lanes)
    return max(subgroups / _PROCESSORS, 1) * (tile.loads * lanes * _PRODUCTS_A_LOAD + tile.products)
