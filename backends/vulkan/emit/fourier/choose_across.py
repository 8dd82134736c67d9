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
    is_long = len(found) > 3 and not (cosines or are_few)
    return (is_long and _shared_steps_across(points, behind, inverse, profile)) or found


def _shared_steps_across(points: int, behind: int, inverse: bool, profile: DeviceProfile) -> Sequence[int]:
    """Three or four steps of such a line, of which lanes share the points of one between the ends; none if there are no
    such. In the inverse it is the last one of complex numbers, and others are narrow."""
    limits, narrow = REGISTER_LIMITS, ACROSS_STEPS.widest_first
    ways: list[tuple[int, ...]] = []
    for shared in range(limits.together + 1, LANE_LIMITS.longest + 1):
        if points % shared or not lanes_of(shared, 1, behind, profile):
            continue
        for first in divisors(points // shared, limits.four_to_reals if inverse else limits.together):
            if first < limits.least_to_reals:
                continue
            end = points // (shared * first)
            if 1 < end <= limits.together:
                ways.append((first, end, shared) if inverse else (first, shared, end))
            elif inverse and len(two := balanced_steps(prime_factors(end), narrow)) == 2 and max(two) <= narrow:
                ways.append((first, *two, shared))

    def far(way: tuple[int, ...]) -> tuple[int, float, int]:
        return len(way), (way[0] // 2 + 1) / way[0], -max(way)  # how many columns there are for each real number

    return min(ways, key=far, default=())


def _rest_across(points: int, widest: int) -> Sequence[int]:
    """The steps on complex numbers."""
    return balanced_steps(prime_factors(points), widest) if points > 1 else ()
