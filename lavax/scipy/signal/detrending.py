"""Trends taken out of signals."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value


def detrend(
    data: ArrayLike, axis: int = -1, type: str = "linear", bp: int | Sequence[int] = 0, overwrite_data: None = None
) -> Value:
    """`data` less its mean along `axis` ("constant"), or less the line that fits it best ("linear").

    Lines are fitted between the positions `bp` separately. `overwrite_data` changes nothing. Raises ValueError for
    another type, or a position outside.
    """
    if type not in ("constant", "linear"):
        raise ValueError(f"detrend: type must be 'linear' or 'constant', got {type!r}")
    value: Any = as_floating(data)
    if type == "constant":
        return value - lnp.mean(value, axis=axis, keepdims=True)  # type: ignore[no-any-return]
    moved = lnp.moveaxis(value, axis, 0)
    count = moved.shape[0]
    places = sorted({0, count, *np.atleast_1d(bp).tolist()})
    if places[0] < 0 or places[-1] > count:
        raise ValueError(f"detrend: positions in bp must be between 0 and {count}, got {bp}")
    parts = []
    for start, end in pairwise(places):
        ramp = np.stack([np.ones(end - start), np.arange(1, end - start + 1) / (end - start)], axis=1)
        onto = lnp.asarray(ramp @ np.linalg.pinv(ramp), dtype=value.dtype)
        part = moved[start:end]
        parts.append(part - lnp.tensordot(onto, part, axes=1))
    return lnp.moveaxis(lnp.concatenate(parts, axis=0), 0, axis)
