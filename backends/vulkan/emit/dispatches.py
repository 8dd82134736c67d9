"""The dispatches of a program's steps, each of a kernel alone or of several, with the slots of their arrays."""


from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from lavax.backends.vulkan.emit.abreast import abreast
from lavax.backends.vulkan.emit.contract.kernel import emit_contract, schedule_of
from lavax.backends.vulkan.emit.eager import has_shaders_of_its_own, is_flat
from lavax.backends.vulkan.emit.gates.kernel import emit_gates
from lavax.backends.vulkan.emit.lines_in_turn import in_parts, in_turn, lines_at_a_time, slots_in_turn
from lavax.backends.vulkan.emit.loop.lanes import emit_lane_loop
from lavax.backends.vulkan.emit.loop.registers.kernel import emit_register_loop
from lavax.backends.vulkan.emit.loop.slices import emit_slices
from lavax.backends.vulkan.emit.loop.turns import Place
from lavax.backends.vulkan.emit.map.flat_map import emit_flat_maps, suits_descriptors
from lavax.backends.vulkan.emit.map.given_constants import given_constants
from lavax.backends.vulkan.emit.map.joined_parts import (
    JoinedPart,
    copies_of_part,
    emit_joined_parts,
    joined_parts,
)
from lavax.backends.vulkan.emit.map.kernel import emit_map
from lavax.backends.vulkan.emit.map.merged import emit_merged
from lavax.backends.vulkan.emit.missing_dtypes import refuse_missing
from lavax.backends.vulkan.emit.reduce.kernel import emit_row
from lavax.backends.vulkan.emit.routines import emit_routine, gets_sizes
from lavax.backends.vulkan.emit.same_shader import Part, by_division, by_table
from lavax.backends.vulkan.emit.strided.kernel import emit_strided_contracts
from lavax.backends.vulkan.emit.table_names import (
    flags_of,
    is_merged,
    memory_of,
    moves,
    names_of_constants,
    rest_before,
    rest_of,
    table_of,
)
from lavax.backends.vulkan.glsl.descriptor_arrays import arrays_by_descriptor
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.shader import REST_WORD, suited
from lavax.backends.vulkan.plan.plan import (
    Copies,
    Dispatch,
    DispatchPart,
    Shader,
    Work,
)
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.accesses import array_in_place
from lavax.passes.kernels.commands import steps_of
from lavax.passes.kernels.kernel import Kernel, KernelStep, kernel_key
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.reports.counting import cost_of_step

# The emitter of each kind of kernel, which also takes a schedule.
EMITTERS: dict[str, Callable[..., Launch]] = {
    "map": emit_map,
    "row": emit_row,
    "contract": emit_contract,
    "gates": emit_gates,
    "routine": emit_routine,
    "loop": emit_lane_loop,
    "slices": emit_slices,
    "registers": emit_register_loop,
}
# Chooses one of a kernel's `candidates.schedules_of`, or None for the one that suits its sizes.
Choice = Callable[[Kernel], Hashable | None]
# The launches of kernels, by their keys and the schedules that were chosen for them, or None.
Launches = dict[tuple[Hashable, Hashable | None], Launch]


