"""The steps of Fourier transforms."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lavax.backends.vulkan.emit.fourier.shape import WORKGROUP_LIMITS, longest_line
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.numerics.primes import balanced, prime_factors


@dataclass(frozen=True)
class RegisterLimits:
    """The most points that an invocation transforms, and of which it transforms two lines. Chosen by `python -m
    benchmarks fft`.

    Steps of more points than `together` take longer each, so a CPU driver has them where few are left (`few`), or where
    without them there are more than `many`.
    """

    cpu: int = 81
    gpu: int = 16
    together: int = 32
    few: int = 2
    many: int = 4


REGISTER_LIMITS = RegisterLimits()


def steps_of(points: int, across: bool, profile: DeviceProfile) -> Sequence[int]:
    """The points of each step of a transform; prime factors stay whole.

    A step whose lines are not along memory (`across`), as all of several are, needs several lines in shared memory.
    """
    primes = prime_factors(points)
    if profile.kind == "cpu":
        wide, narrow = (_steps(primes, most) for most in (REGISTER_LIMITS.cpu, REGISTER_LIMITS.together))
        return wide if len(wide) <= REGISTER_LIMITS.few or len(narrow) > REGISTER_LIMITS.many else narrow
    if not across and points <= longest_line(profile, 1):
        return (points,)
    return _steps(primes, longest_line(profile, WORKGROUP_LIMITS.least_together))


def mirrored_steps_of(points: int, profile: DeviceProfile) -> Sequence[int]:
    """The points of each step, in whose last one an invocation of a CPU driver holds two lines; none on a GPU."""
    if profile.kind != "cpu":
        return ()
    found = steps_of(points, False, profile)
    return found if found[-1] <= REGISTER_LIMITS.together else _steps(prime_factors(points), REGISTER_LIMITS.together)


def _steps(primes: list[int], widest: int) -> Sequence[int]:
    return balanced(primes, max([widest, *primes])) or (1,)


def fits_registers(points: int, profile: DeviceProfile) -> bool:
    """Whether an invocation transforms a whole line of a step, as it does on CPU drivers, whose barriers are slow."""
    return profile.kind == "cpu" or points <= REGISTER_LIMITS.gpu
