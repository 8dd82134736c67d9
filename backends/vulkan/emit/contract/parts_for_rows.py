"""The number of parts of a long sum that the kernel of the next rows adds, from an estimate of both kernels' times.

The estimate was fitted to products of 18 shapes in 1, 2 and 4 parts, most of which it meets within a tenth
(docs/performance/training_bfloat16.md). A processor has two tiles at a time. One that is alone there takes 0.6 of the
time of two, and between two pairs pass some 4 µs of an H200.
"""

from __future__ import annotations

from functools import lru_cache

from lavax.backends.vulkan.emit.contract.choose_gpu import (
    MATRIX_RATES,
    fastest,
    processors_of,
    rounds_operands,
    tiles_of_matrices,
    workgroup_tiles,
)
from lavax.backends.vulkan.emit.contract.tiles import CooperativeTile
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.build.contraction_geometry import Sizes, number_of_parts, sizes_of


@dataclass(frozen=True)
class PartsForRows:
    """When a sum is split, and what the estimate counts with: times are in products that the device could do in
    float32. Exercised by `python -m benchmarks models`."""

    tried: tuple[int, ...] = (1, 2, 3, 4)
    shortest: int = 512  # terms of a part
    beside: float = 0.5  # times its products, at most, others compute at the same time: more fill the device
    alone: float = 1.2  # the time of a tile without another one, over half of that of two
    between: int = 86 << 20  # the time until a pair's first products and after its last
    part: int = 18  # the time in which rows read an element of a part
    gain: int = 1 << 26  # that pays


_PARTS_FOR_ROWS = PartsForRows()
_CHOICES = 1 << 10  # that are kept


def parts_for_rows(dot: Node, beside: int, profile: DeviceProfile) -> int:
    """Into how many parts the sum is best split, if other kernels compute so many products `beside` this one."""
    sizes = sizes_of(dot)
    if profile.kind == "cpu" or sizes.b > 1 or sizes.k < 2 * _PARTS_FOR_ROWS.shortest:
        return 1
    if beside > _PARTS_FOR_ROWS.beside * sizes.m * sizes.n * sizes.k:
        return 1
    if not any(isinstance(tile, CooperativeTile) for tile in workgroup_tiles(dot, sizes, profile, 0)):
        return 1
    return _best(dot.attrs["precision"], rounds_operands(dot), sizes, profile)


@lru_cache(maxsize=_CHOICES)
def _best(dtype: str, rounds: bool, sizes: Sizes, profile: DeviceProfile) -> int:
    tried = (parts for parts in _PARTS_FOR_ROWS.tried if parts == 1 or sizes.k >= parts * _PARTS_FOR_ROWS.shortest)
    times = {
        parts: _time(dtype, rounds, sizes, parts, profile)
        for parts in sorted({number_of_parts(sizes.summed, parts) for parts in tried})
    }
    best = min(times, key=lambda parts: times[parts])
    return best if times[1] - times[best] >= _PARTS_FOR_ROWS.gain else 1


def _time(dtype: str, rounds: bool, sizes: Sizes, parts: int, profile: DeviceProfile) -> float:
    of_parts = Sizes((parts,), (sizes.m,), (sizes.n,), (-(-sizes.k // parts),))
    tile = fastest(tiles_of_matrices(dtype, rounds, of_parts, profile, 0), of_parts, profile)
    processors = processors_of(profile)
    pairs, alone = divmod(-(-tile.tiles(of_parts) // processors), 2)
    of_tile = processors * of_parts.k * tile.rows * tile.columns / MATRIX_RATES[tile.rows, tile.columns]
    products = of_tile * (2 * pairs + _PARTS_FOR_ROWS.alone * alone) + _PARTS_FOR_ROWS.between * (pairs + alone)
    return products + (parts > 1) * _PARTS_FOR_ROWS.part * parts * sizes.m * sizes.n
