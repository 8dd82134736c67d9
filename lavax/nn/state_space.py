"""Linear recurrences, and the selective state spaces of Mamba that are made of them."""
from __future__ import annotations

import math
from typing import Any

import lavax.numpy as lnp
from lavax.ir.types import float32
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.control_flow.scan import scan
from lavax.tracer.transforms.custom_rules import custom_vjp
from lavax.tracer.values.value import Value

__all__ = ["linear_recurrence", "selective_scan"]


def linear_recurrence(a: ArrayLike, b: ArrayLike, start: ArrayLike | None = None) -> Value:
    """h_t = a_t · h_(t-1) + b_t for all t along axis 1, elementwise: [B, T, ...] to [B, T, ...].

    h_(-1) is `start` [B, ...], or 0. Few elements side by side take about 2·log2(T) steps one after another, on 3·T of
    them in all; many take T steps in one kernel, which reads and writes each once. The derivative is a recurrence
    backwards. Raises ShapeError if shapes differ.
    """
    factors, terms = as_value(a), as_value(b)
    if factors.shape != terms.shape or terms.ndim < 2:
        raise shape_error(f"linear_recurrence: a and b are [B, T, ...] of one shape, got {factors.type}, {terms.type}")
    if start is not None and terms.shape[1]:
        first = terms[:, :1] + factors[:, :1] * lnp.expand_dims(start, 1)
        terms = lnp.concatenate([first, terms[:, 1:]], axis=1)
    return lnp.moveaxis(_recurrence(lnp.moveaxis(factors, 1, 0), lnp.moveaxis(terms, 1, 0)), 0, 1)


@custom_vjp
def _recurrence(a: Value, b: Value) -> Value:
    """The states, time in front: slices along the first axis are the fastest."""
    return _by_turns(a, b) if _are_many(b.shape[0], b.shape[1:]) else _scanned(a, b)


def _forward(a: Value, b: Value) -> tuple[Value, tuple[Value, Value]]:
    states = _recurrence(a, b)
    return states, (a, states)


def _backward(kept: tuple[Value, Value], cotangent: Value) -> tuple[Value, Value]:
    """The cotangent of b_t is that of h_t and a_(t+1) times that of b_(t+1); that of a_t is it times h_(t-1)."""
    a, states = kept
    before = lnp.concatenate([lnp.zeros_like(states[:1]), states[:-1]], axis=0)
    if _are_many(a.shape[0], a.shape[1:]):
        of_b = scan(_turn_back, lnp.zeros(a.shape[1:], a.dtype), (a, cotangent), reverse=True)[1]
        return of_b * before, of_b
    after = lnp.concatenate([a[1:], lnp.zeros_like(a[:1])], axis=0)
    of_b = lnp.flip(_recurrence(lnp.flip(after, 0), lnp.flip(cotangent, 0)), 0)
    return of_b * before, of_b


_recurrence.defvjp(_forward, _backward)


def _are_many(steps: int, shape: tuple[int, ...]) -> bool:
    """Whether elements side by side keep a device as busy as the steps that each takes one after another.

    An H100 takes 31 µs for 1,024 steps of 1,024 elements, by Blelloch's scan 55; for 4,096 steps 175, by the scan 108
    (docs/performance/loops_on_gpus.md, "Loops lane by lane").
    """
    return math.prod(shape) >= steps


def _by_turns(a: Value, b: Value) -> Value:
    """Each state from the one before."""

    def turn(state: Value, given: tuple[Value, Value]) -> tuple[Value, Value]:
        state = given[0] * state + given[1]
        return state, state

    states: Value = scan(turn, lnp.zeros(b.shape[1:], b.dtype), (a, b))[1]
    return states


def _turn_back(later: Value, given: tuple[Value, Value]) -> tuple[Value, Value]:
    """From what later states are to this one and a step's factor and cotangent: what this is to the one before, and
    the step's own."""
    own = given[1] + later
    return given[0] * own, own


