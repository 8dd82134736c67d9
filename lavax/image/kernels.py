"""Interpolation kernels: the weight of a pixel by its distance, in pixels, from where an image is sampled."""
from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum

import lavax.numpy as lnp
from lavax.base.quick_dataclasses import dataclass
from lavax.tracer.values.value import Value


@dataclass(frozen=True)
class Kernel:
    """`weight` of a distance >= 0; it is 0 beyond `radius`."""

    radius: int
    weight: Callable[[Value], Value]


def _triangle(distance: Value) -> Value:
    return lnp.maximum(1 - distance, 0.0)


def _cubic(a: float) -> Callable[[Value], Value]:
    """Cubic convolution with the slope `a` at distance 1 (Keys 1981)."""

    def weight(distance: Value) -> Value:
        d = distance
        inner = ((a + 2) * d - (a + 3)) * d * d + 1
        outer = a * (((d - 5) * d + 8) * d - 4)
        result: Value = lnp.where(d < 1, inner, lnp.where(d < 2, outer, 0.0))
        return result

    return weight


def _lanczos(radius: int) -> Callable[[Value], Value]:
    """sinc(d)·sinc(d / radius); 1 near 0, where the quotient has no digits."""

    def weight(distance: Value) -> Value:
        angle = math.pi * distance
        is_far = distance > 1e-3
        safe = lnp.where(is_far, angle, 1.0)
        product = radius * lnp.sin(safe) * lnp.sin(safe / radius) / lnp.square(safe)
        result: Value = lnp.where(distance > radius, 0.0, lnp.where(is_far, product, 1.0))
        return result

    return weight


# By the names of jax.image; "cubic-pytorch" is what PyTorch and OpenCV call bicubic.
KERNELS: dict[str, Kernel] = {
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), Kernel(1, _triangle)),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), Kernel(2, _cubic(-0.5))),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), Kernel(2, _cubic(-0.75))),
    "lanczos3": Kernel(3, _lanczos(3)),
    "lanczos5": Kernel(5, _lanczos(5)),
}


class ResizeMethod(Enum):
    """Methods of resizing as JAX names them; strings do the same."""

    NEAREST = "nearest"
    LINEAR = "linear"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    CUBIC = "cubic"

    @staticmethod
    def from_string(name: str) -> ResizeMethod:
        """The method of that name. Raises ValueError for another name."""
        for method in ResizeMethod:
            if KERNELS.get(name) is KERNELS.get(method.value) and (name in KERNELS or name == method.value):
                return method
        raise ValueError(f"ResizeMethod: unknown method {name!r}")
