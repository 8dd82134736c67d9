"""The choice among tiles that a GPU's workgroups share, and of the number of parts that a sum is split into."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

from lavax.backends.vulkan.emit.contract.choose_registers import register_tiles
from lavax.backends.vulkan.emit.contract.tile_limits import LONGEST_EPILOGUE, WORKGROUP_TILES
from lavax.backends.vulkan.emit.contract.tiles import (
    COOPERATIVE_TILES,
    NARROW_TILES,
    SHARED_TILES,
    CooperativeTile,
    SharedTile,
    cooperative_tile,
    fits,
)
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.types import DTYPES
from lavax.passes.build.contraction_geometry import Sizes, number_of_parts
from lavax.passes.numerics.rounding import rounding_of


@dataclass(frozen=True)
class SplitSums:
    """When a contraction's sum is split into parts. Chosen by `python -m benchmarks.contraction_tiles`."""

    products: int = 1 << 18  # fewer do not pay for the second kernel, which adds up the parts,
    long_sum: int = 1 << 10  # unless an invocation would add so many one after the other: 5000 take an H200 400 µs
    shared_part: int = 256  # the shortest part with tiles of workgroups
    register_part: int = 32  # the shortest part with tiles of registers
    readers: int = 4  # times the usual number of invocations that keep a device busy if it mostly reads
    reads_per_write: int = 8  # elements read per element written, at least


@dataclass(frozen=True)
class Costs:
    """What the estimate of a contraction's time counts with. Chosen by `python -m benchmarks.contraction_tiles`."""

    busy_invocations: int = 256  # per processor, at full speed
    idle_exponent: float = 0.3  # with a share x of these, the speed is x to this power: four fifths for a half
    many_sums: int = 96  # of an invocation of a cooperative tile: it has as much under way as two with fewer
    # A processor waits for the first loads and the last stores of a tile. That takes as long as so many steps of its
    # sum if the tile takes all registers, and less if there is room for others, which fill the time. Cooperative tiles
    # leave room for another one, so that only those wait that are alone.
    steps_between: int = 40
    steps_alone: int = 900
    registers: int = 40960  # of a processor, for sums and what else an invocation holds
    other_registers: int = 32  # of an invocation
    partial_result: int = 90  # products in the time of writing and reading a partial result, twice over
    second_kernel: int = 1 << 27  # products that a device could do while the second kernel starts


SPLIT_SUMS = SplitSums()
_COSTS = Costs()
# The speed of tiles if there are enough of them, relative to the largest. It depends on their reads of shared memory
# and on the number of threads that wait for these. Measured by `python -m benchmarks.contraction_tiles`.
_RATES = {
    (128, 256): 1.0,
    (128, 128): 0.93,
    (64, 128): 0.94,
    (128, 64): 0.93,
    (64, 64): 0.85,
    (32, 32): 0.5,
    (16, 32): 0.36,
}
# The same for cooperative tiles, relative to strict float32.
MATRIX_RATES = {(128, 128): 8.2, (96, 128): 7.5, (64, 96): 5.4, (64, 64): 4.8, (32, 32): 2.0}
# Tiles with slices are deep, and small tiles are deeper than high, so that few barriers stand between many loads: a
# product of 192 x 2,048 x 576 takes an H100 12 µs in steps of 128, 15 in steps of 64 and 21 in steps of 32. Such tiles
# make at least so many steps.
_LEAST_STEPS = 2
# Tiles that are as fast only if each processor has at least as many of them, one after the other.
_ENOUGH_TILES = {(128, 64): 8}
# Tiles that pay only if there are at most so many for each processor, so that all run at once.
_AT_ONCE = {(64, 96): 2}
_CHOICES = 1 << 10  # that are kept: a network's layers have equal products, and ask for them several times
# The numbers of parts that are considered.
_PARTS_TO_TRY = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)


def workgroup_tiles(
    dot: Node, sizes: Sizes, profile: DeviceProfile, epilogue: int
) -> Sequence[SharedTile | CooperativeTile]:
    """Tiles of workgroups, largest first: cooperative ones if the device has any that fit."""
    return cooperative_tiles(dot, sizes, profile, epilogue) or shared_tiles(dot, sizes, profile, epilogue)


