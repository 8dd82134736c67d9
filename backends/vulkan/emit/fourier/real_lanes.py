"""Transforms of real lines in one step, whose pairs lanes of a subgroup share (lanes.py), and their inverses.

Of q lanes the one of the frequency F has the numbers z[f] of the pairs' transform for f from F·p on, and if lanes have
neighbours, those half the line behind. The mirrored number z[h − f] is then with the lane whose number has all bits the
other way; for the first number of a lane with that of the frequency −F. So lanes exchange once more, and each takes the
spectra of the elements at even and at odd places apart for all its numbers. The inverse reads mirrored numbers twice.
"""
from __future__ import annotations

from lavax.backends.vulkan.emit.fourier.butterflies import Number
from lavax.backends.vulkan.emit.fourier.choose import has_pairs
from lavax.backends.vulkan.emit.fourier.folded import read_folded_by_lanes, write_folded_by_lanes
from lavax.backends.vulkan.emit.fourier.lanes import Lanes, Runs, points_of_line, transformed_numbers, transformed_parts
from lavax.backends.vulkan.emit.fourier.numbers import read_number
from lavax.backends.vulkan.emit.fourier.roots import unit_root
from lavax.backends.vulkan.emit.fourier.spectra import write_frequency
from lavax.backends.vulkan.emit.fourier.turns import turns_of
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import Index, constant, linear, quotient
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.numerics.unit_roots import unit_root as host_root


def emit_spectrum_by_lanes(kernel: Kernel, profile: DeviceProfile, lifted: bool, count: int) -> Launch:
    """The shader of a last step that is the only one, of which so many lanes share a line."""
    routine = open_routine(kernel, profile, lifted)
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
    routine = open_routine(kernel, profile, lifted)
    lines, places, _ = routine.operands[0].shape
    lanes = Lanes(routine, count, sign=1)
    with routine.open_turns(lines * count, turns_of(lines * count, profile, lifted)) as number:
        line, half = quotient(number, count), places - 1
        numbers = transformed_numbers(lanes, _joined(lanes, line, half))
        if routine.node.attrs["folded"]:
            write_folded_by_lanes(lanes, line, numbers)
        else:
            Runs(lanes, len(numbers)).write(linear([(line, half)]), numbers)
    return routine.close(lines * count, subgroup=True)


def _joined(lanes: Lanes, line: Index, half: int) -> list[Number]:
    """s[f] + s̄[h − f] + i·exp(πi·f/h)·(s[f] − s̄[h − f]) for each number f of a lane; the ends of the spectrum of a real
    line are real."""
    routine, single, operand = lanes.routine, lanes.single, lanes.routine.operands[0]
    of_lane = unit_root(single, lanes.body.index(lanes.number), 2 * half)
    is_end = lanes.body.declare(lanes.body.scopes[-1], "bool", f"{lanes.body.index(lanes.number)} == 0")
    found = []
    for f in range(0, half, lanes.count):
        s = read_number(routine, operand, linear([(line, half + 1), (lanes.number, 1)], f))
        mirrored = read_number(routine, operand, linear([(line, half + 1), (lanes.number, -1)], half - f))
        if f == 0:
            zero = single.text(0.0)
            s, mirrored = (single.named(x.real, f"{is_end} ? {zero} : {x.imaginary}") for x in (s, mirrored))
        root = of_lane if f == 0 else single.times(of_lane, single.constant(host_root(f, 2 * half)))
        even, odd = (single.named(*_parts(s, mirrored, signs)) for signs in ("+-", "-+"))
        found.append(single.plus_i_times(even, single.times(odd, root)))
    return found


def _mirrored(lanes: Lanes, parts: list[tuple[Number, ...]]) -> list[tuple[Number, ...]]:
    """z[h − f] for each number z[f]."""
    single, count = lanes.single, lanes.count
    bits = count.bit_length() - 1
    opposite = lanes.body.declare(lanes.body.scopes[-1], "int", f"-{lanes.body.index(lanes.frequency)} & {count - 1}")
    moved = " | ".join(f"(({opposite} >> {bit} & 1) << {bits - 1 - bit})" for bit in range(bits))
    number = lanes.body.declare(lanes.body.scopes[-1], "int", moved)
    lane = f"(gl_SubgroupInvocationID & ~{count - 1}u) + uint({lanes.lane_of(number)})"
    place = lanes.body.declare(lanes.body.scopes[-1], "uint", lane)
    is_own = lanes.body.declare(lanes.body.scopes[-1], "bool", f"{opposite} == 0")

    def of_opposite(own: Number, other: Number) -> Number:
        given = single.named(*(f"subgroupShuffle({part}, {place})" for part in (other.real, other.imaginary)))
        return single.named(f"{is_own} ? {own.real} : {given.real}", f"{is_own} ? {own.imaginary} : {given.imaginary}")

    def of_other_bits(x: Number) -> Number:
        return single.named(*(f"subgroupShuffleXor({part}, {count - 1}u)" for part in (x.real, x.imaginary)))

    first = tuple(of_opposite(*both) for both in zip(parts[0], reversed(parts[0]), strict=True))
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
