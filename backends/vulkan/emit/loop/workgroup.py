"""Loops over little data in one dispatch: one workgroup runs the kernels of a turn one after the other, turn by turn.

A dispatch and its barrier take longer than a small kernel. So the shaders of a turn's kernels become functions of one
shader, each of which the workgroup calls for all of that kernel's workgroups, with a barrier of the workgroup where the
loop of dispatches has one of the device. Memory is the same: what is carried, sequences and stacked rows stay where
they are, and counters that move them are in memory. So a long loop can be cut after any turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

from lavax.backends.vulkan.emit.linalg.matrices import is_one_subgroup
from lavax.backends.vulkan.emit.loop.handing_on import exchanged_in, hand_on
from lavax.backends.vulkan.emit.loop.iterations import ITERATIONS, ITERATIONS_OF_MAP, WITH_OWN_NAMES
from lavax.backends.vulkan.emit.loop.stopping import (
    MOST_OF_TURNS,
    cost_of_turns,
    count_states,
    is_stoppable,
    iterations_of_turn,
    work_of_turn,
)
from lavax.backends.vulkan.emit.loop.turns import (
    Branch,
    Member,
    Place,
    Turn,
    Turns,
    While,
    members_of,
    parts_of,
    slots_of,
)
from lavax.backends.vulkan.emit.loop.writing import SLOTS_OF_STATE, WORDS_OF_STATE, TurnsWriter
from lavax.backends.vulkan.glsl.descriptor_arrays import STEPS_OF_TRANSFORMS
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch
from lavax.backends.vulkan.glsl.shader import REST_WORD, ShaderText, assemble, word
from lavax.backends.vulkan.plan.plan import CHANGING_FORMS, Shader, Work
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.fuse.lane_loops import LANE_LOOPS, MOST_TURNS_IN_LOOP
from lavax.passes.kernels.commands import Command, Guard, Guarded, Repeat, Until
from lavax.passes.kernels.kernel import Kernel, KernelStep
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS


@dataclass(frozen=True)
class WorkgroupLoops:
    """The loops that one workgroup runs. Checked by `python -m benchmarks loops`."""

    work: int = 1 << 17  # operations and bytes of a kernel, at most: longer ones are worth all processors
    work_of_sums: int = 1 << 18  # the same of rows and products, which read more than they write
    work_in_while: int = 1 << 19  # of any kernel where the host would have to ask between dispatches
    turns: int = 2  # of a dispatch, at least
    kernels: int = 24  # of all bodies, without copies: drivers compile longer shaders for seconds
    copies: int = 48


WORKGROUP_LOOPS = WorkgroupLoops()


def most_work(kernel: Kernel) -> int:
    """The operations and bytes of such a kernel that one workgroup does, at most."""
    return WORKGROUP_LOOPS.work_of_sums if kernel.kind in ("row", "contract") else WORKGROUP_LOOPS.work


@dataclass(frozen=True)
class Sources:
    """What is known of a program: the launch of one of a step's kernels, which sees through descriptors at most what no
    turn writes, with the slots of the positions of such arrays; its work; and where an array is."""

    launch: Callable[[KernelStep, int], tuple[Launch, tuple[int, ...]]]
    work: Callable[[KernelStep, int], Work]
    place: Callable[[str], Place]
    most: Callable[[Kernel], int] = most_work  # work of a kernel


# Turns write buffers, and read them as images, too: what is written has to be seen by both.
_WAIT = ("memoryBarrier();", "barrier();")
# On CPU drivers a barrier of a workgroup leaves the shader and comes back to it; a subgroup runs as one.
_WAIT_OF_SUBGROUP = ("subgroupBarrier();",)


_REAL = "#define real "  # it says for what dtype they are
_LOOP = re.compile(r"\b(for|while|do)\b")


def turns_of(command: Repeat | Until, sources: Sources) -> Turns | While | None:
    """What one workgroup runs of a loop; None if the loop does not suit one workgroup."""
    if isinstance(command, Until) and ends_by_lane(command):
        return None  # many workgroups run its lanes
    if _asks_the_host(command):
        sources = replace(sources, most=lambda kernel: WORKGROUP_LOOPS.work_in_while)
    (found,) = _members(command, None, sources) or (None,)
    return found if isinstance(found, (Turns, While)) and _fits(found) else None


def _asks_the_host(command: Command) -> bool:
    """Whether a loop is one whose turns nobody knows, or has one inside."""
    if isinstance(command, Until):
        return True
    return isinstance(command, (Repeat, Guarded)) and any(map(_asks_the_host, command.commands))


def _all_members(commands: Sequence[Command], sources: Sources) -> tuple[Turn, ...] | None:
    members: list[Turn] = []
    guards: dict[str, Guard] = {}
    for command in commands:
        if isinstance(command, Guard):
            guards[command.flag] = command
            continue
        guard = guards.pop(command.flag) if isinstance(command, Guarded) else None
        found = _members(command, guard, sources)
        if found is None:
            return None
        members += found
    return tuple(members)


def _members(command: Command, guard: Guard | None, sources: Sources) -> list[Turn] | None:
    if isinstance(command, KernelStep):
        return _kernels(command, sources)
    if isinstance(command, Guard):
        return None
    if isinstance(command, Until):
        return _while(command, sources)
    members = _all_members(command.commands, sources)
    if members is None:
        return None
    if isinstance(command, Repeat):
        return [Turns(command.count, members)]
    assert guard is not None, "what is guarded comes after its guard"
    return [Branch(sources.place(guard.index), guard.equals, guard.count, members)]


def ends_by_lane(loop: Until) -> bool:
    """Whether what is repeated is a kernel that takes the turns of a loop that depends on data."""
    steps = [step for held in loop.commands if isinstance(held, Guarded) for step in held.commands]
    kernels = [kernel for step in steps if isinstance(step, KernelStep) for kernel in step.kernels]
    return any(kernel.kind in ("loop", "registers") and kernel.graph.nodes[0].op == "while" for kernel in kernels)


def _while(command: Until, sources: Sources) -> list[Turn] | None:
    *asking, guard, guarded = command.commands
    if not isinstance(guard, Guard) or not isinstance(guarded, Guarded):
        return None
    members, asked = _all_members(guarded.commands, sources), _all_members(asking, sources)
    if members is None or not asked:
        return None
    return [While(asked, members, sources.place(guard.index))]


def _kernels(step: KernelStep, sources: Sources) -> list[Turn] | None:
    found: list[Turn] = []
    for number, kernel in enumerate(step.kernels):
        work = sources.work(step, number)
        if kernel.kind not in ITERATIONS or work.operations + work.nbytes > sources.most(kernel) * _inside(kernel):
            return None
        launch, positions = sources.launch(step, number)
        member = Member(
            launch,
            tuple(sources.place(name) for name in (*step.reads[number], *step.writes[number])),
            reads=len(kernel.graph.inputs),
            is_copy=_is_copy(kernel),
            increment=_increment_of(kernel),
            barrier=step.in_turn if number else step.barrier,
            iterations=prod(launch.groups) * (1 + iterations_of_kernel(launch, kernel)),
            work=work,
            positions=positions,
        )
        parts = _in_two(member) if launch.before is not None else [member]
        own_names = kernel.graph.outputs[0].op in WITH_OWN_NAMES
        if not all(_is_plain(part.launch, len(part.slots), own_names) for part in parts):
            return None
        found += parts
    return found


def iterations_of_kernel(launch: Launch, kernel: Kernel) -> int:
    """Those of loops in a workgroup, as they are written if that is known. Functions that maps call may have some, as
    may those of what steps of transforms read."""
    is_step = kernel.graph.outputs[0].op in STEPS_OF_TRANSFORMS
    if is_step and launch.text is not None and not any(_LOOP.search(line) for line in launch.text.main):
        return ITERATIONS_OF_MAP
    of_kind = ITERATIONS[kernel.kind](kernel)
    return max(launch.iterations, of_kind) if kernel.kind == "map" else launch.iterations or of_kind


def _in_two(member: Member) -> list[Member]:
    """What has to be done first, and the kernel that waits for it, over the same arrays."""
    before = member.launch.before
    assert before is not None, "nothing has to be done first"
    copy = replace(member, launch=before, iterations=prod(before.groups) * (1 + ITERATIONS_OF_MAP))
    return [copy, replace(member, launch=replace(member.launch, before=None), barrier=True)]


def _is_copy(kernel: Kernel) -> bool:
    """Whether the kernel gives an array on as it is."""
    nodes, inputs = kernel.graph.nodes, kernel.graph.inputs
    return kernel.graph.outputs == nodes[:1] and nodes[0].op == "cast" and nodes[0].type == inputs[0].type


def _increment_of(kernel: Kernel) -> int | None:
    """What the kernel adds to the number that it reads, if it does nothing else."""
    match [node.op for node in kernel.graph.nodes], kernel.graph.inputs, kernel.graph.outputs:
        case ["constant", "add"], [number], [total] if total.operands == (number, kernel.graph.nodes[0]):
            return int(kernel.graph.nodes[0].attrs["value"]) if number.type.shape == () else None
    return None


def _inside(kernel: Kernel) -> int:
    """How many turns a kernel takes itself."""
    takes_turns = kernel.kind in ("loop", "registers")
    return int(kernel.graph.nodes[0].attrs.get("length", MOST_TURNS_IN_LOOP)) if takes_turns else 1


def _is_plain(launch: Launch, slots: int, own_names: bool) -> bool:
    """Whether a workgroup can run the shader beside others: alone in its dispatch, with no shared memory whose names
    others have."""
    text = launch.text
    return (
        text is not None
        and launch.before is None
        and launch.order is None
        and not launch.constants
        and not launch.by_descriptor
        and (own_names or not any("shared " in line for line in text.declarations))
        and slots + len(launch.words) <= REST_WORD
        and not any("WorkGroup" in line.replace(WORKGROUP, "") for line in text.main)
    )


def _fits(turns: Turns | While) -> bool:
    members = list(members_of(turns))
    texts = [member.launch.text for member in members if member.launch.text is not None]
    sizes = {text.local_size for text in texts}
    subgroups = {text.subgroup_size for text in texts} - {None}
    copies = sum(member.is_copy for member in members)
    return bool(
        members
        and copies <= WORKGROUP_LOOPS.copies
        and len(members) - copies <= WORKGROUP_LOOPS.kernels
        and len(sizes) == 1
        and len(subgroups) <= 1
        and len({line for line in _declarations(texts) if line.startswith(_REAL)}) <= 1
        and _takes_turns(turns)
    )


def _declarations(texts: Sequence[ShaderText]) -> list[str]:
    """What stands before the shaders' main functions, each once."""
    return list(dict.fromkeys(line for text in texts for line in text.declarations))


