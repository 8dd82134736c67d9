"""The two kernels of a pass of radix sort: counting the digits of each tile, and moving its values by them."""

from __future__ import annotations

from collections.abc import Callable

from lavax.backends.vulkan.emit.sort.radix_schedule import SHARED_TILES, RadixPass
from lavax.backends.vulkan.emit.sort.radix_serial import SerialPass
from lavax.backends.vulkan.emit.sort.radix_shared import SharedPass
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel


def _suits_shared(profile: DeviceProfile) -> bool:
    """Whether a GPU's workgroup may share a tile: its subgroups vote by ballots, and fit a workgroup."""
    subgroup = profile.subgroup_size
    fits = SHARED_TILES.subgroups * subgroup <= profile.max_workgroup_invocations
    ballots = profile.subgroup_ballot and subgroup <= SHARED_TILES.widest_subgroup
    return profile.kind == "gpu" and ballots and fits


# The first schedule that suits the device is taken.
SCHEDULES: dict[type[RadixPass], Callable[[DeviceProfile], bool]] = {
    SharedPass: _suits_shared,
    SerialPass: lambda profile: True,
}


def choose_schedule(profile: DeviceProfile) -> type[RadixPass]:
    """The schedule of both kernels of a pass."""
    return next(schedule for schedule, suits in SCHEDULES.items() if suits(profile))


def emit_count_digits(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of count_digits."""
    return choose_schedule(profile)(kernel, profile, lifted).count()


def emit_move_by_digit(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of move_by_digit."""
    return choose_schedule(profile)(kernel, profile, lifted).move()
