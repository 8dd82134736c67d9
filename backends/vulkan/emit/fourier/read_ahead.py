"""Reads what a step will write, before it does, on CPU drivers.

The numbers of a step along another axis than the last one lie far apart. A processor waits for each cache line that it
writes to and does not have, nearly one after the other, but reads several at once.
"""
from __future__ import annotations

from collections.abc import Sequence

from lavax.backends.vulkan.emit.fourier.beside import lines_beside
from lavax.backends.vulkan.glsl.bounds import inside
from lavax.backends.vulkan.glsl.routine import RoutineShader
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.index import Index, linear, quotient

_CACHE_LINE, _TEXEL_BYTES = 64, 16


@dataclass(frozen=True)
class ReadAhead:
    """Where it pays. Chosen by `python -m benchmarks fft`."""

    rows: int = 17  # that a step writes, at least: of fewer ones a processor finds out itself
    apart: int = 1 << 10  # bytes from one row to the next, at least


READ_AHEAD = ReadAhead()


@dataclass(frozen=True)
class Rows:
    """Rows that an invocation writes: the first one at `start`, and each other so many complex numbers behind the one
    before."""

    start: Index
    count: int
    apart: int


def read_ahead(routine: RoutineShader, written: Sequence[Rows], neighbours: int) -> None:
    """Reads a word of each cache line of what an invocation writes, in rows of so many complex numbers that are
    neighbours.

    Invocations of one cache line read one of several rows each. What is read is written if a slot has a number that no
    slot has, which the driver does not know, so that it keeps the reads. Steps of few lines, and those of a dispatch
    that takes lines through several steps, do without.
    """
    body, width = routine.body, 2 * routine.node.dtype.bits // 8
    slot = body.memory.write_descriptors.get(routine.target)
    are_few = sum(rows.count for rows in written) < READ_AHEAD.rows
    are_near = written[0].apart * width < READ_AHEAD.apart or lines_beside(routine) > 1
    if routine.turns == 1 or slot is None or are_few or are_near:
        return
    together = max(_CACHE_LINE // (neighbours * width), 1)
    texels = routine.node.type.nbytes // _TEXEL_BYTES
    lane = body.declare(body.scopes[-1], "int", f"int(gl_LocalInvocationID.x) % {together}")
    words: list[str] = []
    for rows in written:
        for row in range(0, rows.count, together):
            own = routine.position(f"{lane}_{len(words)}", f"min({row} + {lane}, {rows.count - 1})", rows.count)
            at = quotient(linear([(rows.start, 1), (own, rows.apart)]), _TEXEL_BYTES // width)
            text = body.index(inside(at, texels))
            words.append(f"texelFetch({body.uses.descriptor('vectors', slot)}, w{slot} + {text}).x")
    seen = body.declare(body.scopes[-1], "uint", " | ".join(words))
    body.line(f"if (words[0] == ~0u) {body.uses.descriptor('singles', slot)}.data[0] = {seen};")
