"""Searches in sorted rows: one invocation per value, which bisects its row."""

from __future__ import annotations

from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import before, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import flatten
from lavax.passes.kernels.kernel import Kernel


def emit_search_sorted(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of search_sorted."""
    routine = open_routine(kernel, profile, lifted)
    body, (rows, values) = routine.body, routine.operands
    at = routine.open_elements(values.shape)
    wanted = routine.read(values, at)
    body.line("int low = 0;")
    length = rows.shape[-1]
    if length:
        body.line(f"int high = {body.parameters.integer(length)};")
        with body.block("while (low < high)"):
            centre = routine.position("centre", "(low + high) / 2", length)
            found = routine.read(rows, (*at[:-1], centre))
            goes_on = (
                f"!{before(wanted, found, rows.dtype, body.uses)}"
                if routine.node.attrs["right"]
                else before(found, wanted, rows.dtype, body.uses)
            )
            body.line(f"bool goes_on = {goes_on};")
            place = "centre" if length > 1 else "0"
            body.line(f"low = goes_on ? {place} + 1 : low;")
            body.line(f"high = goes_on ? high : {place};")
    body.line(f"{routine.element(flatten(at, values.shape))} = low;")
    return routine.close(values.type.size)
