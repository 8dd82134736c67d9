"""Weights whose variance is chosen by the number of terms that they are summed with."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import lavax.numpy as lnp
from lavax import random
from lavax.ir.default_dtypes import default_float
from lavax.nn.initializers.initializer import Initializer
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.random.continuous import Extents
from lavax.tracer import bind
from lavax.tracer.values.value import Value

Axes = int | Sequence[int]
Mode = Literal["fan_in", "fan_out", "fan_avg", "fan_geo_avg"]
Distribution = Literal["truncated_normal", "normal", "uniform"]

# The standard deviation of a standard normal number between -2 and 2.
_TRUNCATED = 0.87962566103423978

_DENOMINATORS: dict[str, Callable[[float, float], float]] = {
    "fan_in": lambda fan_in, fan_out: fan_in,
    "fan_out": lambda fan_in, fan_out: fan_out,
    "fan_avg": lambda fan_in, fan_out: (fan_in + fan_out) / 2,
    "fan_geo_avg": lambda fan_in, fan_out: math.sqrt(fan_in * fan_out),
}

_Draw = Callable[[ArrayLike, Extents, Any, float], Value]

# Complex numbers are at most this many times √variance of a normal one from the origin, and have this deviation then.
_COMPLEX_RADIUS = 2.0
_COMPLEX_TRUNCATED = 0.95311164380491208

# Numbers of a given standard deviation.
_DRAWS: dict[str, _Draw] = {
    "truncated_normal": lambda key, shape, dtype, deviation: random.truncated_normal(key, -2, 2, shape, dtype)
    * (deviation / _TRUNCATED),
    "normal": lambda key, shape, dtype, deviation: random.normal(key, shape, dtype) * deviation,
    "uniform": lambda key, shape, dtype, deviation: random.uniform(key, shape, dtype, -1.0, 1.0)
    * (math.sqrt(3) * deviation),
}


def _in_disc(key: ArrayLike, shape: Extents, dtype: Any, radius: Callable[[Value], Value]) -> Value:
    """Complex numbers of any angle, whose distance from the origin is `radius` of a uniform number."""
    part = canonical_dtype(dtype).part
    first, second = random.split(key)
    length, angle = radius(random.uniform(first, shape, part)), 2 * math.pi * random.uniform(second, shape, part)
    return bind("complex", length * lnp.cos(angle), length * lnp.sin(angle))


def _truncated_length(share: Value) -> Value:
    """The length of a complex normal number of which `share` of those below the greatest length are shorter."""
    return lnp.sqrt(-lnp.log(1 - (1 - math.exp(-(_COMPLEX_RADIUS**2))) * share))


_COMPLEX_DRAWS: dict[str, _Draw] = {
    "truncated_normal": lambda key, shape, dtype, deviation: _in_disc(key, shape, dtype, _truncated_length)
    * (deviation / _COMPLEX_TRUNCATED),
    "normal": _DRAWS["normal"],
    "uniform": lambda key, shape, dtype, deviation: _in_disc(key, shape, dtype, lnp.sqrt)
    * (math.sqrt(2) * deviation),
}


def _extent(shape: tuple[int, ...], axes: Axes, name: str) -> int:
    numbers = (axes,) if isinstance(axes, int) else tuple(axes)
    if not all(-len(shape) <= axis < len(shape) for axis in numbers):
        raise shape_error(
            f"variance_scaling: {name}={axes} is not an axis of the shape {shape}; weights need an axis of inputs "
            "and one of outputs"
        )
    return math.prod(shape[axis] for axis in numbers)


def variance_scaling(
    scale: float,
    mode: Mode,
    distribution: Distribution,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: Any = None,
) -> Initializer:
    """An initializer of numbers of mean 0 and the variance scale / n (Glorot and Bengio 2010; He et al. 2015).

    n is by `mode` the fan in, the fan out, their arithmetic or their geometric mean. The fan in is the number of
    elements along `in_axis` times that of the window, the fan out likewise by `out_axis`; axes of the window are all
    but those two and `batch_axis`. The defaults fit weights [..., in, out] as in JAX. Weights of lavax's layers are
    [out, in, ...] as in PyTorch: give in_axis=1 and out_axis=0 for them. Raises ValueError for an unknown `mode` or
    `distribution`, ShapeError for a shape that lacks these axes.
    """
    if mode not in _DENOMINATORS:
        raise ValueError(f"variance_scaling: the mode is one of {', '.join(_DENOMINATORS)}, got {mode!r}")
    if distribution not in _DRAWS:
        raise ValueError(f"variance_scaling: the distribution is one of {', '.join(_DRAWS)}, got {distribution!r}")
    default = dtype

    def init(key: ArrayLike, shape: Extents, dtype: Any = None) -> Value:
        extents = checked_shape("variance_scaling", shape)
        inputs, outputs = _extent(extents, in_axis, "in_axis"), _extent(extents, out_axis, "out_axis")
        batch = _extent(extents, batch_axis, "batch_axis")
        window = math.prod(extents) / max(inputs * outputs * batch, 1)
        terms = _DENOMINATORS[mode](inputs * window, outputs * window)
        deviation = math.sqrt(scale / terms) if terms else 0.0
        chosen = default if dtype is None else dtype
        held = default_float() if chosen is None else canonical_dtype(chosen)
        draws = _COMPLEX_DRAWS if held.is_complex else _DRAWS
        return draws[distribution](key, extents, held, deviation)

    return init


def glorot_uniform(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None
) -> Initializer:
    """Uniform numbers of variance 1 / mean of fan in and fan out (Glorot and Bengio 2010), as `variance_scaling`."""
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def glorot_normal(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None
) -> Initializer:
    """Truncated normal numbers of the variance 1 / mean of fan in and fan out, as `variance_scaling`."""
    return variance_scaling(1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def he_uniform(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None
) -> Initializer:
    """Uniform numbers of the variance 2 / fan in, as `variance_scaling` (He et al. 2015)."""
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None
) -> Initializer:
    """Truncated normal numbers of the variance 2 / fan in, as `variance_scaling` (He et al. 2015)."""
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def lecun_uniform(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None
) -> Initializer:
    """Uniform numbers of the variance 1 / fan in, as `variance_scaling` (LeCun et al. 1998)."""
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None
) -> Initializer:
    """Truncated normal numbers of the variance 1 / fan in, as `variance_scaling` (LeCun et al. 1998)."""
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


xavier_uniform = glorot_uniform
xavier_normal = glorot_normal
kaiming_uniform = he_uniform
kaiming_normal = he_normal
