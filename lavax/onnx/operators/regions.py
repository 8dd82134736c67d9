"""Operators that pool over regions of images, as detectors of two stages do."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.base.quick_dataclasses import dataclass
from lavax.onnx.operators.operator import REQUIRED, Call, Operator, converted
from lavax.onnx.operators.sampling import linear_taps, read_at, sampled


@dataclass(frozen=True)
class _Samples:
    """Places [regions, bins, samples] along an axis, which of them count, and how many each bin has [regions]."""

    place: Any
    is_there: Any
    count: Any


def _samples(call: Call, axis: int, rois: Any, bins: int, extent: int) -> _Samples:
    half = 0.5 if call.coordinate_transformation_mode == "half_pixel" else 0.0
    start = rois[:, 1 - axis] * call.spatial_scale - half
    end = rois[:, 3 - axis] * call.spatial_scale - half
    length = end - start if half else lnp.maximum(end - start, 1)
    size = (length / bins)[:, None, None]
    begin = start[:, None, None] + np.arange(bins, dtype=np.float32)[:, None] * size
    if call.sampling_ratio:
        count = call.sampling_ratio
        steps = (np.arange(count, dtype=np.float32) + 0.5) / count
        place = begin + steps * size
        return _Samples(place, (place >= -1) & (place <= extent), count)
    # As many as a bin has pixels. They lie half a pixel apart at least, and a pixel where there are more than the image
    # has; so that many from the first within the image hold all that are in it.
    count = lnp.maximum(lnp.ceil(size), 1)
    step = size / count
    first = lnp.clip(lnp.floor((-1 - begin) / lnp.where(step > 0, step, 1)), 0, count)
    number = first + np.arange(extent + 3, dtype=np.float32)
    place = begin + (number + 0.5) * step
    return _Samples(place, (place >= -1) & (place <= extent) & (number < count) & (size > 0), count)


def _roi_align(call: Call, x: Any, rois: Any, batch_indices: Any) -> Any:
    """He et al. 2017: the mean or maximum of bilinear samples in each bin of a region."""
    bins = (call.output_height, call.output_width)
    axes = [_samples(call, axis, rois, bins[axis], x.shape[2 + axis]) for axis in range(2)]
    if call.mode == "avg" and not call.sampling_ratio:
        return _weighted_means(x, batch_indices, axes)
    return _of_samples(call, x, batch_indices, axes)


def _of_samples(call: Call, x: Any, batch_indices: Any, axes: list[_Samples]) -> Any:
    images = lnp.take(x, batch_indices, axis=0)
    (regions, *rows), (_, *columns) = (samples.place.shape for samples in axes)
    shape = (regions, rows[0] * rows[1], columns[0] * columns[1])
    flat = ((regions, shape[1], 1), (regions, 1, shape[2]))
    shown: Any = True
    places = []
    for samples, wide, extent in zip(axes, flat, x.shape[2:], strict=True):
        shown = shown & samples.is_there.reshape(wide)
        places.append(lnp.broadcast_to(lnp.reshape(lnp.clip(samples.place, 0, extent - 1), wide), shape))
    shown = lnp.expand_dims(shown, 1)
    split = (regions, x.shape[1], *rows, *columns)
    if call.mode == "avg":
        inside = lnp.where(shown, sampled(images, places, None, _inside), 0)
        return lnp.mean(lnp.reshape(inside, split), axis=(3, 5))
    # The maximum is over the weighted pixels of all samples, not over the samples.
    starts = [lnp.floor(place) for place in places]
    terms = []
    for chosen in itertools.product(*(linear_taps(p - s) for p, s in zip(places, starts, strict=True))):
        weight = lnp.expand_dims(chosen[0][1] * chosen[1][1], 1)
        at = [start + offset for start, (offset, _) in zip(starts, chosen, strict=True)]
        terms.append(weight * read_at(images, at, _inside))
    outside: Any = 0 if call.sampling_ratio else -np.inf  # a sample that is not taken, or one outside of the image
    found = lnp.where(shown, lnp.max(lnp.stack(terms), axis=0), outside)
    most = lnp.max(lnp.reshape(found, split), axis=(3, 5))
    return most if call.sampling_ratio else lnp.where(most > -np.inf, most, 0)


def _inside(place: Any, extent: int) -> Any:
    return lnp.clip(place, 0, extent - 1)


def _weighted_means(x: Any, batch_indices: Any, axes: list[_Samples]) -> Any:
    """The mean of a bin is a product with weights of the rows, then one with weights of the columns."""
    rows, columns = (
        _weights(samples, extent).astype(x.dtype) for samples, extent in zip(axes, x.shape[2:], strict=True)
    )
    is_own = converted(batch_indices, "int32")[:, None] == np.arange(x.shape[0], dtype=np.int32)
    of_images = lnp.where(is_own[:, None, :, None], columns[:, :, None, :], 0)  # [regions, bins, images, width]
    along = lnp.einsum("nchw,rjnw->rjch", x, of_images)
    return lnp.einsum("riy,rjcy->rcij", rows, along)


def _weights(samples: _Samples, extent: int) -> Any:
    """What each pixel of an axis counts in each bin [regions, bins, extent]."""
    place = lnp.clip(samples.place, 0, extent - 1)[..., None]
    tent = lnp.maximum(1 - lnp.abs(place - np.arange(extent, dtype=np.float32)), 0)
    return lnp.sum(lnp.where(samples.is_there[..., None], tent, 0), axis=2) / samples.count


def _max_roi_pool(call: Call, x: Any, rois: Any) -> Any:
    """Girshick 2015: the maximum of the pixels in each bin of a region, whose first number is that of its image."""
    images = lnp.take(x, converted(rois[:, 0], "int32"), axis=0)
    masks = []
    for axis, bins in enumerate(call.pooled_shape):
        extent = x.shape[2 + axis]
        start, end = (_nearest(rois[:, place] * call.spatial_scale) for place in (2 - axis, 4 - axis))
        size = lnp.maximum(end - start + 1, 1) / bins
        bin_number = np.arange(bins, dtype=np.float32)
        low = lnp.floor(bin_number * size[:, None]) + start[:, None]
        high = lnp.ceil((bin_number + 1) * size[:, None]) + start[:, None]
        pixel = np.arange(extent, dtype=np.float32)
        masks.append((pixel >= low[..., None]) & (pixel < high[..., None]))  # [regions, bins, extent]
    rows, columns = masks
    lowest = np.finfo(np.float32).min if x.dtype != np.float16 else np.finfo(np.float16).min
    along = lnp.max(lnp.where(columns[:, None, None], images[:, :, :, None], lowest), axis=-1)  # [.., height, bins]
    most = lnp.max(lnp.where(rows[:, None, :, :, None], along[:, :, None], lowest), axis=3)
    is_empty = ~(lnp.any(rows, axis=-1)[:, None, :, None] & lnp.any(columns, axis=-1)[:, None, None])
    return lnp.where(is_empty, 0, most).astype(x.dtype)


def _nearest(x: Any) -> Any:
    """Whole numbers, halves away from 0."""
    return lnp.sign(x) * lnp.floor(lnp.abs(x) + 0.5)


OPERATORS = (
    Operator("MaxRoiPool", _max_roi_pool, {"pooled_shape": REQUIRED, "spatial_scale": 1.0}),
    Operator(
        "RoiAlign", _roi_align,
        {
            "coordinate_transformation_mode": "half_pixel", "mode": "avg", "output_height": 1, "output_width": 1,
            "sampling_ratio": 0, "spatial_scale": 1.0,
        },
    ),
)  # fmt: skip
