"""The steps of transforms of real lines whose neighbours in memory are neighbouring lines."""
from __future__ import annotations

from collections.abc import Sequence

from lavax.backends.vulkan.emit.fourier.choose import (
    ACROSS_STEPS,
    FEW_NUMBERS,
    LANE_LIMITS,
    REGISTER_LIMITS,
    balanced_steps,
    divisors,
    lanes_of,
)
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.numerics.primes import prime_factors


def across_steps_of(
    points: int, behind: int, numbers: int, inverse: bool, cosines: bool, profile: DeviceProfile
) -> Sequence[int]:
    """The points of each step of a transform of real lines, or of its inverse, of which so many are neighbours in
    memory, the step on real numbers first; none on a GPU, or if neighbours are an odd number. All lines together have
    so many numbers. The inverse of a cosine transform (`cosines`) reads real numbers, half as far apart."""
    if profile.kind != "cpu" or points == 1 or behind % 2:
        return ()
    limits = REGISTER_LIMITS
    are_few = points > FEW_NUMBERS.points and numbers <= FEW_NUMBERS.numbers
    short = FEW_NUMBERS.widest if are_few else limits.spread_points if inverse and numbers > limits.spread else None
    widest, others = short or limits.real_across, short or limits.together
    if cosines and not are_few:
        others = limits.from_cosines if inverse and short is None else limits.together
    firsts = [first for first in range(2, min(points, widest) + 1) if points % first == 0]
    ways = [(first, *_rest_across(points // first, others)) for first in firsts]
    found = min(ways, key=lambda way: (len(way), way[0] + 2 * sum(way[1:]), max(way[1:], default=1)), default=())
    is_long = len(found) > 3 and inverse and not (cosines or are_few)
    return (is_long and _shared_steps_across(points, behind, profile)) or found


def _shared_steps_across(points: int, behind: int, profile: DeviceProfile) -> Sequence[int]:
    """Three steps of the inverse of such a line, of which lanes share the points of the last one on complex numbers;
    none if there are no such. The others are narrow, and so are the lanes' parts, so that they are soon compiled."""
    limits, narrow = REGISTER_LIMITS, ACROSS_STEPS.widest_first
    ways: list[tuple[int, int, int]] = []
    for shared in range(limits.real_across, LANE_LIMITS.longest + 1):
        lanes = 0 if points % shared else lanes_of(shared, 1, behind, profile)
        if lanes and shared // lanes <= LANE_LIMITS.preferred:
            rest = points // shared
            firsts = (first for first in divisors(rest, limits.four_to_reals) if first >= limits.least_to_reals)
            ways += [(first, rest // first, shared) for first in firsts if 1 < rest // first <= narrow]

    def far(way: tuple[int, int, int]) -> tuple[float, int]:
        return (way[0] // 2 + 1) / way[0], -way[2]  # how many columns there are for each real number

    return min(ways, key=far, default=())


def _rest_across(points: int, widest: int) -> Sequence[int]:
    """The steps on complex numbers."""
    return balanced_steps(prime_factors(points), widest) if points > 1 else ()
