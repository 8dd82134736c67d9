"""How many lines an invocation of a CPU driver transforms, one after the other.

Starting a workgroup takes such a driver as long as it takes to transform some lines.
"""
from __future__ import annotations

from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass


@dataclass(frozen=True)
class LineLoop:
    """Chosen by `python -m benchmarks fft`."""

    turns: tuple[int, ...] = (16, 8, 4, 2)
    busy: int = 1024  # invocations that must be left


LINE_LOOP = LineLoop()


def turns_of(count: int, profile: DeviceProfile, lifted: bool) -> int:
    """How many of so many numbers each invocation works on."""
    if profile.kind != "cpu" or lifted:
        return 1
    return next((turns for turns in LINE_LOOP.turns if count // turns >= LINE_LOOP.busy), 1)
