"""Initial value problems of ordinary differential equations, with gradients by the adjoint equation."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import lavax.numpy as lnp
from lavax.base.errors import DtypeError, TreeMismatchError
from lavax.experimental.dormand_prince import error_ratio, first_length, following_length, step
from lavax.experimental.real_parts import in_real_parts
from lavax.ir.location import user_error
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.errors import shape_error
from lavax.optim.tree.raveling import ravel_pytree
from lavax.tracer.control_flow.scan import scan
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.pytrees.pytree import flatten, map, structure, unflatten
from lavax.tracer.transforms.closure_convert import closure_convert
from lavax.tracer.transforms.custom_rules import custom_vjp
from lavax.tracer.transforms.vjp import vjp
from lavax.tracer.transforms.vmap import vmap
from lavax.tracer.values.value import Value

__all__ = ["odeint"]


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = math.inf,
    hmax: float = math.inf,
) -> Any:
    """The solution of dy/dt = func(y, t, *args) with y(t[0]) = y0, at the times `t` [n]: a tree like `y0`, [n, ...].

    `func` returns a tree like y. By the method of Dormand and Prince, of order 5, with steps whose error is at most
    atol + rtol·|y| in the mean; values at `t`, which rises, lie on polynomials between steps. Steps are at most `hmax`
    long, and at most `mxstep` of them lead from one time to the next; what is not reached then is extrapolated.

    Complex numbers are integrated as pairs of real ones. Reverse mode integrates the adjoint equation backwards (Chen
    et al. 2018), by `y0`, `t`, `args` and whatever `func` closes over, without keeping the steps. There is no forward
    mode, and no second derivative. Raises ShapeError unless `t` has one axis and elements, TreeMismatchError if `func`
    returns another tree than `y0`, DtypeError if it returns complex numbers where `y0` is real.
    """
    times = as_floating(t)
    if times.ndim != 1 or not times.size:
        raise shape_error(f"odeint: t must be times [n], one or more, got {times.type}")
    state = map(as_floating, y0)
    parts, joined = in_real_parts(state)
    start, unravel = ravel_pytree(parts)
    times = lnp.astype(times, start.dtype)

    def slope(y: Any, time: Any, *given: Any) -> Value:
        made = func(joined(unravel(y)), time, *given)
        if structure(made) is not structure(y0):
            expected = f"odeint: func must return a tree like y0, {structure(y0)!r}"
            raise user_error(TreeMismatchError, f"{expected}, got {structure(made)!r}")
        return lnp.astype(ravel_pytree(in_real_parts(map(_slope_like, state, made))[0])[0], start.dtype)

    given = map(lnp.asarray, args)
    converted, values = closure_convert(lambda y, time, *more: slope(y, time, *more), start, times[0], *given)
    controls = (float(rtol), float(atol), float(mxstep), float(hmax))

    @custom_vjp
    def solution(held: Any, begin: Value, ts: Value) -> Value:
        return _integrated(lambda y, time: converted(y, time, *held[0], *held[1]), begin, ts, controls)

    def forward(held: Any, begin: Value, ts: Value) -> tuple[Value, Any]:
        found = solution(held, begin, ts)
        return found, (held, found, ts)

    def backward(kept: Any, cotangents: Value) -> tuple[Any, Value, Value]:
        held, found, ts = kept
        return _adjoint(lambda y, time, h: converted(y, time, *h[0], *h[1]), held, found, ts, cotangents, controls)

    solution.defvjp(forward, backward)
    return vmap(lambda y: joined(unravel(y)))(solution((given, tuple(values)), start, times))


def _slope_like(value: Value, slope: Any) -> Value:
    """A part of the slope, complex where that part of y is."""
    found = as_floating(slope)
    if found.type.dtype.is_complex and not value.type.dtype.is_complex:
        raise user_error(DtypeError, f"odeint: func gave {found.type} for a part of y0 that is real: make y0 complex")
    return lnp.astype(found, value.dtype) if value.type.dtype.is_complex else found


Controls = tuple[float, float, float, float]  # rtol, atol, mxstep, hmax


def _integrated(slope: Callable[[Any, Any], Value], start: Value, times: Value, controls: Controls) -> Value:
    """The solution at `times` [n]: [n, m]."""
    rtol, atol, most, longest = controls

    def towards(state: Any, target: Any) -> Any:
        def unfinished(running: Any) -> Any:
            count, _, _, t, dt, _, _ = running
            return (t < target) & (count < most) & (dt > 0)

        def attempt(running: Any) -> Any:
            count, y, first, t, dt, before, polynomial = running
            found = step(slope, y, first, t, dt)
            ratio = error_ratio(found, y, rtol, atol)
            is_good = ratio <= 1
            length = lnp.clip(following_length(dt, ratio), 0.0, longest)
            moved = (found.y, found.slope, t + dt, length, t, found.polynomial)
            stayed = (y, first, t, length, before, polynomial)
            chosen = [lnp.where(is_good, new, old) for new, old in zip(moved, stayed, strict=True)]
            return (count + 1, *chosen)

        _, *reached = while_loop(unfinished, attempt, (lnp.asarray(0), *state))
        *_, t, _, before, polynomial = reached
        width = t - before
        fraction = (target - before) / lnp.where(width == 0, 1.0, width)
        value = polynomial[0]
        for coefficients in (polynomial[number] for number in range(1, 5)):
            value = value * fraction + coefficients
        return tuple(reached), value

    begin = times[0]
    first = slope(start, begin)
    length = lnp.clip(first_length(slope, start, first, begin, rtol, atol), 0.0, longest)
    constant = lnp.stack([lnp.zeros_like(start)] * 4 + [start])
    state = (start, first, begin, lnp.astype(length, begin.dtype), begin, constant)
    _, found = scan(towards, state, times[1:])
    return lnp.concatenate([start[None], found])


def _adjoint(
    slope: Callable[[Any, Any, Any], Value],
    held: Any,
    found: Value,
    times: Value,
    cotangents: Value,
    controls: Controls,
) -> tuple[Any, Value, Value]:
    """The cotangents of `held`, of the first value and of the times: ȳ, and what it picks up, from the last time back.

    In s = -t: dy/ds = -f, dȳ/ds = ȳ·∂f/∂y, and the cotangents of t and `held` grow by ȳ·∂f/∂t and ȳ·∂f/∂held.
    """
    floats, restore = _floats_of(held)
    begin = (found[-1], cotangents[-1], lnp.zeros((), dtype=times.dtype), map(lnp.zeros_like, floats))
    _, unravel = ravel_pytree(begin)

    def against(state: Any, s: Any) -> Value:
        y, weight, _, _ = unravel(state)
        value, pull = vjp(lambda y, t, values: slope(y, t, restore(values)), y, -s, floats)
        return ravel_pytree((-value, *pull(weight)))[0]

    def interval(carry: Any, each: Any) -> Any:
        weight, of_start, of_values = carry
        y, time, before, picked, earlier = each
        of_time = lnp.sum(slope(y, time, held) * picked)
        ends = lnp.stack([-time, -before])
        whole = ravel_pytree((y, weight, of_start - of_time, of_values))[0]
        _, weight, of_start, of_values = unravel(_integrated(against, whole, ends, controls)[1])
        return (weight + earlier, of_start, of_values), of_time

    sequences = (found[1:], times[1:], times[:-1], cotangents[1:], cotangents[:-1])
    (weight, of_start, of_values), of_times = scan(interval, begin[1:], sequences, reverse=True)
    return restore(of_values, cotangents=True), weight, lnp.concatenate([of_start[None], of_times])


def _floats_of(tree: Any) -> tuple[Any, Callable[..., Any]]:
    """The floats among the leaves, of complex numbers both parts, and the tree with such leaves in their places. With
    `cotangents` they are ∂/∂x and ∂/∂y of x + iy, whose cotangent is ∂/∂x − i·∂/∂y, and the other leaves are None.
    """
    leaves, treedef = flatten(tree)
    places = [position for position, leaf in enumerate(leaves) if leaf.type.dtype.is_inexact]
    parts, joined = in_real_parts([leaves[position] for position in places])

    def restore(values: Any, cotangents: bool = False) -> Any:
        whole: list[Any] = [None] * len(leaves) if cotangents else list(leaves)
        for position, value in zip(places, joined(values), strict=True):
            whole[position] = lnp.conj(value) if cotangents else value
        return unflatten(treedef, whole)

    return parts, restore