class Dispatches:
    """The state of making the dispatches of one program, whose plan has these slots and constants."""

    def __init__(
        self,
        program: KernelProgram,
        profile: DeviceProfile,
        lifted: bool,
        choice: Choice,
        written: Callable[[Dispatch], None],
        launches: Launches,
    ) -> None:
        self.program, self.profile, self.choice, self.eager = program, profile, choice, lifted
        self.lifted = lifted and not has_shaders_of_its_own(program, profile)
        self._written = written
        self._launches = dict(launches)
        self._works: dict[Hashable, Work] = {}
        self._suited_shaders: dict[Shader, Shader] = {}
        self._schedules: dict[Kernel, Hashable | None] = {}
        self._on_device: dict[Kernel, Kernel] = {}
        # By the identity of launches, which are held so that they keep it: those that share a dispatch, as one.
        self._shared: dict[Hashable, tuple[Sequence[Launch], Launch | None]] = {}
        self._strided = self._strided_contracts()
        self.arguments = [node.name for node in program.graph.inputs]
        given = set(self.arguments)
        self.results = [name for name in dict.fromkeys(program.results) if name not in given]
        self.flags = list(flags_of(program.steps))
        flags = set(self.flags)
        self.temporaries = [name for name in program.offsets if name not in flags]
        alone = (step.kernel for step in steps_of(program.steps) if len(step.kernels) == 1)
        self._given = {} if lifted else given_constants(alone)
        arrays = {kernel for kernel, launch in self._strided.items() if launch.in_table or launch.has_rest}
        arrays |= {step.kernel for step in steps_of(program.steps) if gets_sizes(step.kernel, profile)}
        constants = list(names_of_constants(program.steps, program.views, lifted, arrays | self._given.keys()))
        names = [*self.arguments, *self.results, *constants]
        self.constants: dict[str, bytes] = dict.fromkeys(constants, b"")
        self.slots = {name: slot for slot, name in enumerate([*names, *self.temporaries, *self.flags])}
        self._positions: dict[int, int] = {}  # by the slot of an array read by descriptor: the slot of its position

    def _place(self, name: str) -> Place:
        view = self.program.views.get(name)
        if view is None:
            return Place(self.slots[name], self.program.sizes[name])
        base = self._place(view.buffer)
        moving = (*base.counters, self.slots[view.counter]), (*base.strides, view.stride)
        return Place(base.slot, base.nbytes, *moving)

    def _position(self, place: Place) -> int:
        return self._positions.setdefault(place.slot, len(self.slots) + len(self._positions))

    def _strided_contracts(self) -> dict[Kernel, Launch]:
        """The launches of contractions that share shaders."""
        still = [step for step in steps_of(self.program.steps) if not moves(step, self.program.views)]
        contracts = [kernel for step in still for kernel in step.kernels if kernel.kind == "contract"]
        several = [] if self.lifted else [step.kernels for step in still if len(step.kernels) > 1]
        together = {kernel for kernels in several for kernel in kernels if kernel.kind == "contract"}
        # A shader for every shape also serves small kernels, so it uses addresses.
        profile = replace(self.profile, descriptor_bytes=0) if self.lifted else self.profile
        return emit_strided_contracts({kernel: self._schedule(kernel) for kernel in contracts}, together, profile)

    def _schedule(self, kernel: Kernel) -> Hashable | None:
        """The schedule chosen for a kernel, which is asked for once."""
        if kernel not in self._schedules:
            self._schedules[kernel] = self.choice(kernel)
        return self._schedules[kernel]

    def _of_step(self, step: KernelStep) -> list[Dispatch]:
        found = list(self._dispatches(step))
        for dispatch in found:
            if 0 not in dispatch.groups:
                self._written(dispatch)
        return found

    def _dispatches(self, step: KernelStep) -> Iterator[Dispatch]:
        parts = [
            (kernel, [self._place(name) for name in (*reads, *writes)])
            for kernel, reads, writes in zip(step.kernels, step.reads, step.writes, strict=True)
        ]
        if not (self.profile.float64 and self.profile.int64):
            refuse_missing(step, self.profile)
        if self.eager and is_flat(step, self.profile) and not moves(step, self.program.views):
            yield from self._merged(step, parts)
            return
        if step.in_turn and not self.lifted and not moves(step, self.program.views):
            yield self._in_turn(step, parts)
            return
        if len(parts) > 1 and not step.in_turn and not moves(step, self.program.views):
            if is_merged(step):
                yield from self._merged(step, parts)
                return
            dispatch = self._same_shader(step, parts) or self._abreast(step, parts)
            if dispatch is not None:
                yield dispatch
                return
        for number, (kernel, places) in enumerate(parts):
            joined = joined_parts(kernel, self.profile) if len(parts) == 1 else []
            if joined and not moves(step, self.program.views):
                yield from self._joined(step, joined, places)
                return
            part, key = self._part(kernel, places)
            launch, slots = part.launch, part.slots
            barrier = step.in_turn if number else step.barrier
            if launch.in_table:
                dispatch = self._in_table(step, [part], rest_of(step.name, number))
                assert dispatch is not None, "a strided product needs nothing but its shader"
                yield replace(dispatch, barrier=barrier, work=self._work_of_equals(key, step, number))
                continue
            if launch.before is not None and self._is_in_place(step, number):
                launch = replace(launch, before=None)
            work = self._work_of_equals(key, step, number)
            if launch.before is not None:
                before = self._dispatch(launch.before, slots, rest_before(step.name, number), barrier, step.name)
                copies = self._copies(launch.before.copies, places)
                yield replace(before, work=Work(nbytes=work.nbytes), copies=copies)
            if launch.memory_bytes:
                slots += (self._memory(memory_of(step.name, number), launch.memory_bytes),)
            later = barrier or launch.before is not None
            rest = rest_of(step.name, number) if launch.has_rest else None
            dispatch = self._dispatch(launch, slots, rest, later, step.name)
            seen, copies = part.seen if launch.by_descriptor else None, self._copies(launch.copies, places)
            yield replace(dispatch, seen=seen, work=work, copies=copies)

    def _part(self, kernel: Kernel, places: Sequence[Place], together: int = 1) -> tuple[Part, Hashable | None]:
        """A kernel's launch and slots, and a key that is equal for kernels of the same code.

        `together`: how many such kernels the dispatch computes.
        """
        moving = self._moving(kernel, places) if self.program.views else {}
        strided, schedule = self._strided.get(kernel), self._schedule(kernel)
        if schedule is None and kernel.kind == "contract" and together > 1 and self.profile.kind == "gpu":
            schedule = schedule_of(kernel, self.profile, together)
        by_address = self.lifted or strided is not None  # strided products choose their descriptors themselves
        if moving:
            kernel = self._for_device(kernel, by_address, moving)
        elif kernel not in self._on_device:
            kernel = self._on_device.setdefault(kernel, self._for_device(kernel, by_address, {}))
        else:
            kernel = self._on_device[kernel]
        by_descriptor, key = kernel.by_descriptor, kernel_key(kernel)
        launch = self._launch(kernel, key, schedule) if strided is None else strided
        counters = [slot for place in places for slot in place.counters]
        ordered = places if launch.order is None else [places[array] for array in launch.order]
        positions = [self._position(places[array]) for array in by_descriptor]
        seen = tuple(place.slot for place in ordered)
        described = [self._position(place) for place in ordered[: launch.by_descriptor]]
        return Part(launch, (*described, *seen[launch.by_descriptor :], *counters, *positions), seen), key

    @staticmethod
    def _moving(kernel: Kernel, places: Sequence[Place]) -> dict[Node, tuple[int, ...]]:
        """The arrays of a kernel that start elsewhere in each turn of a loop, and by how many bytes they move."""
        arrays = [*kernel.graph.inputs, *kernel.graph.outputs]
        return {node: place.strides for node, place in zip(arrays, places, strict=True) if place.strides}

    def _for_device(self, kernel: Kernel, by_address: bool, moving: dict[Node, tuple[int, ...]]) -> Kernel:
        """A kernel with what its shader must know about the device and about its arrays."""
        given = self._given.get(kernel, frozenset())
        kernel = replace(kernel, moving=moving, packed=self.profile.packed, paired=self.profile.paired)
        by_descriptor = () if by_address else arrays_by_descriptor(kernel, self.profile.descriptor_range_bytes)
        return replace(kernel, by_descriptor=by_descriptor, given=given)

    def _abreast(self, step: KernelStep, parts: Sequence[tuple[Kernel, list[Place]]]) -> Dispatch | None:
        """Kernels side by side in one dispatch; None if they must be dispatched one by one."""
        launches = []
        for number, (kernel, _) in enumerate(parts):
            of_device = replace(kernel, packed=self.profile.packed, paired=self.profile.paired)
            launch = self._launch(of_device, kernel_key(of_device), self._schedule(kernel))
            in_place = launch.before is not None and self._is_in_place(step, number)
            launches.append(replace(launch, before=None) if in_place else launch)
        sizes = [len(places) for _, places in parts]
        whole = self._as_one("abreast", launches, sizes, lambda: abreast(launches, sizes))
        if whole is None:
            return None
        slots = tuple(place.slot for _, places in parts for place in places)
        dispatch = Dispatch(self._suited(whole.shader), slots, (), whole.groups, step.barrier, step.name)
        return replace(dispatch, work=self._work(step, *range(len(parts))))

    def _in_turn(self, step: KernelStep, parts: Sequence[tuple[Kernel, list[Place]]]) -> Dispatch:
        """Kernels one after the other for a few lines at a time."""
        kernels = [self._for_device(kernel, False, {}) for kernel in in_parts(step.kernels)]
        launches = [self._launch(kernel, kernel_key(kernel), None) for kernel in kernels]
        whole = in_turn(kernels, launches, lines_at_a_time(step.kernels, self.profile))
        slots: dict[int, int] = {}
        for own, kernel, (_, places) in zip(slots_in_turn(kernels), kernels, parts, strict=True):
            positions = (self._position(places[array]) for array in kernel.by_descriptor)
            slots.update(zip(own, (*(place.slot for place in places), *positions), strict=True))
        ordered = tuple(slots[number] for number in range(len(slots)))
        dispatch = Dispatch(self._suited(whole.shader), ordered, (), whole.groups, step.barrier, step.name)
        return replace(dispatch, work=self._work(step, *range(len(parts))))

    def _as_one(
        self, way: str, launches: Sequence[Launch], slots: Sequence[int], join: Callable[[], Launch | None]
    ) -> Launch | None:
        """Launches with so many slots in one dispatch, joined once for the layers of a network."""
        key = (way, *map(id, launches), *slots)
        if key not in self._shared:
            self._shared[key] = (launches, join())
        return self._shared[key][1]

    def _same_shader(self, step: KernelStep, parts: Sequence[tuple[Kernel, list[Place]]]) -> Dispatch | None:
        """Kernels that one shader serves in one dispatch; None if these need several."""
        if not all(kernel.kind == step.kernel.kind for kernel, _ in parts) or self.lifted:
            return None
        found = [self._part(kernel, places, len(parts))[0] for kernel, places in parts]
        for number, part in enumerate(found):
            if part.launch.before is not None and self._is_in_place(step, number):
                found[number] = replace(part, launch=replace(part.launch, before=None))
        launches, sizes = [part.launch for part in found], [len(part.slots) for part in found]
        whole = self._as_one("division", launches, sizes, lambda: by_division(found))
        if whole is None:
            dispatch = self._in_table(step, found, table_of(step.name))
        else:
            slots = tuple(slot for part in found for slot in part.slots)
            shader = self._suited(whole.shader)
            dispatch = Dispatch(shader, slots, whole.words, whole.groups, step.barrier, step.name)
        return dispatch and replace(dispatch, work=self._work(step, *range(len(parts))))

    def _in_table(self, step: KernelStep, parts: Sequence[Part], table: str) -> Dispatch | None:
        """Kernels that one shader serves, with their numbers in the constant `table`."""
        whole = by_table(parts)
        if whole is None:
            return None
        (self.constants[table],) = whole.constants
        shader, own = self._suited(whole.shader), (self.slots[table],)
        seen = tuple(DispatchPart(part.seen, part.groups) for part in parts) if shader.bindings else ()
        return Dispatch(shader, own, whole.words, whole.groups, step.barrier, step.name, parts=seen)

    def _merged(self, step: KernelStep, parts: Sequence[tuple[Kernel, list[Place]]]) -> Iterator[Dispatch]:
        """Flat maps of one form: those that descriptors suit share a shader, and one dispatch serves all others."""
        suited = [suits_descriptors(kernel, self.profile) for kernel, _ in parts]
        apart = [part for part, is_suited in enumerate(suited) if is_suited]
        others = [part for part, is_suited in enumerate(suited) if not is_suited]
        together = [parts[part] for part in others]
        flat = [parts[part][0] for part in apart]
        launches = emit_flat_maps(flat, self.profile, self.eager) if flat else []
        for number, (launch, part) in enumerate(zip(launches, apart, strict=True)):
            places = parts[part][1]
            slots = (*(place.slot for place in places), *map(self._position, places))
            dispatch = Dispatch(self._suited(launch.shader), slots, launch.words, launch.groups, False, step.name)
            yield replace(dispatch, barrier=step.barrier and number == 0, work=self._work(step, part))
        if together:
            of_parts = [[place.slot for place in places] for _, places in together]
            launch = emit_merged([kernel for kernel, _ in together], of_parts, self.profile)
            (self.constants[table_of(step.name)],) = launch.constants
            own, barrier = (self.slots[table_of(step.name)],), step.barrier and not apart
            dispatch = Dispatch(self._suited(launch.shader), own, launch.words, launch.groups, barrier, step.name)
            yield replace(dispatch, work=self._work(step, *others))

    def _joined(self, step: KernelStep, parts: Sequence[JoinedPart], places: Sequence[Place]) -> Iterator[Dispatch]:
        """A concatenation, part by part."""
        whole, total, barrier = self._work(step, 0), sum(part.kernel.domain.rows for part in parts), step.barrier
        for part, launch in emit_joined_parts(parts, self.profile, self.eager):
            own = [*(places[number] for number in part.reads), places[-1]]
            slots = (*(place.slot for place in own), *map(self._position, own))
            shader, work = self._suited(launch.shader), whole.share(part.kernel.domain.rows, total)
            copies = self._copies(copies_of_part(part, self.profile), own)
            yield Dispatch(shader, slots, launch.words, launch.groups, barrier, step.name, work=work, copies=copies)
            barrier = False

    def _copies(self, copies: Copies | None, places: Sequence[Place]) -> Copies | None:
        """The copies of a launch, whose arrays lie there, with their slots."""
        if copies is None or any(place.strides for place in places):
            return None
        slots = [place.slot for place in places]
        for number in copies.slots:
            self._position(places[number])
        return Copies(
            tuple(replace(fill, slot=slots[fill.slot]) for fill in copies.fills),
            tuple(replace(each, source=slots[each.source], target=slots[each.target]) for each in copies.copies),
        )

    def _work_of_equals(self, key: Hashable | None, step: KernelStep, number: int) -> Work:
        """The work of a step's kernel, counted once for kernels that are equal and move as much."""
        if key is None:
            return self._work(step, number)
        equal = (key, self._is_in_place(step, number))
        if equal not in self._works:
            self._works[equal] = self._work(step, number)
        return self._works[equal]

    def _work(self, step: KernelStep, *numbers: int) -> Work:
        """The work of some of a step's kernels."""
        some = replace(
            step,
            kernels=tuple(step.kernels[number] for number in numbers),
            reads=tuple(step.reads[number] for number in numbers),
            writes=tuple(step.writes[number] for number in numbers),
        )
        cost = cost_of_step(some, self.program.donors)
        return Work(cost.operations, cost.bytes_moved)

    def _is_in_place(self, step: KernelStep, number: int) -> bool:
        """Whether a scatter's array lies in its result's memory already, so that there is nothing to copy."""
        kernel, reads, writes = step.kernels[number], step.reads[number], step.writes[number]
        return array_in_place(kernel, reads, writes, self.program.donors) is not None

    def _memory(self, name: str, nbytes: int) -> int:
        """The slot of memory that is a launch's own; it is zero before the first run."""
        self.constants[name] = bytes(nbytes)
        return self.slots[name]

    def _dispatch(self, launch: Launch, slots: tuple[int, ...], rest: str | None, barrier: bool, name: str) -> Dispatch:
        slots, words = self._pushed(rest, slots, launch.words)
        return Dispatch(self._suited(launch.shader), slots, words, launch.groups, barrier, name)

    def _pushed(
        self, rest: str | None, slots: tuple[int, ...], words: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Slots and words as push constants; those that do not fit go into the array `rest`, if there is one."""
        numbers = (*slots, *words)
        if rest is None or len(numbers) <= REST_WORD:
            return slots, words
        self.constants[rest] = np.array(numbers[REST_WORD:], np.uint32).tobytes()
        return slots[:REST_WORD], (*numbers[len(slots) : REST_WORD], self.slots[rest])

    def _launch(self, kernel: Kernel, key: Hashable | None, schedule: Hashable | None) -> Launch:
        """The kernel's launch; kernels of equal keys, such as those of a network's layers, are emitted once."""
        found = None if key is None else self._launches.get((key, schedule))
        if found is None:
            chosen = () if schedule is None else (schedule,)
            found = EMITTERS[kernel.kind](kernel, self.profile, self.lifted, *chosen)
            if key is not None:
                self._launches[key, schedule] = found
        return found

    def _suited(self, shader: Shader) -> Shader:
        """The shader adapted to the device."""
        if shader not in self._suited_shaders:
            self._suited_shaders[shader] = suited(shader, self.profile)
        return self._suited_shaders[shader]
