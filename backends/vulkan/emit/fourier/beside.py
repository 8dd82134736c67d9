"""Lines that lie beside each other in memory, which steps of lines along memory read and write where they are
(ir/ops/lowered/beside.py).

They are an odd number, so that no two numbers of neighbouring lines are a vector at every place. A cache line that one
of them reads or writes, the others do soon.
"""
from __future__ import annotations

from lavax.backends.vulkan.glsl.routine import RoutineShader
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.index import Index, linear, quotient, remainder

# Steps that give real lines, of which a number is two neighbours.
_OF_PAIRS = frozenset(("fourier_join", "fourier_paired", "fourier_step"))


@dataclass(frozen=True)
class BesideLimits:
    """Where it pays. Chosen by `python -m benchmarks fft`."""

    most: int = 15  # neighbours
    parts: int = 4  # for so many processors, of as many lines as are neighbours
    few: int = 1 << 13  # real numbers of all lines, of which a dispatch takes longer than their steps


BESIDE_LIMITS = BesideLimits()


def are_kept_beside(points: int, neighbours: int, lines: int, profile: DeviceProfile) -> bool:
    """Whether so many real lines, of which so many are neighbours in memory, stay where they are."""
    limits = BESIDE_LIMITS
    is_busy = lines >= limits.parts * neighbours or lines * points <= limits.few
    return profile.kind == "cpu" and neighbours % 2 == 1 and 1 < neighbours <= limits.most and is_busy


def lines_beside(routine: RoutineShader) -> int:
    """How many lines lie beside each other where a step writes them."""
    return int(routine.node.attrs.get("beside", 1))


def writes_parts_apart(routine: RoutineShader) -> bool:
    """Whether the parts of a number that a step writes lie apart."""
    return lines_beside(routine) > 1 and routine.node.op in _OF_PAIRS


def place_beside(routine: RoutineShader, position: Index, words: int) -> Index:
    """Where a number of so many words lies, whose position would be that if all lines followed each other."""
    count, lines = lines_beside(routine), routine.operands[0].shape[0]
    if count == 1:
        return position
    length = routine.node.type.size // (lines * words)
    line, place = quotient(position, length), remainder(position, length)
    return linear([(quotient(line, count), length * count), (place, count), (remainder(line, count), 1)])
