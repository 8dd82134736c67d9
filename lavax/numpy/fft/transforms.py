"""Discrete Fourier transforms, as in numpy.fft.

All take `norm`: by default ("backward") an inverse transform is divided by the number of points, with "ortho" both
directions are divided by its square root, with "forward" the forward one is. Numbers of 16 bits, integers and truth
values are computed in float32.
"""
from __future__ import annotations

from collections.abc import Callable

from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.arrays.complex_parts import conj, imag, real
from lavax.numpy.arrays.manipulation import moveaxis
from lavax.numpy.elementwise.arithmetic import multiply
from lavax.numpy.fft.arguments import (
    Axes,
    complex_operand,
    factor,
    fitted,
    lengths_and_axes,
    one_length,
    real_operand,
    wide_operand,
)
from lavax.numpy.fft.lines import complex_lines, half_spectra, real_lines
from lavax.tracer import bind
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = [
    "fft", "fft2", "fftn", "hfft", "ifft", "ifft2", "ifftn", "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2",
    "rfftn",
]  # fmt: skip

_SETTINGS = ("n", "axis", "s", "axes", "norm")
_REVERSED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _along(x: Value, axis: int, function: Callable[[Value], Value]) -> Value:
    return moveaxis(function(moveaxis(x, axis, -1)), -1, axis)


def _scaled(x: Value, by: float) -> Value:
    """Complex numbers are scaled part by part: in a product with a complex number NaN in a part that is ignored would
    be in the other one, too."""
    if by == 1 or not x.type.dtype.is_complex:
        return x if by == 1 else multiply(x, by)
    return bind("complex", multiply(real(x), by), multiply(imag(x), by))


def _complex(name: str, x: ArrayLike, s: Axes, axes: Axes, norm: str | None, forward: bool) -> Value:
    found = wide_operand(x)
    lengths, chosen = lengths_and_axes(name, found.type, s, axes)
    for axis, length in zip(chosen, lengths, strict=True):
        found = fitted(name, found, axis, length)
    found = _scaled(found, factor(name, norm, [found.shape[axis] for axis in chosen], forward))
    found = complex_operand(found)
    for axis in reversed(chosen):
        found = complex_lines(found, axis, forward)
    return found


def _of_real(name: str, x: ArrayLike, s: Axes, axes: Axes, norm: str | None) -> Value:
    """The last axis as real lines, the others as complex ones."""
    found = real_operand(name, x)
    lengths, chosen = lengths_and_axes(name, found.type, s, axes)
    if not chosen:
        raise ValueError(f"{name}: at least one axis must be transformed")
    for axis, length in zip(chosen, lengths, strict=True):
        found = fitted(name, found, axis, length)
    found = _scaled(found, factor(name, norm, [found.shape[axis] for axis in chosen], True))
    found = _along(found, chosen[-1], real_lines)
    for axis in reversed(chosen[:-1]):
        found = complex_lines(found, axis, True)
    return found


