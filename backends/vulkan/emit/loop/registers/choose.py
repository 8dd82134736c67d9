"""Which loops one subgroup runs in its registers."""

from __future__ import annotations

from dataclasses import replace

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
from lavax.passes.kernels.kernel import Kernel


@dataclass(frozen=True)
class RegisterLoops:
    """The loops that are written out. Checked by `python -m benchmarks loops`."""

    statements: int = 10000  # drivers compile longer shaders for seconds


REGISTER_LOOPS = RegisterLoops()


def in_registers(loop: Node, prepare: Prepare, profile: DeviceProfile) -> Node | None:
    """The loop with prepared bodies, if it is such a loop."""
    if loop.op not in ("scan", "while") or not _suits(profile) or loop.attrs.get("length") == 0:
        return None
    try:
        checked(loop)
        prepared = prepared_within(loop, prepare)
        emit_register_loop(_kernel_of(prepared, profile), profile, lifted=False, most=REGISTER_LOOPS.statements)
    except TooMuchError:
        return None
    return prepared


def _suits(profile: DeviceProfile) -> bool:
    return is_one_subgroup(profile, LANES)


def _kernel_of(loop: Node, profile: DeviceProfile) -> Kernel:
    assert isinstance(loop.type, TupleType)
    turns = loop.attrs["length"] if loop.op == "scan" else None
    kernel = register_kernel(with_turns(loop, range(len(loop.type.parts)), turns))
    return replace(kernel, by_descriptor=arrays_by_descriptor(kernel, profile.descriptor_range_bytes))
