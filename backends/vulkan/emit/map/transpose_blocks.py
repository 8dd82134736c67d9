"""Transposes on CPU drivers: maps in blocks of four by four elements, one per invocation.

An invocation reads the block of each array that is read along the other axis in four vectors, along the axis in which
its elements are neighbours, and builds from their components the four vectors that it computes with and writes. It has
several blocks one after the other, as starting a workgroup takes longer than transposing a block.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.map.elements import loop_iterations
from lavax.backends.vulkan.emit.map.transposition import Transposition
from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue
from lavax.backends.vulkan.glsl.launch import Launch, grid, local_invocations, open_body, open_turns
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.index import Index, add, linear, quotient, remainder, substitute, variable


@dataclass(frozen=True)
class BlockLimits:
    """Which maps take blocks. Exercised by `python -m benchmarks comparison --only transpose`."""

    statements: int = 128  # of the graph, times the vectors of an invocation
    along: int = 4  # blocks of an invocation that are neighbours along what is read: a line of the cache


BLOCK_LIMITS = BlockLimits()


def suits_blocks(transposition: Transposition, profile: DeviceProfile, lifted: bool) -> bool:
    """Whether blocks divide the result, and the map is short enough to be written out for each vector of a block."""
    extents = transposition.read_extent, transposition.written_extent
    divided = all(extent % VECTOR == 0 for extent in extents)
    statements = VECTOR * len(transposition.kernel.graph.nodes)
    return profile.kind != "gpu" and divided and statements <= BLOCK_LIMITS.statements


def emit_blocks(transposition: Transposition, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a map in blocks."""
    kernel = transposition.kernel
    across, down = transposition.written_extent // VECTOR, transposition.read_extent // VECTOR
    count = kernel.domain.rows // VECTOR**2
    body, outputs = open_body(kernel, lifted)
    local = local_invocations(profile)
    turns = loop_iterations(count) if not lifted else 1
    lanes, along = (local, BLOCK_LIMITS.along) if turns > 1 else (1, 1)
    if across % lanes or down % along:
        lanes = along = 1
    with open_turns(body, count, local, turns):
        plane, read, written = _place(variable("i", count), (down, across), (along, lanes))
        _transpose(body, transposition, plane, read, written)
        for number in range(VECTOR):
            with body.at(transposition.at(plane, add(read, number), _lanes(written))):
                results = {output: body.value(output, kernel.coordinates[output]) for output in kernel.graph.outputs}
                for output, result in results.items():
                    body.store(output, kernel.coordinates[output], result, outputs[output])
    text = ShaderText(body.uses, body.scopes[0].lines, (local, 1))
    groups = grid(-(-count // (local * turns)))
    return Launch(assemble(text), tuple(body.parameters.words), groups, text=text)


def _place(block: Index, extents: tuple[int, int], groups: tuple[int, int]) -> tuple[Index, Index, Index]:
    """The plane of a block, and where it starts along what is read and what is written.

    Extents are in blocks. Blocks are numbered group by group, in each along what is written first.
    """
    (down, across), (along, lanes) = extents, groups
    group = quotient(block, along * lanes)
    plane = quotient(quotient(group, across // lanes), down // along)
    first_read = remainder(quotient(group, across // lanes), down // along)
    first_written = remainder(group, across // lanes)
    read = linear([(first_read, along * VECTOR), (remainder(quotient(block, lanes), along), VECTOR)])
    return plane, read, linear([(first_written, lanes * VECTOR), (remainder(block, lanes), VECTOR)])


def _lanes(start: Index) -> Index:
    return linear([(start, 1), (LANE, 1)])


def _transpose(body: Body, transposition: Transposition, plane: Index, read: Index, written: Index) -> None:
    """Reads each staged array's block along its own axis, and provides it along the other."""
    for node, position in transposition.staged:
        kind = type_name(node.dtype, VECTOR)
        vectors = []
        for number in range(VECTOR):
            real = substitute(position, transposition.at(plane, _lanes(read), add(written, number)))
            vectors.append(body.declare(body.scopes[-1], kind, body.load_at(node, real).text))
        for number, component in enumerate(COMPONENTS):
            real = substitute(position, transposition.at(plane, add(read, number), _lanes(written)))
            turned = f"{kind}({', '.join(f'{vector}.{component}' for vector in vectors)})"
            body.provide(node, real, GlslValue(body.declare(body.scopes[-1], kind, turned), VECTOR))
