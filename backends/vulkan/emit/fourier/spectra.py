"""What the last step of a transform of real lines writes of a number of the spectrum: itself, or real numbers that it
makes of it with tables, as cosine transforms do."""
from __future__ import annotations

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers
from lavax.backends.vulkan.emit.fourier.numbers import write_number, write_real
from lavax.backends.vulkan.glsl.routine import RoutineShader
from lavax.passes.kernels.index import Index, linear, remainder


def write_frequency(
    routine: RoutineShader, single: Registers, line: Index, half: int, frequency: Index, x: Number
) -> None:
    """Writes what the number of a frequency from 0 to `half` gives. Of the cosines, those of the ends of the spectrum
    give one number twice, and the last that is written counts."""
    if routine.node.op != "fourier_cosines":
        write_number(routine, linear([(line, half + 1), (frequency, 1)]), x)
        return
    cosine, sine = (routine.read(table, (frequency,)) for table in routine.operands[1:])
    two, length = single.text(2.0), 2 * half
    back = remainder(linear([(frequency, -1)], length), length)
    of_back = f"{two} * ({x.real} * {sine} - {x.imaginary} * {cosine})"
    of_ahead = f"{two} * ({x.real} * {cosine} + {x.imaginary} * {sine})"
    for place, text in ((back, of_back), (frequency, of_ahead)):
        at = linear([(place, -1)], length - 1) if routine.node.attrs["reverse"] else place
        write_real(routine, linear([(line, length), (at, 1)]), text)
