"""The tiles that compute contractions, and tables of those to choose from.

*Register tile*: each invocation computes a tile of the result by itself. *Broadcast tile*: the lanes of a subgroup
split a tile by columns, and exchange the rows' elements; for CPU drivers. *Shared tile*: a workgroup computes a tile,
with its operands in shared memory; for GPUs. *Cooperative tile*: the same with subgroups that multiply matrices, for
operands rounded to a dtype of the device's matrices. *Subgroup tile*: the lanes of a subgroup share the sums of a small
tile, if elements along the sum are neighbours and there are few rows or columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.narrow_vectors import EIGHT
from lavax.backends.vulkan.plan.profile import DeviceProfile, MatrixShape
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.build.contraction_geometry import Sizes

# The loads of a vector of four: two of 64 bits.
_LOADS = 2
# Vectors behind each row of results that pass through shared memory: four rows of eight numbers lie in different banks.
PASSING_PADDING = 2


@dataclass(frozen=True)
class Tile(ABC):
    """Rows and columns of the result that `threads` invocations compute together."""

    rows: int
    columns: int

    @property
    @abstractmethod
    def threads(self) -> int: ...

    def tiles(self, sizes: Sizes) -> int:
        return sizes.b * -(-sizes.m // self.rows) * -(-sizes.n // self.columns)

    def invocations(self, sizes: Sizes) -> int:
        return self.tiles(sizes) * self.threads

    @property
    def results(self) -> int:
        """The elements of the result that an invocation writes."""
        return self.rows * self.columns // self.threads

    def use(self, sizes: Sizes) -> float:
        """The share of the tiles' elements that are part of the result."""
        return sizes.b * sizes.m * sizes.n / (self.tiles(sizes) * self.rows * self.columns)


@dataclass(frozen=True)
class RegisterTile(Tile):
    """Rows and columns of the result that one invocation computes; columns are a multiple of 4, or N < 4."""

    @property
    def threads(self) -> int:
        return 1

    @property
    def loads(self) -> float:
        """The loads of an invocation per step of the sum, if it loads vectors."""
        return _LOADS * (self.rows + self.columns) / VECTOR

    @property
    def products(self) -> int:
        """The products of an invocation per step of the sum."""
        return self.rows * self.columns


@dataclass(frozen=True)
class SharedTile(Tile):
    """Rows and columns of the result that a workgroup computes, and the depth of the sum that it stages at a time.

    Each invocation computes `register_rows` × `register_columns` of them. With two buffers, the next part is staged
    while the present one is multiplied, with one barrier per part instead of two. All these numbers are multiples of
    4. If `interleaved`, pairs of neighbouring invocations are below each other, and read the same columns together.
    With several slices, as many times the invocations share the steps of a part, and join their sums at the end: a
    small product, which waits for memory in each part, has fewer parts.
    """

    depth: int
    register_rows: int
    register_columns: int
    buffers: int = 2
    interleaved: bool = False
    slices: int = 1

    @property
    def threads_down(self) -> int:
        return self.rows // self.register_rows

    @property
    def threads_across(self) -> int:
        return self.columns // self.register_columns

    @property
    def threads_of_slice(self) -> int:
        return self.threads_down * self.threads_across

    @property
    def threads(self) -> int:
        return self.threads_of_slice * self.slices

    @property
    def shared_bytes(self) -> int:
        """The most bytes of shared memory. Four steps of a transposed operand are two vectors apart."""
        joined = self.rows * self.columns * self.slices if self.slices > 1 else 0
        return 4 * (self.buffers * self.depth * (self.rows + self.columns + VECTOR) + joined)


@dataclass(frozen=True)
class SubgroupTile(Tile):
    """Rows and columns of the result whose sums are shared by the lanes of one subgroup."""

    lanes: int

    @property
    def threads(self) -> int:
        return self.lanes


