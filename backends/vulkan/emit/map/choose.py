"""Which schedule a map gets."""

from __future__ import annotations

from collections.abc import Callable

from lavax.backends.vulkan.emit.map.schedule import (
    ElementTiles,
    Elementwise,
    MapSchedule,
    RegisterBlocks,
    VectorTiles,
)
from lavax.backends.vulkan.emit.map.transpose_blocks import suits_blocks
from lavax.backends.vulkan.emit.map.transpose_elements import ELEMENT_TILE, suits_element_tiles
from lavax.backends.vulkan.emit.map.transpose_vectors import suits_vector_tiles
from lavax.backends.vulkan.emit.map.transposition import Transposition, find_transposition
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import local_invocations
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.kernel import Kernel


@dataclass(frozen=True)
class MapStrips:
    """Strips that tuning tries on a GPU. docs/rejected/maps_and_rows.md, "Several vectors an invocation for
    maps on a GPU"; `python -m benchmarks comparison --only elementwise`."""

    counts: tuple[int, ...] = (2, 4)
    statements: int = 384  # of the graph, times the strips


STRIPS = MapStrips()
# Whether each way of transposing suits a map; the first one that does is taken.
TRANSPOSES: dict[MapSchedule, Callable[[Transposition, DeviceProfile, bool], bool]] = {
    VectorTiles(): suits_vector_tiles,
    ElementTiles(): suits_element_tiles,
    RegisterBlocks(): suits_blocks,
}


def transposition_of(kernel: Kernel, profile: DeviceProfile) -> Transposition | None:
    """How a map reads along another axis than it writes; None if it does not, or its axes are too short."""
    is_gpu = profile.kind == "gpu"
    return find_transposition(kernel, ELEMENT_TILE.least_extent if is_gpu else VECTOR, merges=is_gpu)


def transposes(transposition: Transposition | None, profile: DeviceProfile, lifted: bool) -> list[MapSchedule]:
    """The ways of transposing that suit a map, the best one first."""
    if transposition is None:
        return []
    return [schedule for schedule, suits in TRANSPOSES.items() if suits(transposition, profile, lifted)]


def candidates(kernel: Kernel, profile: DeviceProfile) -> list[MapSchedule]:
    """The schedules worth timing, first the one that is chosen without timing."""
    ways = transposes(transposition_of(kernel, profile), profile, lifted=False)
    strips = [Elementwise(strips) for strips in (1, *STRIPS.counts) if _may_have_strips(kernel, profile, strips)]
    return [*ways, *strips]


def _may_have_strips(kernel: Kernel, profile: DeviceProfile, strips: int) -> bool:
    """Whether workgroups of a GPU with so many strips divide the elements, and the map is short enough for them."""
    width = VECTOR if kernel.domain.rows % VECTOR == 0 else 1
    divides = kernel.domain.rows // width % (strips * local_invocations(profile)) == 0
    is_short = strips * len(kernel.graph.nodes) <= STRIPS.statements
    return strips == 1 or (profile.kind == "gpu" and divides and is_short)
