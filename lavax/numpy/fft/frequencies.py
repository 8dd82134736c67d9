"""The frequencies of a spectrum, and spectra with frequency 0 in the middle."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lavax.ir.default_dtypes import default_float
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.devices import require_device
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.number_arguments import real_number, whole_number
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy.arrays.ranges import arange
from lavax.numpy.arrays.rearranging import roll
from lavax.numpy.elementwise.arithmetic import divide
from lavax.tracer.values.value import Value

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def _points(name: str, n: int) -> int:
    count = whole_number("n", n)
    if count < 1:
        raise shape_error(f"{name}: a transform has at least one point, got n={count}")
    return count


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Value:
    """The frequencies of `fft` of `n` points at the distance `d`: 0, 1, …, −2, −1, each divided by n·d.

    Raises ShapeError for `n` below 1.
    """
    require_device("fftfreq", device)
    count = _points("fftfreq", n)
    positions = roll(arange(-(count // 2), count - count // 2), -(count // 2))
    return _divided(positions, count, d, dtype)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Value:
    """The frequencies of `rfft` of `n` points at the distance `d`: 0, 1, …, n//2, each divided by n·d.

    Raises ShapeError for `n` below 1.
    """
    require_device("rfftfreq", device)
    count = _points("rfftfreq", n)
    return _divided(arange(count // 2 + 1), count, d, dtype)


def _divided(positions: Value, count: int, distance: float, dtype: Any) -> Value:
    held = default_float() if dtype is None else canonical_dtype(dtype)
    return divide(cast(positions, held), count * real_number("d", distance))


def _shifted(name: str, x: ArrayLike, axes: int | Sequence[int] | None, back: bool) -> Value:
    value = as_value(x)
    several = range(value.ndim) if axes is None else axes if isinstance(axes, Iterable) else (axes,)
    chosen = [normal_axis(name, axis, value.type) for axis in several]  # one that is named twice is rolled twice
    halves = [value.shape[axis] // 2 for axis in chosen]
    return roll(value, [-half if back else half for half in halves], chosen)


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Value:
    """`x` with frequency 0 in the middle of each of `axes`; None: all. Raises AxisError if there is no such axis."""
    return _shifted("fftshift", x, axes, False)


def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Value:
    """The inverse of `fftshift`."""
    return _shifted("ifftshift", x, axes, True)
