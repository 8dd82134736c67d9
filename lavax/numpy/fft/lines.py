"""Transforms of complex and real numbers along the last axis, without a factor."""
from __future__ import annotations

from lavax.ir.types import TensorType, int32
from lavax.numpy._core.movement import cut
from lavax.numpy.arrays.complex_parts import conj, imag, real
from lavax.numpy.arrays.creation import iota
from lavax.numpy.arrays.joining import concatenate
from lavax.numpy.arrays.rearranging import flip
from lavax.numpy.elementwise.arithmetic import add, multiply, subtract
from lavax.numpy.elementwise.comparison import equal, logical_or, where
from lavax.tracer import bind
from lavax.tracer.values.value import Value


def complex_lines(z: Value, axis: int, forward: bool) -> Value:
    """Transforms along `axis`, where it is."""
    return bind("fft", z, axis=axis, reverse=not forward)


def real_lines(x: Value) -> Value:
    """f[…, n] -> c[…, n/2 + 1], the first half of the spectrum.

    For even n neighbours become the parts of n/2 complex numbers, whose transform holds those of the elements at even
    and at odd positions: half the work.
    """
    length = x.shape[-1]
    if length % 2:
        whole = complex_lines(bind("complex", x, _zeros_like(x)), x.ndim - 1, True)
        return cut(whole, x.ndim - 1, 0, length // 2 + 1)
    half = length // 2
    pairs = bind("reshape", x, type=x.type.with_shape((*x.shape[:-1], half, 2)))
    last = x.ndim - 1
    spectrum = complex_lines(bind("complex", *_columns(pairs)), last, True)
    ahead = concatenate([spectrum, cut(spectrum, last, 0, 1)], last)
    mirrored = conj(flip(ahead, last))
    even, odd = multiply(add(ahead, mirrored), 0.5), multiply(subtract(ahead, mirrored), -0.5j)
    return add(even, multiply(odd, conj(_roots(half + 1, length, spectrum.type))))


def half_spectra(spectrum: Value, length: int) -> Value:
    """c[…, n/2 + 1] -> f[…, n], the inverse of `real_lines` times n; parts that a real line cannot have are ignored."""
    last = spectrum.ndim - 1
    if length % 2:
        upper = conj(flip(cut(spectrum, last, 1, length // 2 + 1), last))
        return real(complex_lines(concatenate([spectrum, upper], last), last, False))
    half = length // 2
    spectrum = _with_real_ends(spectrum, half)
    lower, mirrored = cut(spectrum, last, 0, half), conj(flip(cut(spectrum, last, 1, half + 1), last))
    odd = multiply(subtract(lower, mirrored), _roots(half, length, spectrum.type))
    points = complex_lines(add(add(lower, mirrored), multiply(odd, 1j)), last, False)
    columns = [bind("reshape", part(points), type=_column_of(part(points))) for part in (real, imag)]
    pairs = concatenate(columns, last + 1)
    return bind("reshape", pairs, type=pairs.type.with_shape((*pairs.shape[:-2], length)))


def _column_of(x: Value) -> TensorType:
    return x.type.with_shape((*x.shape, 1))


def _zeros_like(x: Value) -> Value:
    return bind("constant", type=x.type, value=0.0)


def _columns(pairs: Value) -> list[Value]:
    """Both columns of f[…, n, 2]."""
    last = pairs.ndim - 1
    flat = pairs.type.with_shape(pairs.shape[:-1])
    return [bind("reshape", cut(pairs, last, side, side + 1), type=flat) for side in (0, 1)]


def _roots(count: int, length: int, like: TensorType) -> Value:
    """exp(2πi·k/length) for k below `count`."""
    line = iota(TensorType((count,), int32), 0)
    return bind("unit_root", line, type=TensorType((count,), like.dtype), length=length)


def _with_real_ends(spectrum: Value, half: int) -> Value:
    """The first and the last number of a real line's spectrum are real."""
    place = iota(TensorType((half + 1,), int32), 0)
    is_end = logical_or(equal(place, 0), equal(place, half))
    parts = real(spectrum), where(is_end, 0.0, imag(spectrum))
    return bind("complex", *parts)
