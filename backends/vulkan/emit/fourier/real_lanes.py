"""Transforms of real lines in one step, whose pairs lanes of a subgroup share (lanes.py), and their inverses.

Of q lanes the one of the frequency F has the numbers z[f] of the pairs' transform for f from F·p on, and if lanes have
neighbours, those half the line behind. The mirrored number z[h − f] is then with the lane whose number has all bits the
other way; for the first number of a lane with that of the frequency −F. So lanes exchange once more, and each takes the
spectra of the elements at even and at odd places apart for all its numbers. The inverse reads mirrored numbers twice.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers
from lavax.backends.vulkan.emit.fourier.choose import has_pairs
from lavax.backends.vulkan.emit.fourier.cosine_spectra import spectrum_of
from lavax.backends.vulkan.emit.fourier.folded import read_folded_by_lanes, write_folded_by_lanes
from lavax.backends.vulkan.emit.fourier.lanes import Lanes, Runs, points_of_line, transformed_numbers, transformed_parts
from lavax.backends.vulkan.emit.fourier.numbers import open_step, read_number
from lavax.backends.vulkan.emit.fourier.roots import unit_root
from lavax.backends.vulkan.emit.fourier.spectra import write_frequency
from lavax.backends.vulkan.emit.fourier.turns import turns_of
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import Index, constant, linear, quotient
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.numerics.unit_roots import unit_root as host_root


def emit_spectrum_by_lanes(kernel: Kernel, profile: DeviceProfile, lifted: bool, count: int) -> Launch:
    """The shader of a last step that is the only one, of which so many lanes share a line."""
    routine = open_step(kernel, profile, lifted)
    lines, half, _, _ = routine.operands[0].shape
    in_pairs = has_pairs(half, count)
    lanes = Lanes(routine, count, rotated=not in_pairs)
    with routine.open_turns(lines * count, turns_of(lines * count, profile, lifted)) as number:
        _write_spectrum(lanes, quotient(number, count), half, in_pairs)
    return routine.close(lines * count, subgroup=True)


def _write_spectrum(lanes: Lanes, line: Index, half: int, in_pairs: bool) -> None:
    """The spectrum of one line."""
    routine, count = lanes.routine, lanes.count
    read = read_folded_by_lanes if routine.node.attrs.get("folded") else points_of_line
    parts = transformed_parts(lanes, read(lanes, line, in_pairs), in_pairs)
    own, single = len(parts), lanes.single
    of_lane = unit_root(single, lanes.body.index(linear([(lanes.frequency, own)])), 2 * half)
    roots = [of_lane if k == 0 else single.times(of_lane, single.constant(host_root(-k, 2 * half))) for k in range(own)]
    for k, mirrored in enumerate(_mirrored(lanes, parts)):
        for side in range(len(mirrored)):
            frequency = linear([(lanes.frequency, own)], side * own * count + k)
            found = _spectrum(lanes, parts[k][side], mirrored[side], roots[k], side)
            write_frequency(routine, single, line, half, frequency, found)
    with lanes.body.block(f"if ({lanes.body.index(lanes.frequency)} == 0)"):
        real, imaginary = parts[0][0].real, parts[0][0].imaginary
        last = single.named(f"{real} - {imaginary}", single.text(0.0))
        write_frequency(routine, single, line, half, constant(half), last)


def emit_join_by_lanes(kernel: Kernel, profile: DeviceProfile, lifted: bool, count: int) -> Launch:
    """The shader of a first step of the inverse that is the only one, of which so many lanes share a line."""
    routine = open_step(kernel, profile, lifted)
    lines, places, *_ = routine.operands[0].shape
    of_cosines = routine.node.op == "fourier_from_cosines"
    lanes, half = Lanes(routine, count, sign=1), places // 2 if of_cosines else places - 1
    with routine.open_turns(lines * count, turns_of(lines * count, profile, lifted)) as number:
        line = quotient(number, count)
        if of_cosines:
            pair = spectrum_of(routine, lanes.single, line, half, lanes.number).joined
        else:
            pair = partial(_joined, lanes, line, half, _root_of_lane(lanes, half))
        numbers = transformed_numbers(lanes, _of_pairs(lanes, half // count, pair))
        if routine.node.attrs["folded"]:
            write_folded_by_lanes(lanes, line, numbers)
        else:
            Runs(lanes, len(numbers)).write(linear([(line, half)]), numbers)
    return routine.close(lines * count, subgroup=True)


def _root_of_lane(lanes: Lanes, half: int) -> Number:
    return unit_root(lanes.single, lanes.body.index(lanes.number), 2 * half)


def _joined(lanes: Lanes, line: Index, half: int, of_lane: Number, behind: int) -> tuple[Number, Number]:
    """s[f] + s̄[h − f] + i·exp(πi·f/h)·(s[f] − s̄[h − f]) for the number f that is so far behind a lane's own, and for
    h − f; the ends of the spectrum of a real line are real."""
    routine, single, operand = lanes.routine, lanes.single, lanes.routine.operands[0]
    s = read_number(routine, operand, linear([(line, half + 1), (lanes.number, 1)], behind))
    mirrored = read_number(routine, operand, linear([(line, half + 1), (lanes.number, -1)], half - behind))
    if behind == 0:
        is_end, zero = f"{lanes.body.index(lanes.number)} == 0", single.text(0.0)
        s, mirrored = (single.named(x.real, f"{is_end} ? {zero} : {x.imaginary}") for x in (s, mirrored))
    root = of_lane if behind == 0 else single.times(of_lane, single.constant(host_root(behind, 2 * half)))
    even, odd = (single.named(*_parts(s, mirrored, signs)) for signs in ("+-", "-+"))
    turned = single.times(odd, root)
    second = single.named(f"{even.real} + {turned.imaginary}", f"{turned.real} - {even.imaginary}")
    return single.plus_i_times(even, turned), second


def _of_pairs(lanes: Lanes, own: int, pair: Callable[[int], tuple[Number, Number]]) -> list[Number]:
    """The numbers of a lane from its own `number` on, q apart, of which `pair` gives the one that is so far behind, and
    its mirror image.

    A lane computes the first half, and is given the mirror images of another lane for the second half. Those of the
    first lane are its own, but for the middle of the line, which it computes in addition.
    """
    single, count = lanes.single, lanes.count
    pairs = [pair(f * count) for f in range(own // 2 + 1)]
    opposite = _Opposite(lanes, lanes.number)
    ahead = [first for first, _ in pairs[: (own + 1) // 2]]
    return ahead + [opposite.chosen(single, pairs[f + 1][1], pairs[f][1]) for f in reversed(range(own // 2))]


class _Opposite:
    """The lane with the opposite of a number, modulo how many lanes there are; of the first number it is the same."""

    def __init__(self, lanes: Lanes, number: Index, is_turned: bool = False) -> None:
        body, count = lanes.body, lanes.count
        bits = count.bit_length() - 1
        opposite = body.declare(body.scopes[-1], "int", f"-{body.index(number)} & {count - 1}")
        moved = " | ".join(f"(({opposite} >> {bit} & 1) << {bits - 1 - bit})" for bit in range(bits))
        own = body.declare(body.scopes[-1], "int", moved) if is_turned else opposite
        lane = f"(gl_SubgroupInvocationID & ~{count - 1}u) + uint({lanes.lane_of(own)})"
        self._place = body.declare(body.scopes[-1], "uint", lane)
        self._is_own = body.declare(body.scopes[-1], "bool", f"{opposite} == 0")

    def chosen(self, single: Registers, own: Number, other: Number) -> Number:
        """What the lane itself has, if it is its opposite, or else what that has."""
        given = single.named(*(f"subgroupShuffle({part}, {self._place})" for part in (other.real, other.imaginary)))
        parts = (own.real, given.real), (own.imaginary, given.imaginary)
        return single.named(*(f"{self._is_own} ? {mine} : {its}" for mine, its in parts))


def _mirrored(lanes: Lanes, parts: list[tuple[Number, ...]]) -> list[tuple[Number, ...]]:
    """z[h − f] for each number z[f]."""
    single, count = lanes.single, lanes.count
    opposite = _Opposite(lanes, lanes.frequency, is_turned=True)

    def of_other_bits(x: Number) -> Number:
        return single.named(*(f"subgroupShuffleXor({part}, {count - 1}u)" for part in (x.real, x.imaginary)))

    first = tuple(opposite.chosen(single, *both) for both in zip(parts[0], reversed(parts[0]), strict=True))
    return [first, *(tuple(map(of_other_bits, reversed(parts[-k]))) for k in range(1, len(parts)))]


def _spectrum(lanes: Lanes, z: Number, mirrored: Number, root: Number, side: int) -> Number:
    """(z + z̄')/2 − i/2·root·(z − z̄') for the mirrored number z'; half a line behind, the root is turned by −i."""
    single, half = lanes.single, lanes.single.text(0.5)
    even = single.named(*(f"{half} * ({part})" for part in _parts(z, mirrored, "+-")))
    odd = single.named(*(f"{half} * ({part})" for part in _parts(z, mirrored, "-+")))
    turned = single.times(odd, root)
    return single.minus(even, turned) if side else single.minus_i_times(even, turned)


def _parts(z: Number, mirrored: Number, signs: str) -> tuple[str, str]:
    return f"{z.real} {signs[0]} {mirrored.real}", f"{z.imaginary} {signs[1]} {mirrored.imaginary}"
