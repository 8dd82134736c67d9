"""Differences, gradients and integrals of sampled functions."""
from __future__ import annotations

import math
from typing import Any

from lavax.ir.types import bool_
from lavax.numpy._core.application import as_floating, as_python_float, real_numbers
from lavax.numpy._core.axes import Axis, normal_axes, normal_axis
from lavax.numpy._core.broadcasting import broadcast_to
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import cut, reshaped
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_operand, as_value, cast, own
from lavax.numpy._core.promotion import averaging, promote
from lavax.numpy.arrays.joining import concatenate
from lavax.numpy.arrays.manipulation import ravel
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply, subtract
from lavax.numpy.elementwise.comparison import equal, greater, less, logical_and, not_equal, where
from lavax.numpy.elementwise.rounding import remainder
from lavax.numpy.reductions.reductions import sum as sum_over
from lavax.tracer import bind
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = ["diff", "ediff1d", "gradient", "trapezoid", "unwrap"]


def _neighbours(value: Value, axis: int) -> tuple[Value, Value]:
    """All elements along `axis` but the first, and all but the last."""
    extent = value.shape[axis]
    return cut(value, axis, 1, extent) if extent else value, cut(value, axis, 0, max(extent - 1, 0))


def _at_end(end: ArrayLike, value: Value, axis: int) -> Value:
    given = as_value(end)
    shape = tuple(1 if d == axis else extent for d, extent in enumerate(value.shape))
    return given if given.ndim else broadcast_to(given, shape)


@one_program("n", "axis", scalars=True)
def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Value:
    """The differences of neighbours along `axis`, taken `n` times; of truth values: whether they differ.

    `prepend` and `append` are scalars or arrays that are first added at the ends, if `n` is not 0. Raises ShapeError
    if `n` is negative or there is no such axis.
    """
    value = as_value(a)
    along = normal_axis("diff", axis, value.type)
    if whole_number("n", n) < 0:
        raise shape_error(f"diff: n={n} is not a number of times")
    if n == 0:
        return own(value)
    parts = [_at_end(prepend, value, along)] if prepend is not None else []
    parts += [value, *([_at_end(append, value, along)] if append is not None else [])]
    value = concatenate(parts, along)
    for _ in range(n):
        value = (not_equal if value.type.dtype == bool_ else subtract)(*_neighbours(value, along))
    return own(value)


def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Value:
    """The differences of neighbours in the flattened array, between the elements of `to_begin` and `to_end`."""
    ends = [ravel(end) if end is not None else None for end in (to_begin, to_end)]
    return concatenate([part for part in (ends[0], diff(ravel(ary)), ends[1]) if part is not None])


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Value:
    """The integral of `y` along `axis` by the trapezoidal rule, at the points `x` or at distances `dx`."""
    given = as_floating(y)
    held, _ = promote([given, as_operand(dx) if x is None else as_floating(x)])
    value = cast(given, averaging(given.type.dtype))
    along = normal_axis("trapezoid", axis, value.type)
    widths: ArrayLike = dx
    if x is not None:
        points = as_floating(x)
        widths = diff(cast(points, averaging(points.type.dtype)), axis=-1 if points.ndim == 1 else along)
        if points.ndim == 1:
            widths = reshaped(widths, tuple(widths.size if d == along else 1 for d in range(value.ndim)))
    later, earlier = _neighbours(value, along)
    return cast(multiply(sum_over(multiply(add(later, earlier), widths), along), 0.5), held)


