"""The choice of a contraction's schedule and of the number of parts of its sum, from its sizes and the device."""

from __future__ import annotations

import math
from dataclasses import replace

from lavax.backends.vulkan.emit.contract.choose_cpu import tile_for_cpu, tiles_for_cpu
from lavax.backends.vulkan.emit.contract.choose_gpu import (
    SPLIT_SUMS,
    cooperative_tiles,
    fastest,
    parts_of_sum,
    processors_of,
    shared_tiles,
    workgroup_tiles,
)
from lavax.backends.vulkan.emit.contract.choose_registers import register_tile, short_register_tiles
from lavax.backends.vulkan.emit.contract.few_rows import is_along_sums, subgroup_tile, subgroup_tiles
from lavax.backends.vulkan.emit.contract.tile_limits import WORKGROUP_TILES
from lavax.backends.vulkan.emit.contract.tiles import (
    COOPERATIVE_TILES,
    NARROW_TILES,
    OTHER_TILES,
    SHARED_TILES,
    BroadcastTile,
    ContractSchedule,
    CooperativeTile,
    cooperative_tile,
    fits,
)
from lavax.backends.vulkan.emit.contract.turned import parts_for_turned_tiles, turned_tile
from lavax.backends.vulkan.glsl.narrow_vectors import EIGHT
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.types import float32
from lavax.passes.build.contraction_geometry import lies_apart, number_of_parts, sizes_of


@dataclass(frozen=True)
class StoredRounding:
    """When it pays to round an operand in a kernel of its own. Chosen by `python -m
    benchmarks.contraction_tiles`."""

    products: int = 1 << 27  # of the contraction
    reads: int = 1 << 9  # of each element
    # The same if neighbours in memory are none in the contraction: numbers are then read one by one.
    scattered_products: int = 1 << 25
    scattered_reads: int = 1 << 7


@dataclass(frozen=True)
class LongSums:
    """From which length of the sum what operands cost counts more than what results do. Exercised by `python -m
    benchmarks models`."""

    least: int = 576


@dataclass(frozen=True)
class PaddedLines:
    """When it pays to pad operands for matrices. Exercised by `python -m benchmarks models`."""

    products: int = 1 << 27  # of the contraction
    least: int = 512  # of its rows, its columns and its sum


@dataclass(frozen=True)
class IdleProcessors:
    """When a product alone leaves processors idle. Exercised by `python -m benchmarks models`."""

    tiles: int = 2  # of matrices for each processor: no more run all at once, and other tiles beside them


@dataclass(frozen=True)
class PartsForMaps:
    """When a sum is split that maps add up. Exercised by `python -m benchmarks models`."""

    shortest: int = 512  # terms of a part
    least: float = 1.5  # times the tiles that there are keep the device busy
    used: float = 0.7  # of the processors, at least, have a tile of a part


_PARTS_FOR_MAPS = PartsForMaps()
_IDLE_PROCESSORS = IdleProcessors()
_STORED_ROUNDING = StoredRounding()
_PADDED_LINES = PaddedLines()
LONG_SUMS = LongSums()


def choose_schedule(dot: Node, profile: DeviceProfile, epilogue: int = 0, together: int = 1) -> ContractSchedule:
    """The schedule of a contraction; `epilogue` is the number of nodes computed per element of the result.

    A dispatch computes as many equal ones `together`. If sums are long, their tiles are chosen as those of one batch.
    """
    sizes = sizes_of(dot)
    turned = turned_tile(dot, sizes, profile, epilogue) if profile.kind == "cpu" else None
    if turned is not None:
        return turned
    if is_along_sums(dot, sizes, profile):
        return subgroup_tile(sizes, profile)
    if profile.kind == "cpu":
        return tile_for_cpu(dot, sizes, profile, epilogue)
    every = replace(sizes, batch=(together if sizes.k >= LONG_SUMS.least else 1, *sizes.batch))
    tiles = workgroup_tiles(dot, every, profile, epilogue)
    if not tiles:
        return register_tile(sizes, profile, epilogue)
    if tiles[0] in NARROW_TILES:
        busy = (tile for tile in tiles if tile.invocations(every) >= profile.busy_invocations)
        return next(busy, max(tiles, key=lambda tile: tile.invocations(every)))
    tile = fastest(tiles, every, profile)
    return _ahead_if_alone(tile, together * tile.tiles(sizes), profile) if isinstance(tile, CooperativeTile) else tile


def _ahead_if_alone(tile: CooperativeTile, tiles: int, profile: DeviceProfile) -> CooperativeTile:
    """The tile, which reads ahead if each of so many has a processor to itself."""
    return replace(tile, reads_ahead=tiles <= processors_of(profile))


def shares_shader(dot: Node, profile: DeviceProfile) -> bool:
    """Whether a contraction gets a tile with which all products in strides share a shader."""
    if profile.kind != "cpu" or dot.dtype != float32:
        return False
    tile = choose_schedule(dot, profile)
    return isinstance(tile, BroadcastTile) and tile.has_fours


