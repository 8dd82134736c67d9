"""Contract kernels: a contraction, what its operands are computed from, and what is computed from its result."""

from __future__ import annotations

from lavax.backends.vulkan.emit.contract_broadcast import emit_broadcast
from lavax.backends.vulkan.emit.contract_cooperative import emit_cooperative
from lavax.backends.vulkan.emit.contract_registers import emit_registers
from lavax.backends.vulkan.emit.contract_schedule import (
    BroadcastTile,
    CooperativeTile,
    RegisterTile,
    SharedTile,
    choose_schedule,
)
from lavax.backends.vulkan.emit.contract_shared import emit_shared
from lavax.backends.vulkan.emit.contract_subgroup import emit_subgroup
from lavax.backends.vulkan.emit.contraction import Contraction
from lavax.backends.vulkan.emit.launch import Launch
from lavax.backends.vulkan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.kernel import Kernel


def _selects(kernel: Kernel, dot: Node) -> bool:
    """Whether what is computed from the contraction's result selects among values, as a gradient of relu does."""
    after = {dot}
    for node in kernel.graph.nodes:
        if not after.isdisjoint(node.operands):
            after.add(node)
    return any(node.op == "where" for node in after)


def emit_contract(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a contraction with its prologue and epilogue."""
    dot = next(node for node in kernel.graph.nodes if node.op == "dot")
    epilogue = sum(node.op not in ("dot", "constant") for node in kernel.graph.nodes)
    contraction = Contraction(kernel, dot, lifted)
    schedule = choose_schedule(dot, profile, epilogue, _selects(kernel, dot))
    if isinstance(schedule, CooperativeTile):
        return emit_cooperative(contraction, schedule)
    if isinstance(schedule, SharedTile):
        return emit_shared(contraction, schedule)
    if isinstance(schedule, RegisterTile):
        return emit_registers(contraction, schedule, profile)
    if isinstance(schedule, BroadcastTile):
        return emit_broadcast(contraction, schedule)
    return emit_subgroup(contraction, schedule)
