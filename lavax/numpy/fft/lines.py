"""Transforms of complex and real numbers, without a factor."""
from __future__ import annotations

from lavax.tracer import bind
from lavax.tracer.values.value import Value


def complex_lines(z: Value, axis: int, forward: bool) -> Value:
    """Transforms along `axis`, where it is."""
    return bind("fft", z, axis=axis, reverse=not forward)


def real_lines(x: Value) -> Value:
    """f[…, n] -> c[…, n/2 + 1], the first half of the spectrum along the last axis."""
    return bind("rfft", x)


def half_spectra(spectrum: Value, length: int) -> Value:
    """c[…, n/2 + 1] -> f[…, n], the inverse of `real_lines` times n; parts that a real line cannot have are ignored."""
    return bind("irfft", spectrum, length=length)
