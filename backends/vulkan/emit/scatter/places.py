"""Updates that are joined to their places in memory by atomic operations, in their order: a shader of join_places.

Sums of floats depend on the order of their terms. So one subgroup walks over all updates of an array; lanes that meet
join one after the other. The drivers that this is for, those of processors, run lanes in the same order every time. A
batch of arrays has a subgroup each.
"""

from __future__ import annotations

from math import prod

from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE, widened
from lavax.backends.vulkan.glsl.launch import Launch, local_invocations
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, linear, unflatten
from lavax.passes.kernels.kernel import Kernel

WORD_BITS = 32
_ATOMICS = {"add": "atomicAdd", "maximum": "atomicMax", "minimum": "atomicMin"}


class JoinedPlaces:
    """The state of writing the kernel."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool, local: int) -> None:
        self.routine: RoutineShader = open_routine(kernel, profile, lifted, local)
        self.body = self.routine.body
        self.array, self.updates, self.places = self.routine.operands
        *batch, count = self.updates.shape
        self.batch, self.arrays = tuple(batch), prod(batch)
        self.width = VECTOR if not lifted and count % VECTOR == 0 else 1
        self.vectors = count // self.width
        self.turns = VECTOR // self.width  # of one iteration, which takes four updates
        self.atomic = _ATOMICS[self.routine.node.attrs["join"]]
        if self.array.dtype.bits > WORD_BITS:
            self.body.uses.extension("atomic_int64")

    def open(self, part: str) -> None:
        """Declares the sizes, and the number of the array that the invocation works on."""
        self.routine.integer("vectors", self.vectors)
        self.routine.integer("extent", self.array.shape[-1])
        self.part = self.routine.position("part", part, self.arrays)

    def join(self, at: str) -> None:
        """Joins one update, or four, to their places."""
        index = self.routine.position("at", f"min({at}, vectors - 1)", self.vectors)
        places, updates = self._read(self.places, index), self._read(self.updates, index)
        for place, update in zip(places, updates, strict=True):
            with self.body.block(f"if ({place} >= 0 && {place} < extent)"):
                self.join_one(place, update)

    def join_one(self, place: str, update: str) -> None:
        """Joins an update to a place within the array."""
        self.body.line(f"{self.atomic}({self.element(place)}, {update});")

    def element(self, place: str) -> str:
        """The array's element at a place."""
        return self.body.memory.element(self.array.dtype, self.routine.target, f"part * extent + {place}")

    def _read(self, operand: Node, index: Index) -> list[str]:
        place = index if self.width == 1 else linear([(index, VECTOR), (LANE, 1)])
        at = (*unflatten(self.part, self.batch), place)
        text = widened(self.body.value(operand, at), self.width, operand.dtype)
        return [text] if self.width == 1 else [f"{text}.{component}" for component in COMPONENTS[:VECTOR]]


def join_in_order(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader whose subgroups have an array each."""
    joined = JoinedPlaces(kernel, profile, lifted, local_invocations(profile))
    routine, body, apart, turns = joined.routine, joined.body, joined.routine.local, joined.turns
    routine.open(joined.arrays * apart)
    joined.open(f"i / {apart}")
    if joined.array.dtype.is_float:
        body.uses.extensions.add("atomic_float")
    with body.block(f"for (int first = i % {apart}; first < vectors; first += {turns * apart})"):
        for turn in range(turns):
            with body.block(f"if (first + {turn * apart} < vectors)"):
                joined.join(f"first + {turn * apart}")
    return routine.close(joined.arrays * apart)
