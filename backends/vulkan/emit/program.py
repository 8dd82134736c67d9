"""Kernels -> shaders and dispatches: the plan that a device runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from lavax.backends.vulkan.emit.contract.kernel import emit_contract_in_loop
from lavax.backends.vulkan.emit.dispatches import EMITTERS, Choice, Dispatches, Launches
from lavax.backends.vulkan.emit.guarded_dispatches import COUNTS_BYTES, counted
from lavax.backends.vulkan.emit.loop.handing_on import exchanged_in, hand_on, moving_slots
from lavax.backends.vulkan.emit.loop.lanes import emit_lane_loop_in_loop
from lavax.backends.vulkan.emit.loop.registers.kernel import emit_register_loop_in_loop
from lavax.backends.vulkan.emit.loop.stopping import is_stoppable, work_of_turn, work_until_stopped
from lavax.backends.vulkan.emit.loop.turns import Place, Turns, While
from lavax.backends.vulkan.emit.loop.workgroup import (
    Sources,
    changing_texels,
    emit_workgroup_loop,
    most_turns,
    turns_of,
)
from lavax.backends.vulkan.emit.map.kernel import emit_map_in_loop
from lavax.backends.vulkan.emit.missing_dtypes import refuse_missing
from lavax.backends.vulkan.emit.reduce.kernel import emit_row_in_loop
from lavax.backends.vulkan.emit.small_runs import Writing, in_runs, is_run, limits_within
from lavax.backends.vulkan.emit.table_names import (
    counts_of,
    groups_of,
    guards_of_loops,
    rest_of_loop,
)
from lavax.backends.vulkan.emit.written_first import compiles_ahead, how_early, written_first
from lavax.backends.vulkan.glsl.descriptor_arrays import read_by_descriptor_in_loop
from lavax.backends.vulkan.glsl.guard import guard_shader
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.shader import REST_WORD, suited
from lavax.backends.vulkan.plan.plan import (
    Command,
    Dispatch,
    Plan,
    RepeatDispatches,
    Result,
    Shader,
    UntilFlag,
    Work,
)
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir import Graph
from lavax.passes.kernels import commands as kernel_commands
from lavax.passes.kernels.commands import Guard, Guarded, steps_of
from lavax.passes.kernels.kernel import Kernel, KernelStep, kernel_key
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.schedule.early_kernels import early_kernels
from lavax.passes.target.target import Target

# The emitters of kernels in a loop that one workgroup runs, by the schedule that suits their sizes.
_EMITTERS_IN_LOOPS = EMITTERS | {
    "contract": emit_contract_in_loop,
    "loop": emit_lane_loop_in_loop,
    "map": emit_map_in_loop,
    "registers": emit_register_loop_in_loop,
    "row": emit_row_in_loop,
}
# In a run of small kernels, the numbers of which all have to fit push constants, maps have none for their own loops.
_EMITTERS_IN_RUNS = _EMITTERS_IN_LOOPS | {"map": EMITTERS["map"]}
_NONE: Launches = {}
_TEXEL_BYTES = 16


def _lies_in_range(place: Place, range_bytes: int) -> bool:
    """Whether an array lies in a descriptor range with all that it moves through, by whole texels."""
    return place.nbytes <= range_bytes // 2 and all(stride % _TEXEL_BYTES == 0 for stride in place.strides)


def by_sizes(kernel: Kernel) -> None:
    """The choice of every kernel's schedule by rules, from its sizes."""
    return


def _nobody_waits(dispatch: Dispatch) -> None:
    """What is done with a dispatch before the whole program is written."""


def emit_program(
    program: KernelProgram,
    profile: DeviceProfile,
    lifted: bool = False,
    choice: Choice = by_sizes,
    written: Callable[[Dispatch], None] = _nobody_waits,
    launches: Launches = _NONE,
) -> Plan:
    """The plan of a program for a device of this profile.

    With `lifted`, sizes are push constants, so that programs that differ only in sizes share their shaders. `written`
    is told of each dispatch that runs, once its shader is written. `launches` are those that `emit_early` has found.
    """
    return _Emission(program, profile, lifted, choice, written, launches).plan()


