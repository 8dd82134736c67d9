"""The orders in which steps read and write lines, number by number: that of cosine transforms, x[0], x[2], …, x[3],
x[1], and the opposite one, whose spectra are conjugates."""
from __future__ import annotations

from lavax.backends.vulkan.glsl.routine import RoutineShader
from lavax.ir.ops.lowered.lines_across import TURNED
from lavax.passes.kernels.index import Index, linear, remainder, variable


def place_of_folded(routine: RoutineShader, place: Index, length: int) -> tuple[Index, str]:
    """Where a line of that length has the number at a place of that order, if the step has lines in it (`folded`), and
    the factor that the text of the number has."""
    fold = routine.node.attrs["folded"]
    if not fold:
        return place, ""
    if fold == TURNED:
        return remainder(linear([(place, -1)], length), length), ""
    even, odd = linear([(place, 2)]), linear([(place, -2)], 2 * length - 1)
    if even.high < length:
        return even, ""
    if even.low >= length:
        return odd, "-" if fold < 0 else ""
    body = routine.body
    ahead, back = body.index(even), body.index(odd)
    is_ahead = body.declare(body.scopes[-1], "bool", f"{ahead} < {length}")
    name = body.declare(body.scopes[-1], "int", f"{is_ahead} ? {ahead} : {back}")
    body.scopes[-1].variables |= {name}
    return variable(name, length), f"({is_ahead} ? 1 : -1) * " if fold < 0 else ""
