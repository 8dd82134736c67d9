"""The choice among tiles of one invocation's registers, for any device."""

from __future__ import annotations

from dataclasses import dataclass

from lavax.backends.vulkan.emit.contract.tiles import REGISTER_TILES, RegisterTile
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.build.contraction_geometry import Sizes


@dataclass(frozen=True)
class LongestEpilogue:
    """How long a shader may be that repeats its epilogue for every element of a tile, because drivers compile slowly
    what is long. Chosen by `python -m benchmarks first-calls`."""

    epilogue_nodes: int = 768  # nodes of the epilogue, times elements


WRITTEN_OUT = LongestEpilogue()
# A GPU's neighbouring invocations read neighbouring vectors if a product has fewer rows than this.
_ROWS_OF_SHARED_TILES = 16


def register_tiles(sizes: Sizes, profile: DeviceProfile) -> list[RegisterTile]:
    """The tiles that lie within the result, largest first. On a GPU, those of few rows read neighbouring vectors."""
    apart = profile.kind == "gpu" and sizes.m < _ROWS_OF_SHARED_TILES
    within = [tile for tile in REGISTER_TILES if tile.rows <= sizes.m and tile.columns <= sizes.n]
    return [tile for tile in within if tile.columns <= VECTOR or not apart] or [RegisterTile(1, min(sizes.n, VECTOR))]


def register_tile(sizes: Sizes, profile: DeviceProfile, epilogue: int) -> RegisterTile:
    """The largest tile that leaves the device enough to do."""
    tiles = short_register_tiles(sizes, profile, epilogue)
    return next((tile for tile in tiles if tile.invocations(sizes) >= profile.busy_invocations), tiles[-1])


def short_register_tiles(sizes: Sizes, profile: DeviceProfile, epilogue: int) -> list[RegisterTile]:
    """The tiles whose epilogue, repeated for each element, is not too long; at least one."""
    tiles = register_tiles(sizes, profile)
    return [tile for tile in tiles if tile.rows * tile.columns * epilogue <= WRITTEN_OUT.epilogue_nodes] or tiles[-1:]