@dataclass(frozen=True)
class CooperativeTile(Tile):
    """Rows and columns of the result that a workgroup computes with matrices, and the depth that it stages at a time.

    Its subgroups form a grid, and each computes a part of the tile in matrices of `shape`, which `lanes` share.
    Rows, columns and depth are multiples of 8, and of the shape's. Slices are as for shared tiles, a grid each. A tile
    that reads ahead has its operands read into the cache at its start (ahead.py).
    """

    depth: int
    subgroups_down: int
    subgroups_across: int
    shape: MatrixShape
    lanes: int
    slices: int = 1
    reads_ahead: bool = False

    @property
    def subgroups_of_slice(self) -> int:
        return self.subgroups_down * self.subgroups_across

    @property
    def subgroups(self) -> int:
        return self.subgroups_of_slice * self.slices

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
    def sums(self) -> int:
        """The sums of an invocation."""
        return self.rows * self.columns // (self.subgroups_of_slice * self.lanes)

    @property
    def vectors(self) -> float:
        """The vectors that an invocation stages at a time; they are loaded before the products of the part before."""
        return (self.rows + self.columns) * self.depth / (EIGHT * self.threads)

    @property
    def shared_bytes(self) -> int:
        """The most bytes of shared memory: of padded staged parts, or of a row of matrices per subgroup."""
        extents = (self.rows, self.columns)
        staged = sum(extent * self.depth + EIGHT * max(extent, self.depth) for extent in extents)
        passing = 4 * self.subgroups * self.shape.m * (self.subgroup_columns + PASSING_PADDING * VECTOR)
        return max(2 * staged, passing)

    def divides(self) -> bool:
        """Whether its subgroups have whole matrices."""
        shape = self.shape
        whole = self.subgroup_rows % shape.m == 0 and self.subgroup_columns % shape.n == 0
        steps = self.depth % (shape.k * self.slices) == 0
        return whole and steps and self.matrices_down > 0 and self.matrices_across > 0


@dataclass(frozen=True)
class BroadcastTile(Tile):
    """Rows and columns of the result that the lanes of one subgroup compute, some vectors of four columns each.

    The number of lanes is a power of two, that of columns a multiple of four times as many. In a `turned` tile rows and
    columns have changed places: lanes have vectors of four rows.
    """

    lanes: int
    turned: bool = False

    @property
    def threads(self) -> int:
        return self.lanes

    @property
    def shared(self) -> int:
        """The rows of which each lane has its columns, or the columns of which it has its rows."""
        return self.columns if self.turned else self.rows

    @property
    def vectors(self) -> int:
        """The vectors of a lane's columns, or of its rows."""
        return (self.rows if self.turned else self.columns) // (VECTOR * self.lanes)

    @property
    def has_fours(self) -> bool:
        """Whether all lanes, but for the last one, have four rows each, and vectors of columns."""
        fours = self.rows % VECTOR == 0 and self.lanes - 1 <= self.rows // VECTOR <= self.lanes
        return fours and not self.turned

    @property
    def loads(self) -> float:
        """The loads of a lane per step of the sum, if it loads vectors."""
        return self.loads_of_rows + self.loads_of_columns

    @property
    def loads_of_rows(self) -> float:
        return _LOADS * max(self.rows / self.lanes, 1) / VECTOR

    @property
    def loads_of_columns(self) -> float:
        return _LOADS * self.vectors

    @property
    def products(self) -> int:
        """The products of a lane per step of the sum."""
        return self.shared * VECTOR * self.vectors


ContractSchedule = RegisterTile | SharedTile | SubgroupTile | BroadcastTile | CooperativeTile

