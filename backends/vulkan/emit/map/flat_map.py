"""Flat maps through windows: one shader for all lengths.

Where arrays are read through descriptors, a merged map would need those of all its parts, so it takes addresses. Parts
that are long enough to be faster through windows are dispatched one by one instead, and share a shader: how long they
are is given when it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lavax.backends.vulkan.glsl.body import LANE
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid, local_invocations, open_body, placed
from lavax.backends.vulkan.glsl.shader import REST_WORD, ShaderText, assemble
from lavax.backends.vulkan.glsl.windows import windowed_arrays
from lavax.backends.vulkan.plan.plan import Shader
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import linear, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.schedule.merge import flattened_map

# Vectors of an invocation, and how many invocations there should be left.
_TURNS, _BUSY = (16, 8, 4, 2, 1), 1024
# What the shader is given besides slots: how many vectors an invocation has, and how many workgroups there are.
_WORDS = 2


def suits_windows(kernel: Kernel, profile: DeviceProfile) -> bool:
    """Whether a flat map's arrays, but for those of one element, are all seen in windows, and workgroups divide it."""
    arrays = (*kernel.graph.inputs, *kernel.graph.outputs)
    windowed = windowed_arrays(kernel, profile.descriptor_range_bytes)
    divided = kernel.domain.rows % (VECTOR * local_invocations(profile)) == 0
    return len(windowed) == len(arrays) and 2 * len(arrays) + _WORDS <= REST_WORD and divided


def emit_flat_maps(kernels: Sequence[Kernel], profile: DeviceProfile) -> list[Launch]:
    """The launches of flat maps of one form that suit windows; behind their slots come those of arrays' positions."""
    shader = _shader(kernels[0], profile)
    return [_launch(kernel, shader, profile) for kernel in kernels]


def _launch(kernel: Kernel, shader: Shader, profile: DeviceProfile) -> Launch:
    vectors, local = kernel.domain.rows // VECTOR, local_invocations(profile)
    turns = next((n for n in _TURNS if vectors % (n * local) == 0 and vectors // n >= _BUSY), 1)
    groups = vectors // (turns * local)
    return Launch(shader, (turns, groups), grid(groups))


def _shader(kernel: Kernel, profile: DeviceProfile) -> Shader:
    windowed, local = windowed_arrays(kernel, profile.descriptor_range_bytes), local_invocations(profile)
    flat = replace(flattened_map(kernel), packed=profile.packed, paired=profile.paired, windowed=windowed)
    body, outputs = open_body(flat, lifted=False)
    turns, groups = (body.parameters.unknown(0) for _ in range(_WORDS))
    body.line(f"int group = int{WORKGROUP};")
    body.line(f"if (group >= {groups}) return;")
    with body.block(f"for (int turn = 0; turn < {turns}; ++turn)", frozenset(("i",))):
        body.line(f"int i = (group * {turns} + turn) * {local} + int(gl_LocalInvocationID.x);")
        element = variable("i", flat.domain.rows // VECTOR)
        values = {"o0": linear([(element, VECTOR), (LANE, 1)])}
        places = {output: placed(flat.places[output], values) for output in flat.graph.outputs}
        results = {output: body.value(output, at) for output, at in places.items()}
        for output, result in results.items():
            body.store(output, places[output], result, outputs[output])
    return assemble(ShaderText(body.uses, body.scopes[0].lines, (local, 1)))
