"""What the device does at best, measured: the bytes of a copy, and multiplications and additions in registers."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from lavax.backends.vulkan.device.commands import BEFORE_LATER_WORK, Recorder
from lavax.backends.vulkan.device.device import Device
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import WORKGROUP, grid, local_invocations
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.glsl.uses import Uses
from lavax.backends.vulkan.measure.profiling import Bound
from lavax.backends.vulkan.measure.timing import runs_of
from lavax.backends.vulkan.memory.memory import Buffer, MemoryPool
from lavax.backends.vulkan.plan.plan import Dispatch, Plan, Result
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.backends.vulkan.run.program import Program
from lavax.base.errors import DeviceError

_VECTOR_BYTES = 4 * VECTOR
# An array that is copied has this part of the device's memory, so that no cache holds it: GPUs have caches of a few
# thousandths of their memory. It has so many bytes at least, and at most.
_PART_OF_MEMORY, _LEAST_COPIED, _MOST_COPIED = 256, 64 << 20, 512 << 20
# Vectors that an invocation of the copy has: with one, too few loads are under way on a large GPU. Where shaders run on
# the processor the driver's own copy is the processor's, and a kernel's many small workgroups take far longer.
_VECTORS_COPIED: dict[str, tuple[int, ...]] = {"cpu": (), "gpu": (1, 4)}
# Multiplications and additions: invocations, vectors of each that do not depend on each other, steps of each, and how
# many steps a turn of the loop has, so that what the loop itself takes does not count.
_INVOCATIONS, _CHAINS, _STEPS, _WRITTEN_OUT = 1 << 17, 2, 1024, 16


@dataclass(frozen=True)
class Limits:
    """Bytes a second that a copy reads and writes, and floating-point operations a second without memory."""

    copy: float
    arithmetic: float


def measure_limits(device: Device) -> Limits:
    """Both limits, measured now. Raises DeviceError where the device has no timestamps."""
    return Limits(copy_rate(device), arithmetic_rate(device))


def copy_rate(device: Device) -> float:
    """Bytes a second that a copy of a large array reads and writes, by kernels or by vkCmdCopyBuffer: the best of them.

    All run on the queue of programs. Drivers may leave vkCmdCopyBuffer to an engine that is slower than memory.
    """
    for nbytes in _sizes_to_copy(device):
        pool = MemoryPool(device.handle, device.queue, (device.queue.family,), device.arrays.type, nbytes)
        try:
            source, target = pool.allocate(nbytes), pool.allocate(nbytes)
            kinds = _VECTORS_COPIED[device.profile.kind]
            by_kernels = [_seconds_of_kernel(device, source, target, vectors) for vectors in kinds]
            return 2 * nbytes / min([_seconds_of_command(device, source, target), *by_kernels])
        except DeviceError:
            if nbytes == _LEAST_COPIED:
                raise
        finally:
            pool.close()
    raise AssertionError("the least size is tried")


def arithmetic_rate(device: Device) -> float:
    """Floating-point operations a second of float32 multiplications and additions on registers."""
    factor, summand = (np.full(VECTOR, 0.5, np.float32) for _ in range(2))
    arguments = [device.transfer.upload(array) for array in (factor, summand)]
    program = Program(device, _arithmetic(device.profile))
    operations = 2 * VECTOR * _CHAINS * _STEPS * _INVOCATIONS
    return operations / _seconds_of_program(device, program, [*arguments, device.arrays.allocate(_VECTOR_BYTES)])


def _sizes_to_copy(device: Device) -> Iterator[int]:
    """From the best size down to what any device has room for."""
    wished = min(max(device.physical.memory_bytes // _PART_OF_MEMORY, _LEAST_COPIED), _MOST_COPIED)
    nbytes = 1 << math.floor(math.log2(min(wished, device.largest_block)))
    while nbytes > _LEAST_COPIED:
        yield nbytes
        nbytes //= 2
    yield _LEAST_COPIED


def _seconds_of_command(device: Device, source: Buffer, target: Buffer) -> float:
    def record(recorder: Recorder, mark: Callable[[], None]) -> None:
        recorder.copy(target, source, source.nbytes)  # memory that was never written may be cheaper to read
        recorder.wait(BEFORE_LATER_WORK)
        mark()
        recorder.copy(source, target, source.nbytes)
        mark()

    return runs_of(device, 2, record)[0][-1]


def _seconds_of_kernel(device: Device, source: Buffer, target: Buffer, vectors: int) -> float:
    program = Program(device, copy_plan(device.profile, source.nbytes, vectors))
    return _seconds_of_program(device, program, [source, target])


def _seconds_of_program(device: Device, program: Program, buffers: list[Buffer]) -> float:
    """The shortest of some runs over these arguments and results."""
    bound = Bound(program, buffers)

    def record(recorder: Recorder, mark: Callable[[], None]) -> None:
        mark()
        for step in program.steps:
            bound.record(recorder, step)
        mark()

    return runs_of(device, 2, record)[0][-1]


def copy_plan(profile: DeviceProfile, nbytes: int, vectors: int) -> Plan:
    """A plan of a copy with so many vectors an invocation, a workgroup apart; workgroups divide it."""
    local = local_invocations(profile)
    uses = Uses()
    kind = uses.reference("f32", "x4")
    places = [f"i + {number * local}u" for number in range(vectors)]
    main = [
        f"uint i = {WORKGROUP} * {local * vectors}u + gl_LocalInvocationID.x;",
        f"{kind} source = {kind}(table.address[words[0]]), target = {kind}(table.address[words[1]]);",
        *(f"vec4 v{number} = source.data[{place}];" for number, place in enumerate(places)),
        *(f"target.data[{place}] = v{number};" for number, place in enumerate(places)),
    ]
    shader = assemble(ShaderText(uses, main, (local, 1)))
    groups = nbytes // (_VECTOR_BYTES * local * vectors)
    x = math.gcd(groups, 1 << 15)  # a grid of just so many
    dispatch = Dispatch(shader, (0, 1), (), (x, groups // x, 1), False, "copy")
    return Plan((nbytes,), (Result(nbytes, None),), (), (), 0, (dispatch,))


def _arithmetic(profile: DeviceProfile) -> Plan:
    """A plan of many invocations, each with some chains of a · factor + summand, of which nothing is ever written."""
    local = local_invocations(profile)
    chains = [f"a{number}" for number in range(_CHAINS)]
    uses = Uses()
    vectors = uses.reference("f32", "x4")
    main = [
        f"uint i = {WORKGROUP} * {local}u + gl_LocalInvocationID.x;",
        *(f"vec4 {name} = {vectors}(table.address[words[{slot}]]).data[0];" for slot, name in enumerate("xy")),
        *(f"vec4 {name} = vec4(float(i + {number}u));" for number, name in enumerate(chains)),
        f"for (int turn = 0; turn < {_STEPS // _WRITTEN_OUT}; turn++) {{",
        *(f"    {name} = {name} * x + y;" for _ in range(_WRITTEN_OUT) for name in chains),
        "}",
        f"vec4 all_of_them = {' + '.join(chains)};",
        f"if (all_of_them.x == -1.0) {vectors}(table.address[words[2]]).data[0] = all_of_them;",
    ]
    shader = assemble(ShaderText(uses, main, (local, 1)))
    dispatch = Dispatch(shader, (0, 1, 2), (), grid(_INVOCATIONS // local), False, "arithmetic")
    return Plan((_VECTOR_BYTES, _VECTOR_BYTES), (Result(_VECTOR_BYTES, None),), (), (), 0, (dispatch,))