def _to_real(name: str, x: ArrayLike, s: Axes, axes: Axes, norm: str | None) -> Value:
    """The inverse of `_of_real`: the last length is that of the result, 2(m − 1) by default."""
    found = complex_operand(x)
    lengths, chosen = lengths_and_axes(name, found.type, s, axes)
    if not chosen:
        raise ValueError(f"{name}: at least one axis must be transformed")
    *others, last = chosen
    length = 2 * (found.shape[last] - 1) if lengths[-1] is None else lengths[-1]
    for axis, extent in zip(others, lengths, strict=False):
        found = fitted(name, found, axis, extent)
    found = fitted(name, found, last, length // 2 + 1 if length > 0 else 0)
    found = _scaled(found, factor(name, norm, [length, *(found.shape[axis] for axis in others)], False))
    for axis in others:
        found = complex_lines(found, axis, False)
    return _along(found, last, lambda lines: half_spectra(lines, length))


@one_program(*_SETTINGS)
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """Σ a[j]·exp(−2πi·jk/n) for k from 0 to n − 1 along `axis`, which is cut or padded with zeros to `n`.

    Raises ShapeError for a length below 1, AxisError if there is no such axis, ValueError for an unknown norm.
    """
    return _complex("fft", a, one_length("fft", n), (axis,), norm, True)


@one_program(*_SETTINGS)
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """The inverse of `fft`: Σ a[k]·exp(2πi·jk/n)/n. Arguments and errors as there."""
    return _complex("ifft", a, one_length("ifft", n), (axis,), norm, False)


@one_program(*_SETTINGS)
def fftn(a: ArrayLike, s: Axes = None, axes: Axes = None, norm: str | None = None) -> Value:
    """`fft` along several axes, each cut or padded to its length in `s`.

    Without `axes` the last ones, as many as `s` has, or all. Raises the errors of `fft`, and ShapeError if lengths and
    axes differ in number.
    """
    return _complex("fftn", a, s, axes, norm, True)


@one_program(*_SETTINGS)
def ifftn(a: ArrayLike, s: Axes = None, axes: Axes = None, norm: str | None = None) -> Value:
    """The inverse of `fftn`."""
    return _complex("ifftn", a, s, axes, norm, False)


@one_program(*_SETTINGS)
def fft2(a: ArrayLike, s: Axes = None, axes: Axes = (-2, -1), norm: str | None = None) -> Value:
    """`fftn` along two axes, by default the last ones."""
    return _complex("fft2", a, s, axes, norm, True)


@one_program(*_SETTINGS)
def ifft2(a: ArrayLike, s: Axes = None, axes: Axes = (-2, -1), norm: str | None = None) -> Value:
    """The inverse of `fft2`."""
    return _complex("ifft2", a, s, axes, norm, False)


@one_program(*_SETTINGS)
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """The first n//2 + 1 numbers of `fft` of real numbers; the others are their conjugates. Half the work of `fft`.

    Raises DtypeError for complex numbers, and the errors of `fft`.
    """
    return _of_real("rfft", a, one_length("rfft", n), (axis,), norm)


@one_program(*_SETTINGS)
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """The inverse of `rfft`: `n` real numbers from n//2 + 1 complex ones, 2(m − 1) from m by default.

    What no real line has is ignored: the imaginary part of the first number, and for even n of the last. Raises the
    errors of `fft`.
    """
    return _to_real("irfft", a, one_length("irfft", n), (axis,), norm)


@one_program(*_SETTINGS)
def rfftn(a: ArrayLike, s: Axes = None, axes: Axes = None, norm: str | None = None) -> Value:
    """`rfft` along the last of several axes, then `fft` along the others; arguments as in `fftn`."""
    return _of_real("rfftn", a, s, axes, norm)


@one_program(*_SETTINGS)
def irfftn(a: ArrayLike, s: Axes = None, axes: Axes = None, norm: str | None = None) -> Value:
    """The inverse of `rfftn`; the last length in `s` is that of the result."""
    return _to_real("irfftn", a, s, axes, norm)


@one_program(*_SETTINGS)
def rfft2(a: ArrayLike, s: Axes = None, axes: Axes = (-2, -1), norm: str | None = None) -> Value:
    """`rfftn` along two axes, by default the last ones."""
    return _of_real("rfft2", a, s, axes, norm)


@one_program(*_SETTINGS)
def irfft2(a: ArrayLike, s: Axes = None, axes: Axes = (-2, -1), norm: str | None = None) -> Value:
    """The inverse of `rfft2`."""
    return _to_real("irfft2", a, s, axes, norm)


@one_program(*_SETTINGS)
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """The real spectrum, of `n` numbers, of a line of which `a` is the first half and the rest its mirrored conjugate.

    `n` is 2(m − 1) for m numbers by default. Raises the errors of `fft`.
    """
    factor("hfft", norm, (1,), True)
    return _to_real("hfft", conj(a), one_length("hfft", n), (axis,), _REVERSED[norm])


@one_program(*_SETTINGS)
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """The inverse of `hfft`: n//2 + 1 complex numbers from `n` real ones. Raises the errors of `rfft`."""
    factor("ihfft", norm, (1,), True)
    return conj(_of_real("ihfft", a, one_length("ihfft", n), (axis,), _REVERSED[norm]))
