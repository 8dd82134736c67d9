"""A line search for the strong Wolfe conditions (Nocedal and Wright 2006, algorithms 3.5 and 3.6).

The first phase lengthens the step until an interval must hold a good one; the second narrows the interval ("zooms").
The decrease may also be the approximate one of Hager and Zhang 2006, which withstands rounding near a minimum.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.line_search.interpolation import trial_within
from lavax.optim.line_search.line import bound_loss, no_value, number, point_on_line, violation
from lavax.optim.transforms.transformation import GradientTransformationExtraArgs, require_params
from lavax.optim.tree.arithmetic import real_vdot, where
from lavax.optim.tree.precision import conj, wide_tree, zeros_like
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.pytrees import pytree
from lavax.tracer.transforms.grad import value_and_grad


class ZoomLinesearchInfo(NamedTuple):
    """How many steps were tried (int32), and by how much the last misses either condition."""

    num_linesearch_steps: Any
    decrease_error: Any
    curvature_error: Any


class ScaleByZoomLinesearchState(NamedTuple):
    """The last step's length, the loss and the gradient there, and how the search went."""

    learning_rate: Any
    value: Any
    grad: Any
    info: ZoomLinesearchInfo


class Point(NamedTuple):
    """A step's length, and the loss and its slope there."""

    size: Any
    value: Any
    slope: Any


class Search(NamedTuple):
    """What the search knows: the last point tried and its gradient, the interval, and the best safe step."""

    count: Any
    last: Point
    grad: Any
    low: Point
    high: Point
    reference: Point  # the end of the interval that was given up last, for the cubic
    safe: Point  # the best step yet that decreases the loss enough; of length 0 if there is none
    safe_grad: Any
    decrease_error: Any
    curvature_error: Any
    interval_found: Any
    done: Any
    failed: Any


class Conditions(NamedTuple):
    """When a step is good: the tolerances of both conditions."""

    tol: Any
    slope_rtol: Any
    curv_rtol: Any
    approx_dec_rtol: Any

    def decrease_error(self, point: Point, start: Point) -> Any:
        """By how much the loss at `point` is too large."""
        exact = point.value - start.value - self.slope_rtol * point.size * start.slope
        if self.approx_dec_rtol is None:
            return violation(exact)
        slope = point.slope - (2 * self.slope_rtol - 1) * start.slope
        rise = point.value - start.value - self.approx_dec_rtol * lnp.abs(start.value)
        return violation(lnp.minimum(lnp.maximum(slope, rise), exact))

    def curvature_error(self, point: Point, start: Point) -> Any:
        """By how much the slope at `point` is too steep."""
        return violation(lnp.abs(point.slope) - self.curv_rtol * lnp.abs(start.slope))


def scale_by_zoom_linesearch(
    max_linesearch_steps: int, max_learning_rate: Any = None, tol: Any = 0.0, increase_factor: Any = 2.0,
    slope_rtol: Any = 1e-4, curv_rtol: Any = 0.9, approx_dec_rtol: Any = 1e-6, stepsize_precision: Any = 1e-5,
    initial_guess_strategy: str = "keep",
) -> GradientTransformationExtraArgs:
    """Updates times a length that meets the strong Wolfe conditions, to within `tol`.

    The loss falls by `slope_rtol` times the length times the slope at least (or `approx_dec_rtol` allows for rounding;
    None does not), and the slope is at most `curv_rtol` times that at the start. The first length is 1
    (`initial_guess_strategy` "one") or that of the last step ("keep"). Should `max_linesearch_steps` not do, the best
    length of sufficient decrease is taken. `update` needs the parameters, `value=`, `grad=` and `value_fn=`. Raises
    ValueError for another strategy.
    """
    name = "scale_by_zoom_linesearch"
    if initial_guess_strategy not in ("one", "keep"):
        raise ValueError(f"{name}: initial_guess_strategy must be 'one' or 'keep', got {initial_guess_strategy!r}")
    conditions = Conditions(tol, slope_rtol, curv_rtol, approx_dec_rtol)

    def init(params: Any) -> ScaleByZoomLinesearchState:
        info = ZoomLinesearchInfo(lnp.zeros((), lnp.int32), no_value(), no_value())
        return ScaleByZoomLinesearchState(lnp.ones(()), no_value(), zeros_like(params), info)

    def update(
        updates: Any, state: ScaleByZoomLinesearchState, params: Any = None, *, value: Any, grad: Any,
        value_fn: Callable[..., Any], **extra_args: Any,
    ) -> tuple[Any, ScaleByZoomLinesearchState]:
        require_params(name, params)
        loss_and_gradient = value_and_grad(bound_loss(name, value_fn, extra_args))
        direction = wide_tree(updates)
        start = Point(lnp.zeros(()), number(value), real_vdot(direction, grad))
        guess = lnp.ones(()) if initial_guess_strategy == "one" else state.learning_rate

        def tried(size: Any) -> tuple[Point, Any]:
            found, gradient = loss_and_gradient(point_on_line(params, size, direction))
            gradient = wide_tree(gradient)
            return Point(size, number(found), real_vdot(conj(gradient), direction)), gradient

        def step(held: Search) -> Search:
            longer = lnp.where(held.count == 0, guess, increase_factor * held.last.size)
            at_most = lnp.asarray(False)
            if max_learning_rate is not None:
                at_most, longer = longer >= max_learning_rate, lnp.minimum(longer, max_learning_rate)
            size = lnp.where(held.interval_found, trial_within(held.low, held.high, held.reference), longer)
            point, gradient = tried(size)
            errors = conditions.decrease_error(point, start), conditions.curvature_error(point, start)
            last_try = held.count + 1 >= max_linesearch_steps
            zoomed = _narrowed(held, point, gradient, errors, conditions, last_try, stepsize_precision)
            searched = _lengthened(held, point, gradient, errors, conditions, last_try, at_most)
            return where(held.interval_found, zoomed, searched)  # type: ignore[no-any-return]

        found = while_loop(lambda held: ~(held.done | held.failed), step, _begun(start, conj(wide_tree(grad))))
        # A search that failed falls back on its safe step, and on none at all if the last led to infinity or NaN.
        falls_back = found.failed & ((found.safe.size > 0) | lnp.isinf(found.decrease_error))
        point, gradient = where(falls_back, (found.safe, found.safe_grad), (found.last, found.grad))
        info = ZoomLinesearchInfo(found.count, found.decrease_error, found.curvature_error)
        scaled = pytree.map(lambda u: point.size * u, direction)
        return scaled, ScaleByZoomLinesearchState(point.size, point.value, gradient, info)

    return GradientTransformationExtraArgs(init, update)