def _takes_turns(turns: Turns | While) -> bool:
    """Whether a dispatch takes some turns at least."""
    if isinstance(turns, While) or is_stoppable(turns):
        return cost_of_turns(turns) <= MOST_OF_TURNS
    return most_turns(turns) >= min(turns.count, WORKGROUP_LOOPS.turns)


def _has_one_turn(turns: Turns | While) -> bool:
    """Whether there is no next turn to hand anything on to."""
    return isinstance(turns, Turns) and turns.count == 1


def _numbers(turns: Turn) -> list[int]:
    """The numbers that shaders get, and the turns of the loops inside."""
    own = [number for member in members_of(turns) for number in member.launch.words]
    counted = [part for part in parts_of(turns) if isinstance(part, Turns)]
    inner = [part.count for part in counted if part is not turns or is_stoppable(turns)]
    return list(dict.fromkeys([*own, *inner]))


def most_turns(turns: Turns) -> int:
    """How many turns one dispatch takes at most; 0 if not even one fits."""
    work = work_of_turn(turns)
    of_operations = LANE_LOOPS.operations // (1 + work.operations + work.nbytes)
    return min(MAX_LOOP_ITERATIONS // iterations_of_turn(turns), of_operations)


def changing_texels(turns: Turns | While) -> int:
    """How many texel buffers the loop's shader may read of what it writes, at most."""
    found = {
        (form, member.slots[number])
        for member in members_of(turns)
        if member.launch.text is not None
        for form, number in member.launch.text.uses.descriptors
        if form in CHANGING_FORMS
    }
    return 2 * len(found) if exchanged_in(hand_on(turns)) else len(found)


@dataclass(frozen=True)
class WorkgroupLoop:
    """The shader of a loop, its slots, and its words.

    A loop of known turns has their number before its words. Another one has two slots before its own: of the flag that
    says whether it goes on, and of `states` words that say where, which are 0 at first.
    """

    shader: Shader
    slots: tuple[int, ...]
    words: tuple[int, ...]
    states: int = 0


def emit_workgroup_loop(
    turns: Turns | While, profile: DeviceProfile, positions: Mapping[int, int]
) -> WorkgroupLoop:
    """The shader in which one workgroup runs turns of a loop that `turns_of` found.

    `positions`: the slots of the positions of arrays in descriptor ranges, by those of the arrays.
    """
    loop = hand_on(turns) if profile.int64 and not _has_one_turn(turns) else turns
    pairs = {pair: tuple(positions[slot] for slot in pair if slot in positions) for pair in exchanged_in(loop)}
    slots = list(dict.fromkeys([*slots_of(turns), *(slot for of in pairs.values() for slot in of)]))
    numbers = _numbers(turns)
    texts = [member.launch.text for member in members_of(turns) if member.launch.text is not None]
    lanes, rows = texts[0].local_size
    alone = is_one_subgroup(profile, lanes * rows)
    wait = _WAIT_OF_SUBGROUP if alone else _WAIT
    stops, first = is_stoppable(turns), SLOTS_OF_STATE if is_stoppable(turns) else 0
    own = 0 if stops else 1  # words before the numbers
    slot_places = {slot: place for place, slot in enumerate(slots, first)}
    places = {number: place for place, number in enumerate(numbers, first + len(slots) + own)}
    writing = TurnsWriter(slot_places, places, wait, positions)
    lines = [f"address{n} = table.address[{word(n, writing.uses)}];" for n in slot_places.values()]
    if stops:
        before, after = writing.stopping(loop)
        lines = [*before, *lines, *after]
    else:
        assert isinstance(loop, Turns), "the turns of another loop are not known"
        lines += writing.loop(loop, f"int({word(len(slots), writing.uses)})")
    text = ShaderText(
        writing.uses,
        lines,
        texts[0].local_size,
        [*_declarations(texts), *writing.declarations()],
        next((text.subgroup_size for text in texts if text.subgroup_size is not None), lanes * rows if alone else None),
        shuffles=alone or any(text.shuffles for text in texts),
        pragma="".join(dict.fromkeys(text.pragma for text in texts)),
    )
    states = WORDS_OF_STATE * count_states(turns) if stops else 0
    return WorkgroupLoop(assemble(text), tuple(slots), tuple(numbers), states)
