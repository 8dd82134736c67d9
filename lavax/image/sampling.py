"""Resampling along one axis: matrices of weights, and what needs none."""
from __future__ import annotations

import math
from functools import partial
from typing import Any

import lavax.numpy as lnp
from lavax.image.kernels import KERNELS, Kernel
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.values.value import Value

# Pixels that are read one by one for a new one, at most: more are a product with weights of all pixels.
MOST_READ = 4
# A row of weights whose sum is less than this has none.
_LEAST_SUM = 1000 * 2.0**-23


def centres(size: int, scale: ArrayLike, translation: ArrayLike, dtype: Any = "float32") -> Value:
    """Where pixels of the result lie in the input, whose pixel j lies at j: [size], in `dtype`.

    A point p of the input, measured from its edge, lies at p·scale + translation in the result.
    """
    return (lnp.arange(size, dtype=dtype) + 0.5 - translation) / scale - 0.5


def weights_within(size: int, places: Value, kernel: Kernel, width: ArrayLike = 1.0) -> Value:
    """Weights [size, places] of pixels; those outside the image are left out, and the others make up for them.

    The kernel is wider by `width`. Places outside the image get no weight at all.
    """
    pixels = lnp.arange(size, dtype=places.dtype)[:, None]
    return _normalized(kernel.weight(lnp.abs(places - pixels) / width), places)


def weights_by_overlap(size: int, places: Value, width: Any) -> Value:
    """Weights [size, places] by how much of a pixel lies in a window of `width` pixels around the place."""
    pixels = lnp.arange(size, dtype=places.dtype)[:, None]
    half = width * 0.5
    ends = lnp.minimum(places + half, pixels + 0.5)
    starts = lnp.maximum(places - half, pixels - 0.5)
    return _normalized(lnp.maximum(ends - starts, 0.0), places)


def _normalized(weights: Value, places: Value) -> Value:
    """Columns over their sums; columns of places outside the image, or without weight, are 0."""
    size = weights.shape[0]
    total = lnp.sum(weights, axis=0, keepdims=True)
    is_zero = lnp.abs(total) <= _LEAST_SUM
    is_inside = (places >= -0.5) & (places <= size - 0.5)
    result: Value = lnp.where(is_zero | lnp.logical_not(is_inside), 0.0, weights / lnp.where(is_zero, 1.0, total))
    return result


def weights_of_repeated_edge(size: int, places: Value, kernel: Kernel) -> Value:
    """Weights [size, places] of pixels, of an image that goes on with its edge; for places within the image."""
    pixels = lnp.arange(size, dtype=places.dtype)[:, None]
    weights = kernel.weight(lnp.abs(places - pixels))
    for beyond in range(1, kernel.radius + 1):
        before = kernel.weight(lnp.abs(places + float(beyond)))
        after = kernel.weight(lnp.abs(places - float(size - 1 + beyond)))
        weights = weights + lnp.where(pixels == 0, before, 0.0) + lnp.where(pixels == size - 1, after, 0.0)
    return weights


def contracted(x: Value, axis: int, weights: Value) -> Value:
    """Products of `weights` [size, new size] with `x` along `axis`."""
    return lnp.moveaxis(lnp.matmul(lnp.moveaxis(x, axis, -1), lnp.astype(weights, x.dtype)), -1, axis)


@partial(custom_jvp, nondiff_argnums=(1,))
def between_neighbours(x: Value, axis: int, places: Value) -> Value:
    """`x` along `axis` at `places` within the image, on the line between the two pixels beside each.

    Two pixels of each place are read, where a product with weights would read all of them. Derivatives are such
    products, because the transpose of two reads is a scatter.
    """
    last = x.shape[axis] - 1
    before = lnp.floor(places)
    share = lnp.reshape(lnp.astype(places - before, x.dtype), (-1, *(1,) * (x.ndim - 1 - axis)))
    found = [
        lnp.take(x, lnp.astype(lnp.clip(place, 0, last), "int32"), axis=axis, mode="promise_in_bounds")
        for place in (before, before + 1)
    ]
    return found[0] * (1 - share) + found[1] * share


@between_neighbours.defjvp
def _(axis: int, primals: Any, tangents: Any) -> Any:
    x, places = primals
    weights = weights_within(x.shape[axis], lnp.clip(places, 0, x.shape[axis] - 1), KERNELS["linear"])
    return between_neighbours(x, axis, places), contracted(tangents[0], axis, weights)


def reached(kernel: Kernel, width: float = 1.0) -> int:
    """How many pixels a kernel that is wider by `width` reaches at most."""
    return math.ceil(2 * kernel.radius * width)


@partial(custom_jvp, nondiff_argnums=(1, 3, 4, 5))
def among_neighbours(
    x: Value, axis: int, places: Value, kernel: Kernel, width: float = 1.0, repeats_edge: bool = False
) -> Value:
    """`x` along `axis` at `places` within the image: the pixels that a kernel, wider by `width`, reaches, with their
    weights.

    Beyond its edge the image goes on with it if `repeats_edge`; else the other pixels make up for those that are
    missing. Derivatives are products with weights of all pixels, as of `between_neighbours`.
    """
    last = x.shape[axis] - 1
    first = lnp.floor(places - kernel.radius * width) + 1
    pixels = [first + offset for offset in range(reached(kernel, width))]
    weights = [kernel.weight(lnp.abs(places - pixel) / width) for pixel in pixels]
    if not repeats_edge:
        weights = [lnp.where((p >= 0) & (p <= last), w, 0.0) for p, w in zip(pixels, weights, strict=True)]
        total = sum(weights[1:], weights[0])
        weights = [weight / total for weight in weights]
    at = lnp.astype(lnp.clip(lnp.stack(pixels, 1), 0, last), "int32")
    columns = lnp.reshape(lnp.astype(lnp.stack(weights, 1), x.dtype), (*at.shape, *(1,) * (x.ndim - 1 - axis)))
    return lnp.sum(lnp.take(x, at, axis=axis, mode="promise_in_bounds") * columns, axis + 1)


@among_neighbours.defjvp
def _(axis: int, kernel: Kernel, width: float, repeats_edge: bool, primals: Any, tangents: Any) -> Any:
    (x, places), size = primals, primals[0].shape[axis]
    if repeats_edge:
        weights = weights_of_repeated_edge(size, places, kernel)
    else:
        weights = weights_within(size, places, kernel, width)
    return among_neighbours(x, axis, places, kernel, width, repeats_edge), contracted(tangents[0], axis, weights)


def nearest(x: Value, axis: int, size: int, centred: bool = True) -> Value:
    """The nearest pixels along `axis`: pixel ⌊(i + 1/2)·n / size⌋ of n for the i-th, or ⌊i·n / size⌋ if not `centred`.

    Whole factors are a broadcast or a slice; all others a gather.
    """
    extent = x.shape[axis]
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    if size == extent:
        return x
    if size % extent == 0:
        factor = size // extent
        repeated = lnp.broadcast_to(lnp.expand_dims(x, axis + 1), (*before, extent, factor, *after))
        return lnp.reshape(repeated, (*before, size, *after))
    if extent % size == 0:
        factor = extent // size
        split = lnp.reshape(x, (*before, size, factor, *after))
        place = factor // 2 if centred else 0
        return split[(slice(None),) * (axis + 1) + (place,)]
    steps = lnp.arange(size)
    places = (2 * steps + 1) * extent // (2 * size) if centred else steps * extent // size
    return lnp.take(x, places, axis=axis, mode="promise_in_bounds")
