"""Which loops one subgroup runs in its registers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field, replace
from functools import lru_cache

from lavax.backends.vulkan.emit.linalg.matrices import is_one_subgroup
from lavax.backends.vulkan.emit.loop.registers.held import LANES, TooMuchError
from lavax.backends.vulkan.emit.loop.registers.kernel import checked, emit_register_loop
from lavax.backends.vulkan.glsl.descriptor_arrays import arrays_by_descriptor
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.types import TupleType
from lavax.passes.fuse.lane_loops import Prepare, prepared_within, with_turns
from lavax.passes.fuse.register_loops import register_kernel
from lavax.passes.kernels.kernel import Kernel, kernel_key


@dataclass(frozen=True)
class RegisterLoops:
    """The loops that are written out. Checked by `python -m benchmarks loops`."""

    statements: int = 10000  # drivers compile longer shaders for seconds


REGISTER_LOOPS = RegisterLoops()


@dataclass(frozen=True)
class _Asked:
    """Kernels with equal keys are the same question."""

    key: Hashable
    kernel: Kernel = field(compare=False)


def in_registers(loop: Node, prepare: Prepare, profile: DeviceProfile) -> Node | None:
    """The loop with prepared bodies, if it is such a loop."""
    if loop.op not in ("scan", "while") or not _suits(profile) or loop.attrs.get("length") == 0:
        return None
    try:
        checked(loop)
    except TooMuchError:
        return None
    prepared = prepared_within(loop, prepare)
    kernel = _kernel_of(prepared, profile)
    return prepared if _is_short(_Asked(kernel_key(kernel), kernel), profile, REGISTER_LOOPS.statements) else None


@lru_cache(maxsize=64)  # a program may have the same loop in many places
def _is_short(asked: _Asked, profile: DeviceProfile, most: int) -> bool:
    """Whether its shader has at most so many statements, and a form for all it does."""
    try:
        emit_register_loop(asked.kernel, profile, lifted=False, most=most)
    except TooMuchError:
        return False
    return True


def _suits(profile: DeviceProfile) -> bool:
    return is_one_subgroup(profile, LANES)


def _kernel_of(loop: Node, profile: DeviceProfile) -> Kernel:
    assert isinstance(loop.type, TupleType)
    turns = loop.attrs["length"] if loop.op == "scan" else None
    kernel = register_kernel(with_turns(loop, range(len(loop.type.parts)), turns))
    return replace(kernel, by_descriptor=arrays_by_descriptor(kernel, profile.descriptor_range_bytes))
