"""Transforms of real numbers along several axes as those of real lines along the first axis that is transformed, and of
half the spectra along the others.

A number of the whole spectrum that the half has not is the conjugate of the one whose frequencies are all the opposite
ones. Where a device has steps for real lines, a copy of the half with these (`whole_spectrum`) takes less time than to
transform all numbers. Along one axis alone it takes as long.
"""
from __future__ import annotations

from collections.abc import Mapping
from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.types import float32, float64
from lavax.passes.build.builder import build, transposed
from lavax.passes.complex_parts.cosine_lines import reader_counts
from lavax.passes.complex_parts.parts import interleaved, parts, separated
from lavax.passes.target.target import Transforms

_LEAST = 1 << 13  # numbers, of fewer of which a kernel more takes longer than their transforms


@dataclass(frozen=True)
class RealTransform:
    """A transform of real numbers along different axes, each forward or in `reverse`, in the order in which they are
    transformed."""

    x: Node
    axes: tuple[int, ...]
    reverse: tuple[bool, ...]


def with_real_spectra(graph: Graph, transforms: Transforms) -> Graph:
    """The graph whose transforms of real numbers along several axes compute half of their spectra; itself if there are
    none, or if the device has no steps for real lines."""
    if not transforms.cosines or sum(node.op == "fft" for node in graph.nodes) < 2:
        return graph
    readers = reader_counts(graph)
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    is_changed = False
    for node in graph.nodes:
        transform = _transform_of(node, readers) if node.op == "fft" else None
        if transform is not None and node.type.size >= _LEAST:
            found[node] = _whole(transform, found)
            is_changed = True
        else:
            found[node] = with_operands(node, tuple([found[operand] for operand in node.operands]))
    return graph_of(graph.inputs, [found[output] for output in graph.outputs]) if is_changed else graph


def _transform_of(last: Node, readers: Mapping[Node, int]) -> RealTransform | None:
    """The transform that ends with a node, along several axes, if nothing else reads what is between."""
    steps, value = [last], last.operands[0]
    while value.op == "fft" and readers[value] == 1:
        steps.append(value)
        (value,) = value.operands
    axes = tuple(step.attrs["axis"] for step in reversed(steps))
    if value.op != "cast" or value.operands[0].dtype not in (float32, float64) or readers[value] > 1:
        return None
    neighbours = prod(last.shape[axes[0] + 1 :])
    if len(axes) < 2 or len({*axes}) < len(axes) or min(last.shape) < 2 or (neighbours > 1 and neighbours % 2):
        return None  # lines of an odd number of neighbours are taken by twos where each has all frequencies
    return RealTransform(value.operands[0], axes, tuple(step.attrs["reverse"] for step in reversed(steps)))


def _whole(transform: RealTransform, found: Mapping[Node, Node]) -> Node:
    first, *others = transform.axes
    half = _half_spectra(found[transform.x], first, transform.reverse[0])
    for axis, reverse in zip(others, transform.reverse[1:], strict=True):
        half = build("fft", half, axis=axis, reverse=reverse)
    whole = interleaved(parts(build("real", half), build("imag", half)))
    attrs = {"axis": first, "length": transform.x.shape[first], "opposite": tuple(sorted(others))}
    copied = build("whole_spectrum", whole, type=whole.type.with_shape((*transform.x.shape, 2)), **attrs)
    return build("complex", *separated(copied).nodes)


def _half_spectra(x: Node, axis: int, reverse: bool) -> Node:
    """Of real lines along an axis the numbers up to half the spectrum, or their conjugates."""
    last = x.type.rank - 1
    ahead = [*(other for other in range(last + 1) if other != axis), axis]
    back = [ahead.index(other) for other in range(last + 1)]
    spectra = build("rfft", transposed(x, ahead))
    return transposed(build("conjugate", spectra) if reverse else spectra, back)
