"""Flat maps through descriptor ranges: one shader for all lengths.

A merged map that read through descriptors would need those of all its parts, so it uses addresses. Parts that are long
enough to be faster through descriptors are dispatched one by one instead, and share a shader, which gets their length
when it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lavax.backends.vulkan.emit.map.elements import loop_iterations
from lavax.backends.vulkan.glsl.body import LANE
from lavax.backends.vulkan.glsl.descriptor_arrays import arrays_by_descriptor
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid, local_invocations, open_body, placed
from lavax.backends.vulkan.glsl.shader import REST_WORD, ShaderText, assemble
from lavax.backends.vulkan.plan.plan import Shader
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import linear, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.schedule.merge import flattened_map

# What the shader gets besides slots: the number of vectors per invocation, and the number of workgroups.
_WORDS = 2


def suits_descriptors(kernel: Kernel, profile: DeviceProfile) -> bool:
    """Whether all of a flat map's arrays are seen through descriptors, and workgroups divide it."""
    arrays = (*kernel.graph.inputs, *kernel.graph.outputs)
    by_descriptor = arrays_by_descriptor(kernel, profile.descriptor_range_bytes)
    divided = kernel.domain.rows % (VECTOR * local_invocations(profile)) == 0
    return len(by_descriptor) == len(arrays) and 2 * len(arrays) + _WORDS <= REST_WORD and divided


def emit_flat_maps(kernels: Sequence[Kernel], profile: DeviceProfile) -> list[Launch]:
    """The launches of flat maps of one form that suit descriptors; the slots of arrays' positions come last."""
    shader = _shader(kernels[0], profile)
    return [_launch(kernel, shader, profile) for kernel in kernels]


def _launch(kernel: Kernel, shader: Shader, profile: DeviceProfile) -> Launch:
    vectors, local = kernel.domain.rows // VECTOR, local_invocations(profile)
    iterations = loop_iterations(vectors, local)
    groups = vectors // (iterations * local)
    return Launch(shader, (iterations, groups), grid(groups))


def _shader(kernel: Kernel, profile: DeviceProfile) -> Shader:
    by_descriptor, local = arrays_by_descriptor(kernel, profile.descriptor_range_bytes), local_invocations(profile)
    flat = replace(flattened_map(kernel), packed=profile.packed, paired=profile.paired, by_descriptor=by_descriptor)
    body, outputs = open_body(flat, lifted=False)
    iterations, groups = (body.parameters.unknown(0) for _ in range(_WORDS))
    body.line(f"int group = int{WORKGROUP};")
    body.line(f"if (group >= {groups}) return;")
    with body.block(f"for (int turn = 0; turn < {iterations}; ++turn)", frozenset(("i",))):
        body.line(f"int i = (group * {iterations} + turn) * {local} + int(gl_LocalInvocationID.x);")
        element = variable("i", flat.domain.rows // VECTOR)
        values = {"o0": linear([(element, VECTOR), (LANE, 1)])}
        coordinates = {output: placed(flat.coordinates[output], values) for output in flat.graph.outputs}
        results = {output: body.value(output, at) for output, at in coordinates.items()}
        for output, result in results.items():
            body.store(output, coordinates[output], result, outputs[output])
    return assemble(ShaderText(body.uses, body.scopes[0].lines, (local, 1)))
