"""Which strided products have element tiles, by their time and the driver's time to compile them."""

from __future__ import annotations

from lavax.backends.vulkan.emit.contract.tiles import BroadcastTile, RegisterTile
from lavax.backends.vulkan.emit.strided.element_tile import ElementTile
from lavax.backends.vulkan.emit.strided.parameters import access_of
from lavax.backends.vulkan.emit.strided.product import StridedProduct
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.build.contraction_geometry import Sizes


@dataclass(frozen=True)
class ElementCosts:
    """What tiles of single elements cost on a CPU driver, in nanoseconds (docs/performance/products_on_cpus.md).

    A sum is that of one column of each lane.
    """

    turn_of_sum: float = 1.5  # four steps of a sum
    read: float = 2.3  # an element of each lane
    write: float = 17.0  # a sum of each lane
    start: float = 1000.0  # a tile
    compiled_sum: float = 40.0  # a share of the time to compile it
    register_product: float = 1.5  # of each lane, in a register tile that reads by elements
    processors: int = 4
    gain: float = 0.85  # the most time, over that of a tile with which more products share a shader


ELEMENT_COSTS = ElementCosts()
_ROWS, _COLUMNS = range(8, 41, 8), range(8, 65, 8)
_MOST_SUMS = 256


def element_tile(
    product: StridedProduct, tile: BroadcastTile | RegisterTile, profile: DeviceProfile
) -> ElementTile | None:
    """The element tile that takes less time than `tile`; None if none does, or the arrays have no descriptors."""
    if not product.by_descriptor:
        return None
    lanes, sizes = profile.subgroup_size, product.sizes
    if isinstance(tile, BroadcastTile):
        if access_of(product, tile).rest:
            return None
        least = _time(sizes, tile, lanes)
    else:
        least = _time_in_registers(sizes, tile, lanes)
    tiles = [ElementTile(rows, columns, lanes) for rows in _ROWS for columns in _COLUMNS]
    small = [own for own in tiles if own.rows % lanes == own.columns % lanes == 0 and own.sums <= _MOST_SUMS]
    best = min(small, key=lambda own: _time(sizes, own, lanes), default=None)
    return best if best is not None and _time(sizes, best, lanes) <= ELEMENT_COSTS.gain * least else None


def _time(sizes: Sizes, tile: BroadcastTile | ElementTile, lanes: int) -> float:
    costs, sums = ELEMENT_COSTS, tile.rows * tile.columns // lanes
    reads = VECTOR * (tile.rows + tile.columns) / lanes
    turn = costs.turn_of_sum * sums + costs.read * reads
    one = -(-sizes.k // VECTOR) * turn + costs.write * sums + costs.start
    return max(tile.tiles(sizes) / costs.processors, 1) * one + costs.compiled_sum * sums


def _time_in_registers(sizes: Sizes, tile: RegisterTile, lanes: int) -> float:
    costs = ELEMENT_COSTS
    subgroups = -(-tile.tiles(sizes) // lanes)
    reads, sums = tile.rows + tile.columns, tile.rows * tile.columns
    one = sizes.k * (costs.register_product * sums + costs.read * reads) + costs.write * sums + costs.start
    return max(subgroups / costs.processors, 1) * one