def _begun(start: Point, gradient: Any) -> Search:
    infinite, no = lnp.asarray(lnp.inf, lnp.float32), lnp.asarray(False)
    return Search(
        count=lnp.zeros((), lnp.int32), last=start, grad=gradient, low=start, high=start, reference=start, safe=start,
        safe_grad=gradient, decrease_error=infinite, curvature_error=infinite, interval_found=no, done=no, failed=no,
    )


def _lengthened(
    held: Search, point: Point, gradient: Any, errors: tuple[Any, Any], conditions: Conditions, last_try: Any,
    at_most: Any,
) -> Search:
    """After a longer step (algorithm 3.5): whether this or the one before bounds an interval with a good step."""
    decrease, curvature = errors
    good = lnp.maximum(decrease, curvature) <= conditions.tol
    too_far = (decrease > 0) | ((point.value >= held.last.value) & (held.count > 0))
    past_minimum = (point.slope >= 0) & ~too_far
    low, high = where(past_minimum, (point, held.last), (held.last, point))
    found = too_far | past_minimum | good
    done = good | (at_most & ~found)
    safe, safe_grad = where(decrease <= conditions.tol, (point, gradient), (held.safe, held.safe_grad))
    return Search(
        count=held.count + 1, last=point, grad=gradient, low=low, high=high, reference=low, safe=safe,
        safe_grad=safe_grad, decrease_error=decrease, curvature_error=curvature, interval_found=found, done=done,
        failed=last_try & ~done,
    )


def _narrowed(
    held: Search, point: Point, gradient: Any, errors: tuple[Any, Any], conditions: Conditions, last_try: Any,
    precision: Any,
) -> Search:
    """After a step within the interval (algorithm 3.6): which of its ends the step takes."""
    decrease, curvature = errors
    done = lnp.maximum(decrease, curvature) <= conditions.tol
    is_high = (decrease > 0) | (point.value >= held.low.value)
    turns = (point.slope * (held.high.size - held.low.size) >= 0) & ~is_high
    high = where(is_high, point, where(turns, held.low, held.high))
    low = where(is_high, held.low, point)
    reference = where(is_high | turns, held.high, held.low)
    better = (decrease <= conditions.tol) & (point.value < held.safe.value)
    safe, safe_grad = where(better, (point, gradient), (held.safe, held.safe_grad))
    too_small = lnp.abs(held.high.size - held.low.size) <= precision
    failed = (last_try | (too_small & (safe.size > 0))) & ~done
    return Search(
        count=held.count + 1, last=point, grad=gradient, low=low, high=high, reference=reference, safe=safe,
        safe_grad=safe_grad, decrease_error=decrease, curvature_error=curvature, interval_found=held.interval_found,
        done=done, failed=failed,
    )
