"""Elementwise maps: one invocation per element, or per vector of four.

Starting a workgroup takes a CPU driver as long as computing some vectors, so an invocation of a large map has several
there, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping

from lavax.backends.vulkan.emit.map.row_blocks import (
    Block,
    block_of,
    compute_block,
    elements_of_block,
    ragged_block_of,
)
from lavax.backends.vulkan.emit.map.wide_stores import vectors_of_store
from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue, is_multiple
from lavax.backends.vulkan.glsl.launch import (
    WORKGROUP,
    Launch,
    at_row,
    grid,
    local_invocations,
    open_body,
    open_strips,
    open_turns,
    placed,
)
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.accesses import accesses, roots_of
from lavax.passes.kernels.index import ZERO, Index, add, linear, quotient, remainder, substitute, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates


@dataclass(frozen=True)
class VectorLoop:
    """Loops of a CPU driver's invocations. Exercised by `python -m benchmarks comparison --only elementwise`."""

    iterations: tuple[int, ...] = (64, 32, 16, 8, 4, 2)
    busy: int = 256  # invocations that must be left
    many: int = 16  # iterations: of more, four times as many invocations must be left
    ragged: int = 1 << 12  # from so many elements on, those behind the last whole vector are computed by themselves


VECTOR_LOOP = VectorLoop()


