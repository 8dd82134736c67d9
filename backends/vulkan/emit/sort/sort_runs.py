"""Sorting of short runs: one invocation per element, which counts the elements of its run that come before it."""

from __future__ import annotations

from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import before, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import ZERO, flatten, variable
from lavax.passes.kernels.kernel import Kernel


def emit_sort_runs(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of sort_runs."""
    routine = open_routine(kernel, profile, lifted)
    body, (keys,) = routine.body, routine.operands
    length = keys.shape[-1]
    *row, place = routine.open_elements(keys.shape)
    run = routine.integer("run", min(routine.node.attrs["run"], length))
    extent = routine.integer("extent", length)
    body.line(f"int own_place = {body.index(place)};")
    body.line(f"int start = own_place / {run} * {run};")
    own = routine.read(keys, (*row, place))
    body.line("int rank = start;")
    with body.block(f"for (int j = start; j < min(start + {run}, {extent}); ++j)", frozenset(("j",))):
        other = routine.read(keys, (*row, variable("j", length)))
        uses = routine.body.uses
        ahead, behind = before(other, own, keys.dtype, uses), before(own, other, keys.dtype, uses)
        body.line(f"rank += int(mix({ahead}, !{behind}, j < own_place));")
    first = body.index(flatten((*row, ZERO), keys.shape))
    body.line(f"{routine.element(f'{first} + rank')} = own_place;")
    return routine.close(keys.type.size)
