"""The device's measured peak rates: of copies, and of multiplications and additions in registers."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from lavax.backends.vulkan.device.commands import BEFORE_LATER_WORK, Recorder
from lavax.backends.vulkan.device.device import Device
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import WORKGROUP, grid, local_invocations
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.glsl.uses import Uses
from lavax.backends.vulkan.measure.profiling import Bound
from lavax.backends.vulkan.measure.timing import RUNS, runs_of
from lavax.backends.vulkan.memory.memory import Buffer, MemoryPool
from lavax.backends.vulkan.plan.plan import Dispatch, Plan, Result
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.backends.vulkan.run.estimate import SLOW_DEVICE, Rates
from lavax.backends.vulkan.run.program import Program
from lavax.base.errors import DeviceError
from lavax.base.quick_dataclasses import dataclass

_VECTOR_BYTES = 4 * VECTOR


@dataclass(frozen=True)
class CopiedArray:
    """The size of the array that is copied: too large for caches, which on GPUs have a few thousandths of the memory.

    Exercised by `python -m benchmarks comparison --only elementwise`, which shows rates as parts of this one.
    """

    part_of_memory: int = 256  # the array's size is the device's memory divided by this,
    least_bytes: int = 64 << 20
    most_bytes: int = 512 << 20


@dataclass(frozen=True)
class ArithmeticKernel:
    """The kernel that multiplies and adds in registers. No benchmark of its own: `Compiled.profile` measures with it.

    An iteration of its loop has several steps, so that the loop itself costs nothing.
    """

    invocations: int = 1 << 17
    chains: int = 2  # independent vectors per invocation
    steps: int = 1024  # per chain
    unrolled: int = 16  # steps per iteration


@dataclass(frozen=True)
class QuickMeasurement:
    """What is measured of a GPU while a user waits, in a few hundredths of a second: it only has to be right within a
    factor."""

    copied_bytes: int = 16 << 20
    invocations: int = 1 << 17  # of that arithmetic: fewer leave a GPU idle
    dispatches: int = 64
    runs: int = 2


_COPIED, _ARITHMETIC, _QUICK = CopiedArray(), ArithmeticKernel(), QuickMeasurement()
# Vectors per invocation of a copying kernel: with one, too few loads are in flight on a large GPU. On a CPU driver,
# vkCmdCopyBuffer is as fast as the processor, and a kernel's many small workgroups take far longer.
_VECTORS_COPIED: dict[str, tuple[int, ...]] = {"cpu": (), "gpu": (1, 4)}


@dataclass(frozen=True)
class Limits:
    """The bytes per second that a copy reads and writes, and floating-point operations per second without memory."""

    copy: float
    arithmetic: float


def measure_limits(device: Device) -> Limits:
    """Both limits, measured now. Raises DeviceError if the device has no timestamps."""
    return Limits(copy_rate(device), arithmetic_rate(device))


def measure_rates(device: Device) -> Rates:
    """The same and the time of a dispatch, measured quickly; those of a slow device if it has no timestamps."""
    try:
        source, target = (device.arrays.allocate(_QUICK.copied_bytes) for _ in range(2))
        copy = 2 * _QUICK.copied_bytes / _seconds_of_kernel(device, source, target, 1, _QUICK.runs)
        small = _seconds_of_arithmetic(device, 1, _QUICK.dispatches, _QUICK.runs)
        large = _seconds_of_arithmetic(device, _QUICK.invocations, 1, _QUICK.runs)
        return Rates(copy, _operations(_QUICK.invocations) / large, small / _QUICK.dispatches)
    except DeviceError:
        return SLOW_DEVICE


def copy_rate(device: Device) -> float:
    """The bytes per second that a copy of a large array reads and writes: by kernels or vkCmdCopyBuffer, if faster.

    All copies run on the queue of programs. Drivers may leave vkCmdCopyBuffer to an engine that is slower than memory.
    """
    for nbytes in _sizes_to_copy(device):
        pool = MemoryPool(device.handle, device.queue, (device.queue.family,), device.arrays.type, nbytes)
        try:
            source, target = pool.allocate(nbytes), pool.allocate(nbytes)
            kinds = _VECTORS_COPIED[device.profile.kind]
            by_kernels = [_seconds_of_kernel(device, source, target, vectors) for vectors in kinds]
            return 2 * nbytes / min([_seconds_of_command(device, source, target), *by_kernels])
        except DeviceError:
            if nbytes == _COPIED.least_bytes:
                raise
        finally:
            pool.close()
    raise AssertionError("the smallest size is tried")


def arithmetic_rate(device: Device) -> float:
    """Floating-point operations per second of float32 multiplications and additions in registers."""
    return _operations(_ARITHMETIC.invocations) / _seconds_of_arithmetic(device, _ARITHMETIC.invocations, 1)


def _operations(invocations: int) -> int:
    return 2 * VECTOR * _ARITHMETIC.chains * _ARITHMETIC.steps * invocations


def _seconds_of_arithmetic(device: Device, invocations: int, dispatches: int, runs: int = RUNS) -> float:
    factor, summand = (np.full(VECTOR, 0.5, np.float32) for _ in range(2))
    arguments = [device.transfer.upload(array) for array in (factor, summand)]
    program = Program(device, _arithmetic(device.profile, invocations, dispatches))
    return _seconds_of_program(device, program, [*arguments, device.arrays.allocate(_VECTOR_BYTES)], runs)


def _sizes_to_copy(device: Device) -> Iterator[int]:
    """The best size, then smaller ones, down to the one that fits any device."""
    least, best = _COPIED.least_bytes, device.physical.memory_bytes // _COPIED.part_of_memory
    wished = min(max(best, least), _COPIED.most_bytes)
    nbytes = 1 << math.floor(math.log2(min(wished, device.largest_block)))
    while nbytes > least:
        yield nbytes
        nbytes //= 2
    yield least


def _seconds_of_command(device: Device, source: Buffer, target: Buffer) -> float:
    def record(recorder: Recorder, mark: Callable[[], None]) -> None:
        recorder.copy(target, source, source.nbytes)  # memory that was never written may be cheaper to read
        recorder.wait(BEFORE_LATER_WORK)
        mark()
        recorder.copy(source, target, source.nbytes)
        mark()

    return runs_of(device, 2, record, RUNS)[0][-1]


def _seconds_of_kernel(device: Device, source: Buffer, target: Buffer, vectors: int, runs: int = RUNS) -> float:
    program = Program(device, copy_plan(device.profile, source.nbytes, vectors))
    return _seconds_of_program(device, program, [source, target], runs)


def _seconds_of_program(device: Device, program: Program, buffers: list[Buffer], runs: int) -> float:
    """The shortest of several runs over these arguments and results."""
    bound = Bound(program, buffers)

    def record(recorder: Recorder, mark: Callable[[], None]) -> None:
        mark()
        for step in program.steps:
            bound.record(recorder, step)
        mark()

    return runs_of(device, 2, record, runs)[0][-1]


def copy_plan(profile: DeviceProfile, nbytes: int, vectors: int) -> Plan:
    """A plan of a copy with `vectors` per invocation, a workgroup apart; `nbytes` is a whole number of workgroups."""
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
    x = math.gcd(groups, 1 << 15)  # a grid of exactly that many workgroups
    dispatch = Dispatch(shader, (0, 1), (), (x, groups // x, 1), False, "copy")
    return Plan((nbytes,), (Result(nbytes, None),), (), (), 0, (dispatch,))


def _arithmetic(profile: DeviceProfile, invocations: int, dispatches: int) -> Plan:
    """A plan of many invocations, each with several chains of a · factor + summand, whose results are never written."""
    local = local_invocations(profile)
    chains = [f"a{number}" for number in range(_ARITHMETIC.chains)]
    uses = Uses()
    vectors = uses.reference("f32", "x4")
    main = [
        f"uint i = {WORKGROUP} * {local}u + gl_LocalInvocationID.x;",
        *(f"vec4 {name} = {vectors}(table.address[words[{slot}]]).data[0];" for slot, name in enumerate("xy")),
        *(f"vec4 {name} = vec4(float(i + {number}u));" for number, name in enumerate(chains)),
        f"for (int turn = 0; turn < {_ARITHMETIC.steps // _ARITHMETIC.unrolled}; turn++) {{",
        *(f"    {name} = {name} * x + y;" for _ in range(_ARITHMETIC.unrolled) for name in chains),
        "}",
        f"vec4 all_of_them = {' + '.join(chains)};",
        f"if (all_of_them.x == -1.0) {vectors}(table.address[words[2]]).data[0] = all_of_them;",
    ]
    shader = assemble(ShaderText(uses, main, (local, 1)))
    dispatch = Dispatch(shader, (0, 1, 2), (), grid(-(-invocations // local)), True, "arithmetic")
    return Plan((_VECTOR_BYTES, _VECTOR_BYTES), (Result(_VECTOR_BYTES, None),), (), (), 0, (dispatch,) * dispatches)
