"""Updates of integers that all invocations of a GPU join to their places at once: shaders of join_places.

Sums and extremes of integers do not depend on order. If the array is small, and many updates meet at its places, each
workgroup joins a share of them in shared memory first, and then what it has found to the array. Of a larger array, the
workgroup keeps the elements that it meets first, so that many updates of one place do not wait for each other.
"""

from __future__ import annotations

from dataclasses import replace

from lavax.backends.vulkan.emit.map.kernel import emit_copy
from lavax.backends.vulkan.emit.scatter.places import WORD_BITS, JoinedPlaces, join_in_order
from lavax.backends.vulkan.glsl.expressions import literal, type_name
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.ops.indexing import JOINS
from lavax.passes.kernels.kernel import Kernel


@dataclass(frozen=True)
class SharedPlaces:
    """What workgroups keep of an array. `python -m benchmarks operations --only "bincount*"`."""

    invocations: int = 256
    shared_bytes: int = 1 << 15  # of a copy, at most: several workgroups share a processor's memory
    least_updates: int = 1 << 11  # of a workgroup
    updates_per_element: int = 8  # the same for each element, which the workgroup clears and then joins to the array,
    workgroups: int = 4  # unless fewer than so many for each processor had all updates
    kept: int = 1 << 11  # elements of a larger array
    meeting: int = 2  # updates for each element of it; of fewer, too few meet


SHARED_PLACES = SharedPlaces()
_OWNER_BYTES = 4
# Joins of updates of which many may have one place. `nonzero` asks for the least position at each of its places, which
# all differ.
_MEETING = ("add", "maximum")


# An extreme is read before an update is joined to it: most updates change nothing, and a read takes less time.
_CHANGES = {"maximum": "<", "minimum": ">"}


class _InAnyOrder(JoinedPlaces):
    """Updates that go to memory at once."""

    def join_one(self, place: str, update: str) -> None:
        self.body.line(self.joined(self.element(place), update))

    def joined(self, element: str, update: str) -> str:
        """The statement that joins an update to an element in memory."""
        comparison = _CHANGES.get(self.routine.node.attrs["join"])
        condition = f"if ({element} {comparison} {update}) " if comparison else ""
        return f"{condition}{self.atomic}({element}, {update});"


class _AtOnce(_InAnyOrder):
    """Each invocation joins one update, or four neighbours."""

    def emit(self) -> Launch:
        self.routine.open(self.arrays * self.vectors)
        self.open(f"i / {self.body.parameters.integer(self.vectors)}")
        self.join("i - part * vectors")
        return self.routine.close(self.arrays * self.vectors)


