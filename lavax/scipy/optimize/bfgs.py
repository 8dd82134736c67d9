"""Minimisation by the method of Broyden, Fletcher, Goldfarb and Shanno."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.errors import shape_error
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.transforms.grad import value_and_grad

_DECREASE, _CURVATURE = 1e-4, 0.9  # of the Wolfe conditions
_METHODS = ("bfgs", "l-bfgs-experimental-do-not-rely-on-this")
_OPTIONS = ("gtol", "maxiter", "norm", "line_search_maxiter", "maxls", "ftol", "maxfun", "maxcor", "maxgrad")


class OptimizeResults(NamedTuple):
    """The result of `minimize`: `status` is 0 if it converged, 1 after the last step, 3 if no step makes it less."""

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """A minimum of `fun(x, *args)`, a float scalar, from `x0` [n], by `method` "BFGS".

    It stops when no number of the gradient exceeds `tol`, 1e-5 by default, or after `maxiter` steps, 200·n by default;
    `options` may give "gtol", "maxiter" and "line_search_maxiter", and others of SciPy that change nothing. Steps meet
    the weak Wolfe conditions, found by bisection (Lewis and Overton 2013). May be called in compiled functions; it has
    no derivative. JAX's "l-bfgs-experimental-do-not-rely-on-this" is the same here. Raises ShapeError unless `x0` has
    one axis, ValueError for another method or option, TypeError for `args` that are no tuple.
    """
    if method.lower() not in _METHODS:
        raise ValueError(f"scipy.optimize.minimize: method must be 'BFGS', got {method!r}")
    if not isinstance(args, tuple):
        raise TypeError(f"scipy.optimize.minimize: args must be a tuple, got {args!r:.80}")
    chosen = dict(options or {})
    unknown = sorted(set(chosen) - set(_OPTIONS))
    if unknown:
        raise ValueError(f"scipy.optimize.minimize: unknown option {unknown[0]!r}; there are {', '.join(_OPTIONS)}")
    start = as_floating(x0)
    if start.ndim != 1:
        raise shape_error(f"scipy.optimize.minimize: x0 must be a vector [n], got {start.type}")
    gtol = chosen.get("gtol", 1e-5) if tol is None else tol
    most = chosen.get("maxiter") or 200 * start.shape[0]
    evaluated = value_and_grad(lambda x: fun(x, *args))
    return _minimized(evaluated, start, gtol, most, chosen.get("line_search_maxiter", 30))


def _minimized(evaluated: Callable[[Any], Any], start: Any, gtol: float, most: int, trials: int) -> OptimizeResults:
    identity = lnp.eye(start.shape[0], dtype=start.dtype)

    def is_flat(gradient: Any) -> Any:
        return lnp.max(lnp.abs(gradient), initial=0.0) <= gtol

    def unfinished(state: Any) -> Any:
        _, _, gradient, _, steps, _, is_stuck = state
        return ~is_flat(gradient) & (steps < most) & ~is_stuck

    def step(state: Any) -> Any:
        x, value, gradient, inverse, steps, count, _ = state
        direction = -(inverse @ gradient)
        slope = lnp.sum(direction * gradient)
        is_downhill = slope < 0
        direction = lnp.where(is_downhill, direction, -gradient)
        slope = lnp.where(is_downhill, slope, -lnp.sum(gradient * gradient))
        length = _step_length(evaluated, x, direction, value, slope, trials)
        moved = x + length.t * direction
        change, turn = moved - x, length.gradient - gradient
        inverse = _updated(lnp.where(is_downhill, inverse, identity), change, turn, identity)
        is_stuck = ~(length.value < value) & (length.count >= trials)
        pairs = zip(state[:3], (moved, length.value, length.gradient), strict=True)
        kept = [lnp.where(is_stuck, old, new) for old, new in pairs]
        return (*kept, inverse, steps + 1, count + length.count, is_stuck)

    value, gradient = evaluated(start)
    state = (start, value, gradient, identity, lnp.asarray(0), lnp.asarray(1), lnp.asarray(False))
    x, value, gradient, inverse, steps, count, is_stuck = while_loop(unfinished, step, state)
    success = is_flat(gradient)
    status = lnp.where(success, 0, lnp.where(is_stuck, 3, 1))
    return OptimizeResults(x, success, status, value, gradient, inverse, count, count, steps)


def _updated(inverse: Any, change: Any, turn: Any, identity: Any) -> Any:
    """The inverse Hessian after a step by `change` in which the gradient turned by `turn`; unchanged if not convex."""
    curvature = lnp.sum(change * turn)
    is_convex = curvature > 0
    scale = 1 / lnp.where(is_convex, curvature, 1.0)
    left = identity - scale * lnp.outer(change, turn)
    return lnp.where(is_convex, left @ inverse @ left.T + scale * lnp.outer(change, change), inverse)


class _Length(NamedTuple):
    t: Any
    value: Any
    gradient: Any
    count: Any


def _step_length(
    evaluated: Callable[[Any], Any], x: Any, direction: Any, value: Any, slope: Any, trials: int
) -> _Length:
    """A length that meets the weak Wolfe conditions, or the last one tried."""

    def judged(t: Any, found: Any, gradient: Any) -> tuple[Any, Any]:
        falls = found <= value + _DECREASE * t * slope
        return ~falls, lnp.sum(gradient * direction) < _CURVATURE * slope

    def unfinished(state: Any) -> Any:
        t, found, gradient, _, _, count = state
        is_long, is_short = judged(t, found, gradient)
        return (is_long | is_short) & (count < trials)

    def step(state: Any) -> Any:
        t, found, gradient, low, high, count = state
        is_long, _ = judged(t, found, gradient)
        low, high = lnp.where(is_long, low, t), lnp.where(is_long, t, high)
        t = lnp.where(lnp.isfinite(high), (low + high) / 2, 2 * t)
        return (t, *evaluated(x + t * direction), low, high, count + 1)

    one = lnp.ones((), dtype=x.dtype)
    begin = (one, *evaluated(x + direction), lnp.zeros_like(one), lnp.inf * one, lnp.asarray(1))
    t, found, gradient, _, _, count = while_loop(unfinished, step, begin)
    return _Length(t, found, gradient, count)
