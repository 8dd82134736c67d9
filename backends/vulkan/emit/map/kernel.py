"""Map kernels: one invocation an element, or four neighbours; transposes in squares or blocks.

On a CPU driver, where a workgroup takes as long to begin as some vectors to be computed, an invocation of a large map
has several, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod

from lavax.backends.vulkan.emit.map.transpose_blocks import emit_blocked_map, suits_blocks
from lavax.backends.vulkan.emit.map.transpose_elements import LEAST_EXTENT, emit_tiled_map, suits_squares
from lavax.backends.vulkan.emit.map.transpose_vectors import emit_tiled_vectors, suits_vectors
from lavax.backends.vulkan.emit.map.transposition import Transposition, find_transposition
from lavax.backends.vulkan.glsl.body import LANE, Body, GlslValue, is_multiple
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import (
    WORKGROUP,
    Launch,
    at_row,
    grid,
    local_invocations,
    open_body,
    open_invocations,
    open_strips,
    placed,
)
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node, graph_of, make_node
from lavax.passes.kernels.accesses import accesses, roots_of
from lavax.passes.kernels.index import ZERO, Index, linear, substitute, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates

# Elements, or vectors of them, of one invocation that are worth a try, and the statements that come of them at most.
_STRIPS, _MOST_STATEMENTS = (2, 4), 384

# Vectors of an invocation on a CPU driver, and how many invocations there should be left.
_TURNS, _BUSY = (16, 8, 4, 2), 1024


@dataclass(frozen=True)
class MapSchedule:
    """How a map is done.

    `turned`: through squares or blocks, if it reads along another axis than it writes; `vectors`: through squares of
    vectors where they come so. Else an invocation has `strips` elements, or vectors of them, each a workgroup further
    on: more loads are under way at once.
    """

    turned: bool = True
    vectors: bool = True
    strips: int = 1


def map_candidates(kernel: Kernel, profile: DeviceProfile) -> list[MapSchedule]:
    """The schedules worth a try, first the one that is chosen without trying."""
    strips = [strips for strips in (1, *_STRIPS) if _may_have_strips(kernel, profile, strips)]
    straight = [MapSchedule(turned=False, strips=several) for several in strips]
    if _emit_transposition(kernel, profile, lifted=False) is None:
        return straight
    squares = _squares(kernel)
    both = squares is not None and suits_vectors(squares, profile) and suits_squares(kernel)
    return [MapSchedule(), *([MapSchedule(vectors=False)] if both else []), *straight]


def _may_have_strips(kernel: Kernel, profile: DeviceProfile, strips: int) -> bool:
    """Whether workgroups of a GPU with so many strips divide the elements, and the map is short enough for them."""
    divides = kernel.domain.rows // _width(kernel) % (strips * local_invocations(profile)) == 0
    short = strips * len(kernel.graph.nodes) <= _MOST_STATEMENTS
    return strips == 1 or (profile.kind == "gpu" and divides and short)


def _width(kernel: Kernel) -> int:
    return VECTOR if kernel.domain.rows % VECTOR == 0 else 1


def emit_map(kernel: Kernel, profile: DeviceProfile, lifted: bool, schedule: MapSchedule = MapSchedule()) -> Launch:
    """Vectors of four where the number of elements allows it; turned where that is possible and asked for.

    A shader for every shape works in vectors only where each read is one vector too: how four elements are read one
    by one depends on the shape.
    """
    if schedule.strips > 1:
        return _emit_strips(kernel, profile, schedule.strips)
    transposed = _emit_transposition(kernel, profile, lifted, schedule.vectors) if schedule.turned else None
    if transposed is not None:
        return transposed
    count = kernel.domain.rows
    width = VECTOR if count % VECTOR == 0 and (not lifted or _reads_vectors(kernel, count)) else 1
    body, outputs = open_body(kernel, lifted)
    local = local_invocations(profile)
    turns = 1 if lifted else _turns(count // width, local, profile)
    with _vectors(body, count // width, local, turns):
        element = variable("i", count // width)
        values = at_row(linear([(element, VECTOR), (LANE, 1)]) if width == VECTOR else element, kernel)
        places = {output: placed(kernel.places[output], values) for output in kernel.graph.outputs}
        results = {output: body.value(output, at) for output, at in places.items()}
        for output, result in results.items():
            body.store(output, places[output], result, outputs[output])
    text = ShaderText(body.uses, body.scopes[0].lines, (local, 1))
    return Launch(assemble(text), tuple(body.parameters.words), grid(-(-(count // width) // (local * turns))))


def _turns(vectors: int, local: int, profile: DeviceProfile) -> int:
    """How many vectors an invocation has: as many as leave enough of them, and divide the whole."""
    for turns in _TURNS if profile.kind == "cpu" else ():
        if vectors % (turns * local) == 0 and vectors // turns >= _BUSY:
            return turns
    return 1


@contextmanager
def _vectors(body: Body, vectors: int, local: int, turns: int) -> Iterator[None]:
    """Where a vector, of number `i`, is computed: once an invocation, or in a loop, whose vectors stand a workgroup's
    apart."""
    if turns == 1:
        open_invocations(body, vectors, local, "i")
        yield
        return
    groups = vectors // (local * turns)
    body.line(f"int group = int{WORKGROUP};")
    if prod(grid(groups)) > groups:
        body.line(f"if (group >= {body.parameters.integer(groups)}) return;")
    # The driver would unroll a loop whose end it knows.
    bound = body.parameters.unknown(turns)
    with body.block(f"for (int turn = 0; turn < {bound}; ++turn)", frozenset(("i",))):
        body.line(f"int i = (group * {turns} + turn) * {local} + int(gl_LocalInvocationID.x);")
        yield


def _emit_strips(kernel: Kernel, profile: DeviceProfile, strips: int) -> Launch:
    """The shader of a map with several elements an invocation, all loads of which come before its stores."""
    local, width = local_invocations(profile), _width(kernel)
    count = kernel.domain.rows // width
    body, outputs = open_body(kernel, lifted=False)
    results: list[tuple[Node, Coordinates, GlslValue]] = []
    for name in open_strips(body, count, local, strips):
        element = variable(name, count)
        values = at_row(linear([(element, VECTOR), (LANE, 1)]) if width == VECTOR else element, kernel)
        places = {output: placed(kernel.places[output], values) for output in kernel.graph.outputs}
        results += [(output, at, body.value(output, at)) for output, at in places.items()]
    for output, at, result in results:
        body.store(output, at, result, outputs[output])
    text = ShaderText(body.uses, body.scopes[0].lines, (local, 1))
    return Launch(assemble(text), (), grid(count // (local * strips)))


def _emit_transposition(
    kernel: Kernel, profile: DeviceProfile, lifted: bool, vectors: bool = True
) -> Launch | None:
    """The shader of a map that reads along another axis than it writes, if it is one and not too small or long."""
    if profile.kind == "gpu":
        squares = _squares(kernel)
        if squares is not None and vectors and not lifted and suits_vectors(squares, profile):
            return emit_tiled_vectors(squares)
        return emit_tiled_map(squares, lifted) if squares is not None and suits_squares(kernel) else None
    transposition = find_transposition(kernel, VECTOR)
    if transposition is None or not suits_blocks(transposition):
        return None
    return emit_blocked_map(transposition, profile, lifted)


def _squares(kernel: Kernel) -> Transposition | None:
    """How a map goes through squares on a GPU, if it reads along another axis than it writes."""
    return find_transposition(kernel, LEAST_EXTENT)


def emit_copy(kernel: Kernel, source: Node, profile: DeviceProfile, lifted: bool) -> Launch:
    """`source`, a value of the kernel's only result's shape, written where that result is to be."""
    (result,) = kernel.graph.outputs
    copied = make_node("reshape", (source,), {}, result.type)
    moving = {copied if node is result else node: strides for node, strides in kernel.moving.items()}
    graph = graph_of(kernel.graph.inputs, [copied])
    places = {copied: kernel.places[result]}
    return emit_map(replace(kernel, kind="map", graph=graph, places=places, moving=moving), profile, lifted)


def _reads_vectors(kernel: Kernel, count: int) -> bool:
    """Whether four neighbours of the results are made of four aligned neighbours, or of one element, of each array."""
    values = at_row(linear([(variable("i", count // VECTOR), VECTOR), (LANE, 1)]), kernel)
    roots = [(node, placed(at, values)) for node, at in roots_of(kernel)]
    positions = [position for found in accesses(kernel, roots).values() for position in found]
    return count > 0 and all(_is_vector(position) for position in positions)


def _is_vector(position: Index) -> bool:
    without_lane = substitute(position, {"lane": ZERO})
    if without_lane == position:
        return True
    return linear([(position, 1), (LANE, -1)]) == without_lane and is_multiple(without_lane, VECTOR)
