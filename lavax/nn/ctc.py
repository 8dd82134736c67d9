"""Connectionist temporal classification (Graves et al. 2006)."""
from __future__ import annotations

import math
from typing import Any

import lavax.numpy as lnp
from lavax.ir.types import int32
from lavax.nn.reduced import Reduction, reduced, widened
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.control_flow.scan import scan
from lavax.tracer.values.value import Value

__all__ = ["ctc_loss", "ctc_losses"]

# The logarithm of the probability of what cannot be. It is finite, so that no gradient is inf - inf.
_IMPOSSIBLE = -1e30


def ctc_loss(
    log_probs: ArrayLike,
    targets: ArrayLike,
    input_lengths: ArrayLike,
    target_lengths: ArrayLike,
    blank: int = 0,
    reduction: Reduction = "mean",
    zero_infinity: bool = False,
) -> Value:
    """-log of the probability that the steps spell the targets, blanks and repetitions removed; as in PyTorch.

    `log_probs` [T, N, C] are log probabilities (`log_softmax` of logits), `targets` [N, S] class indices, padded at the
    end with anything; both may lack N. Sequences have `input_lengths` [N] steps and `target_lengths` [N] targets.
    "mean" divides each loss by its number of targets (at least 1), then averages over N. A target that does not fit
    into its steps costs inf, or with `zero_infinity` 0; its gradient is 0. Raises ShapeError or DtypeError.
    """
    logs, labels = widened(log_probs), as_value(targets)
    steps, lengths = as_value(input_lengths), as_value(target_lengths)
    if logs.ndim == 2 and labels.ndim == 1:
        logs, labels = lnp.expand_dims(logs, 1), lnp.expand_dims(labels, 0)
        losses = ctc_losses(logs, labels, lnp.reshape(steps, (1,)), lnp.reshape(lengths, (1,)), blank)[0]
    else:
        losses = ctc_losses(logs, labels, steps, lengths, blank)
    if zero_infinity:
        losses = lnp.where(losses == math.inf, 0.0, losses)
    if reduction == "mean":
        losses = losses / lnp.maximum(cast(lengths, losses.type.dtype), 1.0)
    return reduced("ctc_loss", losses, reduction)


def ctc_losses(logs: Value, targets: Value, steps: Value, lengths: Value, blank: int) -> Value:
    """The loss of each sequence, [N]; arguments as in `ctc_loss`."""
    _check(logs, targets, steps, lengths, blank)
    count, batch, _ = logs.shape
    longest = targets.shape[1]
    states = 2 * longest + 1
    # States of a path: blank, first target, blank, second target, …, blank.
    labels = cast(targets, int32)
    spaced = lnp.stack([lnp.full(labels.shape, blank, "int32"), labels], axis=-1)
    spelled = lnp.pad(lnp.reshape(spaced, (batch, 2 * longest)), [(0, 0), (0, 1)], constant_values=blank)
    before = lnp.pad(spelled, [(0, 0), (2, 0)], constant_values=blank)[:, :states]
    may_skip = (spelled != blank) & (spelled != before)
    index = lnp.broadcast_to(lnp.clip(spelled, 0, logs.shape[2] - 1), (count, batch, states))
    scores = lnp.take_along_axis(lnp.maximum(logs, _IMPOSSIBLE), index, axis=2, mode="promise_in_bounds")

    is_first = lnp.arange(states) < 2
    start = lnp.where(is_first, scores[0], _IMPOSSIBLE)

    def shifted(paths: Value, by: int) -> Value:
        return lnp.pad(paths, [(0, 0), (by, 0)], constant_values=_IMPOSSIBLE)[:, :states]

    def step(paths: Any, at: Any) -> Any:
        score, number = at
        from_two = lnp.where(may_skip, shifted(paths, 2), _IMPOSSIBLE)
        arrived = lnp.logaddexp(lnp.logaddexp(paths, shifted(paths, 1)), from_two) + score
        return lnp.where(lnp.expand_dims(number < steps, -1), arrived, paths), None

    paths, _ = scan(step, start, (scores[1:], lnp.arange(1, count)))
    last = 2 * cast(lengths, int32)
    ends = lnp.stack([last, lnp.maximum(last - 1, 0)], axis=-1)
    finished = lnp.take_along_axis(paths, ends, axis=1, mode="promise_in_bounds")
    of_target = lnp.where(lengths > 0, finished[:, 1], _IMPOSSIBLE)
    losses: Value = -lnp.logaddexp(finished[:, 0], of_target)
    found = lnp.where(losses > -0.1 * _IMPOSSIBLE, math.inf, losses)
    without_steps = lnp.where(lengths > 0, math.inf, 0.0)
    result: Value = lnp.where(steps > 0, found, without_steps)
    return result


def _check(logs: Value, targets: Value, steps: Value, lengths: Value, blank: int) -> None:
    if logs.ndim != 3 or targets.ndim != 2 or logs.shape[1] != targets.shape[0] or not logs.shape[0]:
        raise shape_error(
            f"ctc_loss: log_probs are [T, N, C] and targets [N, S], got {logs.type} and {targets.type}; "
            "targets of different lengths are padded at the end"
        )
    for name, x in (("input_lengths", steps), ("target_lengths", lengths)):
        if x.shape != targets.shape[:1]:
            raise shape_error(f"ctc_loss: {name} must be [{targets.shape[0]}], got {x.type}")
    for name, x in (("targets", targets), ("input_lengths", steps), ("target_lengths", lengths)):
        if not x.type.dtype.is_integer:
            raise dtype_error(f"ctc_loss: {name} must be integers, got {x.type}")
    if not 0 <= blank < logs.shape[2]:
        raise ValueError(f"ctc_loss: blank={blank} is none of the {logs.shape[2]} classes of {logs.type}")
