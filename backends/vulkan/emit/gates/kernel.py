"""Products of few rows side by side, and what is computed from them element by element: the gates of a cell."""

from __future__ import annotations

from lavax.backends.vulkan.emit.gates.choose import matrix_tile_of, sum_of_products, tile_of
from lavax.backends.vulkan.emit.gates.matrices import GatesByMatrices
from lavax.backends.vulkan.emit.gates.registers import GatesInRegisters
from lavax.backends.vulkan.emit.gates.results import GateKernel
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.build.contraction_geometry import sizes_of
from lavax.passes.kernels.kernel import Kernel


def emit_gates(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a kernel of products of one shape and of what follows them."""
    dots = [node for node in kernel.graph.nodes if node.op == "dot"]
    total = sum_of_products(kernel.graph)
    matrices = matrix_tile_of(dots, total is not None, profile, kernel.beside)
    gates: GateKernel
    if matrices is not None:
        gates = GatesByMatrices(kernel, matrices, total, lifted)
    else:
        gates = GatesInRegisters(kernel, tile_of(sizes_of(dots[0]), len(dots), profile, kernel.beside), lifted)
    return gates.emit()
