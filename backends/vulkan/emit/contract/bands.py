"""The order in which workgroups take the tiles of a wide product: down a band of rows of tiles, column by column.

Row by row, all tiles that run at once belong to one row if that is long, such as a vocabulary: each has columns of its
own, and the next row reads them all from memory again. In a band, they read few rows and few columns, which stay in
the cache that all processors share.
"""

from __future__ import annotations

import math

from lavax.backends.vulkan.emit.contract.tiles import CooperativeTile, SharedTile
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.build.contraction_geometry import Sizes


@dataclass(frozen=True)
class Bands:
    """When tiles are taken in bands. Chosen by `python -m benchmarks models`."""

    workgroups: int = 2  # that a processor runs at once
    least: float = 1.5  # times the rows and columns of tiles that are read at once in a band are read without


_BANDS = Bands()


def band_of(tile: SharedTile | CooperativeTile, sizes: Sizes, profile: DeviceProfile) -> int:
    """The rows of tiles in a band; 1 if tiles are taken row by row."""
    down, across = -(-sizes.m // tile.rows), -(-sizes.n // tile.columns)
    together = _BANDS.workgroups * profile.processors
    band = min(math.isqrt(together), down)
    in_rows = min(across, together) + max(together // across, 1)
    in_band = band + together // band
    pays = across > together // band and in_rows >= _BANDS.least * in_band
    return band if pays else 1
