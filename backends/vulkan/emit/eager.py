"""Which shaders eager programs get.

Those for every shape read and write by address, in a loop over the lanes on CPU drivers. There a flat map of any length
shares a shader that reads through descriptors, and programs over large arrays have shaders of their own, as compiled
ones do.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.fourier.choose import reads_pairs
from lavax.backends.vulkan.emit.map.flat_map import suits_descriptors
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.build.fourier_points import points_of_step
from lavax.passes.fuse.costs import cost_of
from lavax.passes.kernels.commands import steps_of
from lavax.passes.kernels.kernel import Kernel, KernelStep
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.schedule.merge import merge_key


@dataclass(frozen=True)
class EagerShaders:
    """Exercised by `python -m benchmarks eager`."""

    # From so many elements on, a shader of a program's own takes as long to compile as it saves in 10 to 50 calls.
    own: int = 1 << 16
    points: int = 1 << 8  # of a step of a Fourier transform: those of more have shaders of their own
    # The same if numbers are read one by one, as those of odd lines are, or are real.
    single_points: int = 1 << 4
    real_points: int = 1 << 6
    across_points: int = 1 << 4  # the same of several real lines that are neighbours in memory
    computed: int = 4  # simple operations for each number that a step reads: a norm's factor is one


EAGER_SHADERS = EagerShaders()


def has_shaders_of_its_own(program: KernelProgram, profile: DeviceProfile) -> bool:
    """Whether an eager program's shaders are for its shapes alone.

    Those of long Fourier transforms are for their number of points in any case, and read so many that a CPU driver
    takes three to ten times as long to compile them by address. Where it has no descriptors, places that are not known
    make each read several times as long.
    """
    if profile.kind != "cpu":
        return False
    kernels = [kernel for step in steps_of(program.steps) for kernel in step.kernels]
    if any(_is_long_transform(kernel, profile) for kernel in kernels):
        return True
    if not profile.descriptor_range_bytes:
        return False
    arrays = (node for kernel in kernels for node in (*kernel.graph.inputs, *kernel.graph.outputs))
    return max((node.type.size for node in arrays), default=0) >= EAGER_SHADERS.own


def _is_long_transform(kernel: Kernel, profile: DeviceProfile) -> bool:
    """Whether a kernel is a step of a Fourier transform of many points, or of points that it computes."""
    node = kernel.graph.outputs[0]
    if not node.op.startswith("fourier_"):
        return False
    if sum(map(cost_of, kernel.graph.nodes)) > EAGER_SHADERS.computed:
        return True
    limits = EAGER_SHADERS
    match node.op:
        case "fourier_from_reals" | "fourier_to_reals":
            limit = limits.real_points
        case "fourier_from_half":
            limit = limits.single_points
        case "fourier_padded" | "fourier_filtered" | "fourier_cut":
            return True
        case "fourier_step" | "fourier_to_half":
            _, points, rest, behind, _ = node.operands[0].shape
            limit = limits.points if reads_pairs(points, rest, behind, profile) else limits.single_points
        case _:
            limit = limits.across_points if node.op.startswith("fourier_across_") else limits.points
    return points_of_step(node) > limit


def is_flat(step: KernelStep, profile: DeviceProfile) -> bool:
    """Whether a step is a flat map alone, whose shader serves any length."""
    (kernel, *others) = step.kernels
    return not others and merge_key(kernel) is not None and suits_descriptors(kernel, profile)