def cooperative_tiles(
    dot: Node, sizes: Sizes, profile: DeviceProfile, epilogue: int, stored: bool = False
) -> Sequence[CooperativeTile]:
    """The tiles that the device and the contraction allow, largest first; if `stored`, those of an equal contraction
    whose operands are stored as they are rounded."""
    dtype = dot.attrs["precision"]
    has_matrices = any(shape.dtype == dtype for shape in profile.matrices)
    if profile.kind == "cpu" or not has_matrices or min(sizes.m, sizes.n, sizes.k) < WORKGROUP_TILES.least_extent:
        return ()
    return tiles_of_matrices(dtype, not stored and rounds_operands(dot), sizes, profile, epilogue)


def rounds_operands(dot: Node) -> bool:
    """Whether a contraction rounds what it reads to the dtype of its matrices."""
    dtype = DTYPES[dot.attrs["precision"]]
    return any(rounding_of(operand, dtype) is not None for operand in dot.operands)


def shared_tiles(dot: Node, sizes: Sizes, profile: DeviceProfile, epilogue: int) -> Sequence[SharedTile]:
    """The tiles that the device and the contraction allow, largest first."""
    if profile.kind == "cpu" or dot.dtype.bits != 32 or min(sizes.m, sizes.n, sizes.k) < WORKGROUP_TILES.least_extent:
        return ()
    return _of_shared_memory(sizes, profile, epilogue)


@lru_cache(maxsize=_CHOICES)
def tiles_of_matrices(
    dtype: str, rounds: bool, sizes: Sizes, profile: DeviceProfile, epilogue: int
) -> tuple[CooperativeTile, ...]:
    """The tiles that the device and a contraction of these sizes allow, largest first."""
    every = (cooperative_tile(tile, dtype, profile) for tile in COOPERATIVE_TILES)
    tiles = (tile for tile in every if tile.depth <= tile.rows or sizes.k >= _LEAST_STEPS * tile.depth)
    most = WORKGROUP_TILES.rounded_vectors if rounds else math.inf
    fitting = [tile for tile in tiles if tile.divides() and fits(tile, profile) and tile.vectors <= most]
    suited = [
        tile
        for tile in fitting
        if tile.matrices_down * epilogue <= LONGEST_EPILOGUE.epilogue_nodes
        and tile.use(sizes) >= WORKGROUP_TILES.used
        and tile.tiles(sizes) <= processors_of(profile) * _AT_ONCE.get((tile.rows, tile.columns), math.inf)
    ]
    return tuple(suited or _most_used(fitting, sizes))


@lru_cache(maxsize=_CHOICES)
def _of_shared_memory(sizes: Sizes, profile: DeviceProfile, epilogue: int) -> tuple[SharedTile, ...]:
    fitting = [
        tile
        for tile in (NARROW_TILES if min(sizes.m, sizes.n) < WORKGROUP_TILES.narrow else SHARED_TILES)
        if fits(tile, profile)
        and _are_enough(tile, sizes, profile)
        and (tile.slices == 1 or sizes.k >= _LEAST_STEPS * tile.depth)
    ]
    suited = [
        tile
        for tile in fitting
        if tile.use(sizes) >= WORKGROUP_TILES.used
        and tile.register_rows * tile.register_columns * epilogue <= WORKGROUP_TILES.epilogue_nodes
    ]
    return tuple(suited or sorted(fitting, key=lambda tile: tile.use(sizes))[-1:])


def _most_used(tiles: Sequence[CooperativeTile], sizes: Sizes) -> list[CooperativeTile]:
    """The tiles of whose elements most are part of the result, such as the smallest ones for 16 rows."""
    uses = [tile.use(sizes) for tile in tiles]
    return [tile for tile, use in zip(tiles, uses, strict=True) if use == max(uses)]


def _are_enough(tile: SharedTile, sizes: Sizes, profile: DeviceProfile) -> bool:
    return tile.tiles(sizes) >= processors_of(profile) * _ENOUGH_TILES.get((tile.rows, tile.columns), 0)


AnyTile = TypeVar("AnyTile", bound=SharedTile | CooperativeTile)


