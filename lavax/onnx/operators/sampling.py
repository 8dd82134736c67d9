"""Operators that read images between pixels: GridSample, AffineGrid, and what shares their taps."""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.onnx.operators.operator import Call, Operator, converted

Taps = list[tuple[Any, Any]]


def read_at(images: Any, places: Sequence[Any], outside: Any = None) -> Any:
    """Pixels of `images` [N, C, *extents] at whole numbers of pixels (one [N, …] for each axis): [N, C, …].

    Pixels outside are 0; or `outside` gives the place inside for a place and the extent of its axis.
    """
    batch, channels, *extents = images.shape
    inside: Any = True
    index: Any = 0
    for place, extent in zip(places, extents, strict=True):
        if outside is None:
            inside = inside & (place >= 0) & (place < extent)
        else:
            place = outside(place, extent)
        index = index * extent + lnp.clip(place, 0, extent - 1)
    flat = images.reshape(batch, channels, -1)
    at = converted(index, "int32").reshape(batch, 1, -1)
    found: Any = lnp.take_along_axis(flat, lnp.broadcast_to(at, (batch, channels, at.shape[-1])), axis=2)
    found = found.reshape(batch, channels, *places[0].shape[1:])
    return found if inside is True else lnp.where(lnp.expand_dims(inside, 1), found, 0)


def sampled(images: Any, places: Sequence[Any], taps: Any = None, outside: Any = None) -> Any:
    """`images` at any places, as a sum over the `taps` of each axis: (offset from the pixel before, weight)."""
    starts = [lnp.floor(place) for place in places]
    weights = [(taps or linear_taps)(place - start) for place, start in zip(places, starts, strict=True)]
    total: Any = None
    for chosen in itertools.product(*weights):
        weight: Any = None
        for _, part in chosen:
            weight = part if weight is None else weight * part
        at = [start + offset for start, (offset, _) in zip(starts, chosen, strict=True)]
        term = lnp.expand_dims(weight, 1) * read_at(images, at, outside)
        total = term if total is None else total + term
    return total


def linear_taps(fraction: Any) -> Taps:
    """The weights of the pixels before and after."""
    return [(0, 1 - fraction), (1, fraction)]


def cubic_taps(a: float) -> Any:
    """The weights of four pixels by cubic convolution with the parameter `a` (Keys 1981)."""

    def taps(fraction: Any) -> Taps:
        def near(t: Any) -> Any:
            return ((a + 2) * t - (a + 3)) * t * t + 1

        def far(t: Any) -> Any:
            return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

        return [(-1, far(fraction + 1)), (0, near(fraction)), (1, near(1 - fraction)), (2, far(2 - fraction))]

    return taps


def _reflected(place: Any, extent: int, align_corners: bool) -> Any:
    low, span = (0.0, float(extent - 1)) if align_corners else (-0.5, float(extent))
    if span == 0:
        return lnp.zeros_like(place)
    return lnp.abs(lnp.mod(place - low + span, 2 * span) - span) + low


def _grid_sample(call: Call, x: Any, grid: Any) -> Any:
    corners = bool(call.align_corners)
    places = []
    for axis, extent in enumerate(x.shape[2:]):
        place = grid[..., x.ndim - 3 - axis]  # the last number is the place along the first window axis
        places.append((place + 1) * ((extent - 1) / 2) if corners else ((place + 1) * extent - 1) / 2)
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(call.mode, call.mode)
    outside = {
        "zeros": None,
        "border": lambda place, extent: lnp.clip(place, 0, extent - 1),
        "reflection": lambda place, extent: lnp.clip(_reflected(place, extent, corners), 0, extent - 1),
    }[call.padding_mode]
    if mode == "nearest":
        if outside is not None:
            places = [outside(place, extent) for place, extent in zip(places, x.shape[2:], strict=True)]
        return read_at(x, [lnp.round(place) for place in places], outside)
    if mode == "linear" and outside is not None:
        places = [outside(place, extent) for place, extent in zip(places, x.shape[2:], strict=True)]
    return sampled(x, places, cubic_taps(-0.75) if mode == "cubic" else None, outside).astype(x.dtype)


def _affine_grid(call: Call, theta: Any, size: Any) -> Any:
    """Where an affine map [N, k, k + 1] takes the elements of a grid, the last axis first: Jaderberg et al. 2015."""
    _, _, *extents = call.integers(size, "size")
    places: Any = theta[:, :, -1].reshape(theta.shape[0], *[1] * len(extents), len(extents))
    for axis, extent in enumerate(extents):
        steps = np.arange(extent, dtype=np.float32)
        if call.align_corners:
            along = steps * (2 / max(extent - 1, 1)) - (extent > 1)
        else:
            along = (2 * steps + 1) / extent - 1
        column = theta[:, :, len(extents) - 1 - axis].reshape(theta.shape[0], *[1] * len(extents), len(extents))
        along = along.reshape([-1 if k == axis else 1 for k in range(len(extents))])[None, ..., None]
        places = places + converted(along, theta.dtype) * column
    return places


OPERATORS = (
    Operator("AffineGrid", _affine_grid, {"align_corners": 0}, known=(1,)),
    Operator("GridSample", _grid_sample, {"align_corners": 0, "mode": "linear", "padding_mode": "zeros"}),
)
