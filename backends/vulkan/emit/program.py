"""Kernels -> shaders and dispatches: the plan that a device runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lavax.backends.vulkan.emit.contract import emit_contract
from lavax.backends.vulkan.emit.launch import Launch
from lavax.backends.vulkan.emit.map import emit_map
from lavax.backends.vulkan.emit.merged import emit_merged
from lavax.backends.vulkan.emit.row import emit_row
from lavax.backends.vulkan.emit.scatter import emit_scatter
from lavax.backends.vulkan.plan import Dispatch, Plan, Result
from lavax.backends.vulkan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel, KernelProgram, Step

_EMITTERS: dict[str, Callable[[Kernel, DeviceProfile, bool], Launch]] = {
    "map": emit_map,
    "row": emit_row,
    "contract": emit_contract,
    "routine": emit_scatter,
}


def emit_program(program: KernelProgram, profile: DeviceProfile, lifted: bool = False) -> Plan:
    """The plan of a program for a device of this profile.

    With `lifted`, sizes are push constants, so that programs that differ in sizes only share their shaders.
    """
    arguments = [node.name for node in program.graph.inputs]
    results = [name for name in dict.fromkeys(program.results) if name not in arguments]
    temporaries = list(program.offsets)
    slots = {name: number for number, name in enumerate([*arguments, *results])}
    constants = [constant for step in program.steps if len(step.kernels) > 1 for constant in [step.name]]
    slots |= {name: len(slots) + number for number, name in enumerate([*constants, *temporaries])}
    launches = {step.name: _launch(step, slots, profile, lifted) for step in program.steps}
    return Plan(
        arguments=tuple(program.sizes[name] for name in arguments),
        results=tuple(Result(program.sizes[name], _donor(name, program, arguments)) for name in results),
        constants=tuple(launches[name].constants[0] for name in constants),
        temporaries=tuple(program.offsets[name] for name in temporaries),
        arena_bytes=program.arena_bytes,
        dispatches=tuple(_dispatch(step, launches[step.name], slots) for step in program.steps),
    )


def _donor(name: str, program: KernelProgram, arguments: list[str]) -> int | None:
    return arguments.index(program.donors[name]) if name in program.donors else None


def _part_slots(step: Step, slots: Mapping[str, int]) -> list[list[int]]:
    return [[slots[name] for name in (*reads, *writes)] for reads, writes in zip(step.reads, step.writes, strict=True)]


def _launch(step: Step, slots: Mapping[str, int], profile: DeviceProfile, lifted: bool) -> Launch:
    if len(step.kernels) > 1:
        return emit_merged(step.kernels, _part_slots(step, slots), profile)
    return _EMITTERS[step.kernel.kind](step.kernel, profile, lifted)


def _dispatch(step: Step, launch: Launch, slots: Mapping[str, int]) -> Dispatch:
    own = (slots[step.name],) if launch.constants else tuple(_part_slots(step, slots)[0])
    return Dispatch(launch.shader, own, launch.words, launch.groups, step.barrier, step.name)
