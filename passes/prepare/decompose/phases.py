"""Convolutions of spread operands, phase by phase: the zeros between elements are left out of the sums.

With `interior` s - 1 along a window axis, s - 1 of s elements the windows meet are zeros. Which elements of the window
meet numbers depends on the result's position modulo s alone. So the results of one remainder, a phase, are a
convolution of the operand as it is with every s-th element of the window, and the phases lie side by side in the
result. Transposed convolutions and the gradients of strided ones are of this kind.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd, prod

from lavax.ir.graph import Node
from lavax.ir.ops.contraction import free_axes
from lavax.passes.build.builder import build, concatenate, reshape, slice_along, zeros

# Products below this cost less than the dispatches of the phases.
_FEWEST_PRODUCTS = 1 << 20
# The kernel that lays the phases side by side reads as many arrays.
_MOST_PHASES = 8


@dataclass(frozen=True)
class _Phase:
    """The window's elements that count, start + t * step for t below `taps`, and the attributes along the axis."""

    start: int
    step: int
    taps: int
    low: int
    high: int
    dilation: int


def axis_of_phases(node: Node) -> int | None:
    """Which of a convolution's window axes is to be taken apart, as a place in its list; None if none is."""
    right = node.operands[1]
    met = (*node.attrs["contract"][1], *node.attrs["window"][1])
    products = node.type.size * prod(right.shape[axis] for axis in met)
    if products < _FEWEST_PRODUCTS:
        return None
    lists = zip(node.attrs["interior"], node.attrs["stride"], strict=True)
    return next((n for n, (interior, stride) in enumerate(lists) if 0 < interior < _MOST_PHASES and stride == 1), None)


def convolution_in_phases(node: Node, place: int, of_phase: Callable[[Node], Node]) -> Node:
    """The convolution as one a phase of its window axis number `place`, which has stride 1.

    `of_phase` gives what stands for the convolution of a phase.
    """
    left, right = node.operands
    of_left, of_right = (axes[place] for axes in node.attrs["window"])
    axis = _axis_of_result(node, of_left)
    period = node.attrs["interior"][place] + 1
    count = -(-node.shape[axis] // period)
    phases = [
        _phase_of(remainder, count, left.shape[of_left], right.shape[of_right], node, place)
        for remainder in range(period)
    ]
    shape = (*node.shape[:axis], count, *node.shape[axis + 1 :])
    results = [
        zeros(node.type.with_shape(shape)) if phase is None else of_phase(_convolution_of(node, place, phase))
        for phase in phases
    ]
    parted = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    beside = concatenate([reshape(result, parted) for result in results], axis + 1)
    whole = reshape(beside, (*shape[:axis], count * period, *shape[axis + 1 :]))
    return slice_along(whole, axis, 0, node.shape[axis])


def _axis_of_result(node: Node, of_left: int) -> int:
    left_batch, left_sum = node.attrs["batch"][0], node.attrs["contract"][0]
    return len(left_batch) + free_axes(node.operands[0].type, left_batch, left_sum).index(of_left)


def _phase_of(remainder: int, count: int, extent: int, window: int, node: Node, place: int) -> _Phase | None:
    """Results number q * period + remainder, for q below `count`; None if no element of the window counts for them.

    Element k of the window meets the spread operand at q * period + remainder + k * dilation - low, which is an
    element of the operand where the period divides it.
    """
    period = node.attrs["interior"][place] + 1
    low, dilation = node.attrs["low"][place], node.attrs["dilation"][place]
    common = gcd(dilation, period)
    step = period // common
    start = next((k for k in range(min(step, window)) if (remainder + k * dilation - low) % period == 0), None)
    if start is None:
        return None
    taps = -(-(window - start) // step)
    first = (remainder + start * dilation - low) // period  # the element that the first window begins at
    spacing = dilation // common
    return _Phase(start, step, taps, -first, count + (taps - 1) * spacing - extent + first, spacing)


def _convolution_of(node: Node, place: int, phase: _Phase) -> Node:
    left, right = node.operands
    of_right = node.attrs["window"][1][place]
    limit = phase.start + (phase.taps - 1) * phase.step + 1
    taken = slice_along(right, of_right, phase.start, limit, phase.step)
    own = {"low": phase.low, "high": phase.high, "interior": 0, "dilation": phase.dilation}
    attrs = {name: (*node.attrs[name][:place], value, *node.attrs[name][place + 1 :]) for name, value in own.items()}
    return build("conv", left, taken, **{**node.attrs, **attrs})
