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
        part: Any = moved[start:end]
        basis = lnp.asarray(_basis(end - start), dtype=value.dtype)
        for _ in range(2):  # the second time takes out what rounded sums left
            part = part - lnp.tensordot(basis, lnp.tensordot(basis, part, axes=[[0], [0]]), axes=1)
        parts.append(part)
    return lnp.moveaxis(lnp.concatenate(parts, axis=0), 0, axis)


def _basis(count: int) -> np.ndarray:
    """Constants and ramps over so many places, orthonormal: [count, 2], or [1, 1] of a single place."""
    ones, ramp = np.full(count, count**-0.5), np.arange(count) - (count - 1) / 2
    return np.stack([ones, ramp / np.linalg.norm(ramp)] if count > 1 else [ones], axis=1)