def emit_elements(kernel: Kernel, profile: DeviceProfile, lifted: bool, strips: int, in_loop: bool = False) -> Launch:
    """The shader of a map in vectors of four if the number of elements allows it.

    A CPU driver writes single elements by address, in a loop over the lanes. There all whole vectors are vectors, and
    the elements behind the last one are computed by themselves.

    A shader for every shape uses vectors only if each read is one vector too: how four elements are read one by one
    depends on the shape.

    In a workgroup's loop one workgroup has all elements: what they have in common is read and computed once a turn.
    """
    if strips > 1:
        return _emit_strips(kernel, profile, strips)
    count, is_looping = kernel.domain.rows, profile.kind == "cpu" and not lifted
    ragged = ragged_block_of(kernel) if is_looping else Block()
    if ragged.rows > 1:
        return _emit_ragged(kernel, profile, ragged, in_loop)
    block = block_of(kernel, vectors_of_store(kernel, profile)) if is_looping else Block()
    has_rest = block.vectors > 1 or (is_looping and count >= VECTOR_LOOP.ragged)
    rest = count % (VECTOR * block.vectors) if has_rest else 0
    width = VECTOR if (count - rest) % VECTOR == 0 and (not lifted or _reads_vectors(kernel, count)) else 1
    body, outputs = open_body(kernel, lifted)
    local, vectors = local_invocations(profile), count // (width * block.vectors * block.rows)
    iterations = _iterations(vectors, local, in_loop) if is_looping else 1
    with open_turns(body, vectors, local, iterations):
        element = variable("i", vectors)
        if block.rows * block.vectors > 1:
            compute_block(body, kernel, block, elements_of_block(kernel, element, block), outputs)
        else:
            compute(body, kernel, linear([(element, VECTOR), (LANE, 1)]) if width == VECTOR else element, outputs)
    if rest:
        first = "int last = int(gl_LocalInvocationID.x);"
        is_one_each = rest < local
        head = f"if ({WORKGROUP} == 0 && gl_LocalInvocationID.x < {rest})"
        loop = f"for ({first} {WORKGROUP} == 0 && last < {rest}; last += {local})"
        with body.block(head if is_one_each else loop, frozenset(("last",))):
            if is_one_each:
                body.line(first)
            compute(body, kernel, add(variable("last", rest), count - rest), outputs)
    text = ShaderText(body.uses, body.scopes[0].lines, (local, 1))
    groups = grid(-(-vectors // (local * iterations)))
    return Launch(assemble(text), tuple(body.parameters.words), groups, text=text, iterations=iterations + 1)


def _emit_ragged(kernel: Kernel, profile: DeviceProfile, block: Block, in_loop: bool) -> Launch:
    """The shader of a map whose rows four does not divide: blocks of whole vectors, then what is left of rows and of
    their ends, element by element."""
    body, outputs = open_body(kernel, lifted=False)
    columns = [extent for extent in kernel.domain.outer if extent > 1][-1]
    rows, end = kernel.domain.rows // columns, columns % VECTOR
    blocks, ends = rows // block.rows * (columns // VECTOR), rows // block.rows * block.rows * end
    behind = rows % block.rows * columns
    local = local_invocations(profile)
    iterations = _iterations(blocks, local, in_loop)
    groups = -(-blocks // (local * iterations))
    # Of invocations with one block each, those beyond the last block have ended.
    in_turns = f"group * {local} + int(gl_LocalInvocationID.x)", groups * local
    first, left = ("i", blocks) if iterations == 1 else in_turns
    with open_turns(body, blocks, local, iterations):
        compute_block(body, kernel, block, elements_of_block(kernel, variable("i", blocks), block), outputs)
    row, column = quotient(variable("last", ends), end), remainder(variable("last", ends), end)
    rest = [(ends, linear([(row, columns), (column, 1)], columns - end))]
    if behind:
        rest.append((behind, add(variable("last", behind), kernel.domain.rows - behind)))
    for count, element in rest:
        header = f"for (int last = {first}; last < {count}; last += {left})"
        with body.block(header, frozenset(("last",))):
            compute(body, kernel, element, outputs)
    text = ShaderText(body.uses, body.scopes[0].lines, (local, 1))
    turns = iterations + 1 + sum(1 + -(-count // left) for count, _ in rest)
    return Launch(assemble(text), tuple(body.parameters.words), grid(groups), text=text, iterations=turns)


def compute(body: Body, kernel: Kernel, element: Index, outputs: Mapping[Node, str]) -> None:
    """Computes and writes the results at an element, or at four."""
    values = at_row(element, kernel)
    coordinates = {output: placed(kernel.coordinates[output], values) for output in kernel.graph.outputs}
    results = {output: body.value(output, at) for output, at in coordinates.items()}
    for output, result in results.items():
        body.store(output, coordinates[output], result, outputs[output])


def _iterations(vectors: int, local: int, in_loop: bool) -> int:
    """How many vectors an invocation has; of none one, which none of them takes."""
    return max(-(-vectors // local), 1) if in_loop else loop_iterations(vectors)


def loop_iterations(vectors: int) -> int:
    """How many vectors an invocation has on a CPU driver: as many as leave enough invocations."""
    for iterations in VECTOR_LOOP.iterations:
        busy = VECTOR_LOOP.busy if iterations <= VECTOR_LOOP.many else 4 * VECTOR_LOOP.busy
        if vectors // iterations >= busy:
            return iterations
    return 1


def _emit_strips(kernel: Kernel, profile: DeviceProfile, strips: int) -> Launch:
    """The shader of a map with several elements per invocation, which loads all of them before it stores one."""
    local, width = local_invocations(profile), VECTOR if kernel.domain.rows % VECTOR == 0 else 1
    count = kernel.domain.rows // width
    body, outputs = open_body(kernel, lifted=False)
    results: list[tuple[Node, Coordinates, GlslValue]] = []
    for name in open_strips(body, count, local, strips):
        element = variable(name, count)
        values = at_row(linear([(element, VECTOR), (LANE, 1)]) if width == VECTOR else element, kernel)
        coordinates = {output: placed(kernel.coordinates[output], values) for output in kernel.graph.outputs}
        results += [(output, at, body.value(output, at)) for output, at in coordinates.items()]
    for output, at, result in results:
        body.store(output, at, result, outputs[output])
    text = ShaderText(body.uses, body.scopes[0].lines, (local, 1))
    return Launch(assemble(text), tuple(body.parameters.words), grid(count // (local * strips)), text=text)


def _reads_vectors(kernel: Kernel, count: int) -> bool:
    """Whether four neighbouring results need four aligned neighbours, or one element, of each array."""
    values = at_row(linear([(variable("i", count // VECTOR), VECTOR), (LANE, 1)]), kernel)
    roots = [(node, placed(at, values)) for node, at in roots_of(kernel)]
    positions = [position for found in accesses(kernel, roots).values() for position in found]
    return count > 0 and all(_is_vector(position) for position in positions)


def _is_vector(position: Index) -> bool:
    without_lane = substitute(position, {"lane": ZERO})
    if without_lane == position:
        return True
    return linear([(position, 1), (LANE, -1)]) == without_lane and is_multiple(without_lane, VECTOR)
