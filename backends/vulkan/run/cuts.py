"""Where a program is cut into submissions: so that each is short, or at random.

A submission cannot be stopped, and drivers of desktops reset a device that is busy for a few seconds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

from lavax.backends.vulkan.plan.plan import Dispatch, Plan
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.backends.vulkan.run.estimate import Estimate, Rates
from lavax.base import config
from lavax.base.quick_dataclasses import dataclass


@dataclass(frozen=True)
class Bounds:
    """The most of a submission. Exercised by `python -m benchmarks overhead`."""

    seconds: float = 0.1
    command_buffers: int = 4096  # 32 KB of pointers to them
    dispatch_seconds: float = 0.5  # a dispatch that is longer is cut along its workgroups, into parts of
    part_seconds: float = 0.25  # many short ones leave processors idle at their ends


BOUNDS = Bounds()


class Pace:
    """The seconds that a turn of a loop takes: estimated, then measured.

    The first turns are not a measure: drivers may compile when shaders first run.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.turns_before = 0  # of the last run of a loop that depends on data, with those in vain
        self.is_measured = False
        self._is_warm = False

    def turns(self) -> int:
        """How many turns make a submission. Before any is measured there are fewer, in case the estimate is wrong."""
        if not self._is_warm:
            return 1
        seconds = BOUNDS.seconds if self.is_measured else BOUNDS.seconds / 4
        return max(1, int(seconds / self.seconds))

    def note(self, turns: int, seconds: float, is_exact: bool) -> None:
        """Takes note of the time of a submission; if it is not exact, it was at most this."""
        if not self._is_warm:
            self._is_warm = True
            return
        per_turn = max(seconds / turns, 1e-9)
        if is_exact or per_turn < self.seconds:
            self.seconds = per_turn
        self.is_measured = True


class Cuts:
    """Cuts by estimated times."""

    def __init__(self, estimate: Estimate) -> None:
        self.estimate = estimate

    def pieces(self, dispatch: Dispatch) -> int:
        """The number of parts in which a dispatch runs."""
        seconds = self.estimate.seconds(dispatch)
        return math.ceil(seconds / BOUNDS.part_seconds) if seconds > BOUNDS.dispatch_seconds else 1

    def is_over(self, seconds: float, command_buffers: int) -> bool:
        """Whether this is too much for one submission."""
        return seconds > BOUNDS.seconds or command_buffers > BOUNDS.command_buffers

    def turns(self, pace: Pace) -> int:
        """The number of turns of a loop that the next submission has."""
        return pace.turns()


class RandomCuts(Cuts):
    """Cuts at random points, for tests: into up to three parts of a dispatch, and up to five turns."""

    def __init__(self, estimate: Estimate, seed: str) -> None:
        super().__init__(estimate)
        self._random = random.Random(seed)

    def pieces(self, dispatch: Dispatch) -> int:
        return self._random.randint(1, 3)

    def is_over(self, seconds: float, command_buffers: int) -> bool:
        return self._random.random() < 0.5 or super().is_over(seconds, command_buffers)

    def turns(self, pace: Pace) -> int:
        return self._random.randint(1, 5)


def pieces_of(dispatch: Dispatch, profile: DeviceProfile, rates: Callable[[], Rates]) -> int:
    """The number of parts in which a dispatch will run; `rates` measures the device, if it is long on a slow one."""
    by_slow_device = Cuts(Estimate(profile)).pieces(dispatch)
    return by_slow_device if by_slow_device < 2 else Cuts(Estimate(profile, rates())).pieces(dispatch)


def cuts_of(
    plan: Plan, profile: DeviceProfile, rates: Callable[[], Rates] | None = None, slowness: float = 1.0
) -> Cuts:
    """The cuts of a plan. `rates` measures the device, which is asked only if the plan would be long on a slow one."""
    estimate = Estimate(profile, slowness=slowness)
    seed = config.random_cuts()
    if seed is not None:
        return RandomCuts(estimate, f"{seed} {[dispatch.shader.source for dispatch in plan.dispatches]}")
    if rates is not None and estimate.total(plan.commands) > BOUNDS.seconds:
        estimate = replace(estimate, rates=rates())
    return Cuts(estimate)
