"""How a workgroup shares the points of a few lines."""
from __future__ import annotations

from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DType
from lavax.passes.numerics.primes import balanced, prime_factors


@dataclass(frozen=True)
class WorkgroupLimits:
    """The form of workgroups. Exercised by `python -m benchmarks fft`."""

    invocations: int = 256  # as many as lines along memory fill
    most_invocations: int = 1024
    radix: int = 16  # of an invocation, if the primes allow it
    together: int = 16  # lines that are neighbours in memory, whose complex64 numbers fill a cache line
    least_together: int = 8
    gap: int = 16  # numbers of shared memory after which one is left out, so that strides meet all banks


WORKGROUP_LIMITS = WorkgroupLimits()
_SINGLE_BYTES = 8  # of a complex64 number


@dataclass(frozen=True)
class WorkgroupShape:
    """`members` invocations transform each of `together` lines by the radices, in order."""

    radices: tuple[int, ...]
    members: int
    together: int
    row: int  # numbers of shared memory from one line to the next

    @property
    def gap(self) -> int:
        return WORKGROUP_LIMITS.gap

    @property
    def invocations(self) -> int:
        return self.members * self.together


def number_bytes(part: DType) -> int:
    """Of a complex number."""
    return 2 * part.storage.itemsize


def least_together(part: DType) -> int:
    """The fewest lines that a workgroup takes of a step across memory."""
    return max(WORKGROUP_LIMITS.least_together * _SINGLE_BYTES // number_bytes(part), 1)


def longest_line(profile: DeviceProfile, part: DType, together: int) -> int:
    """The most points of as many lines that shared memory holds."""
    numbers = profile.shared_memory_bytes // (number_bytes(part) * together)
    gap = WORKGROUP_LIMITS.gap
    return max((numbers - gap) * gap // (gap + 1), 1)


def shape_of(points: int, lines: int, across: bool, part: DType, profile: DeviceProfile) -> WorkgroupShape:
    """The shape for so many lines; `across` if neighbours in memory belong to different lines."""
    primes = prime_factors(points)
    radices = balanced(primes, max([WORKGROUP_LIMITS.radix, *primes]))
    most = min(WORKGROUP_LIMITS.most_invocations, profile.max_workgroup_invocations)
    members = min(points // radices[0], WORKGROUP_LIMITS.invocations, most)
    neighbours = WORKGROUP_LIMITS.together * _SINGLE_BYTES // number_bytes(part)
    wanted = neighbours if across else WORKGROUP_LIMITS.invocations // members
    together = max(min(wanted, lines, most // members), 1)
    while together > 1 and points > longest_line(profile, part, together):
        together -= 1
    gap = WORKGROUP_LIMITS.gap
    row = points + points // gap
    row += (max(gap // together, 1) - row) % gap  # so that neighbouring lines meet different banks
    return WorkgroupShape(tuple(radices), members, together, row)
