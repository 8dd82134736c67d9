"""Steps of transforms of real lines along memory whose last or first step takes longer than that of a spectrum."""
from __future__ import annotations

from collections.abc import Sequence
from math import log2

from lavax.backends.vulkan.emit.fourier.choose import (
    LANE_LIMITS,
    REGISTER_LIMITS,
    divisors,
    lanes_of,
    mirrored_steps_of,
    ways_in_three,
)
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DType


@dataclass(frozen=True)
class CosineSteps:
    """Of those of type 2. Chosen by `python -m benchmarks fft`."""

    last_of_two: int = 16  # points of the last one of two steps
    best_of_two: int = 12
    narrowest: int = 5  # points of the last one of three
    ends: int = 10  # of the first and of the last one of three, if the one between may have the others


@dataclass(frozen=True)
class JoinedSteps:
    """Of inverses that join half a spectrum. Chosen by `python -m benchmarks fft`."""

    widest: int = 16  # points of the first of two steps, beyond which there are three
    shortest: int = 1500  # pairs of a line that has three
    narrowest: int = 4  # points of the first one of three, an even number: it writes rows of so many by pairs
    first: int = 5  # about as many
    second: int = 10


COSINE_STEPS = CosineSteps()
JOINED_STEPS = JoinedSteps()


def cosine_steps_of(points: int, part: DType, profile: DeviceProfile) -> Sequence[int]:
    """The points of each step of a cosine transform of type 2 of so many pairs of real numbers; none on a GPU.

    The last step makes four words of each number, and so has fewer points than that of a spectrum, if lanes may share
    those of the step before.
    """
    found, limits = mirrored_steps_of(points, False, part, profile), COSINE_STEPS
    if part.bits > 32 or not found:
        return found
    if len(found) == 1 and points <= LANE_LIMITS.along * lanes_of(points, 1, 1, profile):
        return found
    if found[-1] > limits.last_of_two:
        two = [
            (points // last, last)
            for last in divisors(points, limits.last_of_two)
            if last >= limits.ends and lanes_of(points // last, last, 1, profile)
        ]
        if two:
            return min(two, key=lambda way: abs(log2(way[1] / limits.best_of_two)))
    return _three_cosine_steps(points, profile) or found if _is_narrow_between(found) else found


def _is_narrow_between(steps: Sequence[int]) -> bool:
    return len(steps) == 3 and steps[1] <= REGISTER_LIMITS.together


def _three_cosine_steps(points: int, profile: DeviceProfile) -> Sequence[int]:
    """Three steps, of which the first and the last one have no more than a few points, if the one between may have the
    others."""
    limits = COSINE_STEPS

    def far(way: tuple[int, int, int]) -> tuple[bool, float, int, int]:
        first, middle, last = way
        beyond = sum(max(log2(width / limits.ends), 0) for width in (first, last))
        return first % 2 > points % 2, beyond, -middle, -first

    ways = (way for way in ways_in_three(points, profile) if limits.narrowest <= way[2] <= way[1])
    return min(ways, key=far, default=())


def joined_steps_of(points: int, part: DType, profile: DeviceProfile) -> Sequence[int]:
    """The points of each step of the inverse of a transform of so many pairs of real numbers, the first one, which
    joins half a spectrum, at the end; none on a GPU."""
    found, limits = mirrored_steps_of(points, True, part, profile), JOINED_STEPS
    if part.bits > 32 or len(found) != 2 or found[-1] <= limits.widest or points < limits.shortest:
        return found

    def far(way: tuple[int, int, int]) -> float:
        return abs(log2(way[0] / limits.first)) + abs(log2(way[1] / limits.second))

    ways = (way for way in ways_in_three(points, profile) if way[0] % 2 == 0 and way[0] >= limits.narrowest)
    first, *others = min(ways, key=far, default=(found[-1], *found[:-1]))
    return (*others, first)
