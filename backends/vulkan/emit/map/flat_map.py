"""Flat maps through descriptor ranges: one shader for all lengths, also those that four does not divide.

A merged map that read through descriptors would need those of all its parts, so it uses addresses. Parts that are long
enough to be faster through descriptors are dispatched one by one instead, and share a shader, which gets their length
when it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lavax.backends.vulkan.emit.map.elements import compute, loop_iterations
from lavax.backends.vulkan.emit.map.row_blocks import Block, compute_block, elements_of_block
from lavax.backends.vulkan.emit.map.wide_stores import vectors_of_any_length
from lavax.backends.vulkan.glsl.descriptor_arrays import arrays_by_descriptor
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid, local_invocations, open_body
from lavax.backends.vulkan.glsl.shader import REST_WORD, ShaderText, assemble
from lavax.backends.vulkan.plan.plan import Shader
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.schedule.merge import flattened_map

# What the shader gets besides slots: the numbers of blocks and of blocks per invocation, and of elements behind the
# last block; of parts of arrays, where the results begin.
_WORDS = 4
# Where the result begins in its array is a multiple of this.
BEGIN_BYTES = 16


def suits_descriptors(kernel: Kernel, profile: DeviceProfile) -> bool:
    """Whether all of a flat map's arrays are seen through descriptors."""
    arrays = (*kernel.graph.inputs, *kernel.graph.outputs)
    by_descriptor = arrays_by_descriptor(kernel, profile.descriptor_range_bytes)
    return len(by_descriptor) == len(arrays) and 2 * len(arrays) + _WORDS <= REST_WORD


def emit_flat_maps(
    kernels: Sequence[Kernel], profile: DeviceProfile, lifted: bool, begins: Sequence[int] = ()
) -> list[Launch]:
    """The launches of flat maps of one form that suit descriptors; the slots of arrays' positions come last.

    With `lifted`, or if four does not divide one of them, the shader is for every length. `begins` are the bytes in
    front of their results, of parts of arrays.
    """
    by_descriptor = arrays_by_descriptor(kernels[0], profile.descriptor_range_bytes)
    flat = replace(flattened_map(kernels[0]), packed=profile.packed, paired=profile.paired, by_descriptor=by_descriptor)
    block = Block() if begins else Block(1, vectors_of_any_length(flat, profile))
    has_rest = lifted or any(kernel.domain.rows % (VECTOR * block.vectors) for kernel in kernels)
    shader = _shader(flat, block, profile, has_rest, bool(begins))
    launches = [_launch(kernel, block, shader, profile, has_rest) for kernel in kernels]
    starts = [begin // BEGIN_BYTES for begin in begins]
    if not starts:
        return launches
    return [
        replace(launch, words=(start, *launch.words)) for launch, start in zip(launches, starts, strict=True)
    ]


def _launch(kernel: Kernel, block: Block, shader: Shader, profile: DeviceProfile, has_rest: bool) -> Launch:
    blocks, rest = divmod(kernel.domain.rows, VECTOR * block.vectors)
    iterations = loop_iterations(blocks)
    groups = -(-blocks // (iterations * local_invocations(profile)))
    return Launch(shader, (blocks, iterations, *([rest] if has_rest else [])), grid(groups))


def _shader(flat: Kernel, block: Block, profile: DeviceProfile, has_rest: bool, has_start: bool) -> Shader:
    local, step = local_invocations(profile), VECTOR * block.vectors
    body, outputs = open_body(flat, lifted=False)
    if has_start:
        start = body.parameters.unknown(0)
        for address in outputs.values():
            behind = f"{body.uses.access('behind')}({address}, {start}, {BEGIN_BYTES}u)"
            body.line(f"{address} = {behind}; w{body.memory.write_descriptors[address]} += {start};")
    blocks, iterations = (body.parameters.unknown(0) for _ in range(2))
    body.line(f"int group = int{WORKGROUP};")
    body.line(f"int first = group * {iterations} * {local} + int(gl_LocalInvocationID.x);")
    number = f"first + {local} * turn"
    with body.block(f"for (int turn = 0; turn < {iterations} && {number} < {blocks}; ++turn)", frozenset(("i",))):
        body.line(f"int i = {number};")
        number_of_block = variable("i", flat.domain.rows // step)
        compute_block(body, flat, block, elements_of_block(flat, number_of_block, block), outputs)
    if has_rest:
        rest = body.parameters.unknown(0)
        with body.block(f"if (group == 0 && int(gl_LocalInvocationID.x) < {rest})", frozenset(("last",))):
            body.line(f"int last = {step} * {blocks} + int(gl_LocalInvocationID.x);")
            compute(body, flat, variable("last", flat.domain.rows), outputs)
    return assemble(ShaderText(body.uses, body.scopes[0].lines, (local, 1)))
