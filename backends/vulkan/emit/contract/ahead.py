"""Operands of a product by matrices that workgroups read ahead, into the cache that all processors share.

A workgroup that has a processor to itself waits for each part of its operands. What was last used long ago, such as a
weight, lies in memory, which answers twice as late as the cache. So the workgroups together read a number of every 64
bytes at their start, and nobody waits for these. Several workgroups need the same lines: each reads some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lavax.backends.vulkan.emit.contract.prologue_epilogue import Contraction
from lavax.backends.vulkan.emit.contract.span import Span
from lavax.backends.vulkan.emit.contract.tiles import CooperativeTile
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE
from lavax.backends.vulkan.glsl.narrow_vectors import eight_in_memory
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DTYPES
from lavax.passes.build.contraction_geometry import neighbours_of
from lavax.passes.kernels.index import Index, add, clamp, linear, quotient, remainder, variable

Element = tuple[Index, Index]  # along the operand's free axis and along the sum


@dataclass(frozen=True)
class ReadAhead:
    """What is read ahead. Chosen by `python -m benchmarks architectures`."""

    apart: int = 32  # elements of 16 bits from one that is read to the next: 64 bytes, which memory reads at once
    loads: int = 12  # the most of an invocation for each operand: each takes a register until the end


_READ_AHEAD = ReadAhead()


def read_ahead(contraction: Contraction, spans: tuple[Span, Span], tile: CooperativeTile) -> list[str]:
    """Reads numbers of both operands, as far as memory holds them as they are, and returns their names."""
    return [name for side in range(2) for name in _of_operand(contraction, spans, tile, side)]


def used(names: list[str], place: str) -> str:
    """A statement that depends on the numbers, so that compilers keep their loads, and never does anything: there is
    no dispatch without workgroups. `place` is an element of shared memory that nobody needs any more."""
    return f"if (({' ^ '.join(names)}) == 0x9e3779b9u && gl_NumWorkGroups.z == 0u) {place} = uvec4(0);"


def _of_operand(
    contraction: Contraction, spans: tuple[Span, Span], tile: CooperativeTile, side: int
) -> Iterator[str]:
    body, dtype = contraction.body, DTYPES[contraction.dot.attrs["precision"]]
    count, place = _lines(contraction, spans, side)
    thread = variable("i", tile.threads)
    for start in range(0, min(count, _READ_AHEAD.loads * tile.threads), tile.threads):
        elements = place(clamp(add(thread, start), 0, count - 1))
        held = eight_in_memory(body, [contraction.element(side, *half) for half in elements], dtype)
        if held is None:
            return
        yield body.declare(body.scopes[-1], "uint", f"{held.load}.x")


def _lines(
    contraction: Contraction, spans: tuple[Span, Span], side: int
) -> tuple[int, Callable[[Index], tuple[Element, Element]]]:
    """How many numbers of its tile's operand a workgroup reads ahead, and the eight elements of each, in halves.

    Workgroups beside each other, as many as there are tiles along the other axis, need the same lines, and each reads
    every so many of them, those first that are needed first.
    """
    sizes, span, other = contraction.sizes, spans[side], spans[1 - side]
    apart, sharing = _READ_AHEAD.apart, -(-other.extent // other.size)
    if neighbours_of(contraction.dot, side).summed:
        lines, last = -(-span.size // sharing), span.size - 1

        def along_sum(number: Index) -> tuple[Element, Element]:
            line = clamp(linear([(remainder(number, lines), sharing), (other.number, 1)]), 0, last)
            steps = [linear([(quotient(number, lines), apart), (LANE, 1)], VECTOR * half) for half in range(2)]
            return (span.at(line), steps[0]), (span.at(line), steps[1])

        return lines * (sizes.k // apart), along_sum
    width = max(span.size // apart, 1)

    def across_sum(number: Index) -> tuple[Element, Element]:
        step = clamp(linear([(quotient(number, width), sharing), (other.number, 1)]), 0, sizes.k - 1)
        at = linear([(remainder(number, width), apart)])
        return (span.eight(at, 0), step), (span.eight(at, 1), step)

    return width * -(-sizes.k // sharing), across_sum
