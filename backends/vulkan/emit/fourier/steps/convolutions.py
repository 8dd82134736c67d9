"""The steps of convolutions with a known spectrum, which Fourier transforms of large prime factors are."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import log2, prod

from lavax.backends.vulkan.emit.fourier.choose import FEW_NUMBERS, LANE_LIMITS, balanced_steps, lanes_of
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.numerics.primes import prime_factors


@dataclass(frozen=True)
class ConvolvedSteps:
    """Of convolutions with a known spectrum. Chosen by `python -m benchmarks fft`."""

    narrowest: int = 8  # points of the steps at both ends
    widest: int = 32  # of these, which hold two columns in registers
    first: int = 12  # about as many points of the first one


_SMALL_PRIMES = 7  # of steps between the ends of a convolution
CONVOLVED_STEPS = ConvolvedSteps()


def convolved_steps_of(least: int, lines: int, profile: DeviceProfile) -> Sequence[int]:
    """The points of each step of a convolution of at least so many numbers, whose product is its length: the step that
    begins the transform and ends its inverse first, and the one that they share last; none on a GPU.

    Both have an even number of points, so that columns are read and rows are written by pairs.
    """
    if profile.kind != "cpu":
        return ()
    are_few = lines * least <= FEW_NUMBERS.numbers
    widest = FEW_NUMBERS.widest if are_few else CONVOLVED_STEPS.widest
    ends = range(CONVOLVED_STEPS.narrowest, widest + 1, 2)
    ways: list[tuple[int, ...]] = []
    for first, last in product(ends, ends):
        between = -(-least // (first * last))
        if between == 1:
            ways.append((first, last))
        while between > 1 and (middle := _between(between, last, first, widest, profile)) == ():
            between += 1
        if between > 1:
            ways.append((first, *middle, last))
    return min(ways, key=lambda way: (prod(way) * (2 * len(way) - 1), abs(log2(way[0] / CONVOLVED_STEPS.first))))


def _between(points: int, rest: int, behind: int, widest: int, profile: DeviceProfile) -> Sequence[int]:
    """The points of the steps between the others; none if they are no small numbers."""
    primes = prime_factors(points)
    if max(primes) > _SMALL_PRIMES:
        return ()
    if points <= LANE_LIMITS.longest and widest == CONVOLVED_STEPS.widest and lanes_of(points, rest, behind, profile):
        return (points,)
    return balanced_steps(primes, widest)
