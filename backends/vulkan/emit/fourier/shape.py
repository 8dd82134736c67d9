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
    apart: bool = False  # whether parts are exchanged one after the other where both of all lines do not fit
    doublings: int = 1  # of a frequency whose root is computed, to the next such one


WORKGROUP_LIMITS = WorkgroupLimits()
_SINGLE_BYTES = 8  # of a complex64 number
_BANK_BYTES, _WORD_BYTES = 128, 4  # of all banks of shared memory, and of one
# Numbers of shared memory after which one is left out, so that strides meet all banks: of these as many as neighbours
# write next to each other, otherwise the second.
_GAPS = (8, 16, 32)
_GAP = 16


@dataclass(frozen=True)
class WorkgroupShape:
    """`members` invocations transform each of `together` lines by the radices, in order."""

    radices: tuple[int, ...]
    members: int
    together: int
    apart: bool  # whether real and imaginary parts are exchanged one after the other
    gap: int  # numbers of shared memory after which one is left out
    row: int  # numbers of shared memory from one line to the next

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
    return _longest(profile, number_bytes(part) // (2 if WORKGROUP_LIMITS.apart else 1), together)


def _longest(profile: DeviceProfile, size: int, together: int) -> int:
    """The same, if a number takes so many bytes there."""
    numbers, gap = profile.shared_memory_bytes // (size * together), _least_gap(size)
    return max((numbers - _banks(size)) * gap // (gap + 1), 1)


def shape_of(points: int, lines: int, across: bool, part: DType, profile: DeviceProfile) -> WorkgroupShape:
    """The shape for so many lines; `across` if neighbours in memory belong to different lines."""
    limits = WORKGROUP_LIMITS
    primes = prime_factors(points)
    radices = balanced(primes, max([limits.radix, *primes]))
    most = min(limits.most_invocations, profile.max_workgroup_invocations)
    members = min(points // radices[0], limits.invocations, most)
    neighbours = limits.together * _SINGLE_BYTES // number_bytes(part)
    wanted = max(min(neighbours if across else limits.invocations // members, lines, most), 1)
    members = -(-members // -(-members * wanted // most))
    size, apart = number_bytes(part), False
    if limits.apart and points > _longest(profile, size, wanted):
        size, apart = size // 2, True
    while wanted > 1 and points > _longest(profile, size, wanted):
        wanted -= 1
    # Whole parts of cache lines, if some lines are left for other workgroups.
    together = 1 << wanted.bit_length() - 1 if across and wanted < lines else wanted
    gap = max(radices[0] if radices[0] in _GAPS else _GAP, _least_gap(size))
    row = points + points // gap
    row += (max(_banks(size) // together, 1) - row) % _banks(size)  # so that neighbouring lines meet different banks
    return WorkgroupShape(tuple(radices), members, together, apart, gap, row)


def _banks(size: int) -> int:
    """How many numbers of that size the banks of shared memory hold side by side."""
    return max(_BANK_BYTES // size, 1)


def _least_gap(size: int) -> int:
    return _GAPS[0] if size == _WORD_BYTES else _GAP
