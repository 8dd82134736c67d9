"""Updates that are joined to their places in memory by atomic operations: the shader of join_places.

Sums of floats depend on the order of their terms. So one subgroup walks over all updates of an array; lanes that meet
join one after the other. The drivers that this is for, those of processors, run lanes in the same order every time. A
batch of arrays has a subgroup each.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from lavax.backends.vulkan.emit.map.kernel import emit_copy
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE, widened
from lavax.backends.vulkan.glsl.launch import Launch, local_invocations
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, linear, unflatten
from lavax.passes.kernels.kernel import Kernel

_ATOMICS = {"add": "atomicAdd", "maximum": "atomicMax", "minimum": "atomicMin"}


class _Places:
    """The state of writing the kernel."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        self.routine: RoutineShader = open_routine(kernel, profile, lifted, local_invocations(profile))
        self.body = self.routine.body
        self.array, self.updates, self.places = self.routine.operands
        *batch, count = self.updates.shape
        self.batch, self.arrays = tuple(batch), prod(batch)
        self.width = VECTOR if not lifted and count % VECTOR == 0 else 1
        self.vectors = count // self.width
        self.turns = VECTOR // self.width  # of one iteration, which takes four updates

    def emit(self) -> Launch:
        routine, body, apart = self.routine, self.body, self.routine.local
        routine.open(self.arrays * apart)
        routine.integer("vectors", self.vectors)
        routine.integer("extent", self.array.shape[-1])
        if self.array.dtype.is_float:
            body.uses.extensions.add("atomic_float")
        self.part = routine.position("part", f"i / {apart}", self.arrays)
        with body.block(f"for (int first = i % {apart}; first < vectors; first += {self.turns * apart})"):
            for turn in range(self.turns):
                with body.block(f"if (first + {turn * apart} < vectors)"):
                    self._join(f"first + {turn * apart}")
        return routine.close(self.arrays * apart)

    def _join(self, at: str) -> None:
        index = self.routine.position("at", f"min({at}, vectors - 1)", self.vectors)
        places, updates = self._read(self.places, index), self._read(self.updates, index)
        atomic = _ATOMICS[self.routine.node.attrs["join"]]
        for place, update in zip(places, updates, strict=True):
            element = self.body.memory.element(self.array.dtype, self.routine.target, f"part * extent + {place}")
            self.body.line(f"if ({place} >= 0 && {place} < extent) {atomic}({element}, {update});")

    def _read(self, operand: Node, index: Index) -> list[str]:
        place = index if self.width == 1 else linear([(index, VECTOR), (LANE, 1)])
        at = (*unflatten(self.part, self.batch), place)
        text = widened(self.body.value(operand, at), self.width, operand.dtype)
        return [text] if self.width == 1 else [f"{text}.{component}" for component in COMPONENTS[:VECTOR]]


def emit_join_places(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shaders of join_places: the array is copied first."""
    (node,) = kernel.graph.outputs
    copied = emit_copy(kernel, node.operands[0], profile, lifted)
    return replace(_Places(kernel, profile, lifted).emit(), before=copied)
