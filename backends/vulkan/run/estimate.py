"""How long dispatches take: estimated from what they compute and move, and from what the device does in a second."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from lavax.backends.vulkan.plan.plan import Command, Dispatch, RepeatDispatches
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass


@dataclass(frozen=True)
class Rates:
    """Bytes and floating-point operations per second of a busy device, and the seconds that any dispatch takes."""

    copy: float
    arithmetic: float
    dispatch: float


# Of a slow device. Programs that are short even then need no measurement of the real one.
SLOW_DEVICE = Rates(copy=1e9, arithmetic=4e9, dispatch=10e-6)

# Of a driver that computes on processors, for all of them: between 10 and 29 GFLOP/s were measured on two cores. A
# measurement takes 0.1 s of a first call, mostly to compile and to touch memory, and gains nothing: no system resets
# such a driver if a submission takes longer than estimated, and the program is cut anew by the times of its calls.
PROCESSORS = Rates(copy=1e10, arithmetic=2e10, dispatch=50e-6)

# The part of the device's peak that arithmetic in kernels reaches: measured peaks are those of nothing but products.
_REACHED = 0.25


@dataclass(frozen=True)
class Estimate:
    """Estimated seconds on a device. `slowness`: how many times as long a program took as was estimated before."""

    profile: DeviceProfile
    rates: Rates = SLOW_DEVICE
    slowness: float = 1.0

    def seconds(self, dispatch: Dispatch) -> float:
        """Of one run of a dispatch."""
        if 0 in dispatch.groups:
            return 0.0
        work, rates = dispatch.work, self.rates
        busy = work.nbytes / rates.copy + work.operations / (rates.arithmetic * _REACHED)
        return self.slowness * (rates.dispatch + busy / self._share(dispatch))

    def total(self, commands: Iterable[Command]) -> float:
        """Of commands, with one turn of each loop that depends on data."""
        found = 0.0
        for command in commands:
            if isinstance(command, Dispatch):
                found += self.seconds(command)
            else:
                count = command.count if isinstance(command, RepeatDispatches) else 1
                found += count * self.total(command.commands)
        return found

    def _share(self, dispatch: Dispatch) -> float:
        """The part of the device that its workgroups keep busy, if they have a subgroup each."""
        invocations = prod(dispatch.groups) * self.profile.subgroup_size
        return min(1.0, invocations / self.profile.busy_invocations)