def emit_early(
    graph: Graph, target: Target, profile: DeviceProfile, written: Callable[[Dispatch], None]
) -> Launches:
    """Writes the shaders that a GPU's driver compiles longest, before a simplified graph is prepared and fused.

    `written` is told of a dispatch of each, which stands for those of the program. If that has none, a pipeline was
    made for nothing.
    """
    found: Launches = {}
    kernels = early_kernels(graph, target) if compiles_ahead(profile) else ()
    for kernel in sorted(kernels, key=how_early):
        of_device = replace(kernel, packed=profile.packed, paired=profile.paired)
        key = kernel_key(of_device), None
        if key[0] is not None and key not in found:
            found[key] = launch = EMITTERS[kernel.kind](of_device, profile, False)
            written(Dispatch(suited(launch.shader, profile), (), (), launch.groups, False, kernel.kind))
    return found


class _Emission(Dispatches):
    """The state of making one plan: its branches and loops, and the dispatches in them."""

    _around: str | None = None  # the flag of the branch or turn that commands are in
    _loops: tuple[kernel_commands.Repeat | kernel_commands.Until, ...] = ()  # of dispatches, that they are in

    def plan(self) -> Plan:
        first = written_first(steps_of(self.program.steps), self.profile)
        self._begun: dict[KernelStep, Sequence[Dispatch]] = {step: self._of_step(step) for step in first}
        commands = self._commands(self.program.steps)
        sizes, offsets = self.program.sizes, self.program.offsets
        return Plan(
            arguments=tuple(sizes[name] for name in self.arguments),
            results=tuple(Result(sizes[name], self._donor(name)) for name in self.results),
            constants=tuple(self.constants.values()),
            temporaries=tuple(offsets[name] for name in self.temporaries),
            arena_bytes=self.program.arena_bytes,
            commands=tuple(commands),
            flags=len(self.flags),
            range_slots=tuple(self._positions),
            block_bytes=self.program.block_bytes,
        )

    def _donor(self, name: str) -> int | None:
        donor = self.program.donors.get(name)
        return None if donor is None else self.slots[donor]  # arguments have the first slots

    def _commands(self, commands: Sequence[kernel_commands.Command]) -> list[Command]:
        found: list[Command] = []
        guards: dict[str, Guard] = {}
        for command in self._in_runs(commands):
            match command:
                case KernelStep():
                    found += self._begun.pop(command, ()) or self._of_step(command)
                case Guard():
                    guards[command.flag] = command
                case Guarded():
                    found += self._under(guards.pop(command.flag), command)
                case kernel_commands.Repeat():
                    found += self._repeated(command)
                case kernel_commands.Until():
                    found += self._while(command)
        return found

    def _in_runs(self, commands: Sequence[kernel_commands.Command]) -> Sequence[kernel_commands.Command]:
        """The commands with small kernels in a row as loops of one turn, which one workgroup runs."""
        return in_runs(commands, self._of_runs) if self._has_workgroup_loops() else commands

    @property
    def _of_runs(self) -> Writing:
        return Writing(limits_within(self._loops), self._may_join, self._together, self._fits_push_constants)

    def _may_join(self, step: KernelStep) -> bool:
        of_rules = all(self._schedule(kernel) is None for kernel in step.kernels)
        works, most = [self._work(step, number) for number in range(len(step.kernels))], limits_within(self._loops).work
        return of_rules and all(work.operations + work.nbytes <= most for work in works)

    def _together(self, run: Sequence[KernelStep], of: Sequence[KernelStep]) -> Turns | While | None:
        """The turn of a run."""
        return turns_of(kernel_commands.Repeat(1, tuple(run)), self._sources(of, ()))

    def _fits_push_constants(self, turns: Turns | While) -> bool:
        loop = emit_workgroup_loop(turns, self.profile, self._positions)
        return len(loop.slots) + 1 + len(loop.words) <= REST_WORD

    def _under(self, guard: Guard, guarded: Guarded) -> list[Command]:
        around, self._around = self._around, guarded.flag
        commands = self._guarded(guard, self._commands(guarded.commands))
        self._around = around
        return commands

    def _repeated(self, command: kernel_commands.Repeat) -> list[Command]:
        """One workgroup's loop, cut where a dispatch must end, or a loop of dispatches."""
        turns = self._turns_of(command)
        if turns is None:
            return [RepeatDispatches(command.count, self._in_turns(command))]
        if isinstance(turns, While) or is_stoppable(turns):
            return self._stopping(command, turns)
        most = min(most_turns(turns), command.count)
        whole, rest = divmod(command.count, most)
        dispatch = self._turns(command, turns)
        first = dispatch(most, False)
        parts: list[Command] = [RepeatDispatches(whole, (first,)) if whole > 1 else first]
        return [*parts, dispatch(rest, True)] if rest else parts

    def _while(self, command: kernel_commands.Until) -> list[Command]:
        turns = self._turns_of(command)
        if turns is None:
            return [UntilFlag(self.flags.index(command.flag), self._in_turns(command), self._is_in_branch)]
        return self._stopping(command, turns)

    def _in_turns(self, loop: kernel_commands.Repeat | kernel_commands.Until) -> tuple[Command, ...]:
        """What a loop of dispatches repeats."""
        around, self._loops = self._loops, (*self._loops, loop)
        found = tuple(self._commands(loop.commands))
        self._loops = around
        return found

    @property
    def _is_in_branch(self) -> bool:
        """Whether commands may be skipped while the loop around them, if there is one, goes on."""
        flags = [loop.flag for loop in self._loops if isinstance(loop, kernel_commands.Until)]
        return self._around not in (None, *flags[-1:])

    def _turns_of(self, command: kernel_commands.Repeat | kernel_commands.Until) -> Turns | While | None:
        """What one workgroup runs of a loop. Arrays that a turn writes are read through descriptors, too, unless their
        place is known only when the loop runs, as it is of some that turns hand on."""
        if not self._has_workgroup_loops():
            return None
        turns = turns_of(command, self._sources([command]))
        if turns is None or not self.profile.descriptor_range_bytes:
            return turns
        moving = moving_slots(hand_on(turns))
        changing = turns_of(command, self._sources([command], moving))
        if changing is not None and changing_texels(changing) <= self.profile.changing_texels:
            turns = changing
        for pair in exchanged_in(hand_on(turns)):
            if any(slot in self._positions for slot in pair):
                for slot in pair:
                    self._position(Place(slot, 0))
        return turns

    def _stopping(self, command: kernel_commands.Repeat | kernel_commands.Until, turns: Turns | While) -> list[Command]:
        """One workgroup's loop that is dispatched until it has not stopped, with the flag of a loop that ends by one.

        A guard without a condition sets the flag and clears the state, which takes the place of its numbers.
        """
        (flag, guard), *_ = guards_of_loops([command])
        loop = emit_workgroup_loop(turns, self.profile, self._positions)
        state, zeros = counts_of(guard), groups_of(guard)
        triples = -(-max(loop.states, 1) // 3)
        self.constants[state] = self.constants[zeros] = bytes(COUNTS_BYTES * triples)
        around = [self._around] if self._around else []
        buffers = [flag, flag, state, zeros, *around]
        begin = self._suited(guard_shader(bool(around)))
        slots, words = tuple(self.slots[name] for name in buffers), (0, 0, triples)
        own = (self.slots[flag], self.slots[state], *loop.slots)
        dispatch = self._of_workgroup(command, loop.shader, own, loop.words, work_until_stopped(turns))
        return [
            Dispatch(begin, slots, words, (1, 1, 1), True, guard),
            UntilFlag(self.flags.index(flag), (dispatch,), self._is_in_branch),
        ]

    def _has_workgroup_loops(self) -> bool:
        # On GPUs one workgroup has not been measured beside a loop of dispatches.
        return self.profile.kind == "cpu" and not self.lifted

    def _sources(
        self, commands: Sequence[kernel_commands.Command], moving: Collection[int] | None = None
    ) -> Sources:
        """What is known of a loop's steps. Of arrays that they write, kernels see through descriptors those that are
        not in the slots `moving`; None: none of them."""
        written = frozenset(self._memory_of(name) for step in steps_of(commands) for of in step.writes for name in of)
        in_run = all(isinstance(command, KernelStep) or is_run(command) for command in commands)

        def launch(step: KernelStep, number: int) -> tuple[Launch, tuple[int, ...]]:
            return self._within(step, number, written, moving, in_run)

        return Sources(launch, self._work, self._place)

    def _memory_of(self, name: str) -> str:
        """The array whose memory this one has: it is a part of it, or takes it over."""
        view = self.program.views.get(name)
        if view is not None:
            return self._memory_of(view.buffer)
        return self.program.donors.get(name, name)

    def _is_within(self, name: str, memory: Collection[str]) -> bool:
        """Whether an array has a part of some arrays' memory, perhaps as a temporary whose time is another."""
        own, offsets, sizes = self._memory_of(name), self.program.offsets, self.program.sizes
        if own in memory or own not in offsets:
            return own in memory
        begin, end = offsets[own], offsets[own] + sizes[own]
        return any(offsets[each] < end and begin < offsets[each] + sizes[each] for each in memory if each in offsets)

    def _turns(self, command: kernel_commands.Repeat, turns: Turns) -> Callable[[int, bool], Dispatch]:
        """The dispatch of a number of turns, which may be the last ones."""
        loop, work = emit_workgroup_loop(turns, self.profile, self._positions), work_of_turn(turns)

        def dispatch(count: int, is_last: bool) -> Dispatch:
            of_all = Work(work.operations * count, work.nbytes * count)
            return self._of_workgroup(command, loop.shader, loop.slots, (count, *loop.words), of_all, is_last)

        return dispatch

    def _of_workgroup(
        self,
        command: kernel_commands.Repeat | kernel_commands.Until,
        shader: Shader,
        slots: tuple[int, ...],
        words: tuple[int, ...],
        work: Work,
        is_last: bool = False,
    ) -> Dispatch:
        pushed, words = self._pushed(rest_of_loop(command, is_last), slots, words)
        name, seen = next(steps_of(command.commands)).name, slots if shader.bindings else None
        return Dispatch(self._suited(shader), pushed, words, (1, 1, 1), True, name, seen=seen, work=work)

    def _within(
        self,
        step: KernelStep,
        number: int,
        written: Collection[str],
        places_move: Collection[int] | None,
        in_run: bool,
    ) -> tuple[Launch, tuple[int, ...]]:
        """The launch of a step's kernel as part of a workgroup's loop that writes to `written`, and the slots of
        positions of arrays that it sees through descriptors (`_sources`). All others it accesses by address."""
        refuse_missing(step, self.profile)
        kernel, names = step.kernels[number], (*step.reads[number], *step.writes[number])
        places = [self._place(name) for name in names]
        arrays = [*kernel.graph.inputs, *kernel.graph.outputs]
        moving = {node: place.strides for node, place in zip(arrays, places, strict=True) if place.strides}
        range_bytes = self.profile.descriptor_range_bytes
        seen = [at for at, place in enumerate(places[: len(step.reads[number])]) if _lies_in_range(place, range_bytes)]
        still = {at for at in seen if not self._is_within(names[at], written)}
        others = [at for at in seen if places_move is not None and places[at].slot not in places_move]
        by_descriptor = read_by_descriptor_in_loop(kernel, range_bytes, still, others)
        kernel = replace(
            kernel,
            moving=moving,
            packed=self.profile.packed,
            paired=self.profile.paired,
            by_descriptor=by_descriptor,
            changing=frozenset(by_descriptor) - still,
        )
        emit = (_EMITTERS_IN_RUNS if in_run else _EMITTERS_IN_LOOPS)[kernel.kind]
        launch = emit(kernel, replace(self.profile, descriptor_bytes=0), self.lifted)
        in_place = launch.before is not None and self._is_in_place(step, number)
        positions = tuple(self._position(places[array]) for array in by_descriptor)
        return replace(launch, before=None) if in_place else launch, positions

    def _guarded(self, guard: Guard, commands: list[Command]) -> list[Command]:
        """The guard's own dispatch, and those under it, which read their numbers of workgroups from its table."""
        groups: list[tuple[int, int, int]] = []
        table = self.slots[counts_of(guard.name)]
        guards = [self._suited(guard_shader(has_parent)) for has_parent in (False, True)]
        those = counted(commands, table, groups, guards)
        content = np.array(groups, np.uint32).tobytes()
        self.constants[counts_of(guard.name)] = bytes(max(len(content), 4))
        self.constants[groups_of(guard.name)] = content or bytes(4)
        buffers = [guard.index, guard.flag, counts_of(guard.name), groups_of(guard.name)]
        buffers += [guard.parent] if guard.parent else []
        slots = tuple(self.slots[name] for name in buffers)
        words = (guard.count - 1, guard.equals, len(groups))
        shader = guards[guard.parent is not None]
        return [Dispatch(shader, slots, words, (1, 1, 1), True, guard.name), *those]
