"""State spaces as matrix products, by chunks of tokens: Dao and Gu, "Transformers are SSMs" (2024)."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax.ir.types import float32
from lavax.nn.state_space import linear_recurrence
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value

__all__ = ["state_space_duality"]


def state_space_duality(
    x: ArrayLike,
    step: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    d: ArrayLike | None = None,
    state: ArrayLike | None = None,
    chunk: int = 256,
) -> tuple[Value, Value]:
    """The state space of Mamba-2, where all P channels of a head decay alike: y_t and the last state.

    h_t = exp(step_t · a) · h_(t-1) + step_t · x_t b_tᵀ and y_t = h_t c_t + d · x_t for each head. `x` is [B, T, H, P],
    `step` [B, T, H], `a` [H], `b` and `c` [B, T, G, N], each for H / G heads in a row, `d` [H], and `state`
    [B, H, P, N], by default 0. States are float32; y has the dtype of `x`. A step of 0 leaves the state as it is.

    Tokens see those of their `chunk` as in attention, by a product of matrices, and those before it through a state:
    section 6 of the paper. Raises ShapeError if shapes do not fit, and ValueError if `chunk` is not positive.
    """
    given, steps, rates, inputs, outputs = map(as_value, (x, step, a, b, c))
    _check(given, steps, rates, inputs, outputs)
    if chunk < 1:
        raise ValueError(f"state_space_duality: chunk is a number of tokens, got {chunk}")
    wide, steps, rates, inputs, outputs = (cast(each, float32) for each in (given, steps, rates, inputs, outputs))
    batch, length, heads, channels = given.shape
    groups, size = inputs.shape[2:]
    if not length:
        kept = lnp.zeros((batch, heads, channels, size), float32) if state is None else cast(as_value(state), float32)
        return given, kept
    count = -(-length // chunk)
    shape = (batch, count, -(-length // count), groups)
    per_head = (heads // groups,)

    # Letters: batch, k chunks, l and s tokens of a chunk, group, r heads of a group, p channels, n numbers of state.
    terms = _chunks(wide * steps[..., None], (*shape, *per_head, channels))
    writes, reads = _chunks(inputs, (*shape, size)), _chunks(outputs, (*shape, size))
    decays = lnp.moveaxis(_chunks(steps * rates, (*shape, *per_head)), 2, -1)  # logarithms [b, k, g, r, l]
    between = lnp.exp(_sums_between(decays))

    scores = lnp.einsum("bklgn,bksgn->bkgls", reads, writes)
    within = lnp.einsum("bkgrls,bksgrp->bklgrp", lnp.expand_dims(scores, 3) * between, terms)
    to_end = lnp.expand_dims(lnp.moveaxis(between[..., -1, :], -1, 2), -1)
    added = lnp.einsum("bksgrp,bksgn->bkgrpn", terms * to_end, writes)
    since_start = lnp.exp(lnp.cumsum(decays, axis=-1))
    start = lnp.zeros(added[:, 0].shape, float32) if state is None else cast(as_value(state), float32)
    start = lnp.reshape(start, added[:, 0].shape)
    factors = lnp.broadcast_to(since_start[..., -1, None, None], added.shape)
    after = linear_recurrence(factors, added, start)
    before = lnp.concatenate([lnp.expand_dims(start, 1), after[:, :-1]], axis=1)
    from_start = lnp.expand_dims(lnp.moveaxis(since_start, -1, 2), -1)
    across = lnp.einsum("bklgn,bkgrpn->bklgrp", reads, before) * from_start

    made: Any = lnp.reshape(within + across, (batch, shape[1] * shape[2], heads, channels))[:, :length]
    if d is not None:
        made = made + wide * lnp.expand_dims(d, 1)
    return cast(made, given.type.dtype), lnp.reshape(after[:, -1], (batch, heads, channels, size))


def _chunks(tokens: Value, shape: tuple[int, ...]) -> Value:
    """Tokens [B, T, ...] as `shape` [B, chunks, tokens, ...]: what the last chunk lacks is 0, and so are its steps."""
    missing = shape[1] * shape[2] - tokens.shape[1]
    padded = lnp.pad(tokens, ((0, 0), (0, missing), *((0, 0),) * (tokens.ndim - 2))) if missing else tokens
    return lnp.reshape(padded, shape)


def _sums_between(x: Value) -> Value:
    """[..., l] to [..., l, s]: the sum of the elements after s up to l; -inf where s > l.

    Differences of sums from the start would lose the small ones beside the large.
    """
    places = lnp.arange(x.shape[-1])
    later, same = places[:, None] > places, places[:, None] >= places
    sums = lnp.cumsum(lnp.where(later, x[..., None], 0.0), axis=-2)
    made: Value = lnp.where(same, sums, -lnp.inf)
    return made


def _check(x: Value, step: Value, a: Value, b: Value, c: Value) -> None:
    if x.ndim == b.ndim == 4 and b.shape[2]:
        per_head = step.shape == x.shape[:3] and a.shape == x.shape[2:3]
        per_group = b.shape == c.shape and b.shape[:2] == x.shape[:2] and x.shape[2] % b.shape[2] == 0
        if per_head and per_group:
            return
    kinds = ", ".join(str(each.type) for each in (x, step, a, b, c))
    raise shape_error(
        "state_space_duality: x is [B, T, H, P], step [B, T, H], a [H], b and c [B, T, G, N], where G divides H, "
        f"got {kinds}"
    )
