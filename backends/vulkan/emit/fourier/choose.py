"""The steps of Fourier transforms."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.numerics.primes import balanced, prime_factors


@dataclass(frozen=True)
class RegisterLimits:
    """The most points that an invocation transforms. Chosen by `python -m benchmarks fft`."""

    cpu: int = 32
    gpu: int = 16


REGISTER_LIMITS = RegisterLimits()


def steps_of(points: int, lines: int, profile: DeviceProfile) -> Sequence[int]:
    """The points of each step of a transform; prime factors stay whole."""
    primes = prime_factors(points)
    widest = REGISTER_LIMITS.cpu if profile.kind == "cpu" else REGISTER_LIMITS.gpu
    return balanced(primes, max([widest, *primes])) or (1,)
