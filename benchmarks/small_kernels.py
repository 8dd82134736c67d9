"""What a small kernel costs on the device: its launch, the barrier before it, its reads of the table, its pipeline.

Run as `python -m benchmarks.small_kernels`. Each line is the time from one kernel to the next in a chain of 200 in one
command buffer, by the device's timestamps. Kernels without a barrier between them are independent, though a few of
these chains write to the same memory; nobody reads it.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.figure import Figure, as_table
from lavax.backends.vulkan.api.api import vk
from lavax.backends.vulkan.device.commands import (
    COUNTED,
    PLAIN,
    SHADER,
    SHADER_READ,
    SHADER_WRITE,
    Recorder,
    barrier,
)
from lavax.backends.vulkan.device.device import Device, get_device
from lavax.backends.vulkan.measure.profiling import Bound
from lavax.backends.vulkan.measure.timing import timed_work
from lavax.backends.vulkan.plan.plan import Dispatch, Plan, Result, Shader
from lavax.backends.vulkan.run.program import Program

COUNT = 200  # kernels of a chain
RUNS = 15
LOCAL = 128
FLOAT_BYTES = 4

_HEAD = """#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
"""
_ARGUMENTS = f"""layout(local_size_x = {LOCAL}) in;
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Table {{ uint64_t address[]; }};
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Floats {{ float data[]; }};
layout(push_constant, scalar) uniform Arguments {{ Table table; uint words[30]; }};
"""
_PLACE = "int i = int(gl_GlobalInvocationID.x);"
_BODIES = {
    "nothing": "",
    "reads its table": f"{_PLACE} if (table.address[words[0]] == 1ul) Floats(table.address[words[1]]).data[i] = 1.0;",
    "adds 1": f"{_PLACE} Floats(table.address[words[1]]).data[i] = Floats(table.address[words[0]]).data[i] + 1.0;",
}


@dataclass(frozen=True)
class Between:
    """What stands between two kernels: a dependency, or none; and whether each binds its pipeline and pushes words."""

    name: str
    dependency: object | None
    binds: bool = True


def _betweens() -> Sequence[Between]:
    execution = barrier(SHADER, 0, SHADER, 0)
    whole = barrier(
        vk.VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
        vk.VK_ACCESS_2_MEMORY_WRITE_BIT,
        vk.VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
        vk.VK_ACCESS_2_MEMORY_READ_BIT | vk.VK_ACCESS_2_MEMORY_WRITE_BIT,
    )
    narrow = barrier(SHADER, SHADER_WRITE, SHADER, SHADER_READ)
    return (
        Between("no barrier, nothing bound again", None, binds=False),
        Between("no barrier", None),
        Between("a barrier of execution alone", execution),
        Between("a barrier for reads of what was written", narrow),
        Between("the barrier of programs", PLAIN.between, binds=False),
        Between("the same, and everything bound again", PLAIN.between),
        Between("the barrier of programs with indirect dispatches", COUNTED.between),
        Between("a barrier of everything", whole),
    )


def measure() -> Sequence[Figure]:
    """Microseconds a kernel takes in a chain, by what the kernel does, its workgroups, and what is between."""
    device = get_device()
    figures = []
    for what in _BODIES:
        for groups in (1, 256):
            for between in _betweens():
                each = _microseconds(device, _plan(what, groups, 1), between)
                figures.append(Figure(f"{what}, {groups} workgroups, {between.name}", f"{each:.2f} µs"))
    for name, plan in _chains().items():
        each = _microseconds(device, plan, Between("", PLAIN.between))
        figures.append(Figure(name, f"{each:.2f} µs"))
    return figures


def _chains() -> dict[str, Plan]:
    """Chains of kernels with the barrier of programs, of which some things differ from kernel to kernel."""
    return {
        "two pipelines in turn": _plan("adds 1", 1, 2),
        "forty pipelines in turn": _plan("adds 1", 1, 40),
    }


def _plan(what: str, groups: int, pipelines: int) -> Plan:
    """COUNT kernels that read the argument's buffer or the result's, and write the other."""
    nbytes = FLOAT_BYTES * LOCAL * groups
    shaders = [Shader(_source(what, number)) for number in range(pipelines)]
    slots = ((0, 1), (1, 0))
    steps = [
        Dispatch(shaders[number % pipelines], slots[number % 2], (), (groups, 1, 1), True, f"k{number}")
        for number in range(COUNT)
    ]
    return Plan((nbytes,), (Result(nbytes, None),), (), (), 0, tuple(steps))


def _source(what: str, number: int) -> str:
    """The kernel; those of other numbers are other pipelines."""
    return f"{_HEAD}{_ARGUMENTS}void main() {{ if (words[29] == {number + 1}u) return; {_BODIES[what]} }}\n"


def _microseconds(device: Device, plan: Plan, between: Between) -> float:
    """The time from one kernel of the chain to the next, on the device."""
    program = Program(device, plan)
    arrays = [device.arrays.allocate(plan.arguments[0]) for _ in range(2)]
    bound = Bound(program, arrays)
    steps = program.steps

    def record(recorder: Recorder, mark: Callable[[], None]) -> None:
        mark()
        for number, step in enumerate(steps):
            if between.dependency is not None and number:
                recorder.wait(between.dependency)
            if between.binds or not number:
                bound.record(recorder, step)
            else:
                recorder.dispatch(step.groups)
        mark()

    with timed_work(device, 2, record) as work:
        seconds = [work.run()[1] for _ in range(RUNS + 1)][1:]
    return 1e6 * median(seconds) / len(steps)


if __name__ == "__main__":
    print(as_table(measure()))