# From the tile that reads least to the one that leaves most invocations.
_TILES = ((8, 16), (8, 8), (4, 16), (4, 8), (8, 4), (4, 4), (2, 16), (1, 16), (2, 4), (1, 4))
REGISTER_TILES = tuple(RegisterTile(*tile) for tile in _TILES)
# Rows and vectors per lane. A driver takes a quarter of a second to compile 32 × 1, half a second for 32 × 2, and three
# times as long for twice the size.
BROADCAST_TILES = ((32, 2), (32, 1), (16, 2), (16, 1), (8, 4), (8, 2), (8, 1))
# Others for large products: their rows divide the pixels of networks for images of 224 × 224. Those of windows, which
# share no shader, may have more than four rows a lane.
PIXEL_TILES = ((28, 2),)
WINDOW_TILES = (*PIXEL_TILES, (56, 1))
# For products whose tiles leave processors idle. They wait for memory as often as they have parts, so those are deep.
SLICED_TILES = (
    SharedTile(32, 32, 64, 4, 4, 1, slices=4),
    SharedTile(32, 32, 32, 4, 4, 1, slices=4),
    SharedTile(16, 32, 64, 4, 4, 1, slices=8),
)
# With 8 × 16 an invocation reads six vectors of shared memory for 128 products, with 8 × 8 four for 64, which
# already uses all the bandwidth of shared memory.
SHARED_TILES = (
    SharedTile(128, 256, 16, 8, 16, 1),
    SharedTile(128, 128, 16, 8, 8, 1),
    SharedTile(64, 128, 16, 8, 8, 1, interleaved=True),
    SharedTile(128, 64, 16, 8, 8, 1),
    SharedTile(64, 64, 16, 8, 4, 1, interleaved=True),
    SharedTile(32, 32, 16, 4, 4),
    *SLICED_TILES,
)
# Others that are timed when tiles are chosen by measurement.
OTHER_TILES = (
    SharedTile(128, 128, 16, 8, 8, 2),
    SharedTile(128, 128, 8, 8, 8, 2),
    SharedTile(256, 128, 16, 8, 16, 1),
    SharedTile(128, 128, 16, 8, 16, 1),
    SharedTile(128, 64, 16, 8, 4, 1),
    SharedTile(64, 128, 16, 8, 8, 1),
    SharedTile(64, 64, 16, 8, 8, 1),
    SharedTile(64, 64, 16, 8, 4, 2, interleaved=True),
)
# Rows, columns, depth, subgroups down and across, slices.
COOPERATIVE_TILES: tuple[tuple[int, ...], ...] = (
    (128, 128, 64, 2, 2),
    (128, 128, 32, 2, 2),
    (96, 128, 64, 2, 2),
    (64, 96, 64, 2, 2),
    (64, 96, 128, 2, 2, 2),
    (64, 64, 64, 2, 2),
    (64, 64, 128, 2, 2, 2),
    (32, 32, 128, 2, 2),
    (32, 32, 128, 2, 2, 2),
    (32, 32, 64, 2, 2),
    (32, 32, 32, 2, 2),
)
# For few rows or few columns.
NARROW_TILES = (SharedTile(16, 64, 16, 4, 4), SharedTile(64, 16, 16, 4, 4), SharedTile(32, 32, 16, 4, 4))


def broadcast_tile(tile: tuple[int, int], lanes: int) -> BroadcastTile:
    """A tile of the form of BROADCAST_TILES, for subgroups with that number of lanes."""
    rows, vectors = tile
    return BroadcastTile(rows, VECTOR * vectors * lanes, lanes)


def cooperative_tile(tile: tuple[int, ...], dtype: str, profile: DeviceProfile) -> CooperativeTile:
    """A tile of the form of COOPERATIVE_TILES, with the device's matrices of the dtype."""
    shape = next(shape for shape in profile.matrices if shape.dtype == dtype)
    rows, columns, depth, down, across, slices = (*tile, 1)[:6]
    return CooperativeTile(rows, columns, depth, down, across, shape, profile.subgroup_size, slices)


def fits(tile: SharedTile | CooperativeTile, profile: DeviceProfile) -> bool:
    """Whether the device can run workgroups of the tile."""
    return tile.shared_bytes <= profile.shared_memory_bytes and tile.threads <= profile.max_workgroup_invocations
