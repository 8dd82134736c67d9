"""The choice on CPU drivers whether a convolution's windows are the rows of its product or the columns."""

from __future__ import annotations

from lavax.backends.vulkan.emit.contract.choose_cpu import CPU_COSTS, tile_for_cpu
from lavax.backends.vulkan.emit.contract.tiles import BroadcastTile
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.build.contraction_geometry import are_windows, sizes_of


@dataclass(frozen=True)
class WindowCosts:
    """What windows cost beyond what any operand does. Chosen by `python -m benchmarks.limits.convolutions`."""

    loads: float = 2.0  # a load of windows that overlap, by elements: loads of vectors
    least_gain: float = 0.03  # for which windows become rows: products with pixels as columns share more shaders
    stored_apart: float = 7.0  # an element of the result, if neighbours are not written together: multiplications


_COSTS = WindowCosts()


def windows_as_rows(rows: Node, columns: Node, profile: DeviceProfile) -> bool:
    """Whether a product with windows as rows takes less time than the same one with windows as columns.

    The result's pixels are neighbours in memory, so those in rows are written one by one.
    """
    if profile.kind != "cpu":
        return False
    by_rows, by_columns = (_time(product, side, profile) for side, product in enumerate((rows, columns)))
    return by_rows is not None and by_columns is not None and by_rows < (1 - _COSTS.least_gain) * by_columns


def _time(product: Node, side: int, profile: DeviceProfile) -> float | None:
    """The time of a product whose windows are the operand of that side, in multiplications of vectors."""
    sizes = sizes_of(product)
    tile = tile_for_cpu(product, sizes, profile, 0)
    if not isinstance(tile, BroadcastTile) or sizes.k % VECTOR != 0:
        return None
    loads = [tile.loads_of_rows, tile.loads_of_columns]
    loads[side] *= _COSTS.loads if are_windows(product.operands[side]) else 1
    step = sum(loads) * tile.lanes * CPU_COSTS.load + tile.products
    stored = _COSTS.stored_apart * sizes.b * sizes.m * sizes.n if side == 0 else 0
    return tile.tiles(sizes) * sizes.k * step + stored
