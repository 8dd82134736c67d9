"""How a workgroup shares the points of a few lines."""
from __future__ import annotations

from collections.abc import Sequence

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
    radix_across: int = 32  # of steps across memory whose parts are exchanged one after the other


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
    return _longest(profile, number_bytes(part), together)


def longest_across(profile: DeviceProfile) -> int:
    """The most points of a step across memory whose parts are exchanged one after the other."""
    return _longest(profile, _WORD_BYTES, WORKGROUP_LIMITS.least_together)


def _longest(profile: DeviceProfile, size: int, together: int) -> int:
    """The most points of as many lines, if a number takes so many bytes there."""
    numbers, gap = profile.shared_memory_bytes // (size * together), _least_gap(size)
    return max((numbers - _banks(size)) * gap // (gap + 1), 1)


def two_radices(points: int, part: DType) -> Sequence[int]:
    """The radices of a step across memory whose parts are exchanged one after the other: with more than one exchange
    that is slower than more steps. None if there are no such two, or for complex128, of which an invocation would have
    too many registers."""
    primes, widest = prime_factors(points), WORKGROUP_LIMITS.radix_across
    if number_bytes(part) != _SINGLE_BYTES or max(primes, default=1) > widest:
        return ()
    found = balanced(primes, widest)
    return found if len(found) <= 2 else ()


def shape_of(points: int, lines: int, across: bool, part: DType, profile: DeviceProfile) -> WorkgroupShape:
    """The shape for so many lines; `across` if neighbours in memory belong to different lines."""
    limits = WORKGROUP_LIMITS
    primes, size = prime_factors(points), number_bytes(part)
    radices: Sequence[int] = balanced(primes, max([limits.radix, *primes]))
    most = min(limits.most_invocations, profile.max_workgroup_invocations)
    wanted = min(limits.together * _SINGLE_BYTES // size, lines, most)
    apart = across and points > _longest(profile, size, wanted) and bool(two_radices(points, part))
    if apart:
        radices, size = two_radices(points, part), size // 2
    members = min(points // radices[0], limits.invocations, most)
    if not across:
        wanted = max(min(limits.invocations // members, lines, most), 1)
    members = -(-members // -(-members * wanted // most))
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
