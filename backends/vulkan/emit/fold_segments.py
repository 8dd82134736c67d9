"""Folding of segments: one invocation an element of the result, which joins the updates of its segment in turn."""

from __future__ import annotations

from lavax.backends.vulkan.emit.expressions import type_name
from lavax.backends.vulkan.emit.launch import Launch
from lavax.backends.vulkan.emit.routine import open_routine
from lavax.backends.vulkan.emit.scatter import JOINS
from lavax.backends.vulkan.profile import DeviceProfile
from lavax.passes.kernels.index import add, variable
from lavax.passes.kernels.kernel import Kernel


def emit_fold_segments(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of fold_segments."""
    routine = open_routine(kernel, profile, lifted)
    body, node, (array, updates, order, bounds) = routine.body, routine.node, routine.operands
    *batch, row, column = routine.open_elements(array.shape)
    body.line(f"{type_name(node.dtype, 1)} total = {routine.read(array, (*batch, row, column))};")
    start, end = (routine.read(bounds, (*batch, place)) for place in (row, add(row, 1)))
    count = updates.shape[-2]
    with body.block(f"for (int k = {start}; k < {end}; ++k)", frozenset(("k",))):
        place = routine.read(order, (*batch, variable("k", count)))
        update = routine.read(updates, (*batch, routine.position("place", place, count), column))
        body.line(f"total = {JOINS[node.attrs['join']]('total', update, node.dtype)};")
    body.line(body.stored(node.dtype, routine.target, "i", "total"))
    return routine.close(array.type.size)
