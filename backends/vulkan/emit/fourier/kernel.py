"""Kernels of steps of Fourier transforms."""
from __future__ import annotations

from lavax.backends.vulkan.emit.fourier.choose import fits_registers, lanes_of
from lavax.backends.vulkan.emit.fourier.folded import emit_folded, emit_folded_by_lanes
from lavax.backends.vulkan.emit.fourier.lanes import emit_by_lanes
from lavax.backends.vulkan.emit.fourier.registers import emit_in_registers
from lavax.backends.vulkan.emit.fourier.shape import longest_line, shape_of
from lavax.backends.vulkan.emit.fourier.workgroup import emit_by_workgroups
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel


def emit_fourier_step(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a step."""
    (node,) = kernel.graph.outputs
    lines, points, rest, behind, _ = node.operands[0].shape
    lanes = lanes_of(points, rest, behind, profile)
    if node.attrs["folded"]:
        return (
            emit_folded_by_lanes(kernel, profile, lifted, lanes) if lanes else emit_folded(kernel, profile, lifted)
        )
    if lanes:
        return emit_by_lanes(kernel, profile, lifted, lanes)
    if fits_registers(points, profile) or points > longest_line(profile, node.dtype, 1):
        return emit_in_registers(kernel, profile, lifted)
    shape = shape_of(points, lines * rest * behind, rest * behind > 1, node.dtype, profile)
    return emit_by_workgroups(kernel, profile, lifted, shape)