def fastest(tiles: Sequence[AnyTile], sizes: Sizes, profile: DeviceProfile) -> AnyTile:
    """The tile with which a contraction takes the least time, the largest of several."""
    return min(tiles, key=lambda tile: cost_of_tile(tile, sizes, profile))


def cost_of_tile(tile: SharedTile | CooperativeTile, sizes: Sizes, profile: DeviceProfile) -> float:
    """The time of a contraction with that tile, in products that the device could do."""
    most = -(-tile.tiles(sizes) // processors_of(profile))
    under_way = most * tile.threads * (1 + (isinstance(tile, CooperativeTile) and tile.sums >= _COSTS.many_sums))
    return _cost_of_steps(tile, most * sizes.k + _steps_between(tile, most), under_way, profile)


def _cost_of_parts(tile: SharedTile | CooperativeTile, sizes: Sizes, parts: int, profile: DeviceProfile) -> float:
    """The time with that tile and number of parts, which begin and end while others do."""
    most = -(-tile.tiles(sizes) * parts // processors_of(profile))
    products = _cost_of_steps(tile, most * -(-sizes.k // parts), most * tile.threads, profile)
    return products + (parts > 1) * (_COSTS.second_kernel + _COSTS.partial_result * parts * sizes.b * sizes.m * sizes.n)


def _cost_of_steps(tile: SharedTile | CooperativeTile, steps: float, under_way: int, profile: DeviceProfile) -> float:
    """The time of the processor with most tiles, which have so many steps together. A processor with few invocations
    under way waits for some of its loads."""
    busy = math.pow(min(under_way / _COSTS.busy_invocations, 1), _COSTS.idle_exponent)
    rate = (_RATES if isinstance(tile, SharedTile) else MATRIX_RATES)[tile.rows, tile.columns]
    return processors_of(profile) * steps * tile.rows * tile.columns / (rate * busy)


def _steps_between(tile: SharedTile | CooperativeTile, most: int) -> float:
    """The steps in the time that a processor with `most` tiles waits for their first loads and their last stores."""
    share = tile.threads * (tile.results + _COSTS.other_registers) / _COSTS.registers
    if isinstance(tile, CooperativeTile):
        return share * _COSTS.steps_alone * (most == 1)
    return share * _COSTS.steps_between * most


def processors_of(profile: DeviceProfile) -> int:
    return profile.processors


def enough_parts(invocations: int, busy: int, sizes: Sizes, shortest: int) -> int:
    """The number of parts that keeps the device busy, unless parts become short or their results too many."""
    read, written = sizes.b * (sizes.m + sizes.n) * sizes.k, sizes.b * sizes.m * sizes.n
    return max(min(-(-busy // invocations), sizes.k // shortest, read // (SPLIT_SUMS.reads_per_write * written)), 1)


def parts_of_sum(dot: Node, sizes: Sizes, profile: DeviceProfile) -> int:
    """The number of parts with which the tiles of a contraction keep the device busy."""
    if sizes.b * sizes.m * sizes.n * sizes.k < SPLIT_SUMS.products and sizes.k < SPLIT_SUMS.long_sum:
        return 1
    tiles = workgroup_tiles(dot, sizes, profile, 0)
    if not tiles:
        invocations = register_tiles(sizes, profile)[0].invocations(sizes)
        return enough_parts(invocations, SPLIT_SUMS.readers * profile.busy_invocations, sizes, SPLIT_SUMS.register_part)
    if tiles[0] not in NARROW_TILES:
        return _best_parts(tuple(tiles), sizes, profile)
    parts = 1
    for tile in tiles:
        invocations = tile.invocations(sizes)
        parts = enough_parts(invocations, profile.busy_invocations, sizes, SPLIT_SUMS.shared_part)
        if invocations * parts >= profile.busy_invocations:
            break
    return parts


@lru_cache(maxsize=_CHOICES)
def _best_parts(tiles: Sequence[SharedTile | CooperativeTile], sizes: Sizes, profile: DeviceProfile) -> int:
    wanted = (parts for parts in _PARTS_TO_TRY if parts == 1 or sizes.k >= parts * SPLIT_SUMS.shared_part)
    possible = sorted({number_of_parts(sizes.summed, parts) for parts in wanted})
    return min(possible, key=lambda parts: min(_cost_of_parts(tile, sizes, parts, profile) for tile in tiles))
