"""Splits convolutions of operands with interior padding into phases, which do not multiply by the zeros.

With `interior` s - 1 along a window axis, s - 1 of every s elements in a window are zeros. The position of the result
modulo s alone decides which elements of the window meet numbers. So the results of one remainder, a phase, are a
convolution of the operand without padding and every s-th element of the window. The phases are interleaved in the
result. Transposed convolutions and the gradients of strided ones are of this kind.
"""
from __future__ import annotations

from collections.abc import Callable
from math import gcd, prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.ops.contraction import free_axes
from lavax.passes.build.builder import build, reshape, slice_along, zeros
from lavax.passes.prepare.decompose.joining import joined


@dataclass(frozen=True)
class PhaseLimits:
    """When a convolution is split into phases. Chosen by `python -m benchmarks comparison --only convnet-step`."""

    least_products: int = 1 << 20  # fewer cost less than the dispatches of the phases
    most_phases: int = 8  # the kernel that interleaves the phases reads as many arrays


_LIMITS = PhaseLimits()


@dataclass(frozen=True)
class _Phase:
    """The elements of the window in one phase, start + t * step for t below `taps`, and the attributes of its axis."""

    start: int
    step: int
    taps: int
    low: int
    high: int
    dilation: int


def axis_of_phases(node: Node) -> int | None:
    """The number of the window axis to split into phases; None if there is none."""
    right = node.operands[1]
    met = (*node.attrs["contract"][1], *node.attrs["window"][1])
    products = node.type.size * prod(right.shape[axis] for axis in met)
    if products < _LIMITS.least_products:
        return None
    lists = zip(node.attrs["interior"], node.attrs["stride"], strict=True)
    splits = (0 < interior < _LIMITS.most_phases and stride == 1 for interior, stride in lists)
    return next((number for number, can_split in enumerate(splits) if can_split), None)


def convolution_in_phases(node: Node, number: int, of_phase: Callable[[Node], Node]) -> Node:
    """The convolution as one convolution per phase of its window axis number `number`, which has stride 1.

    `of_phase` lowers the convolution of a phase.
    """
    left, right = node.operands
    of_left, of_right = (axes[number] for axes in node.attrs["window"])
    axis = _axis_of_result(node, of_left)
    period = node.attrs["interior"][number] + 1
    count = -(-node.shape[axis] // period)
    phases = [
        _phase_of(remainder, count, left.shape[of_left], right.shape[of_right], node, number)
        for remainder in range(period)
    ]
    shape = (*node.shape[:axis], count, *node.shape[axis + 1 :])
    results = [
        zeros(node.type.with_shape(shape)) if phase is None else of_phase(_convolution_of(node, number, phase))
        for phase in phases
    ]
    parted = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    beside = joined([reshape(result, parted) for result in results], axis + 1)
    whole = reshape(beside, (*shape[:axis], count * period, *shape[axis + 1 :]))
    return slice_along(whole, axis, 0, node.shape[axis])


def _axis_of_result(node: Node, of_left: int) -> int:
    left_batch, left_sum = node.attrs["batch"][0], node.attrs["contract"][0]
    return len(left_batch) + free_axes(node.operands[0].type, left_batch, left_sum).index(of_left)


def _phase_of(remainder: int, count: int, extent: int, window: int, node: Node, number: int) -> _Phase | None:
    """Results number q * period + remainder, for q below `count`; None if they meet only zeros.

    Element k of the window meets the padded operand at q * period + remainder + k * dilation - low, which is an
    element of the operand if it is divisible by the period.
    """
    period = node.attrs["interior"][number] + 1
    low, dilation = node.attrs["low"][number], node.attrs["dilation"][number]
    common = gcd(dilation, period)
    step = period // common
    start = next((k for k in range(min(step, window)) if (remainder + k * dilation - low) % period == 0), None)
    if start is None:
        return None
    taps = -(-(window - start) // step)
    first = (remainder + start * dilation - low) // period  # the first element of the first window
    spacing = dilation // common
    return _Phase(start, step, taps, -first, count + (taps - 1) * spacing - extent + first, spacing)


def _convolution_of(node: Node, number: int, phase: _Phase) -> Node:
    left, right = node.operands
    of_right = node.attrs["window"][1][number]
    limit = phase.start + (phase.taps - 1) * phase.step + 1
    taken = slice_along(right, of_right, phase.start, limit, phase.step)
    own = {"low": phase.low, "high": phase.high, "interior": 0, "dilation": phase.dilation}
    attrs = {name: (*node.attrs[name][:number], value, *node.attrs[name][number + 1 :]) for name, value in own.items()}
    return build("conv", left, taken, **{**node.attrs, **attrs})
