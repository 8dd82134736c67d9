"""Scan kernels: cumulative operations over whole lines, or over chunks of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lavax.backends.vulkan.emit.scan.choose import choose_schedule
from lavax.backends.vulkan.emit.scan.columns import emit_columns
from lavax.backends.vulkan.emit.scan.lanes import emit_lanes
from lavax.backends.vulkan.emit.scan.schedule import Columns, Lanes, ScanSchedule
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel

# The emitter of each schedule.
EMITTERS: dict[type[ScanSchedule], Callable[[Kernel, DeviceProfile, bool, Any], Launch]] = {
    Lanes: emit_lanes,
    Columns: emit_columns,
}


def emit_cumulative(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a cumulative operation, of the totals of chunks, or of chunks from their starts."""
    schedule = choose_schedule(kernel, profile)
    return EMITTERS[type(schedule)](kernel, profile, lifted, schedule)