def gradient(f: ArrayLike, *varargs: ArrayLike, axis: Axis = None, edge_order: int = 1) -> Any:
    """Slopes along each axis by central differences; at the ends one-sided, of order `edge_order` (1 or 2).

    `varargs` are distances: none (1), one for all axes, or one per axis, each a number or the points themselves.
    Returns one array, or a list of one per axis. Raises ShapeError for an axis of fewer than edge_order + 1 elements.
    """
    value = as_floating(f)
    axes = normal_axes("gradient", axis, value.type)
    if len(varargs) not in (0, 1, len(axes)):
        raise shape_error(f"gradient: {len(varargs)} distances for {len(axes)} axes")
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order is 1 or 2, got {edge_order}")
    spacings = list(varargs or (1.0,)) * (1 if len(varargs) > 1 else len(axes))
    slopes = [_slope(value, along, by, edge_order) for along, by in zip(axes, spacings, strict=True)]
    return slopes[0] if len(slopes) == 1 else slopes


def _slope(value: Value, axis: int, spacing: ArrayLike, edge_order: int) -> Value:
    count = value.shape[axis]
    if count < edge_order + 1:
        raise shape_error(f"gradient: axis {axis} of {value.type} needs at least {edge_order + 1} elements")
    steps: ArrayLike = spacing
    points = as_value(spacing)
    if points.ndim:
        if points.shape != (count,):
            raise shape_error(f"gradient: {points.type} are not points along axis {axis} of {value.type}")
        steps = reshaped(diff(as_floating(points)), tuple(count - 1 if d == axis else 1 for d in range(value.ndim)))
    later, earlier = _neighbours(value, axis)
    between = divide(subtract(later, earlier), steps)  # the slopes from point to point
    if count == 2:
        return concatenate([between, between], axis)
    last = count - 1
    before, after = cut(between, axis, 0, last - 1), cut(between, axis, 1, last)
    if isinstance(steps, Value) and steps.ndim:
        left, right = cut(steps, axis, 0, last - 1), cut(steps, axis, 1, last)
        inner = divide(add(multiply(before, right), multiply(after, left)), add(left, right))
    else:
        ahead, behind = cut(value, axis, 2, count), cut(value, axis, 0, count - 2)
        inner = divide(subtract(ahead, behind), multiply(steps, 2.0))
    ends = [cut(between, axis, 0, 1), cut(between, axis, last - 1, last)]
    if edge_order == 2:
        ends = [_end(between, steps, axis, 0, 1), _end(between, steps, axis, last - 1, last - 2)]
    return concatenate([ends[0], inner, ends[1]], axis)


def _end(between: Value, steps: ArrayLike, axis: int, near: int, far: int) -> Value:
    """The slope at an end of the parabola through three points: two slopes, continued by half the nearer distance."""
    own, other = cut(between, axis, near, near + 1), cut(between, axis, far, far + 1)
    share: ArrayLike = 0.5
    if isinstance(steps, Value) and steps.ndim:
        step, next_step = cut(steps, axis, near, near + 1), cut(steps, axis, far, far + 1)
        share = divide(step, add(step, next_step))
    return add(own, multiply(subtract(own, other), share))


def unwrap(
    p: ArrayLike, discont: float | None = None, axis: int = -1, period: float = 2 * math.pi
) -> Value:
    """`p` with jumps between neighbours along `axis` greater than `discont` (half the period) corrected by periods.

    Raises DtypeError for complex numbers.
    """
    for name, given in (("unwrap", p), ("unwrap: discont", discont), ("unwrap: period", period)):
        real_numbers(name, 0.0 if given is None else given)
    value = as_python_float(p)
    along = normal_axis("unwrap", axis, value.type)
    if value.shape[along] < 2:
        return own(value)
    jump = diff(value, axis=along)
    half = period / 2
    nearest = subtract(remainder(add(jump, half), period), half)
    nearest = where(logical_and(equal(nearest, -half), greater(jump, 0)), half, nearest)
    correction = subtract(nearest, jump)
    correction = where(less(abs(jump), half if discont is None else max(discont, half)), 0.0, correction)
    total = bind("cumulative_sum", correction, axis=along)
    extent = value.shape[along]
    return concatenate([cut(value, along, 0, 1), add(cut(value, along, 1, extent), total)], along)
