"""Merged map kernels: the same flat map over several sets of arrays, in one dispatch.

A table in memory says for each part where its vectors begin, how many elements it has, and which slots its arrays
have. An invocation finds its part by bisection, so the code is the same for two parts and for two hundred.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.backends.vulkan.emit.body import LANE, Body, widened
from lavax.backends.vulkan.emit.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.emit.launch import Launch, grid, local_invocations, placed
from lavax.backends.vulkan.emit.shader import Parameters, ShaderText, assemble, reference
from lavax.backends.vulkan.plan import Shader
from lavax.backends.vulkan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.index import linear, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.merge import LONGEST, flattened

# The buffer table is the only slot of the dispatch itself; slots of parts stand in it.
_OWN_SLOTS = 1


def emit_merged(kernels: Sequence[Kernel], slots: Sequence[Sequence[int]], profile: DeviceProfile) -> Launch:
    """One shader for all parts; `slots` are the program's slots of each part's inputs and outputs, in order."""
    kernel = flattened(kernels[0])
    arrays = len(slots[0])
    vectors = [-(-part.domain.rows // VECTOR) for part in kernels]
    starts = np.concatenate([[0], np.cumsum(vectors)])
    columns = [starts[:-1], [part.domain.rows for part in kernels], *zip(*slots, strict=True)]
    table = np.array(columns, np.uint32).T
    local = local_invocations(profile)
    body = _open(arrays, len(kernels), int(starts[-1]), local)
    inputs = {node: f"p{number}" for number, node in enumerate(kernel.graph.inputs)}
    body.addresses.update(inputs)
    body.packed, body.paired = profile.packed, profile.paired
    element = variable("i", LONGEST // VECTOR)
    values = {"o0": linear([(element, VECTOR), (LANE, 1)])}
    places = {output: placed(kernel.places[output], values) for output in kernel.graph.outputs}
    results = {output: body.value(output, at) for output, at in places.items()}
    with body.block(f"if ({VECTOR} * i + {VECTOR} <= size)"):
        for number, (output, result) in enumerate(results.items()):
            body.store(output, places[output], result, f"p{len(inputs) + number}")
    with body.block("else"):
        for number, (output, result) in enumerate(results.items()):
            _store_tail(body, output, widened(result, VECTOR, output.dtype), f"p{len(inputs) + number}")
    text = ShaderText(body.scopes[0].lines, (local, 1))
    words = (len(kernels), int(starts[-1]))
    return Launch(Shader(assemble(text)), words, grid(-(-int(starts[-1]) // local)), (table.tobytes(),))


def _open(arrays: int, parts: int, count: int, local: int) -> Body:
    body = Body({}, Parameters(_OWN_SLOTS, lifted=False))
    stride = arrays + 2
    workgroup = "gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x"
    for line in (
        f"uint vector = ({workgroup}) * {local}u + gl_LocalInvocationID.x;",
        "if (vector >= words[2]) return;",
        f"{reference('u32')} parts = {reference('u32')}(table.address[words[0]]);",
        "uint low = 0u, high = words[1];",
        "while (high - low > 1u) {",
        "    uint middle = (low + high) / 2u;",
        f"    if (parts.data[middle * {stride}u] <= vector) low = middle; else high = middle;",
        "}",
        f"int i = int(vector - parts.data[low * {stride}u]);",
        f"int size = int(parts.data[low * {stride}u + 1u]);",
    ):
        body.line(line)
    for number in range(arrays):
        body.line(f"uint64_t p{number} = table.address[parts.data[low * {stride}u + {number + 2}u]];")
    body.scopes[0].variables |= {"i"}
    return body


def _store_tail(body: Body, output: Node, text: str, address: str) -> None:
    """The last elements of a part whose size is no multiple of four."""
    name = body.name()
    body.line(f"{type_name(output.dtype, VECTOR)} {name} = {text};")
    for lane, component in enumerate(COMPONENTS[:-1]):
        stored = body.stored(output.dtype, address, f"{VECTOR} * i + {lane}", f"{name}.{component}")
        body.line(f"if ({VECTOR} * i + {lane} < size) {stored}")
