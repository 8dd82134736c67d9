"""The choice of turned tiles, whose lanes have pixels, for windows that meet few kernels, on CPU drivers.

A broadcast tile has 32 columns or more, so that most of its work is for nothing where a product has 8 or 16.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.contract.choose_cpu import CPU_COSTS, tile_for_cpu
from lavax.backends.vulkan.emit.contract.tiles import BroadcastTile
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.build.contraction_geometry import Sizes, are_windows, sizes_of


@dataclass(frozen=True)
class TurnedTiles:
    """What tiles of windows cost on a CPU driver, in products and sums of a vector with an element per lane.

    Chosen by `python -m benchmarks.limits.convolutions`; docs/performance/convolutions_on_cpus.md has the times.
    """

    window: int = 50  # a vector of windows read by each lane
    read: int = 25  # a vector of kernels
    compiled_sum: int = 450  # a share of the time to compile a vector of sums
    most_columns: int = 32
    most_sums: int = 64  # vectors of each lane
    vectors: tuple[int, ...] = (1, 2, 4)
    long_sum: int = 1 << 12
    gain: float = 0.85  # the most time, over that of the best other tile


_TURNED = TurnedTiles()


def turned_tile(dot: Node, sizes: Sizes, profile: DeviceProfile, epilogue: int) -> BroadcastTile | None:
    """The turned tile of least time; None if a tile with lanes along columns takes as long, or there are no windows."""
    tiles = _tiles(dot, sizes, profile)
    if not tiles:
        return None
    best = min(tiles, key=lambda tile: _time(tile, sizes))
    other = tile_for_cpu(dot, sizes, profile, epilogue)
    if isinstance(other, BroadcastTile) and _time(best, sizes) > _TURNED.gain * _time(other, sizes):
        return None
    return best


def parts_for_turned_tiles(dot: Node, profile: DeviceProfile) -> int:
    """The parts of a long sum of few results, as in gradients by kernels, for which processors have a tile each."""
    sizes = sizes_of(dot)
    tiles = _tiles(dot, sizes, profile)
    if sizes.k < _TURNED.long_sum or not tiles:
        return 1
    least = min(tiles, key=lambda tile: tile.tiles(sizes) * _turn(tile))
    return max(CPU_COSTS.processors // least.tiles(sizes), 1)


def _tiles(dot: Node, sizes: Sizes, profile: DeviceProfile) -> list[BroadcastTile]:
    """The turned tiles of windows that meet few kernels; none of other products."""
    lanes = profile.subgroup_size
    shares_loads = lanes >= CPU_COSTS.sharing_lanes and profile.subgroup_shuffle and dot.dtype.bits == 32
    few = 2 <= sizes.n <= _TURNED.most_columns
    if not (few and shares_loads and sizes.k % VECTOR == 0 and are_windows(dot.operands[0])):
        return []
    columns = -(-sizes.n // VECTOR) * VECTOR
    tiles = (BroadcastTile(VECTOR * vectors * lanes, columns, lanes, turned=True) for vectors in _TURNED.vectors)
    return [tile for tile in tiles if tile.shared * tile.vectors <= _TURNED.most_sums]


def _time(tile: BroadcastTile, sizes: Sizes) -> float:
    subgroups = max(tile.tiles(sizes) / CPU_COSTS.processors, 1)
    return subgroups * (sizes.k // VECTOR) * _turn(tile) + _TURNED.compiled_sum * tile.shared * tile.vectors


def _turn(tile: BroadcastTile) -> float:
    """The time of four steps of a tile's sums."""
    own, shared = (_TURNED.window, _TURNED.read) if tile.turned else (_TURNED.read, _TURNED.window)
    reads = own * VECTOR * tile.vectors + shared * -(-tile.shared // tile.lanes)
    return reads + VECTOR * VECTOR * tile.shared * tile.vectors
