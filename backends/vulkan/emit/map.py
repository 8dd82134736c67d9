"""Map kernels: one invocation an element, or four neighbours."""

from __future__ import annotations

from lavax.backends.vulkan.emit.body import LANE
from lavax.backends.vulkan.emit.expressions import VECTOR
from lavax.backends.vulkan.emit.launch import (
    Launch,
    at_row,
    grid,
    local_invocations,
    open_body,
    open_invocations,
    placed,
)
from lavax.backends.vulkan.emit.shader import ShaderText, assemble
from lavax.backends.vulkan.plan import Shader
from lavax.backends.vulkan.profile import DeviceProfile
from lavax.passes.kernels.index import linear, variable
from lavax.passes.kernels.kernel import Kernel


def emit_map(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """Vectors of four where the number of elements allows it."""
    count = kernel.domain.rows
    width = VECTOR if count % VECTOR == 0 else 1
    body, outputs = open_body(kernel, lifted)
    local = local_invocations(profile)
    open_invocations(body, count // width, local, "i")
    element = variable("i", count // width)
    values = at_row(linear([(element, VECTOR), (LANE, 1)]) if width == VECTOR else element, kernel)
    places = {output: placed(kernel.places[output], values) for output in kernel.graph.outputs}
    results = {output: body.value(output, at) for output, at in places.items()}
    for output, result in results.items():
        body.store(output, places[output], result, outputs[output])
    text = ShaderText(body.scopes[0].lines, (local, 1))
    return Launch(Shader(assemble(text)), tuple(body.parameters.words), grid(-(-(count // width) // local)))
