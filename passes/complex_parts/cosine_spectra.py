"""Cosine transforms of type 3 as inverse transforms of real lines, whose first step makes the spectrum.

lavax.scipy.fft writes one of n = 2h real numbers x as an `irfft` of (x[k] − i·x[n − k])·exp(πi·k/2n) for k from 0 to h,
with x[n] = 0. A step that computes such a number wherever it reads one reads two numbers of x and both parts of a root
each time, word by word. Where the device has such a step, it reads x, and has the roots of a column as powers of one.
Sine transforms turn x round before. Transforms that are orthogonal have a factor of x[0], which the step has, too.
"""
from __future__ import annotations

from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.passes.build.builder import build, flip, reshape, transposed
from lavax.passes.build.matching import is_value
from lavax.passes.complex_parts.cosine_lines import line_of
from lavax.passes.complex_parts.fourier import has_steps, largest_prime
from lavax.passes.target.target import Transforms


@dataclass(frozen=True)
class _Cut:
    """A part of lines: of this value along that axis, from a place to another one, and the order of axes after."""

    value: Node
    axis: int
    start: int
    limit: int
    axes: tuple[int, ...]


def with_cosine_spectra(graph: Graph, transforms: Transforms) -> Graph:
    """The graph with steps that make the spectra of all cosine transforms of type 3 that the device has steps for;
    itself if there are none."""
    if not transforms.cosines or not any(node.op == "irfft" for node in graph.nodes):
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    is_changed = False
    for node in graph.nodes:
        cut = _lines_of(node) if node.op == "irfft" and _has_step(node, transforms) else None
        if cut is not None:
            value, first = _without_factor(found[cut.value], cut.axis)
            lines = transposed(value, cut.axes)
            form = reshape(lines, (prod(lines.shape[:-1]), lines.shape[-1]))
            found[node] = build("fourier_from_cosines", form, type=node.type, rest=1, first=first)
            is_changed = True
        else:
            found[node] = with_operands(node, tuple([found[operand] for operand in node.operands]))
    return graph_of(graph.inputs, [found[output] for output in graph.outputs]) if is_changed else graph


def _has_step(node: Node, transforms: Transforms) -> bool:
    length = node.shape[-1]
    half = length // 2
    is_smooth = length % 2 == 0 and has_steps(half, largest_prime(node, transforms))
    return is_smooth and len(transforms.mirrored_steps(half, True, node.dtype)) > 0


def _lines_of(inverse: Node) -> _Cut | None:
    """The lines of whose spectrum that is the inverse, if a cosine transform of type 3 has it."""
    (spectrum,), length = inverse.operands, inverse.shape[-1]
    if spectrum.op != "multiply" or spectrum.operands[0].op != "complex":
        return None
    numbers, roots = spectrum.operands
    real, imaginary = numbers.operands
    if not _is_roots(roots, 4 * length) or imaginary.op != "negate" or imaginary.operands[0].op != "concatenate":
        return None
    (behind,) = imaginary.operands
    if behind.attrs["axis"] != behind.type.rank - 1 or len(behind.operands) != 2:
        return None
    zero, turned = behind.operands
    ahead, back = _cut(real, False), _cut(turned, True)
    if ahead is None or back is None or not is_value(zero, 0.0) or zero.shape[-1] != 1:
        return None
    sides = [(cut.value, cut.axis, cut.axes) for cut in (ahead, back)]
    half = length // 2
    places = (ahead.start, ahead.limit, back.start, back.limit)
    is_whole = ahead.value.shape[ahead.axis] == length and places == (0, half + 1, half, length)
    return ahead if sides[0] == sides[1] and is_whole else None


def _without_factor(value: Node, axis: int) -> tuple[Node, float]:
    """The lines along an axis whose first number a value has times a factor, and this, which may be 1."""
    if value.op == "flip" and tuple(value.attrs["axes"]) == (axis,):
        inner, last = _without_end(value.operands[0], axis, value.shape[axis] - 1)
        return (flip(inner, (axis,)), last) if last != 1.0 else (value, 1.0)
    return _without_end(value, axis, 0)


def _without_end(value: Node, axis: int, end: int) -> tuple[Node, float]:
    """The same of the number at a place."""
    if value.op != "multiply" or value.operands[1].op != "pad":
        return value, 1.0
    x, factors = value.operands
    (factor,), attrs = factors.operands, factors.attrs
    low = [end if other == axis else 0 for other in range(value.type.rank)]
    is_end = factor.op == "constant" and factor.shape[axis] == 1 and [*attrs["low"]] == low
    others_are_ones = attrs["value"] == 1.0 and not any(attrs["interior"])
    is_whole = all(factor.shape[other] == value.shape[other] for other in range(value.type.rank) if other != axis)
    return (x, factor.attrs["value"]) if is_end and others_are_ones and is_whole else (value, 1.0)


def _is_roots(value: Node, order: int) -> bool:
    """Whether these are the roots of unity of that order from the first one on, the same for all lines."""
    table = line_of(value)
    is_line = table is not None and table.op == "unit_root" and table.attrs["length"] == order
    return is_line and table is not None and table.operands[0].op == "iota"


def _cut(part: Node, is_turned: bool) -> _Cut | None:
    """Of what a part of whole lines is cut, along its last axis, and perhaps turned round. Lines along another axis are
    transposed then."""
    axes = tuple(range(part.type.rank))
    if part.op == "transpose":
        axes = tuple(part.attrs["axes"])
        (part,) = part.operands
    axis = axes[-1]
    if is_turned:
        if part.op != "flip" or tuple(part.attrs["axes"]) != (axis,):
            return None
        (part,) = part.operands
    if part.op != "slice" or set(part.attrs["stride"]) != {1}:
        return None
    (value,) = part.operands
    is_whole = all(part.shape[other] == value.shape[other] for other in axes[:-1])
    return _Cut(value, axis, part.attrs["start"][axis], part.attrs["limit"][axis], axes) if is_whole else None
