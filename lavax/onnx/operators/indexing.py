"""Operators that read and write at indices."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.onnx.operators.operator import OF_DATA, Call, Operator, converted


def _slice(call: Call, x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    first, last = call.integers(starts, "starts"), call.integers(ends, "ends")
    along = range(len(first)) if axes is None else call.integers(axes, "axes")
    strides = (1,) * len(first) if steps is None else call.integers(steps, "steps")
    cut = [slice(None)] * x.ndim
    for start, end, axis, step in zip(first, last, along, strides, strict=True):
        if step == 0:
            raise call.error("a step is 0")
        extent = x.shape[axis]
        # Going backwards, what lies before the first element is not counted from the other side.
        stop = None if step < 0 and end < -extent else end
        cut[axis] = slice(max(start, -extent) if step < 0 else start, stop, step)
    return x[tuple(cut)]


def _wrapped(indices: Any, extent: int) -> Any:
    """Indices counted from the end as indices from the start."""
    if isinstance(indices, np.ndarray):  # known even where what it reads is not
        return np.where(indices < 0, indices + extent, indices)
    return lnp.where(indices < 0, indices + extent, indices)


def _gather(call: Call, x: Any, indices: Any) -> Any:
    axis = call.axis % x.ndim
    return call.np.take(x, _wrapped(indices, x.shape[axis]), axis=axis)


def _gather_elements(call: Call, x: Any, indices: Any) -> Any:
    axis = call.axis % x.ndim
    along = _wrapped(indices, x.shape[axis])
    return x[_places(call, indices.shape, axis, along)]


def _places(call: Call, shape: tuple[int, ...], axis: int, along: Any) -> tuple[Any, ...]:
    """Indices of all axes: `along` for one, the own place for the others."""
    places = []
    for k, extent in enumerate(shape):
        own = call.np.arange(extent).reshape([-1 if j == k else 1 for j in range(len(shape))])
        places.append(along if k == axis else call.np.broadcast_to(own, shape))
    return tuple(places)


def _gather_nd(call: Call, x: Any, indices: Any) -> Any:
    count = call.batch_dims
    index = _last_axis(call, indices, x.shape[count:])
    batch = _batch_places(call, x.shape[:count], len(index[0].shape) if index else 0)
    return x[(*batch, *index)]


def _last_axis(call: Call, indices: Any, extents: tuple[int, ...]) -> tuple[Any, ...]:
    """The index of each axis, from tuples of indices along the last axis."""
    return tuple(_wrapped(indices[..., k], extents[k]) for k in range(indices.shape[-1]))


def _batch_places(call: Call, shape: tuple[int, ...], rank: int) -> list[Any]:
    return [
        call.np.arange(extent).reshape([-1 if j == k else 1 for j in range(rank)]) for k, extent in enumerate(shape)
    ]


def _write(call: Call, x: Any, places: tuple[Any, ...], updates: Any) -> Any:
    """`updates` written or joined to `x` at indices."""
    if call.is_known:
        made = np.array(x)
        join = {"none": None, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[call.reduction]
        if join is None:
            made[places] = updates
        else:
            join.at(made, places, updates)
        return made
    view = x.at[places]
    write = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}[call.reduction]
    return getattr(view, write)(updates)


def _scatter_elements(call: Call, x: Any, indices: Any, updates: Any) -> Any:
    axis = call.axis % x.ndim
    along = _wrapped(indices, x.shape[axis])
    return _write(call, x, _places(call, indices.shape, axis, along), updates)


def _scatter_nd(call: Call, x: Any, indices: Any, updates: Any) -> Any:
    return _write(call, x, _last_axis(call, indices, x.shape), updates)


def _tensor_scatter(call: Call, cache: Any, update: Any, starts: Any = None) -> Any:
    axis = call.axis % cache.ndim
    steps = call.np.arange(update.shape[axis]).reshape([-1 if k == axis else 1 for k in range(cache.ndim)])
    if starts is not None:
        steps = steps + starts.reshape([-1] + [1] * (cache.ndim - 1))
    if call.mode == "circular":
        steps = call.np.mod(steps, cache.shape[axis])
    places = _places(call, update.shape, axis, call.np.broadcast_to(steps, update.shape))
    if call.is_known:
        made = np.array(cache)
        made[places] = update
        return made
    return cache.at[places].set(update)


def _one_hot(call: Call, indices: Any, depth: Any, values: Any) -> Any:
    count = call.integers(depth, "depth")[0]
    axis = call.axis % (indices.ndim + 1)
    whole = converted(indices, "int64")
    wrapped = call.np.expand_dims(call.np.where(whole < 0, whole + count, whole), axis)
    steps = call.np.arange(count).reshape([-1 if k == axis else 1 for k in range(indices.ndim + 1)])
    return call.np.where(wrapped == steps, values[1], values[0])


def _nonzero(call: Call, x: Any) -> Any:
    return np.array(np.nonzero(x if x.ndim else x.reshape(1)), np.int64)[: max(x.ndim, 0)]


def _padded_nonzero(call: Call, x: Any) -> Any:
    """Places for all elements; those behind the last that is not zero are -1."""
    flat = x.reshape(1) if not x.ndim else x
    return converted(lnp.stack(lnp.nonzero(flat, size=prod(flat.shape), fill_value=-1)), "int64")[: x.ndim]


def _compress(call: Call, x: Any, condition: Any) -> Any:
    places = np.flatnonzero(call.known(condition, "condition"))
    axis = call.axis
    return call.np.take(x.reshape(-1) if axis is None else x, places, axis=0 if axis is None else axis)


def _unique(call: Call, x: Any) -> Any:
    found = np.unique(x, True, True, True, axis=call.axis)
    values, first, inverse, counts = found
    inverse = inverse.reshape(-1)
    if not call.sorted:
        order = np.argsort(first)
        values = np.take(values, order, axis=0 if call.axis is None else call.axis)
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        first, inverse, counts = first[order], back[inverse], counts[order]
    return values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)


def _col2im(call: Call, x: Any, image_shape: Any, block_shape: Any) -> Any:
    image, block = call.integers(image_shape, "image_shape"), call.integers(block_shape, "block_shape")
    rank = len(image)
    steps, spread = call.strides or (1,) * rank, call.dilations or (1,) * rank
    pads = call.pads or (0,) * (2 * rank)
    extents = [extent + pads[k] + pads[k + rank] for k, extent in enumerate(image)]
    counts = [
        (extent - spread[k] * (block[k] - 1) - 1) // steps[k] + 1 for k, extent in enumerate(extents)
    ]
    channels = x.shape[1] // prod(block)
    apart = x.reshape(x.shape[0], channels, *block, *counts)
    places = []
    for k in range(rank):
        inside = np.arange(block[k])[:, None] * spread[k] + np.arange(counts[k])[None, :] * steps[k]
        shape = [1] * (2 * rank)
        shape[k], shape[k + rank] = block[k], counts[k]
        places.append(np.broadcast_to(inside.reshape(shape), (*block, *counts)))
    flat = np.ravel_multi_index(tuple(places), extents)
    made: Any = lnp.zeros((x.shape[0], channels, prod(extents)), x.dtype)
    made = made.at[:, :, flat.reshape(-1).astype(np.int32)].add(apart.reshape(x.shape[0], channels, -1))
    cut = tuple(slice(pads[k], extents[k] - pads[k + rank]) for k in range(rank))
    return made.reshape(x.shape[0], channels, *extents)[(slice(None), slice(None), *cut)]


_REDUCTIONS = {"reduction": "none"}

OPERATORS = (
    Operator("Col2Im", _col2im, {"dilations": None, "pads": None, "strides": None}, known=(1, 2)),
    Operator("Compress", _compress, {"axis": None}, known=(1,), folds=True, lacking=OF_DATA),
    Operator("Gather", _gather, {"axis": 0}, folds=True, keeps=(1,)),
    Operator("GatherElements", _gather_elements, {"axis": 0}, folds=True, keeps=(1,)),
    Operator("GatherND", _gather_nd, {"batch_dims": 0}, folds=True, keeps=(1,)),
    Operator("NonZero", _nonzero, known=(0,), folds=True, lacking=OF_DATA),
    Operator("OneHot", _one_hot, {"axis": -1}, known=(1,), folds=True),
    Operator("Scatter", _scatter_elements, {"axis": 0, "reduction": "none"}, folds=True),
    Operator("ScatterElements", _scatter_elements, {"axis": 0, **_REDUCTIONS}, folds=True),
    Operator("ScatterND", _scatter_nd, _REDUCTIONS, folds=True),
    Operator("Slice", _slice, known=(1, 2, 3, 4), folds=True, since=10),
    Operator("TensorScatter", _tensor_scatter, {"axis": -2, "mode": "linear"}, folds=True),
    Operator("Unique", _unique, {"axis": None, "sorted": 1}, known=(0,), folds=True, lacking=OF_DATA),
)

# With room for all that could be found, so that shapes do not depend on data.
PADDED = (Operator("NonZero", _padded_nonzero),)
