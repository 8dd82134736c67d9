"""Contract kernels: a contraction, the prologue that computes its operands, and the epilogue that uses its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lavax.backends.vulkan.emit.contract.broadcast import emit_broadcast
from lavax.backends.vulkan.emit.contract.choose import candidates, choose_schedule
from lavax.backends.vulkan.emit.contract.choose_cpu import tile_in_loop
from lavax.backends.vulkan.emit.contract.cooperative import emit_cooperative
from lavax.backends.vulkan.emit.contract.prologue_epilogue import Contraction
from lavax.backends.vulkan.emit.contract.registers import emit_registers
from lavax.backends.vulkan.emit.contract.shared import emit_shared
from lavax.backends.vulkan.emit.contract.subgroup import emit_subgroup
from lavax.backends.vulkan.emit.contract.tiles import (
    BroadcastTile,
    ContractSchedule,
    CooperativeTile,
    RegisterTile,
    SharedTile,
    SubgroupTile,
)
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.build.contraction_geometry import sizes_of
from lavax.passes.kernels.kernel import Kernel

# The emitter of each kind of tile; choose.py says when each is used.
EMITTERS: dict[type[ContractSchedule], Callable[[Contraction, Any], Launch]] = {
    RegisterTile: emit_registers,
    BroadcastTile: emit_broadcast,
    SharedTile: emit_shared,
    CooperativeTile: emit_cooperative,
    SubgroupTile: emit_subgroup,
}


def emit_contract(
    kernel: Kernel, profile: DeviceProfile, lifted: bool, schedule: ContractSchedule | None = None
) -> Launch:
    """The shader of a contract kernel, by the schedule given or the one chosen from its sizes."""
    contraction = Contraction(kernel, dot_of(kernel), profile, lifted)
    schedule = schedule or schedule_of(kernel, profile)
    return EMITTERS[type(schedule)](contraction, schedule)


def schedule_of(kernel: Kernel, profile: DeviceProfile, together: int = 1) -> ContractSchedule:
    """The schedule chosen from the contraction's sizes, and from how many of them one dispatch computes."""
    return choose_schedule(dot_of(kernel), profile, _epilogue_nodes(kernel), together)


def emit_contract_in_loop(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a contract kernel as one of those that a CPU driver's workgroup runs in each turn of a loop."""
    dot = dot_of(kernel)
    return emit_contract(kernel, profile, lifted, tile_in_loop(dot, sizes_of(dot), profile, _epilogue_nodes(kernel)))


def contract_candidates(kernel: Kernel, profile: DeviceProfile) -> list[ContractSchedule]:
    """The schedules worth timing for a contract kernel, first the one chosen from its sizes."""
    return candidates(dot_of(kernel), profile, _epilogue_nodes(kernel))


def dot_of(kernel: Kernel) -> Node:
    """The kernel's contraction."""
    return next(node for node in kernel.graph.nodes if node.op == "dot")


def _epilogue_nodes(kernel: Kernel) -> int:
    """The number of nodes computed around the contraction."""
    return sum(node.op not in ("dot", "constant") for node in kernel.graph.nodes)
