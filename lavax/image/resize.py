"""Resizing of images, as in jax.image."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.image.kernels import KERNELS, Kernel, ResizeMethod
from lavax.image.sampling import (
    MOST_READ,
    among_neighbours,
    between_neighbours,
    centres,
    contracted,
    nearest,
    reached,
    weights_by_overlap,
    weights_within,
)
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.axes import normal_axes
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast, own
from lavax.numpy._core.promotion import averaging
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.tracer.values.value import Value

__all__ = ["resize", "scale_and_translate"]


def resize(
    image: ArrayLike,
    shape: Sequence[int],
    method: str | ResizeMethod = "linear",
    antialias: bool = True,
    precision: Any = None,
) -> Value:
    """`image` resized to `shape`, which has all its axes; those whose extent stays are left alone.

    Methods are "nearest"; "linear" ("bilinear", "trilinear", "triangle"); "cubic" ("bicubic", "tricubic"; Keys 1981
    with slope -0.5); "lanczos3" and "lanczos5"; "area" (means of what a new pixel covers); "cubic-pytorch" (slope
    -0.75, the edge repeated). Images fill the same frame: pixel centres lie at half-integers. With `antialias`, kernels
    are widened along axes that shrink, so that all pixels count. The dtype is that of `image`, or float32 for integers;
    "nearest" keeps every dtype. Differentiable. `precision` is taken as JAX takes it, and changes nothing. Raises
    ShapeError for another number of axes, ValueError for an unknown method.
    """
    value = as_value(image)
    method = _name(method)
    extents = checked_shape("image.resize", shape)
    if len(extents) != value.ndim:
        raise shape_error(f"image.resize: shape must have all {value.ndim} axes of {value.type}, got {extents}")
    axes = [axis for axis in range(value.ndim) if extents[axis] != value.shape[axis]]
    if any(not value.shape[axis] for axis in axes):
        raise shape_error(f"image.resize: {value.type} has no pixels to make {extents} of")
    if method == "nearest":
        for axis in axes:
            value = nearest(value, axis, extents[axis])
        return value if axes else own(value)
    _require_method("image.resize", method, ("nearest", "area", *KERNELS))
    given = as_floating(value)
    made = cast(given if axes else own(given), averaging(given.type.dtype))
    for axis in axes:
        size, extent = extents[axis], value.shape[axis]
        scale = max(size, 1) / extent
        places = centres(size, scale, 0.0, made.dtype)
        if KERNELS.get(method) is KERNELS["linear"] and (scale >= 1 or not antialias):
            made = between_neighbours(made, axis, places)
        elif method.endswith("-pytorch") and not antialias:
            made = among_neighbours(made, axis, places, KERNELS[method], 1.0, True)
        else:
            made = _by_kernel(made, axis, places, method, 1 / scale, antialias)
    return cast(made, given.type.dtype)


def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod = "linear",
    antialias: bool = True,
    precision: Any = None,
) -> Value:
    """`image` scaled and moved along `spatial_dims`, sampled in a frame of `shape`.

    A point p of the input lies at p·scale + translation in the result; both have a number for each of `spatial_dims`,
    and both have gradients. What lies outside the image is 0. Methods are those of `resize` without "nearest" and
    "cubic-pytorch". `precision` is taken as JAX takes it, and changes nothing.
    """
    name = "image.scale_and_translate"
    given, method = as_floating(image), _name(method)
    extents = checked_shape(name, shape)
    axes = normal_axes(name, tuple(spatial_dims), given.type)
    factors, moves = as_value(scale), as_value(translation)
    if len(extents) != given.ndim:
        raise shape_error(f"{name}: shape must have all {given.ndim} axes of {given.type}, got {extents}")
    if factors.shape != (len(axes),) or moves.shape != (len(axes),):
        raise shape_error(
            f"{name}: scale and translation must be [{len(axes)}], one for each of spatial_dims, got {factors.type} "
            f"and {moves.type}"
        )
    _require_method(name, method, ("area", *(known for known in KERNELS if not known.endswith("-pytorch"))))
    others = [axis for axis in range(given.ndim) if axis not in axes and extents[axis] != given.shape[axis]]
    if others:
        raise shape_error(f"{name}: axes {others} change from {given.type} to {extents}, but are not in spatial_dims")
    made = cast(given, averaging(given.type.dtype))
    for number, axis in enumerate(axes):
        places = centres(extents[axis], factors[number], moves[number], made.dtype)
        weights = _weights(method, given.shape[axis], places, 1 / factors[number], antialias)
        made = contracted(made, axis, weights)
    return cast(made, given.type.dtype)


def _name(method: str | ResizeMethod) -> str:
    return str(method.value) if isinstance(method, ResizeMethod) else method


def _require_method(name: str, method: str, known: Sequence[str]) -> None:
    if method not in known:
        raise ValueError(f"{name}: the method is {', '.join(known)}; got {method!r}")


def _by_kernel(x: Value, axis: int, places: Value, method: str, step: float, antialias: bool) -> Value:
    """`x` along `axis` at places that lie `step` pixels apart."""
    kernel = None if method == "area" else _kernel(method)
    width = max(step, 1.0) if antialias else 1.0
    if kernel is not None and reached(kernel, width) <= MOST_READ:
        found: Value = among_neighbours(x, axis, places, kernel, width)
        return found
    return contracted(x, axis, _weights(method, x.shape[axis], places, step, antialias))


def _kernel(method: str) -> Kernel:
    return KERNELS["cubic" if method.endswith("-pytorch") else method]


def _weights(method: str, extent: int, places: Value, step: ArrayLike, antialias: bool) -> Value:
    """Weights [extent, places] for places that lie `step` pixels apart."""
    if method == "area":
        return weights_by_overlap(extent, places, step)
    kernel = _kernel(method)
    if not antialias:
        return weights_within(extent, places, kernel)
    return weights_within(extent, places, kernel, max(step, 1.0) if isinstance(step, float) else lnp.maximum(step, 1.0))
