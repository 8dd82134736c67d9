"""Elements moved back to their positions before sorting: one invocation per element of the sorted array."""

from __future__ import annotations

from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import flatten
from lavax.passes.kernels.kernel import Kernel


def emit_unsort(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of unsort."""
    routine = open_routine(kernel, profile, lifted)
    body, node, (x, order) = routine.body, routine.node, routine.operands
    at, axis = routine.open_elements(node.shape), node.attrs["axis"]
    value, length = routine.read(x, at), node.shape[axis]
    last = body.parameters.integer(length - 1)
    place = routine.position("place", f"clamp({routine.read(order, at)}, 0, {last})", length)
    target = body.index(flatten((*at[:axis], place, *at[axis + 1 :]), node.shape))
    body.line(body.memory.stored(node.dtype, routine.target, target, value))
    return routine.close(node.type.size)
