"""Pools over windows, and over all window axes."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax import nn
from lavax.onnx.operators.operator import REQUIRED, Call, Operator, converted, is_float
from lavax.onnx.operators.windows import WINDOW_ATTRIBUTES, Windows, windows_of


def _padding(found: Windows, extents: tuple[int, ...]) -> list[tuple[int, int]]:
    """The padding that gives exactly the windows that count: with `ceil_mode` more, else what is never read is cut."""
    pads = []
    for axis, extent in enumerate(extents):
        before = found.padding[axis][0]
        last = (found.count[axis] - 1) * found.stride[axis] + found.spans[axis]
        pads.append((before, last - before - extent))
    return pads


def _moves(found: Windows, x: Any) -> dict[str, Any]:
    return dict(
        window_shape=found.size,
        strides=found.stride,
        padding=_padding(found, x.shape[2:]),
        window_dilation=found.dilation,
        axes=range(2, x.ndim),
    )


def _max_pool(call: Call, x: Any) -> Any:
    found = windows_of(call, x.shape[2:], call.kernel_shape)
    if call.wants(1):
        return _with_places(call, x, found)
    return nn.max_pool(x, **_moves(found, x))


def _with_places(call: Call, x: Any, found: Windows) -> Any:
    """The maxima, and where in the whole array each was found."""
    rank = x.ndim - 2
    lowest = -np.inf if is_float(x) else np.iinfo(x.dtype).min
    pads = [(before, max(after, 0)) for before, after in _padding(found, x.shape[2:])]
    padded: Any = lnp.pad(x, [(0, 0), (0, 0), *pads], constant_values=converted(np.asarray(lowest), x.dtype))
    inside: Any = 0  # the element's number within its image; of no consequence in the padding
    index: list[Any] = []
    weights = _weights(x.shape[2:], bool(call.storage_order))
    for axis in range(rank):
        window = np.arange(found.size[axis]) * found.dilation[axis]
        start = np.arange(found.count[axis]) * found.stride[axis]
        shape = [1] * (2 * rank)
        shape[axis], shape[axis + rank] = found.count[axis], found.size[axis]
        place = (start[:, None] + window).reshape(shape)
        index.append(place)
        inside = inside + (place - found.padding[axis][0]) * weights[axis]
    read = padded[(slice(None), slice(None), *index)].reshape(*x.shape[:2], *found.count, -1)
    numbers = np.broadcast_to(inside, (*found.count, *found.size)).reshape(*found.count, -1)
    best = lnp.argmax(read, axis=-1, keepdims=True)
    maxima = lnp.take_along_axis(read, best, axis=-1)[..., 0]
    places = lnp.take_along_axis(lnp.broadcast_to(converted(numbers, "int32"), read.shape), best, axis=-1)[..., 0]
    images = lnp.reshape(lnp.arange(prod(x.shape[:2])), (*x.shape[:2], *([1] * rank))) * prod(x.shape[2:])
    return maxima, converted(places + images, "int64")


def _weights(extents: tuple[int, ...], is_column_major: bool) -> list[int]:
    """What a step along each axis adds to an element's number."""
    if is_column_major:
        return [prod(extents[:axis]) for axis in range(len(extents))]
    return [prod(extents[axis + 1 :]) for axis in range(len(extents))]


def _average_pool(call: Call, x: Any) -> Any:
    found = windows_of(call, x.shape[2:], call.kernel_shape)
    total: Any = nn.sum_pool(x, **_moves(found, x))
    return (total / _counted(call, found, x.shape[2:]).astype(x.dtype)).astype(x.dtype)


def _counted(call: Call, found: Windows, extents: tuple[int, ...]) -> np.ndarray:
    """How many elements each window averages: all in the array and, if it is asked for, in the padding."""
    counts = np.ones((1,) * len(extents))
    for axis, extent in enumerate(extents):
        before, after = found.padding[axis]
        low, high = (-before, extent + after) if call.count_include_pad else (0, extent)
        starts = np.arange(found.count[axis])[:, None] * found.stride[axis] - before
        places = starts + np.arange(found.size[axis]) * found.dilation[axis]
        shape = [1] * len(extents)
        shape[axis] = found.count[axis]
        counts = counts * ((places >= low) & (places < high)).sum(1).reshape(shape)
    return counts


def _lp_pool(call: Call, x: Any) -> Any:
    found = windows_of(call, x.shape[2:], call.kernel_shape)
    return _root(nn.sum_pool(_power(x, call.p), **_moves(found, x)), call.p)


def _power(x: Any, p: int) -> Any:
    return lnp.power(lnp.abs(x), p)


def _root(x: Any, p: int) -> Any:
    return x if p == 1 else lnp.sqrt(x) if p == 2 else lnp.power(x, 1 / p)


def _window_axes(x: Any) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


def _max_unpool(call: Call, x: Any, indices: Any, output_shape: Any = None) -> Any:
    rank = x.ndim - 2
    steps, pads = call.strides or (1,) * rank, call.pads or (0,) * (2 * rank)
    natural = [
        (extent - 1) * steps[k] + call.kernel_shape[k] - pads[k] - pads[k + rank]
        for k, extent in enumerate(x.shape[2:])
    ]
    shape = tuple(x.shape[:2]) + tuple(natural)
    at = converted(indices, "int32").reshape(-1)
    wanted = shape if output_shape is None else call.integers(output_shape, "output_shape")
    made: Any = lnp.zeros(prod(shape), x.dtype)
    if prod(wanted) >= prod(shape) and wanted != shape:
        # Indices count in the shape before: find each place there, then its number in the wanted shape.
        places = lnp.unravel_index(at, shape)
        at, made = lnp.ravel_multi_index(places, wanted, mode="clip"), lnp.zeros(prod(wanted), x.dtype)
    return made.at[at].set(x.reshape(-1)).reshape(wanted)


_POOL = {**WINDOW_ATTRIBUTES, "ceil_mode": 0, "kernel_shape": REQUIRED}

OPERATORS = (
    Operator("AveragePool", _average_pool, {**_POOL, "count_include_pad": 0}),
    Operator("GlobalAveragePool", lambda call, x: lnp.mean(x, axis=_window_axes(x), keepdims=True)),
    Operator(
        "GlobalLpPool",
        lambda call, x: _root(lnp.sum(_power(x, call.p), axis=_window_axes(x), keepdims=True), call.p),
        {"p": 2},
    ),
    Operator("GlobalMaxPool", lambda call, x: lnp.max(x, axis=_window_axes(x), keepdims=True)),
    Operator("LpPool", _lp_pool, {**_POOL, "p": 2}),
    Operator("MaxPool", _max_pool, {**_POOL, "storage_order": 0}),
    Operator("MaxUnpool", _max_unpool, {"kernel_shape": REQUIRED, "pads": None, "strides": None}, known=(2,)),
)
