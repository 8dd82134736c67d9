"""The choice among tiles on CPU drivers, by their time and the driver's time to compile them."""

from __future__ import annotations

from dataclasses import replace

from lavax.backends.vulkan.emit.contract.choose_registers import short_register_tiles
from lavax.backends.vulkan.emit.contract.tiles import (
    BROADCAST_TILES,
    PIXEL_TILES,
    WINDOW_TILES,
    BroadcastTile,
    RegisterTile,
    broadcast_tile,
)
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.build.contraction_geometry import Sizes, are_windows


@dataclass(frozen=True)
class CpuCosts:
    """Costs on a CPU driver, in multiplications of vectors with a component per lane.

    Chosen by `python -m benchmarks.contraction_tiles`; docs/rejected/products_lavapipe.md has the cost
    of compiling a tile.
    """

    load: int = 10  # a load by one lane
    sharing_lanes: int = 4  # the fewest lanes of a subgroup that shares its loads
    processors: int = 4  # the number of processors to count on
    # Compiling the code for a sum of four columns; register tiles repeat the code that follows a sum.
    broadcast_sum: int = 9_000_000
    register_sum: int = 20_000_000
    least_sums: int = 8  # sums that even the smallest tile is compiled as
    # The calls that share the time to compile. With more, small products run a little faster; with fewer, their first
    # call does.
    calls: int = 20_000
    # The multiplications of products for which it pays to compile a tile that few others have.
    large_products: int = 1 << 25


CPU_COSTS = CpuCosts()
# Of a loop that one workgroup runs: all tiles one after the other, in each of many turns.
_COSTS_IN_LOOPS = replace(CPU_COSTS, processors=1, calls=1 << 24)


def tile_for_cpu(
    dot: Node, sizes: Sizes, profile: DeviceProfile, epilogue: int, costs: CpuCosts = CPU_COSTS
) -> RegisterTile | BroadcastTile:
    """The tile of least time, which includes a small share of the time to compile it."""

    def cost(tile: RegisterTile | BroadcastTile) -> float:
        return sizes.k * _step(tile, sizes, profile.subgroup_size, costs) + _compiling(tile) / costs.calls

    return min(tiles_for_cpu(dot, sizes, profile, epilogue), key=cost)


def tile_in_loop(dot: Node, sizes: Sizes, profile: DeviceProfile, epilogue: int) -> RegisterTile | BroadcastTile:
    """The tile of least time where one workgroup computes all of the contraction, many times over."""
    return tile_for_cpu(dot, sizes, profile, epilogue, _COSTS_IN_LOOPS)


def tiles_for_cpu(
    dot: Node, sizes: Sizes, profile: DeviceProfile, epilogue: int
) -> list[RegisterTile | BroadcastTile]:
    lanes = profile.subgroup_size
    more: tuple[tuple[int, int], ...] = ()
    if sizes.b * sizes.m * sizes.n * sizes.k >= CPU_COSTS.large_products:
        more = WINDOW_TILES if are_windows(dot.operands[0]) else PIXEL_TILES
    tiles: list[RegisterTile | BroadcastTile] = [
        tile
        for tile in (broadcast_tile(tile, lanes) for tile in (*BROADCAST_TILES, *more))
        if tile.rows <= 2 * sizes.m and tile.columns <= 4 * sizes.n
    ]
    if lanes < CPU_COSTS.sharing_lanes or not profile.subgroup_shuffle or dot.dtype.bits > 32:
        tiles = []
    return [*tiles, *short_register_tiles(sizes, profile, epilogue)]


def _step(tile: RegisterTile | BroadcastTile, sizes: Sizes, lanes: int, costs: CpuCosts) -> float:
    """The time of a step of all sums, in multiplications of vectors, if each processor runs one subgroup at a time.

    A CPU driver loads a vector lane by lane, and multiplies those of all lanes at once.
    """
    subgroups = -(-tile.invocations(sizes) // lanes)
    return max(subgroups / costs.processors, 1) * (tile.loads * lanes * costs.load + tile.products)


def _compiling(tile: RegisterTile | BroadcastTile) -> float:
    """The time to compile a tile, in multiplications of vectors: it grows with the number of sums."""
    per_sum = CPU_COSTS.broadcast_sum if isinstance(tile, BroadcastTile) else CPU_COSTS.register_sum
    return per_sum * max(tile.products / VECTOR, CPU_COSTS.least_sums)