class _InSharedMemory(_InAnyOrder):
    """Each workgroup joins a share of the updates to a copy of the array."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool, local: int) -> None:
        super().__init__(kernel, profile, lifted, local)
        dtype = self.array.dtype
        self.identity = literal(JOINS[self.routine.node.attrs["join"]].identity(dtype), dtype)
        self.slots = self.wanted_slots()
        self.in_words = dtype.bits > WORD_BITS
        held = {"low": "uint", "high": "uint"} if self.in_words else {"held": type_name(dtype, 1)}
        self.shared = [f"shared {kind} {name}[{self.slots}];" for name, kind in held.items()]
        self.processors = profile.processors

    def wanted_slots(self) -> int:
        """How many elements a workgroup keeps."""
        return self.array.shape[-1]

    def emit(self) -> Launch:
        body, local = self.body, self.routine.local
        share = self.arrays * self.vectors * self.width // (SHARED_PLACES.workgroups * self.processors)
        wanted = max(SHARED_PLACES.least_updates, min(SHARED_PLACES.updates_per_element * self.slots, share))
        turns = -(-wanted // (self.width * local))
        shares = -(-self.vectors // (turns * local))
        body.line(f"int group = int{WORKGROUP};")
        body.line("int thread = int(gl_LocalInvocationID.x);")
        body.line(f"if (group >= {self.arrays * shares}) return;")
        self.open(f"group / {shares}")
        each_slot = f"for (int k = thread; k < {self.slots}; k += {local})"
        with body.block(each_slot):
            self.clear()
        body.line("barrier();")
        body.line(f"int first = group % {shares} * {turns * local} + thread;")
        each_turn = body.block(f"for (int turn = 0; turn < {turns}; ++turn)")
        with each_turn, body.block(f"if (first + turn * {local} < vectors)"):
            self.join(f"first + turn * {local}")
        body.line("barrier();")
        with body.block(each_slot):
            self.join_slot()
        text = ShaderText(body.uses, body.scopes[0].lines, (local, 1), self.shared)
        return Launch(assemble(text), tuple(body.parameters.words), grid(self.arrays * shares))

    def clear(self) -> None:
        self.body.line("low[k] = high[k] = 0u;" if self.in_words else f"held[k] = {self.identity};")

    def join_one(self, place: str, update: str) -> None:
        self.join_held(place, update)

    def join_held(self, slot: str, update: str) -> None:
        """Joins an update to what the workgroup keeps. Sums of 64 bits are two words, of which the first one carries:
        processors add words of shared memory at once, and longer numbers by comparing and swapping."""
        body = self.body
        if not self.in_words:
            body.line(f"{self.atomic}(held[{slot}], {update});")
            return
        body.line(f"uint lower = uint({update}), upper = uint({update} >> {WORD_BITS});")
        body.line(f"upper += uint(atomicAdd(low[{slot}], lower) + lower < lower);")
        body.line(f"if (upper != 0u) atomicAdd(high[{slot}], upper);")

    @property
    def found(self) -> str:
        """What the workgroup has found for the element of a slot."""
        return f"int64_t(uint64_t(high[k]) << {WORD_BITS} | uint64_t(low[k]))" if self.in_words else "held[k]"

    def join_slot(self) -> None:
        """Joins what the workgroup has found for an element to the array."""
        self.body.line(f"if ({self.found} != {self.identity}) {self.joined(self.element('k'), self.found)}")


class _FirstInSharedMemory(_InSharedMemory):
    """Each workgroup keeps elements of the array: at most one for each slot, that of the first update that meets it."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool, local: int) -> None:
        super().__init__(kernel, profile, lifted, local)
        self.shared.append(f"shared int owners[{self.slots}];")

    def wanted_slots(self) -> int:
        return SHARED_PLACES.kept

    def clear(self) -> None:
        super().clear()
        self.body.line("owners[k] = -1;")

    def join_one(self, place: str, update: str) -> None:
        body, slot = self.body, f"{place} & {self.slots - 1}"
        body.line(f"int owner = owners[{slot}];")
        with body.block("if (owner < 0)"):
            body.line(f"owner = atomicCompSwap(owners[{slot}], -1, {place});")
            body.line(f"owner = owner < 0 ? {place} : owner;")
        with body.block(f"if (owner == {place})"):
            self.join_held(slot, update)
        body.line(f"else {self.joined(self.element(place), update)}")

    def join_slot(self) -> None:
        self.body.line(f"if (owners[k] >= 0) {self.joined(self.element('owners[k]'), self.found)}")


def _kind_of(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> type[_AtOnce | _InSharedMemory]:
    (node,) = kernel.graph.outputs
    array, updates, _ = node.operands
    extent, count = array.shape[-1], updates.shape[-1]
    fits = array.dtype.bits // 8 * extent <= min(SHARED_PLACES.shared_bytes, profile.shared_memory_bytes)
    slots = extent if fits else SHARED_PLACES.kept
    is_kept = array.dtype.bits <= WORD_BITS or node.attrs["join"] == "add"
    if lifted or not is_kept or count < max(SHARED_PLACES.least_updates, SHARED_PLACES.updates_per_element * slots):
        return _AtOnce
    if fits:
        return _InSharedMemory
    kept_bytes = (array.dtype.bits // 8 + _OWNER_BYTES) * SHARED_PLACES.kept
    meet = node.attrs["join"] in _MEETING and count >= SHARED_PLACES.meeting * extent
    keeps = meet and kept_bytes <= profile.shared_memory_bytes
    return _FirstInSharedMemory if keeps else _AtOnce


def emit_join_places(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shaders of join_places: the array is copied first."""
    (node,) = kernel.graph.outputs
    copied = emit_copy(kernel, node.operands[0], profile, lifted)
    if profile.kind == "cpu" or node.dtype.is_float:
        return replace(join_in_order(kernel, profile, lifted), before=copied)
    local = min(SHARED_PLACES.invocations, profile.max_workgroup_invocations)
    kind = _kind_of(kernel, profile, lifted)
    return replace(kind(kernel, profile, lifted, local).emit(), before=copied)
