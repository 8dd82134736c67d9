"""Map kernels: elementwise, or transposes through tiles or blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lavax.backends.vulkan.emit.map.as_copies import as_copies
from lavax.backends.vulkan.emit.map.choose import transposes, transposition_of
from lavax.backends.vulkan.emit.map.elements import emit_elements
from lavax.backends.vulkan.emit.map.schedule import (
    ElementTiles,
    Elementwise,
    MapSchedule,
    RegisterBlocks,
    VectorTiles,
)
from lavax.backends.vulkan.emit.map.transpose_blocks import emit_blocks
from lavax.backends.vulkan.emit.map.transpose_elements import emit_element_tiles
from lavax.backends.vulkan.emit.map.transpose_vectors import emit_vector_tiles
from lavax.backends.vulkan.emit.map.transposition import Transposition
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node, graph_of, make_node
from lavax.passes.kernels.kernel import Kernel

# The emitter of each way of transposing; choose.TRANSPOSES says when each is taken.
EMITTERS: dict[type[MapSchedule], Callable[[Transposition, DeviceProfile, bool], Launch]] = {
    VectorTiles: emit_vector_tiles,
    ElementTiles: emit_element_tiles,
    RegisterBlocks: emit_blocks,
}


def emit_map(kernel: Kernel, profile: DeviceProfile, lifted: bool, schedule: MapSchedule | None = None) -> Launch:
    """The shader of a map, by the schedule given or the best one that suits, and copies that do without it."""
    launch = _emit(kernel, profile, lifted, schedule)
    return launch if lifted else replace(launch, copies=as_copies(kernel, profile))


def emit_map_in_loop(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The same as part of a workgroup's loop on a CPU driver."""
    transposition = transposition_of(kernel, profile)
    if transposition is None or not transposes(transposition, profile, lifted):
        return emit_elements(kernel, profile, lifted, strips=1, in_loop=True)
    return emit_map(kernel, profile, lifted)


def _emit(kernel: Kernel, profile: DeviceProfile, lifted: bool, schedule: MapSchedule | None) -> Launch:
    """The shader of a map.

    A way of transposing that is given may not suit any more: schedules are chosen before it is known which arrays move
    from iteration to iteration of a loop.
    """
    if isinstance(schedule, Elementwise):
        return emit_elements(kernel, profile, lifted, schedule.strips)
    transposition = transposition_of(kernel, profile)
    ways = transposes(transposition, profile, lifted)
    if transposition is None or not ways:
        return emit_elements(kernel, profile, lifted, strips=1)
    way = schedule if schedule in ways else ways[0]
    return EMITTERS[type(way)](transposition, profile, lifted)


def emit_copy(kernel: Kernel, source: Node, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader that writes `source`, which has the shape of the kernel's only result, in place of that result."""
    (result,) = kernel.graph.outputs
    copied = make_node("reshape", (source,), {}, result.type)
    moving = {copied if node is result else node: strides for node, strides in kernel.moving.items()}
    graph = graph_of(kernel.graph.inputs, [copied])
    coordinates = {copied: kernel.coordinates[result]}
    return emit_map(replace(kernel, kind="map", graph=graph, coordinates=coordinates, moving=moving), profile, lifted)