def _scanned(a: Value, b: Value) -> Value:
    """States at odd places by pairs of steps, in a recurrence half as long; those at even places from them.

    Blelloch, "Prefix Sums and Their Applications" (1990), section 1.4, for states alone.
    """
    length = b.shape[0]
    if length < 2:
        return b
    odd = _scanned(a[1::2] * a[: length - 1 : 2], a[1::2] * b[: length - 1 : 2] + b[1::2])
    even = b[:1]
    if length > 2:
        even = lnp.concatenate([even, a[2::2] * odd[: (length - 1) // 2] + b[2::2]], axis=0)
    pairs = length // 2
    woven = lnp.reshape(lnp.stack([even[:pairs], odd], axis=1), (2 * pairs, *b.shape[1:]))
    return woven if 2 * pairs == length else lnp.concatenate([woven, even[pairs:]], axis=0)


def selective_scan(
    x: ArrayLike,
    step: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    d: ArrayLike | None = None,
    state: ArrayLike | None = None,
) -> tuple[Value, Value]:
    """A state space whose input, output and step size depend on the token: y_t and the last state.

    h_t = exp(step_t · a) · h_(t-1) + step_t · b_t · x_t and y_t = c_t · h_t + d · x_t: Gu and Dao, "Mamba" (2023),
    algorithm 2. `x` and `step` are [B, T, channels], `a` [channels, N], `b` and `c` [B, T, N], `d` [channels], and
    `state` [B, channels, N], by default 0. States are float32; y has the dtype of `x`. A step of 0 leaves the state as
    it is. Raises ShapeError if shapes do not fit.
    """
    given, steps, rates, inputs, outputs = map(as_value, (x, step, a, b, c))
    _check(given, steps, rates, inputs, outputs)
    wide, steps, rates, inputs, outputs = (cast(each, float32) for each in (given, steps, rates, inputs, outputs))
    start = lnp.zeros((given.shape[0], *rates.shape), float32) if state is None else cast(as_value(state), float32)
    if not given.shape[1]:
        return given, start
    if _are_many(given.shape[1], start.shape):
        first = (lnp.moveaxis(each, 1, 0) for each in (steps, wide, inputs, outputs))
        found, last = _selected(*first, rates, start)
        made: Any = lnp.moveaxis(found, 0, 1)
    else:
        decay = lnp.exp(lnp.expand_dims(steps, -1) * rates)
        terms = lnp.expand_dims(steps * wide, -1) * lnp.expand_dims(inputs, 2)
        states = linear_recurrence(decay, terms, start)
        made, last = lnp.einsum("btcn,btn->btc", states, outputs), states[:, -1]
    if d is not None:
        made = made + wide * d
    return cast(made, given.type.dtype), last


@custom_vjp
def _selected(steps: Value, x: Value, inputs: Value, outputs: Value, rates: Value, start: Value) -> Any:
    """The outputs [T, B, channels] of state spaces, and the last states, time in front."""
    states = _states(steps, x, inputs, rates, start)
    return lnp.sum(states * lnp.expand_dims(outputs, 2), axis=-1), states[-1]


def _states(steps: Value, x: Value, inputs: Value, rates: Value, start: Value) -> Value:
    """All states [T, B, channels, N]; factors and terms are computed where they are used, and never stored."""

    def turn(state: Value, given: tuple[Value, Value, Value]) -> tuple[Value, Value]:
        step, x, row = given
        state = _decay(step, rates) * state + lnp.expand_dims(step * x, -1) * lnp.expand_dims(row, 1)
        return state, state

    states: Value = scan(turn, start, (steps, x, inputs))[1]
    return states


def _decay(steps: Value, rates: Value) -> Value:
    return lnp.exp(lnp.expand_dims(steps, -1) * rates)


def _selected_forward(steps: Value, x: Value, inputs: Value, outputs: Value, rates: Value, start: Value) -> Any:
    states = _states(steps, x, inputs, rates, start)
    made = lnp.sum(states * lnp.expand_dims(outputs, 2), axis=-1)
    return (made, states[-1]), (steps, x, inputs, outputs, rates, start, states)


def _selected_backward(kept: tuple[Value, ...], cotangents: tuple[Value, Value]) -> tuple[Value, ...]:
    """With λ_t the cotangent of h_t: that of h_(t+1) times its factor, and that of y_t times c_t."""
    steps, x, inputs, outputs, rates, start, states = kept
    of_outputs, of_last = cotangents

    def turn(later: Value, given: tuple[Value, Value, Value]) -> tuple[Value, Value]:
        step, of_output, output = given
        own = later + lnp.expand_dims(of_output, -1) * lnp.expand_dims(output, 1)
        return _decay(step, rates) * own, own

    of_start, own = scan(turn, of_last, (steps, of_outputs, outputs), reverse=True)
    before = lnp.concatenate([lnp.expand_dims(start, 0), states[:-1]], axis=0)
    of_exponents = own * _decay(steps, rates) * before
    of_fed = lnp.sum(own * lnp.expand_dims(inputs, 2), axis=-1)
    return (
        lnp.sum(of_exponents * rates, axis=-1) + of_fed * x,
        of_fed * steps,
        lnp.sum(own * lnp.expand_dims(steps * x, -1), axis=2),
        lnp.sum(states * lnp.expand_dims(of_outputs, -1), axis=2),
        lnp.sum(of_exponents * lnp.expand_dims(steps, -1), axis=(0, 1)),
        of_start,
    )


_selected.defvjp(_selected_forward, _selected_backward)


def _check(x: Value, step: Value, a: Value, b: Value, c: Value) -> None:
    if x.ndim == 3 and a.ndim == 2:
        per_token = (*x.shape[:2], a.shape[1])
        if step.shape == x.shape and a.shape[0] == x.shape[2] and b.shape == c.shape == per_token:
            return
    kinds = ", ".join(str(each.type) for each in (x, step, a, b, c))
    raise shape_error(
        f"selective_scan: x and step are [B, T, channels], a [channels, N], b and c [B, T, N], got {kinds}"
    )
