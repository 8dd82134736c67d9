"""The choice among tiles of one invocation's registers, for any device."""

from __future__ import annotations

from lavax.backends.vulkan.emit.contract.tile_limits import LONGEST_EPILOGUE, WORKGROUP_TILES
from lavax.backends.vulkan.emit.contract.tiles import REGISTER_TILES, RegisterTile
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.build.contraction_geometry import Sizes


def register_tiles(sizes: Sizes, profile: DeviceProfile) -> list[RegisterTile]:
    """The tiles that lie within the result, largest first.

    A GPU's neighbouring invocations read neighbouring vectors if a product has too few rows for tiles of workgroups.
    """
    apart = profile.kind == "gpu" and sizes.m < WORKGROUP_TILES.least_extent
    within = [tile for tile in REGISTER_TILES if tile.rows <= sizes.m and tile.columns <= sizes.n]
    return [tile for tile in within if tile.columns <= VECTOR or not apart] or [RegisterTile(1, min(sizes.n, VECTOR))]


def register_tile(sizes: Sizes, profile: DeviceProfile, epilogue: int) -> RegisterTile:
    """The largest tile that leaves the device enough to do."""
    tiles = short_register_tiles(sizes, profile, epilogue)
    return next((tile for tile in tiles if tile.invocations(sizes) >= profile.busy_invocations), tiles[-1])


def short_register_tiles(sizes: Sizes, profile: DeviceProfile, epilogue: int) -> list[RegisterTile]:
    """The tiles whose epilogue, repeated for each element, is not too long; at least one."""
    tiles = register_tiles(sizes, profile)
    most = LONGEST_EPILOGUE.epilogue_nodes
    return [tile for tile in tiles if tile.rows * tile.columns * epilogue <= most] or tiles[-1:]
