"""Lengths, axes and norms as users give them to Fourier transforms."""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from lavax.ir.types import TensorType, complex_of, float64
from lavax.numpy._core.axes import normal_axes
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.movement import cut
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy.editing.padding import pad
from lavax.tracer.values.value import Value

Axes: TypeAlias = int | Sequence[int] | None

# The power of n by which a transform is divided: (forward, inverse).
_NORMS: dict[str | None, tuple[float, float]] = {
    None: (0.0, 1.0),
    "backward": (0.0, 1.0),
    "ortho": (0.5, 0.5),
    "forward": (1.0, 0.0),
}


def factor(name: str, norm: str | None, counts: Sequence[int], forward: bool) -> float:
    """What a transform of lines of these lengths is multiplied by. Raises ValueError for an unknown norm."""
    if norm not in _NORMS:
        raise ValueError(f"{name}: norm must be None, 'backward', 'ortho' or 'forward', got {norm!r}")
    return math.pow(math.prod(counts), -_NORMS[norm][not forward])


def complex_operand(x: ArrayLike) -> Value:
    """`x` as complex64, or complex128 where it has 64 bits."""
    value = as_value(x)
    return cast(value, complex_of(float64 if value.type.dtype.part == float64 else value.type.dtype))


def wide_operand(x: ArrayLike) -> Value:
    """`x` as complex numbers if it has these, or else as float32 or float64."""
    value = as_value(x)
    return complex_operand(value) if value.type.dtype.is_complex else real_operand("", value)


def real_operand(name: str, x: ArrayLike) -> Value:
    """`x` as float32 or float64. Raises DtypeError for complex numbers."""
    value = as_value(x)
    if value.type.dtype.is_complex:
        raise dtype_error(f"{name} takes real numbers, got {value.type}: take its real part, or lavax.numpy.fft.fft")
    return cast(value, complex_of(value.type.dtype).part)


def lengths_and_axes(name: str, type: TensorType, s: Axes, axes: Axes) -> tuple[list[int | None], list[int]]:
    """The length of the transform along each axis (None: the array's own), and the axes.

    Without `axes` the last ones, as many as `s` has, or all; an integer is one length, or one axis. Raises ShapeError
    if they differ in number.
    """
    wanted = None if s is None else tuple(s) if isinstance(s, Iterable) else (s,)
    if axes is None:
        axes = range(type.rank) if wanted is None else range(-len(wanted), 0)
    chosen = list(normal_axes(name, tuple(axes) if isinstance(axes, Iterable) else axes, type))
    if wanted is not None and len(wanted) != len(chosen):
        raise shape_error(f"{name}: s={wanted} has {len(wanted)} lengths for {len(chosen)} axes")
    return [None] * len(chosen) if wanted is None else [_length(name, one) for one in wanted], chosen


def one_length(name: str, n: int | None) -> tuple[int] | None:
    """The length of a transform along one axis. Raises ShapeError below 1."""
    if n is None:
        return None
    if (length := whole_number(f"{name}: n", n)) < 1:
        raise shape_error(f"{name}: a transform has at least one point, got n={length}")
    return (length,)


def _length(name: str, given: int | None) -> int | None:
    """A length; −1 stands for the array's own, as in NumPy. Raises ShapeError below 1."""
    if given is None or whole_number("a length", given) == -1:
        return None
    length = whole_number("a length", given)
    if length < 1:
        raise shape_error(f"{name}: a transform has at least one point, got {length}")
    return length


def fitted(name: str, x: Value, axis: int, length: int | None) -> Value:
    """`x` cut or padded with zeros behind to `length` along `axis`. Raises ShapeError if nothing is left."""
    extent = x.shape[axis]
    wanted = extent if length is None else length
    if wanted < 1:
        raise shape_error(f"{name}: a transform has at least one point, and {x.type} has none along axis {axis}")
    if extent > wanted:
        return cut(x, axis, 0, wanted)
    if extent == wanted:
        return x
    return pad(x, [(0, wanted - extent if d == axis else 0) for d in range(x.ndim)])
