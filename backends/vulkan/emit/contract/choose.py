"""Which tile suits the sizes of a contraction, and into how many parts its sum is split."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lavax.backends.vulkan.emit.contract.tiles import (
    BROADCAST_TILES,
    COOPERATIVE_TILES,
    NARROW_TILES,
    OTHER_TILES,
    REGISTER_TILES,
    SHARED_TILES,
    BroadcastTile,
    ContractSchedule,
    CooperativeTile,
    RegisterTile,
    SharedTile,
    SubgroupTile,
    broadcast_tile,
    cooperative_tile,
    fits,
)
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.ir.types import DTYPES, float32
from lavax.passes.build.contraction_geometry import Sizes, neighbours_of, number_of_parts, sizes_of
from lavax.passes.numerics.rounding import rounding_of

# The epilogue is written out for every element of a tile, and drivers compile slowly what is long; those of GPUs, whose
# tiles are shared, less so.
_MOST_EPILOGUE, _MOST_SHARED_EPILOGUE = 768, 1536
# Up to so many rows or columns a product is one with a few vectors: reading the matrix is what takes time.
_FEW = 8
# How many sums the lanes of a subgroup share at once.
_MOST_SHARED_SUMS = 16
# Parts of sums: how long they are at least with shared tiles and with register tiles, how many more invocations than
# usual keep a device busy that mostly reads, and how many elements are read at least for each that is written.
_PART, _SHORT_PART, _BUSY_READING, _READ_FOR_WRITTEN = 256, 32, 4, 8
# From so many products on it pays to round an operand in a kernel of its own, where so many rows or columns read it.
_WORTH_ROUNDING, _OFTEN_READ = 1 << 30, 1 << 9
# From so many products on a second kernel, which adds up the parts, is worth its dispatch.
_WORTH_PARTS = 1 << 18
# A workgroup's tile pays from so many rows and columns on, where so much of it is of use; a narrow one below so many.
_SHARED_FROM, _LEAST_USE, _NARROW = 16, 0.6, 32
# CPU drivers: how many multiplications of vectors, a component for each lane, take as long as one load by one lane; of
# how many lanes a subgroup has at least that shares its loads; how many processors there are taken to be.
_PRODUCTS_A_LOAD, _LEAST_LANES, _PROCESSORS = 10, 4, 4
# So many such multiplications take as long as the driver takes to compile what belongs to a sum of four columns, of so
# many sums at least; register tiles write out what becomes of each. So many calls are taken to share that time: more,
# and small products run a little faster; fewer, and their first call does (docs/rejected.md).
_COMPILED_PRODUCTS: dict[type[RegisterTile | BroadcastTile], int] = {BroadcastTile: 9_000_000, RegisterTile: 20_000_000}
_LEAST_SUMS, _CALLS = 8, 20_000
# How fast tiles are where there are enough of them, the largest ones being 1: what they read of shared memory, and how
# many threads there are to wait for it, makes the difference.
_RATES = {(128, 256): 1.0, (128, 128): 0.93, (64, 128): 0.94, (128, 64): 0.93, (64, 64): 0.85, (32, 32): 0.5}
# Tiles that are as fast only where each processor has at least so many of them, one after the other.
_FROM_MANY = {(128, 64): 8}
# Where a processor has one workgroup at a time, nothing is multiplied while one ends and the next one begins: so many
# steps of the sum could be.
_STEPS_BETWEEN = 31
# The same of cooperative tiles, 1 being strict float32.
_MATRIX_RATES = {(128, 128): 8.2, (96, 128): 6.8, (64, 64): 4.8, (32, 32): 2.0}
# What is rounded on its way is twice as long in registers: so many vectors of it an invocation at most.
_MOST_ROUNDED = 8
# So many invocations keep one processor of a device busy, and with how few of them its speed falls: a half of them have
# four fifths of it. While a partial result is written and read again, twice over,
# and while a second kernel begins, a device could do so many products.
_BUSY_PROCESSOR, _IDLE_EXPONENT, _PARTIAL_COST, _SECOND_KERNEL_COST = 256, 0.3, 90, 1 << 27
# Into how many parts a sum may go.
_PARTS_TO_TRY = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)


def choose_schedule(dot: Node, profile: DeviceProfile, epilogue: int = 0) -> ContractSchedule:
    """The schedule of a contraction; `epilogue` is what is computed for each element of the result, in nodes."""
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
    return min(tiles, key=lambda tile: _cost(tile, sizes, 1, profile))


def shares_shader(dot: Node, profile: DeviceProfile) -> bool:
    """Whether a contraction gets a tile by which all that lie in strides share a shader."""
    if profile.kind != "cpu" or dot.dtype != float32:
        return False
    tile = choose_schedule(dot, profile)
    return isinstance(tile, BroadcastTile) and tile.rows == VECTOR * tile.lanes


def candidates(dot: Node, profile: DeviceProfile, epilogue: int = 0) -> list[ContractSchedule]:
    """The schedules worth a try, first the one that is chosen without trying."""
    sizes = sizes_of(dot)
    found: list[ContractSchedule] = [choose_schedule(dot, profile, epilogue)]
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
        tiles = (*SHARED_TILES, *NARROW_TILES, *OTHER_TILES)
        fitting = [tile for tile in tiles if fits(tile, profile)]
        found += [
            tile
            for tile in fitting
            if 2 * tile.use(sizes) >= _LEAST_USE
            and tile.register_rows * tile.register_columns * epilogue <= _MOST_SHARED_EPILOGUE
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


def stores_rounded(dot: Node, side: int, profile: DeviceProfile) -> bool:
    """Whether what an operand is rounded to is best stored: tiles of matrices then stage it as it lies."""
    sizes = sizes_of(dot)
    reads = sizes.n if side == 0 else sizes.m
    if reads < _OFTEN_READ or sizes.b * sizes.m * sizes.n * sizes.k < _WORTH_ROUNDING:
        return False
    return isinstance(choose_schedule(dot, profile), CooperativeTile)


def _cost(tile: SharedTile | CooperativeTile, sizes: Sizes, parts: int, profile: DeviceProfile) -> float:
    """What a contraction takes with that tile and its sum in so many parts, in products that the device could do.

    It takes as long as the processor with most tiles; one with few invocations waits for some of its loads.
    """
    processors = _processors(profile)
    most = -(-tile.tiles(sizes) * parts // processors)
    busy = math.pow(min(most * tile.threads / _BUSY_PROCESSOR, 1), _IDLE_EXPONENT)
    rate = (_RATES if isinstance(tile, SharedTile) else _MATRIX_RATES)[tile.rows, tile.columns]
    steps = most * -(-sizes.k // parts)
    if isinstance(tile, SharedTile) and tile.is_alone:
        steps += (most - 1) * _STEPS_BETWEEN
    products = processors * steps * tile.rows * tile.columns / (rate * busy)
    return products + (parts > 1) * (_SECOND_KERNEL_COST + _PARTIAL_COST * parts * sizes.b * sizes.m * sizes.n)


def _are_enough(tile: SharedTile, sizes: Sizes, profile: DeviceProfile) -> bool:
    return tile.tiles(sizes) >= _processors(profile) * _FROM_MANY.get((tile.rows, tile.columns), 0)


def _processors(profile: DeviceProfile) -> int:
    return profile.busy_invocations // _BUSY_PROCESSOR


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


def _cooperative_tiles(dot: Node, sizes: Sizes, profile: DeviceProfile, epilogue: int) -> list[CooperativeTile]:
    """Those that the device and the contraction allow for, largest first."""
    dtype = dot.attrs["precision"]
    has_matrices = any(shape.dtype == dtype for shape in profile.matrices)
    if profile.kind == "cpu" or not has_matrices or min(sizes.m, sizes.n, sizes.k) < _SHARED_FROM:
        return []
    tiles = (cooperative_tile(tile, dtype, profile) for tile in COOPERATIVE_TILES)
    rounds = any(rounding_of(operand, DTYPES[dtype]) is not None for operand in dot.operands)
    most = _MOST_ROUNDED if rounds else math.inf
    fitting = [tile for tile in tiles if tile.divides() and fits(tile, profile) and tile.vectors <= most]
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
        if fits(tile, profile) and _are_enough(tile, sizes, profile)
    ]
    suited = [
        tile
        for tile in fitting
        if tile.use(sizes) >= _LEAST_USE
        and tile.register_rows * tile.register_columns * epilogue <= _MOST_SHARED_EPILOGUE
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
    """The tile that takes least time, with a small part of what compiling it takes."""

    def cost(tile: RegisterTile | BroadcastTile) -> float:
        return sizes.k * _step(tile, sizes, profile.subgroup_size) + _compiling(tile) / _CALLS

    return min(_tiles_for_cpu(dot, sizes, profile, epilogue), key=cost)


def _tiles_for_cpu(
    dot: Node, sizes: Sizes, profile: DeviceProfile, epilogue: int
) -> list[RegisterTile | BroadcastTile]:
    lanes = profile.subgroup_size
    tiles: list[RegisterTile | BroadcastTile] = [
        tile
        for tile in (broadcast_tile(tile, lanes) for tile in BROADCAST_TILES)
        if tile.rows <= 2 * sizes.m and tile.columns <= 4 * sizes.n
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


def _compiling(tile: RegisterTile | BroadcastTile) -> float:
    """How long a CPU driver compiles a tile, in multiplications of vectors: the longer, the more sums it has."""
    return _COMPILED_PRODUCTS[type(tile)] * max(tile.products / VECTOR, _LEAST_SUMS)
