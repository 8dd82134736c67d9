"""Overlapping segments of lines, cut out and added up again, without an index of each element."""
from __future__ import annotations

import lavax.numpy as lnp
from lavax.tracer.values.value import Value


def cut_segments(x: Value, width: int, step: int) -> Value:
    """[..., L] -> [..., count, width]: the segments of `width` elements that begin at each `step`-th.

    Lines are cut into blocks of `step` elements; a segment is as many of them, side by side.
    """
    count = (x.shape[-1] - width) // step + 1
    beside = -(-width // step)
    blocks = count + beside - 1
    length = blocks * step
    fitted = x[..., :length]
    missing = length - fitted.shape[-1]
    if missing:
        fitted = lnp.pad(fitted, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
    cut = lnp.reshape(fitted, (*x.shape[:-1], blocks, step))
    if beside == 1:
        return cut[..., :width]
    return lnp.concatenate([cut[..., first : first + count, :] for first in range(beside)], axis=-1)[..., :width]


def overlap_add(segments: Value, step: int) -> Value:
    """[..., count, width] -> [..., (count - 1)·step + width], the transpose of `cut_segments`."""
    *outer, count, width = segments.shape
    beside = -(-width // step)
    none = [(0, 0)] * len(outer)
    whole = lnp.pad(segments, [*none, (0, 0), (0, beside * step - width)])
    blocks = count + beside - 1
    total: Value | None = None
    for first in range(beside):
        part = lnp.pad(
            whole[..., first * step : (first + 1) * step], [*none, (first, blocks - count - first), (0, 0)]
        )
        total = part if total is None else lnp.add(total, part)
    assert total is not None
    return lnp.reshape(total, (*outer, blocks * step))[..., : (count - 1) * step + width]
