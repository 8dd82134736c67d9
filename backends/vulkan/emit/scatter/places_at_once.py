"""Updates of integers that all invocations of a GPU join to their places at once: shaders of join_places.

Sums and extremes of integers do not depend on order. If the array is small, and many updates meet at its places, each
workgroup joins a share of them in shared memory first, and then what it has found to the array. Of a larger array, the
workgroup keeps the elements that it meets first, so that many updates of one place do not wait for each other.
"""

from __future__ import annotations

from dataclasses import replace

from lavax.backends.vulkan.emit.map.kernel import emit_copy
from lavax.backends.vulkan.emit.scatter.places import JoinedPlaces, join_in_order
from lavax.backends.vulkan.glsl.expressions import literal, type_name
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.ops.indexing import JOINS
from lavax.passes.kernels.kernel import Kernel


@dataclass(frozen=True)
class SharedPlaces:
    """Arrays that each workgroup has a copy of. `python -m benchmarks operations --only "bincount*"`."""

    invocations: int = 256
    shared_bytes: int = 1 << 15  # of a copy, at most: several workgroups share a processor's memory
    least_updates: int = 1 << 12  # of a workgroup
    updates_per_element: int = 8  # the same for each element, which the workgroup clears and then joins to the array


SHARED_PLACES = SharedPlaces()


class _AtOnce(JoinedPlaces):
    """Each invocation joins one update, or four neighbours."""

    def emit(self) -> Launch:
        self.routine.open(self.arrays * self.vectors)
        self.open(f"i / {self.body.parameters.integer(self.vectors)}")
        self.join("i - part * vectors")
        return self.routine.close(self.arrays * self.vectors)


class _InSharedMemory(JoinedPlaces):
    """Each workgroup joins a share of the updates to a copy of the array."""

    def emit(self) -> Launch:
        body, node, local = self.body, self.routine.node, self.routine.local
        extent, dtype = self.array.shape[-1], self.array.dtype
        identity = literal(JOINS[node.attrs["join"]].identity(dtype), dtype)
        wanted = max(SHARED_PLACES.least_updates, SHARED_PLACES.updates_per_element * extent)
        turns = -(-wanted // (self.width * local))
        shares = -(-self.vectors // (turns * local))
        body.line(f"int group = int{WORKGROUP}, thread = int(gl_LocalInvocationID.x);")
        body.line(f"if (group >= {self.arrays * shares}) return;")
        self.open(f"group / {shares}")
        each_element = f"for (int k = thread; k < extent; k += {local})"
        body.line(f"{each_element} held[k] = {identity};")
        body.line("barrier();")
        body.line(f"int first = group % {shares} * {turns * local} + thread;")
        with body.block(f"for (int turn = 0; turn < {turns}; ++turn)"), body.block(
            f"if (first + turn * {local} < vectors)"
        ):
            self.join(f"first + turn * {local}")
        body.line("barrier();")
        with body.block(each_element):
            body.line(f"if (held[k] != {identity}) {self.atomic}({super().element('k')}, held[k]);")
        shared = [f"shared {type_name(dtype, 1)} held[{extent}];"]
        text = ShaderText(body.uses, body.scopes[0].lines, (local, 1), shared)
        return Launch(assemble(text), tuple(body.parameters.words), grid(self.arrays * shares))

    def element(self, place: str) -> str:
        return f"held[{place}]"


def _suits_shared_memory(kernel: Kernel, profile: DeviceProfile) -> bool:
    array, updates, _ = kernel.graph.outputs[0].operands
    extent, count = array.shape[-1], updates.shape[-1]
    fits = 4 * extent <= min(SHARED_PLACES.shared_bytes, profile.shared_memory_bytes)
    return fits and count >= max(SHARED_PLACES.least_updates, SHARED_PLACES.updates_per_element * extent)


def emit_join_places(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shaders of join_places: the array is copied first."""
    (node,) = kernel.graph.outputs
    copied = emit_copy(kernel, node.operands[0], profile, lifted)
    if profile.kind == "cpu" or node.dtype.is_float:
        return replace(join_in_order(kernel, profile, lifted), before=copied)
    kind = _InSharedMemory if not lifted and _suits_shared_memory(kernel, profile) else _AtOnce
    local = min(SHARED_PLACES.invocations, profile.max_workgroup_invocations)
    return replace(kind(kernel, profile, lifted, local).emit(), before=copied)
