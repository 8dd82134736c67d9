"""Contract kernels: a contraction, what its operands are computed from, and what is computed from its result."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

from lavax.backends.vulkan.emit.contract.broadcast import emit_broadcast
from lavax.backends.vulkan.emit.contract.choose import candidates, choose_schedule
from lavax.backends.vulkan.emit.contract.contraction import Contraction
from lavax.backends.vulkan.emit.contract.cooperative import emit_cooperative
from lavax.backends.vulkan.emit.contract.registers import emit_registers
from lavax.backends.vulkan.emit.contract.shared import emit_shared
from lavax.backends.vulkan.emit.contract.strided import emit_strided, fits_strided
from lavax.backends.vulkan.emit.contract.strided_product import StridedProduct, strided_product
from lavax.backends.vulkan.emit.contract.subgroup import emit_subgroup
from lavax.backends.vulkan.emit.contract.tiles import (
    BroadcastTile,
    CooperativeTile,
    RegisterTile,
    Schedule,
    SharedTile,
    SubgroupTile,
)
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.windows import windowed_arrays
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.kernel import Kernel, kernel_key

# How each form of tile is written.
_EMITTERS: dict[type[Schedule], Callable[[Contraction, Any], Launch]] = {
    RegisterTile: emit_registers,
    BroadcastTile: emit_broadcast,
    SharedTile: emit_shared,
    CooperativeTile: emit_cooperative,
    SubgroupTile: emit_subgroup,
}


def emit_contract(
    kernel: Kernel, profile: DeviceProfile, lifted: bool, schedule: Schedule | None = None
) -> Launch:
    """The shader of a contraction with its prologue and epilogue, by that schedule or the one that suits its sizes."""
    dot = _dot_of(kernel)
    contraction = Contraction(kernel, dot, profile, lifted)
    schedule = schedule or choose_schedule(dot, profile, _epilogue_of(kernel))
    return _EMITTERS[type(schedule)](contraction, schedule)


def emit_strided_contracts(
    kernels: Mapping[Kernel, Hashable | None], profile: DeviceProfile
) -> dict[Kernel, Launch]:
    """The launches of those contract kernels of a program that can share shaders, by the schedules given or chosen."""
    if profile.kind != "cpu":
        return {}
    keys = {kernel: (kernel_key(kernel), schedule) for kernel, schedule in kernels.items()}
    one_of_each = {key: kernel for kernel, key in keys.items() if key[0] is not None}
    found = {key: _strided(kernel, key[1], profile) for key, kernel in one_of_each.items()}
    products = {key: strided for key, strided in found.items() if strided is not None}
    launches = dict(zip(products, emit_strided(list(products.values()), profile.paired), strict=True))
    return {kernel: launches[key] for kernel, key in keys.items() if key in launches}


def _strided(
    kernel: Kernel, schedule: Hashable | None, profile: DeviceProfile
) -> tuple[StridedProduct, BroadcastTile] | None:
    """A kernel as a strided product, and the tile that computes it; None if there is none."""
    dot = _dot_of(kernel)
    tile = schedule or choose_schedule(dot, profile, _epilogue_of(kernel))
    if not isinstance(tile, BroadcastTile):
        return None
    product = strided_product(kernel, Contraction(kernel, dot, profile, lifted=False))
    if product is None or not fits_strided(product, tile):
        return None
    windowed = set(product.order) <= set(windowed_arrays(kernel, profile.descriptor_range_bytes))
    return replace(product, windowed=windowed), tile


def contract_candidates(kernel: Kernel, profile: DeviceProfile) -> list[Schedule]:
    """The schedules worth a try for a contraction, first the one that is chosen without trying."""
    dot = _dot_of(kernel)
    return candidates(dot, profile, _epilogue_of(kernel))


def _dot_of(kernel: Kernel) -> Node:
    return next(node for node in kernel.graph.nodes if node.op == "dot")


def _epilogue_of(kernel: Kernel) -> int:
    """How many nodes are computed around the contraction."""
    return sum(node.op not in ("dot", "constant") for node in kernel.graph.nodes)
