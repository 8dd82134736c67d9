"""Merged map kernels: the same flat map over several sets of arrays, in one dispatch.

A workgroup has a stretch of one part: so many vectors, the same for all parts. A table in memory says which part is
whose, and for each part its first workgroup, how many elements it has, and which slots its arrays have. So the code is
the same for two parts and for two hundred.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid, local_invocations, placed
from lavax.backends.vulkan.glsl.shader import Parameters, ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.index import linear, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates
from lavax.passes.schedule.merge import MERGED_MAPS, flattened_map

# The buffer table is the only slot of the dispatch itself; slots of parts stand in it.
_OWN_SLOTS = 1

# Stretches are made longer until there are at most so many: each has a word in the table.
_MOST_STRETCHES = 16384


def emit_merged(kernels: Sequence[Kernel], slots: Sequence[Sequence[int]], profile: DeviceProfile) -> Launch:
    """One shader for all parts; `slots` are the program's slots of each part's inputs and outputs, in order."""
    kernel = flattened_map(kernels[0])
    sizes = [part.domain.rows for part in kernels]
    local = local_invocations(profile)
    stretch = _stretch(sizes, local)
    table, groups = _table(sizes, stretch, slots)
    body = _open(len(slots[0]), local)
    inputs = {node: f"p{number}" for number, node in enumerate(kernel.graph.inputs)}
    body.addresses.update(inputs)
    body.memory.packed, body.memory.paired = profile.packed, profile.paired
    element = variable("i", MERGED_MAPS.most_elements // VECTOR)
    values = {"o0": linear([(element, VECTOR), (LANE, 1)])}
    coordinates = {output: placed(kernel.coordinates[output], values) for output in kernel.graph.outputs}
    addresses = {output: f"p{len(inputs) + number}" for number, output in enumerate(kernel.graph.outputs)}
    with body.block(f"for (int i = first; i < end; i += {local})", frozenset(("i",))):
        results = {output: body.value(output, at) for output, at in coordinates.items()}
        if any(size % VECTOR for size in sizes):
            _store_guarded(body, coordinates, results, addresses)
        else:
            _store_whole(body, coordinates, results, addresses)
    text = ShaderText(body.uses, body.scopes[0].lines, (local, 1))
    return Launch(assemble(text), (stretch,), grid(groups), (table,))


def _stretch(sizes: Sequence[int], local: int) -> int:
    """How many vectors a workgroup goes through: as many as it has invocations, or a power of two times that."""
    stretch = local
    while sum(-(-size // (VECTOR * stretch)) for size in sizes) > max(_MOST_STRETCHES, len(sizes)):
        stretch *= 2
    return stretch


def _table(sizes: Sequence[int], stretch: int, slots: Sequence[Sequence[int]]) -> tuple[bytes, int]:
    """For each workgroup where its part's entry begins, then the entries; and the number of workgroups."""
    counts = [-(-size // (VECTOR * stretch)) for size in sizes]
    starts = np.concatenate([[0], np.cumsum(counts)])
    entries = np.array([starts[:-1], sizes, *zip(*slots, strict=True)], np.uint32).T
    groups = int(starts[-1])
    owners = groups + entries.shape[1] * np.repeat(np.arange(len(sizes)), counts)
    return np.concatenate([owners.astype(np.uint32), entries.reshape(-1)]).tobytes(), groups


def _open(arrays: int, local: int) -> Body:
    """A body with the addresses of the part's arrays, and where the invocation's vectors begin and end."""
    body = Body({}, Parameters(_OWN_SLOTS, lifted=False))
    words = body.uses.reference("u32")
    for line in (
        f"{words} parts = {words}(table.address[words[0]]);",
        f"uint group = {WORKGROUP};",
        "uint part = parts.data[group];",
        "int start = int((group - parts.data[part]) * words[1]);",
        "int size = int(parts.data[part + 1u]);",
        "int first = start + int(gl_LocalInvocationID.x);",
        f"int end = min(start + int(words[1]), (size + {VECTOR - 1}) / {VECTOR});",
    ):
        body.line(line)
    for number in range(arrays):
        body.line(f"uint64_t p{number} = table.address[parts.data[part + {number + 2}u]];")
    return body


def _store_whole(
    body: Body,
    coordinates: Mapping[Node, Coordinates],
    results: Mapping[Node, GlslValue],
    addresses: Mapping[Node, str],
) -> None:
    for output, result in results.items():
        body.store(output, coordinates[output], result, addresses[output])


def _store_guarded(
    body: Body,
    coordinates: Mapping[Node, Coordinates],
    results: Mapping[Node, GlslValue],
    addresses: Mapping[Node, str],
) -> None:
    """Where the sizes of some parts are no multiples of four."""
    with body.block(f"if ({VECTOR} * i + {VECTOR} <= size)"):
        _store_whole(body, coordinates, results, addresses)
    with body.block("else"):
        for output, result in results.items():
            _store_tail(body, output, widened(result, VECTOR, output.dtype), addresses[output])


def _store_tail(body: Body, output: Node, text: str, address: str) -> None:
    """The last elements of a part whose size is no multiple of four."""
    name = body.name()
    body.line(f"{type_name(output.dtype, VECTOR)} {name} = {text};")
    for lane, component in enumerate(COMPONENTS[:-1]):
        stored = body.memory.stored(output.dtype, address, f"{VECTOR} * i + {lane}", f"{name}.{component}")
        body.line(f"if ({VECTOR} * i + {lane} < size) {stored}")
