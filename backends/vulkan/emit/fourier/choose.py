"""The steps of Fourier transforms."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from math import log2, prod

from lavax.backends.vulkan.emit.fourier.shape import (
    least_together,
    longest_across,
    longest_line,
    two_radices,
)
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DType
from lavax.passes.numerics.primes import balanced, prime_factors


@dataclass(frozen=True)
class RegisterLimits:
    """The most points that an invocation transforms, and of which it transforms two lines. Chosen by `python -m
    benchmarks fft`.

    Steps of more points than `together` take longer each, so a CPU driver has them where few are left (`few`), or where
    without them there are more than `many`, unless lanes share their points.
    """

    cpu: int = 81
    gpu: int = 16
    prime_cpu: int = 127
    prime_gpu: int = 31
    real_cpu: int = 127  # points of a step of a real line of odd length
    real_across: int = 64  # points of a step of four or two real lines that are neighbours in memory
    four_to_reals: int = 16  # the same of four lines that are written
    least_to_reals: int = 8  # the same where lanes share the points of a step before it
    spread: int = 1 << 19  # numbers of all such lines, of which inverses of more have steps of so many points
    spread_points: int = 16
    from_cosines: int = 16  # points of a step across that makes each of two of four real numbers, as in a type 3
    together: int = 32
    mirrored: int = 50  # of two columns of a real line, where steps of `together` would be more
    few: int = 2
    many: int = 4


@dataclass(frozen=True)
class LaneLimits:
    """Of steps whose points lanes share, on CPU drivers. Chosen by `python -m benchmarks fft`."""

    most: int = 8  # lanes that share points
    along: int = 64  # points of each lane, of which it has two neighbours, of a line along memory
    single: int = 125  # points of each lane of a line along memory that is not shared by pairs
    joined: int = 64  # the same of the inverse of a real line, of which a driver compiles twice as much
    across: int = 32  # points of each lane, in two lines
    preferred: int = 16  # points of each lane in two lines, if the lanes are enough
    longest: int = 128  # of a step across: lines that stand further apart meet in the same sets of the cache


@dataclass(frozen=True)
class ThreeSteps:
    """Of lines along memory, which go through all steps in turn. Chosen by `python -m benchmarks fft`."""

    first: int = 12  # about as many points: it writes rows of so many, and turns each number by a root
    widest_first: int = 32
    first_mirrored: int = 5  # the same of the inverse of real lines, whose first step holds two columns
    widest_first_mirrored: int = 16
    last_mirrored: int = 15  # about as many, of the last step of real lines
    widest_mirrored: int = 32
    # Of those, at least if two steps would have a last one of more points, and at most.
    shortest_mirrored: int = 1 << 11
    longest_mirrored: int = (1 << 16) - 1
    longest_mirrored_double: int = 1 << 14  # the same of float64, if three steps of fewer points take a longer one


@dataclass(frozen=True)
class AcrossSteps:
    """Of lines along another axis. Chosen by `python -m benchmarks fft`."""

    first: int = 12  # about as many points of the first of two steps, of which lanes share the last one's
    widest_first: int = 16
    least_first: int = 6  # of the first one before lanes with so many points each
    shares: tuple[int, ...] = (15, 16)


@dataclass(frozen=True)
class FewNumbers:
    """Where code is kept short. Chosen by first calls (docs/performance/transforms_first_calls.md)."""

    numbers: int = 1 << 12  # of all lines together, at most
    points: int = 1 << 8  # lines of no more points are soon compiled
    widest: int = 16  # points of a step


@dataclass(frozen=True)
class PairedSteps:
    """Of cosine and sine transforms of type 4. Chosen by `python -m benchmarks fft`."""

    whole: int = 64  # points of a line along memory that is one step
    widest: int = 32  # points of another step
    narrow: int = 16  # of a first one of three across, and of the last one of two along memory
    widest_of_two: int = 50  # points of the first one of two
    last_of_two: int = 8  # about as many points of the last one
    ends: int = 12  # about as many of the first and the last one of three


THREE_STEPS = ThreeSteps()
ACROSS_STEPS = AcrossSteps()
FEW_NUMBERS = FewNumbers()
PAIRED_STEPS = PairedSteps()
REGISTER_LIMITS = RegisterLimits()
LANE_LIMITS = LaneLimits()


def steps_of(points: int, behind: int, part: DType, profile: DeviceProfile) -> Sequence[int]:
    """The points of each step of a transform, if so many lines are neighbours in memory; prime factors stay whole.

    A step whose lines are not along memory, as all of several are, needs several lines in shared memory.
    """
    across = behind > 1
    if profile.kind == "cpu":
        is_shared = not across and lanes_of(points, 1, 1, profile)
        found = (points,) if is_shared else _steps_in_registers(points, across, profile)
        if across and max(found) > ACROSS_STEPS.widest_first and len(found) > 1:
            found = _two_steps_across(points, behind, found, profile) or found
        if len(found) < 3:
            return found
        return (_several_steps_across(points, behind, profile) if across else _three_steps(points, profile)) or found
    primes = prime_factors(points)
    if not across and points <= longest_line(profile, part, 1):
        return (points,)
    limits = longest_line(profile, part, least_together(part)), longest_across(profile)
    narrow, wide = (balanced_steps(primes, most) for most in limits)
    is_less = len(wide) < len(narrow) and all(two_radices(width, part) for width in wide)
    return wide if is_less else narrow


def _steps_in_registers(points: int, across: bool, profile: DeviceProfile) -> Sequence[int]:
    """The points of each step if lanes do not share whole lines."""
    primes = prime_factors(points)
    wide, narrow = (balanced_steps(primes, most) for most in (REGISTER_LIMITS.cpu, REGISTER_LIMITS.together))
    if len(wide) == 1:
        return wide
    if len(narrow) <= REGISTER_LIMITS.few:
        return narrow
    shared = () if across else _two_shared_steps(points, profile)
    return shared or (wide if len(wide) <= REGISTER_LIMITS.few or len(narrow) > REGISTER_LIMITS.many else narrow)


def _two_shared_steps(points: int, profile: DeviceProfile) -> Sequence[int]:
    """Two steps of a line along memory, one of them by lanes at least; none if there are no such."""
    for width in range(REGISTER_LIMITS.together, 1, -2):
        rest = points // width
        if points % width == 0 and rest % 2 == 0:
            if lanes_of(rest, width, 1, profile):
                return (rest, width)
            if lanes_of(rest, 1, width, profile):
                return (width, rest)
    for width in range(LANE_LIMITS.longest, REGISTER_LIMITS.together, -2):
        rest = points // width
        if points % width == 0 and lanes_of(width, rest, 1, profile) and lanes_of(rest, 1, width, profile):
            return (width, rest)
    return ()


def _two_steps_across(points: int, behind: int, narrow: Sequence[int], profile: DeviceProfile) -> Sequence[int]:
    """Two steps of a line along another axis; none if there are no such. `narrow` are its steps in registers.

    Best are those of which lanes share the last one's points, with 15 or 16 each, then two of up to 32 points in
    registers, and then others of which lanes share the last one's points, and the first one's if these are many. What
    an invocation writes alone lies in as many places as it has points. Of an odd number of neighbours the first one
    writes single numbers, as each of its columns has other roots: two steps in registers are best.
    """
    limits = ACROSS_STEPS
    shares = {}  # of a lane in the last step
    for first in divisors(points, LANE_LIMITS.longest):
        last = points // first
        lanes = lanes_of(last, 1, first * behind, profile)
        if lanes and (first <= limits.widest_first or lanes_of(first, last, behind, profile)):
            shares[first, last] = last // lanes

    def far(way: tuple[int, int]) -> float:
        return abs(log2(way[0] / limits.first))

    best = [way for way, share in shares.items() if share in limits.shares and way[0] >= limits.least_first]
    best = [way for way in best if way[0] % 2 <= points % 2]  # an odd first one takes longer
    if (not best or behind % 2) and len(narrow) == 2 and max(narrow) <= REGISTER_LIMITS.together:
        return narrow
    return min(best or [*shares], key=far, default=())


def _three_steps(points: int, profile: DeviceProfile, mirrored: bool = False) -> Sequence[int]:
    """Three steps of a line, each of no fewer points than the one before; none if there are no such. Those of the
    inverse of a real line have a first step on `mirrored` columns.

    In the first step each of two neighbours has its own roots, which they share in the second one, and the last one
    has none: so the first one has few points and the last one as many as may be.
    """
    limits = THREE_STEPS
    best = limits.first_mirrored if mirrored else limits.first
    most = limits.widest_first_mirrored if mirrored else limits.widest_first
    ways = [way for way in ways_in_three(points, profile) if way[0] <= most and way[0] <= way[1] <= way[2]]
    return min(ways, key=lambda way: (*_apart(way[0], best, points), -way[2]), default=())


def _several_steps_across(points: int, behind: int, profile: DeviceProfile) -> Sequence[int]:
    """Three steps of a line along another axis, or four, each of no fewer points than the one before; none if there
    are no such.

    Lanes share the points of those that have many. An invocation that holds so many of one line takes longer than two
    steps of fewer points, and one that holds all points of the second step writes them in too many places.
    """
    few, narrow = REGISTER_LIMITS.together, ACROSS_STEPS.widest_first
    rising = [way for way in ways_in_three(points, profile, behind) if way[0] <= way[1] <= way[2]]

    def is_light(last: int) -> bool:
        return last <= few or lanes_of(last, 1, points // last * behind, profile) > 0

    def has_shared(way: tuple[int, int, int]) -> bool:
        first, second, last = way
        return first <= narrow and (second <= narrow or lanes_of(second, last, first * behind, profile) > 0)

    def far(way: tuple[int, int, int]) -> tuple[bool, float, int]:
        first, second, last = way
        is_odd, apart = _apart(first, ACROSS_STEPS.first, points * behind)
        return is_odd, apart + (second <= narrow), -last

    light = [way for way in rising if is_light(way[2])]
    fitting = [way for way in light if has_shared(way)] or [way for way in light if way[1] <= few]
    before = () if fitting else _narrow_steps_before(points, behind, profile)
    if before:
        return before
    others = [way for way in rising if way[0] <= narrow and not narrow < way[1] <= few]
    return min(fitting or others, key=far, default=())


def _narrow_steps_before(points: int, behind: int, profile: DeviceProfile) -> Sequence[int]:
    """Three steps of few points before one whose points lanes share; none if there are no such."""
    narrow = ACROSS_STEPS.widest_first
    for last in range(LANE_LIMITS.longest, REGISTER_LIMITS.together, -1):
        if points % last == 0 and lanes_of(last, 1, points // last * behind, profile):
            steps = balanced_steps(prime_factors(points // last), narrow)
            if len(steps) == 3 and max(steps) <= narrow:
                return (*sorted(steps), last)
    return ()


def _three_mirrored_steps(points: int, profile: DeviceProfile) -> Sequence[int]:
    """The same, but the last one holds two columns, and the one between has as many points as may be."""
    limits = THREE_STEPS
    if points > limits.longest_mirrored:
        return ()

    def far(way: tuple[int, int, int]) -> tuple[bool, float]:
        first, _, last = way
        is_odd, far = _apart(first, limits.first, points)
        return is_odd, far + abs(log2(last / limits.last_mirrored))

    return min((way for way in ways_in_three(points, profile) if way[2] <= limits.widest_mirrored), key=far, default=())


def ways_in_three(points: int, profile: DeviceProfile, behind: int = 1) -> Iterator[tuple[int, int, int]]:
    """The ways to take a line in three steps, the first of which has few points."""
    if max(prime_factors(points)) > REGISTER_LIMITS.together:
        return
    for first in divisors(points, THREE_STEPS.widest_first):
        rest = points // first
        for second in divisors(rest, LANE_LIMITS.longest):
            third = rest // second
            ahead = first * behind
            if _is_step(second, third, ahead, profile) and _is_step(third, 1, ahead * second, profile):
                yield first, second, third


def _is_step(points: int, rest: int, behind: int, profile: DeviceProfile) -> bool:
    return points <= REGISTER_LIMITS.cpu or lanes_of(points, rest, behind, profile) > 0


def divisors(number: int, most: int) -> list[int]:
    return [width for width in range(2, most + 1) if number % width == 0]


def _apart(first: int, best: int, points: int) -> tuple[bool, float]:
    """How far a first step is from the best one: if it has an odd number of points, the one after it has no neighbours
    with the same roots."""
    return first % 2 > points % 2, abs(log2(first / best))


def lanes_of(points: int, rest: int, behind: int, profile: DeviceProfile) -> int:
    """How many lanes share the points of a step, each of which reads and writes pairs; 0 if none do."""
    if profile.kind != "cpu" or not (profile.subgroup_shuffle and profile.knows_subgroup_size):
        return 0
    if points <= REGISTER_LIMITS.together or max(prime_factors(points)) > REGISTER_LIMITS.together:
        return 0
    counts = [1 << bit for bit in range(1, min(LANE_LIMITS.most, profile.subgroup_size).bit_length())]
    if rest * behind == 1:
        pairs = [n for n in counts if has_pairs(points, n)]
        is_long = points > REGISTER_LIMITS.cpu
        single = [n for n in counts if is_long and points % n == 0 and points // n <= LANE_LIMITS.single]
        return max(pairs or single, default=0)
    if rest * behind % 2 or points > LANE_LIMITS.longest:
        return 0
    fitting = [n for n in counts if points % n == 0 and points // n <= LANE_LIMITS.across]
    return min((n for n in fitting if points // n <= LANE_LIMITS.preferred), default=max(fitting, default=0))


def has_pairs(points: int, lanes: int) -> bool:
    """Whether each of so many lanes has pairs of neighbours of a line along memory."""
    return points % (4 * lanes) == 0 and points // (2 * lanes) <= LANE_LIMITS.along


def reads_pairs(points: int, rest: int, behind: int, profile: DeviceProfile) -> bool:
    """Whether a step reads two numbers at a time that are neighbours in memory."""
    if rest * behind == 1:
        return points % 2 == 0
    has_two = points <= REGISTER_LIMITS.together or lanes_of(points, rest, behind, profile) > 0
    return rest * behind % 2 == 0 and has_two


def mirrored_steps_of(points: int, inverse: bool, part: DType, profile: DeviceProfile) -> Sequence[int]:
    """The points of each step, in whose last one an invocation of a CPU driver holds two lines, or the only one is by
    lanes; none on a GPU."""
    if profile.kind != "cpu":
        return ()
    lanes = lanes_of(points, 1, 1, profile)
    if lanes and (not inverse or points // lanes <= LANE_LIMITS.joined):
        return (points,)
    found = _steps_in_registers(points, False, profile)
    *others, last = sorted(found, reverse=True) if found[-1] > REGISTER_LIMITS.together else found
    steps = (*others, last) if last <= REGISTER_LIMITS.mirrored else ()
    if len(steps) == 1 or (len(steps) == 2 and not _is_wide(steps, inverse)):
        return steps
    narrow = balanced_steps(prime_factors(points), REGISTER_LIMITS.together)
    if (points < THREE_STEPS.shortest_mirrored and len(narrow) <= 2) or (inverse and len(steps) == 2):
        return narrow
    if inverse:
        found = _three_steps(points, profile, mirrored=True)
        return (*found[1:], *found[:1]) or narrow
    if part.bits > 32 and points > THREE_STEPS.longest_mirrored_double and len(narrow) <= 3:
        return narrow
    return _three_mirrored_steps(points, profile) or steps or narrow


def _is_wide(steps: Sequence[int], inverse: bool) -> bool:
    """Whether three steps take less time than two: a last one of two columns has many points, or the last one of an
    inverse of an odd number of points, which lanes do not share."""
    first, last = steps
    if inverse:
        return first > REGISTER_LIMITS.mirrored and first * last % 2 == 1
    return last > REGISTER_LIMITS.together and first * last >= THREE_STEPS.shortest_mirrored


def folds(points: int, rest: int, behind: int, inverse: bool, profile: DeviceProfile) -> bool:
    """Whether a first step of real lines, or the last one of an inverse, may read or write them in the order of cosine
    transforms: its columns are then taken from both ends. Single numbers of an odd number of columns are read as fast
    by another step."""
    fits = points <= REGISTER_LIMITS.mirrored or lanes_of(points, rest, behind, profile) > 0
    return fits and (inverse or rest * behind % 2 == 0)


def folded_order_of(steps: Sequence[int], inverse: bool, profile: DeviceProfile) -> Sequence[int]:
    """Steps of pairs of real numbers, as `mirrored_steps_of` gives them, in an order in which they may read lines, or
    write those of an inverse, in the order of cosine transforms; none if there is no such. Best are even
    numbers of columns."""
    if len(steps) < 2:
        return steps
    ways = (way for way in permutations(steps) if way[-1] <= REGISTER_LIMITS.mirrored)
    fitting = ((way, columns) for way in ways if (columns := _folded_columns(way, inverse, profile)))
    best = min(fitting, key=lambda each: (each[1] % 2, each[0] != (*steps,), each[0][-1]), default=((), 0))
    return best[0]


def _folded_columns(way: Sequence[int], inverse: bool, profile: DeviceProfile) -> int:
    """How many columns the step has that reads or writes lines in that order; 0 if there are no such steps."""
    *widths, mirrored = way
    rest, behind = (prod(widths), mirrored) if inverse else (prod(way), 1)
    columns = 0
    for number, width in enumerate(widths):
        rest //= width
        folded = number == (len(widths) - 1 if inverse else 0)
        if not (folds(width, rest, behind, inverse, profile) if folded else _is_step(width, rest, behind, profile)):
            return 0
        columns = rest * behind if folded else columns
        behind *= width
    return columns


def few_steps_of(points: int, numbers: int, profile: DeviceProfile) -> Sequence[int]:
    """The points of each step if all lines together have few numbers: a driver compiles a long step for a second, and
    starts one more in some 20 µs. None if lines are short or many, and on a GPU."""
    if profile.kind != "cpu" or points <= FEW_NUMBERS.points or numbers > FEW_NUMBERS.numbers:
        return ()
    return balanced_steps(prime_factors(points), FEW_NUMBERS.widest)


def odd_steps_of(points: int, profile: DeviceProfile) -> Sequence[int]:
    """The points of each step of a transform of an odd number of real ones, of which the first step takes real numbers;
    none on a GPU.

    A real point takes half as long as a complex one.
    """
    if profile.kind != "cpu" or points % 2 == 0 or points == 1:
        return ()
    most = range(3, min(points, REGISTER_LIMITS.real_cpu) + 1, 2)
    ways = [(first, *_odd_rest(points // first, profile)) for first in most if points % first == 0]
    return min(ways, key=lambda way: (len(way), way[0] + 2 * sum(way[1:])), default=())


def _odd_rest(points: int, profile: DeviceProfile) -> Sequence[int]:
    """The steps on complex numbers; one of many points takes less time than two."""
    if points == 1:
        return ()
    return (points,) if points <= REGISTER_LIMITS.real_cpu else _steps_in_registers(points, True, profile)


def paired_steps_of(points: int, behind: int, profile: DeviceProfile) -> Sequence[int]:
    """The points of each step of a cosine or sine transform of type 4, of so many pairs of real numbers in
    each line, if so many lines are neighbours in memory. None on a GPU, and of lines along memory that have none."""
    limits = PAIRED_STEPS
    if profile.kind != "cpu":
        return ()
    if points <= (limits.widest if behind > 1 else limits.whole):
        return (points,)
    if behind > 1:
        found = sorted(balanced_steps(prime_factors(points), limits.widest), reverse=True)
        narrow = next((width for width in found if width <= limits.narrow), found[0])
        if len(found) > 2:
            found.remove(narrow)
            found.insert(0, narrow)
        return found
    widths = range(2, limits.widest_of_two + 1)
    ends = [way for way in product(widths, widths) if points % prod(way) == 0]
    two = [way for way in ends if prod(way) == points and way[1] <= limits.narrow]
    if two:
        return min(two, key=lambda way: abs(log2(way[1] / limits.last_of_two)))
    ways = [
        (first, *middle, last)
        for first, last in ends
        if max(first, last) <= limits.widest and (middle := _middle(points // (first * last), last, first, profile))
    ]
    best = limits.ends
    return min(ways, key=lambda way: (len(way), abs(log2(way[0] / best)) + abs(log2(way[-1] / best))), default=())


def _middle(points: int, rest: int, behind: int, profile: DeviceProfile) -> Sequence[int]:
    """The points of the steps between both ends; none if these are all."""
    if points == 1:
        return ()
    shared = lanes_of(points, rest, behind, profile)
    return (points,) if shared else balanced_steps(prime_factors(points), REGISTER_LIMITS.together)


def pairs_together(points: int, behind: int) -> int:
    """How many lines, or columns of a line along memory, an invocation has of a step of so many points at an end of
    such a transform."""
    if behind == 1:
        return 2
    if behind % 4 == 0 and points <= REGISTER_LIMITS.four_to_reals:
        return 4
    return 2 if behind % 2 == 0 and points <= REGISTER_LIMITS.together else 1


def reals_together(points: int, behind: int, inverse: bool) -> int:
    """How many neighbouring lines of real numbers an invocation transforms."""
    most = REGISTER_LIMITS.four_to_reals if inverse else REGISTER_LIMITS.real_across
    if points <= most and behind % 4 == 0:
        return 4
    return 2 if points <= REGISTER_LIMITS.real_across and behind % 2 == 0 else 1


def complex_together(points: int, behind: int) -> int:
    """The same of complex numbers."""
    return 2 if points <= REGISTER_LIMITS.together and behind % 2 == 0 else 1


def cosines_together(points: int, behind: int) -> int:
    """The same of complex numbers that real ones are written for."""
    return 4 if points <= REGISTER_LIMITS.four_to_reals and behind % 4 == 0 else complex_together(points, behind)


def largest_prime(profile: DeviceProfile) -> int:
    """The largest prime number of points of a step: those beyond 31 are convolutions in registers, of which a GPU's
    invocations have too few."""
    return REGISTER_LIMITS.prime_cpu if profile.kind == "cpu" else REGISTER_LIMITS.prime_gpu


def balanced_steps(primes: list[int], widest: int) -> Sequence[int]:
    """The fewest steps of at most so many points, where prime factors allow, which have about as many each."""
    return balanced(primes, max([widest, *primes])) or (1,)


def fits_registers(points: int, profile: DeviceProfile) -> bool:
    """Whether an invocation transforms a whole line of a step, as it does on CPU drivers, whose barriers are slow."""
    return profile.kind == "cpu" or points <= REGISTER_LIMITS.gpu
