"""What the last step of a transform of real lines writes of a number of the spectrum: itself, or real numbers that it
makes of it with tables, as cosine transforms do."""
from __future__ import annotations

from contextlib import nullcontext

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers
from lavax.backends.vulkan.emit.fourier.numbers import write_number, write_real
from lavax.backends.vulkan.glsl.routine import RoutineShader
from lavax.ir.ops.lowered.fourier import CONJUGATES, ONLY_REAL, ONLY_SINES
from lavax.ir.ops.lowered.odd_lines import ODD_TYPE_4
from lavax.passes.kernels.index import Index, clamp, constant, linear, remainder, variable


def write_frequency(
    routine: RoutineShader, single: Registers, line: Index, half: int, frequency: Index, x: Number
) -> None:
    """Writes what the number of a frequency from 0 to `half` gives. Of the cosines, those of the ends of the spectrum
    give one number twice, and the last that is written counts."""
    only = routine.node.attrs.get("only", 0)
    if only == ONLY_REAL:
        write_real(routine, linear([(line, half + 1), (frequency, 1)]), x.real)
        return
    if only == ONLY_SINES:
        _write_sine(routine, linear([(line, half - 1)]), half, frequency, x)
        return
    if only == CONJUGATES:
        x = Number(x.real, f"-({x.imaginary})")
    if routine.node.op != "fourier_cosines":
        write_number(routine, linear([(line, half + 1), (frequency, 1)]), x)
        return
    length = 2 * half
    places = frequency, remainder(linear([(frequency, -1)], length), length)
    _write_cosines(routine, single, linear([(line, length)]), frequency, x, _turned(routine, places, length))


def _write_sine(routine: RoutineShader, start: Index, half: int, frequency: Index, x: Number) -> None:
    """Writes the negated imaginary part, unless the frequency is an end of the spectrum."""
    ends = (end for end in (0, half) if frequency.low <= end <= frequency.high)
    inside = " && ".join(f"{routine.body.index(frequency)} != {end}" for end in ends)
    place = linear([(start, 1), (clamp(frequency, 1, half - 1), 1)], -1)
    with routine.body.block(f"if ({inside})") if inside else nullcontext():
        write_real(routine, place, f"-{x.imaginary}")


def write_odd_frequency(
    routine: RoutineShader, single: Registers, line: Index, length: int, frequency: Index, x: Number
) -> None:
    """The same of lines of an odd number of points. Of cosines the frequency 0 gives one number twice."""
    kind, start = routine.node.attrs["cosines"], linear([(line, length)])
    if not kind:
        write_number(routine, linear([(line, length // 2 + 1), (frequency, 1)]), x)
    elif kind == ODD_TYPE_4:
        place = _place_of_type_4(routine, frequency, length)
        sign = 1 if length % 4 == 1 else -1
        _write_cosines(routine, single, start, frequency, x, (place, linear([(place, -1)], length - 1)), sign)
    else:
        places = frequency, remainder(linear([(frequency, -1)], length), length)
        _write_cosines(routine, single, start, frequency, x, _turned(routine, places, length))


def _turned(routine: RoutineShader, places: tuple[Index, Index], length: int) -> tuple[Index, Index]:
    attrs = routine.node.attrs
    is_reversed = attrs["reverse"] if "reverse" in attrs else attrs["cosines"] < 0
    first, second = (linear([(place, -1)], length - 1) if is_reversed else place for place in places)
    return first, second


def _place_of_type_4(routine: RoutineShader, frequency: Index, length: int) -> Index:
    """The number k of which 2k + 1 is the frequency modulo the odd length."""
    if frequency.is_constant:
        known = frequency.constant
        return constant((known + length * (1 - known % 2) - 1) // 2)
    body = routine.body
    text = body.declare(body.scopes[-1], "int", body.index(frequency))
    name = body.declare(body.scopes[-1], "int", f"{text} + ({text} & 1 ^ 1) * {length} - 1 >> 1")
    body.scopes[-1].variables |= {name}
    return variable(name, length)


def _write_cosines(
    routine: RoutineShader,
    single: Registers,
    start: Index,
    frequency: Index,
    x: Number,
    places: tuple[Index, Index],
    sign: int = 1,
) -> None:
    """Writes what tables make of the number: at the second place, which may be the first one, and then at this."""
    cosine, sine = (routine.read(table, (frequency,)) for table in routine.operands[1:])
    two = single.text(2.0)
    texts = [f"{two} * ({x.real} * {cosine} + {x.imaginary} * {sine})"]
    if places[1] != places[0]:
        texts.append(f"{single.text(2.0 * sign)} * ({x.real} * {sine} - {x.imaginary} * {cosine})")
    for place, text in reversed([*zip(places, texts, strict=False)]):
        write_real(routine, linear([(start, 1), (place, 1)]), text)
