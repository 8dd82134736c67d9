"""Linear recurrences, and the selective state spaces of Mamba that are made of them."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax.ir.types import float32
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.transforms.custom_rules import custom_vjp
from lavax.tracer.values.value import Value

__all__ = ["linear_recurrence", "selective_scan"]


def linear_recurrence(a: ArrayLike, b: ArrayLike, start: ArrayLike | None = None) -> Value:
    """h_t = a_t · h_(t-1) + b_t for all t along axis 1, elementwise: [B, T, ...] to [B, T, ...].

    h_(-1) is `start` [B, ...], or 0. About 2·log2(T) steps are one after another, on 3·T elements in all; the
    derivative is a recurrence backwards. Raises ShapeError if shapes differ.
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
    return _scanned(a, b)


def _forward(a: Value, b: Value) -> tuple[Value, tuple[Value, Value]]:
    states = _recurrence(a, b)
    return states, (a, states)


def _backward(kept: tuple[Value, Value], cotangent: Value) -> tuple[Value, Value]:
    """The cotangent of b_t is that of h_t and a_(t+1) times that of b_(t+1); that of a_t is it times h_(t-1)."""
    a, states = kept
    after = lnp.concatenate([a[1:], lnp.zeros_like(a[:1])], axis=0)
    of_b = lnp.flip(_recurrence(lnp.flip(after, 0), lnp.flip(cotangent, 0)), 0)
    before = lnp.concatenate([lnp.zeros_like(states[:1]), states[:-1]], axis=0)
    return of_b * before, of_b


_recurrence.defvjp(_forward, _backward)


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
    decay = lnp.exp(lnp.expand_dims(steps, -1) * rates)
    terms = lnp.expand_dims(steps * wide, -1) * lnp.expand_dims(inputs, 2)
    states = linear_recurrence(decay, terms, state)
    made: Any = lnp.einsum("btcn,btn->btc", states, outputs)
    if d is not None:
        made = made + wide * d
    return cast(made, given.type.dtype), states[:, -1]


def _check(x: Value, step: Value, a: Value, b: Value, c: Value) -> None:
    if x.ndim == 3 and a.ndim == 2 and x.shape[1]:
        per_token = (*x.shape[:2], a.shape[1])
        if step.shape == x.shape and a.shape[0] == x.shape[2] and b.shape == c.shape == per_token:
            return
    kinds = ", ".join(str(each.type) for each in (x, step, a, b, c))
    raise shape_error(
        "selective_scan: x and step are [B, T, channels], a [channels, N], b and c [B, T, N], T at least 1, "
        f"got {kinds}"
    )