def candidates(dot: Node, profile: DeviceProfile, epilogue: int = 0) -> list[ContractSchedule]:
    """The schedules worth timing, first the one that is chosen without timing."""
    sizes = sizes_of(dot)
    found: list[ContractSchedule] = [choose_schedule(dot, profile, epilogue)]
    if is_along_sums(dot, sizes, profile):
        found += subgroup_tiles(sizes, profile)
    elif cooperative_tiles(dot, sizes, profile, epilogue):
        matrices = (cooperative_tile(tile, dot.attrs["precision"], profile) for tile in COOPERATIVE_TILES)
        fitting_matrices = [tile for tile in matrices if tile.divides() and fits(tile, profile)]
        found += [_ahead_if_alone(tile, tile.tiles(sizes), profile) for tile in fitting_matrices]
    elif shared_tiles(dot, sizes, profile, epilogue):
        tiles = (*SHARED_TILES, *NARROW_TILES, *OTHER_TILES)
        fitting = [tile for tile in tiles if fits(tile, profile)]
        found += [
            tile
            for tile in fitting
            if 2 * tile.use(sizes) >= WORKGROUP_TILES.used
            and tile.register_rows * tile.register_columns * epilogue <= WORKGROUP_TILES.epilogue_nodes
        ]
    else:
        on_cpu = tiles_for_cpu(dot, sizes, profile, epilogue) if profile.kind == "cpu" else []
        own = on_cpu or short_register_tiles(sizes, profile, epilogue)
        found += [tile for tile in own if tile.invocations(sizes) >= profile.subgroup_size]
    return list(dict.fromkeys(found))


def parts_candidates(dot: Node, profile: DeviceProfile) -> list[int]:
    """The numbers of parts of the sum that are worth timing, first the one that is chosen without timing."""
    chosen, sizes = choose_parts(dot, profile), sizes_of(dot)
    if profile.kind == "cpu" or is_along_sums(dot, sizes, profile):
        return [chosen]
    others = (1, chosen // 4, chosen // 2, 2 * chosen, 4 * chosen)
    possible = [parts for parts in others if parts == 1 or (parts > 1 and sizes.k // parts >= SPLIT_SUMS.register_part)]
    return list(dict.fromkeys([chosen, *possible]))


def choose_parts(dot: Node, profile: DeviceProfile) -> int:
    """Into how many parts the sum of a contraction is best split, so that its tiles keep the device busy."""
    sizes = sizes_of(dot)
    if profile.kind == "cpu":
        return parts_for_turned_tiles(dot, profile)
    return 1 if is_along_sums(dot, sizes, profile) else parts_of_sum(dot, sizes, profile)


def parts_for_maps(dot: Node, together: int, profile: DeviceProfile) -> int:
    """Into how many parts a long sum is split that maps add, so that large tiles keep the device busy.

    The largest tiles read least, but a weight's gradient has few of them. As many products share its dispatch.
    """
    sizes = sizes_of(dot)
    if profile.kind == "cpu" or not dot.attrs["precision"] or sizes.k < 2 * _PARTS_FOR_MAPS.shortest:
        return 1
    tiles = workgroup_tiles(dot, sizes, profile, 0)
    if not tiles or not isinstance(tiles[0], CooperativeTile):
        return 1
    processors, whole = processors_of(profile), tiles[0].tiles(sizes) * together
    parts = min(math.ceil(processors / whole), sizes.k // _PARTS_FOR_MAPS.shortest)
    pays = whole * _PARTS_FOR_MAPS.least <= processors and whole * parts >= _PARTS_FOR_MAPS.used * processors
    return number_of_parts(sizes.summed, parts) if pays else 1


def stores_rounded(dot: Node, side: int, profile: DeviceProfile) -> bool:
    """Whether the rounded operand is best stored: cooperative tiles then copy it as it is."""
    sizes = sizes_of(dot)
    reads = sizes.n if side == 0 else sizes.m
    products = sizes.b * sizes.m * sizes.n * sizes.k
    if reads < _STORED_ROUNDING.scattered_reads or products < _STORED_ROUNDING.scattered_products:
        return False
    pays = reads >= _STORED_ROUNDING.reads and products >= _STORED_ROUNDING.products
    if not pays and not lies_apart(dot, side):
        return False
    return isinstance(choose_schedule(dot, profile), CooperativeTile)


def leaves_idle(dot: Node, profile: DeviceProfile) -> bool:
    """Whether the tiles of a product by matrices are too few to keep all processors busy, at least at its end."""
    sizes = sizes_of(dot)
    if profile.kind == "cpu" or not dot.attrs["precision"] or is_along_sums(dot, sizes, profile):
        return False
    tiles = cooperative_tiles(dot, sizes, profile, 0, stored=True)
    few = _IDLE_PROCESSORS.tiles * processors_of(profile)
    return bool(tiles) and fastest(tiles, sizes, profile).tiles(sizes) <= few


def line_of(dot: Node, profile: DeviceProfile) -> int:
    """The elements that lines of operands are best multiples of: a vector, if cooperative tiles load them so often."""
    sizes = sizes_of(dot)
    if min(sizes.m, sizes.n, sizes.k) < _PADDED_LINES.least:
        return 1
    if sizes.b * sizes.m * sizes.n * sizes.k < _PADDED_LINES.products:
        return 1
    return EIGHT if isinstance(choose_schedule(dot, profile), CooperativeTile) else 1


def precision_of_bytes(dot: Node, profile: DeviceProfile) -> str | None:
    """The precision in which a GPU multiplies integers of 8 bits as floats. A CPU driver takes as long for integers."""
    if profile.kind == "cpu":
        return None
    sizes = sizes_of(dot)
    has_matrices = profile.matrices and min(sizes.m, sizes.n, sizes.k) >= WORKGROUP_TILES.least_extent
    return profile.matrices[0].dtype if has_matrices else ""
