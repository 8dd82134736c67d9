"""Cosine and sine transforms of one line, along the last axis, by Fourier transforms of real lines.

Transforms of types 2 and 3 are those of n real numbers in another order (Makhoul 1980), of type 4 and an odd length
those of n real ones in yet another order (Chan and Ho 1990); type 1 is the transform of a line that is continued to
twice its length. Of type 4 and an even length they are an operation, along any axis (`trigonometric_4`). Sines are
cosines of lines that are turned round, with alternating signs.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.ir.ops.fourier import LONGEST_LINE
from lavax.ir.types import TensorType, complex_of, int32
from lavax.tracer import bind

Transform = Callable[[Any], Any]  # of a value's last axis
_ROOT = math.sqrt(2)


def _turns(places: np.ndarray, length: int, x: Any, size: Any = 1.0) -> tuple[Any, Any]:
    """cos and sin of π·places/length, times `size`, in the dtype of `x`."""
    angles = np.pi * (places % (2 * length)) / length
    return lnp.asarray(size * np.cos(angles), dtype=x.dtype), lnp.asarray(size * np.sin(angles), dtype=x.dtype)


def _has_roots(n: int) -> bool:
    """Whether roots of order 4n are no table, but known to the steps of even lines; there is a highest order."""
    return n % 2 == 0 and 4 * n <= 2 * LONGEST_LINE


def _roots(n: int, x: Any) -> Any:
    """exp(πi·k/2n) for k up to half of n, as complex numbers of the dtype of `x`."""
    places = lnp.arange(n // 2 + 1, dtype=int32)
    type = TensorType((n // 2 + 1,), complex_of(x.type.dtype))
    return bind("unit_root", places, type=type, length=4 * n)


def _reversed(x: Any) -> Any:
    return lnp.flip(x, -1)


def _cosine_1(x: Any) -> Any:
    """x₀ + (−1)ᵏ·x₍ₙ₋₁₎ + 2·Σ x[j]·cos(πjk/(n − 1)): the spectrum of a line that is continued by its mirror image."""
    spectrum: Any = lnp.fft.rfft(lnp.concatenate([x, _reversed(x[..., 1:-1])], -1))
    return spectrum.real


def cosine_2(x: Any, scale: float = 1.0, first: float = 1.0) -> Any:
    """2·Σ x[j]·cos(πk(2j + 1)/2n), times `scale`, and for k = 0 times `first`."""
    return _of_halves(x[..., ::2], _reversed(x[..., 1::2]), scale, first)


def _of_halves(even: Any, odd: Any, scale: float, first: float) -> Any:
    """`cosine_2` of numbers at even places, and of those at odd ones from the last to the first. What multiplies the
    result is in its tables."""
    x = lnp.concatenate([even, odd], -1)
    n = x.shape[-1]
    half: Any = lnp.fft.rfft(x)
    places = np.arange(n // 2 + 1)
    cosine, sine = _turns(places, 2 * n, x, scale * np.where(places == 0, first, 1.0))
    ahead = 2 * (half.real * cosine + half.imag * sine)
    back = 2 * (half.real * sine - half.imag * cosine)  # of the frequencies n, n − 1, …
    return lnp.concatenate([ahead, _reversed(back[..., 1 : (n + 1) // 2])], -1)


def _cosine_3(x: Any) -> Any:
    """x₀ + 2·Σ x[j]·cos(πj(2k + 1)/2n): the inverse of type 2, times 2n."""
    even, odd = _to_halves(x)
    return _interleaved(even, odd)


def _to_halves(x: Any) -> tuple[Any, Any]:
    """What `_cosine_3` gives, at even and at odd places."""
    n = x.shape[-1]
    ahead = x[..., : n // 2 + 1]
    back = lnp.concatenate([lnp.zeros_like(x[..., :1]), _reversed(x[..., n - n // 2 :])], -1)
    if _has_roots(n):
        spectrum = bind("complex", ahead, -back) * _roots(n, x)
    else:
        cosine, sine = _turns(np.arange(n // 2 + 1), 2 * n, x)
        spectrum = bind("complex", ahead * cosine + back * sine, ahead * sine - back * cosine)
    line: Any = lnp.fft.irfft(spectrum, n, norm="forward")
    return line[..., : (n + 1) // 2], _reversed(line[..., (n + 1) // 2 :])


def _interleaved(even: Any, odd: Any) -> Any:
    """The numbers at even and at odd places, of which there are as many or one fewer, in turn."""
    *batch, count = odd.shape
    pairs = lnp.reshape(lnp.stack([even[..., :count], odd], -1), (*batch, 2 * count))
    return lnp.concatenate([pairs, even[..., count:]], -1) if even.shape[-1] > count else pairs


def _cosine_4(x: Any) -> Any:
    """2·Σ x[j]·cos(π(2j + 1)(2k + 1)/4n) for odd n; lines of even length are an operation."""
    return _of_odd_line(x, 1.0)


def _of_odd_line(x: Any, every_other: float) -> Any:
    """`_cosine_4` of an odd number n of points; the result's at odd places are multiplied by `every_other`.

    The line is continued to 4n points, by its negated mirror image and then by both negated. The spectrum of every
    fourth of these, from (n − 1)/2 on, has at the frequency f what two places are made of: k, with f = 2k + 1 modulo n,
    and n − 1 − k.
    """
    n = x.shape[-1]
    half = n // 2
    starts = [half, *((half - quarter * n) % 4 for quarter in range(1, 5))]
    ahead, back = x, _reversed(x)
    parts = [line[..., start::4] for line, start in zip((ahead, back, ahead, back), starts, strict=False)]
    parts = [parts[0], -parts[1], -parts[2], parts[3], x[..., starts[4] : half : 4]]
    spectrum: Any = lnp.fft.rfft(lnp.concatenate([part for part in parts if part.shape[-1]], -1))
    frequencies = np.arange(half + 1)
    places = (frequencies + n * (1 - frequencies % 2) - 1) // 2
    size = np.where(places % 2, every_other, 1.0) / _ROOT
    tables = (size * np.where(places + shift & 2, -1, 1) for shift in (1, 0))
    cosine, sine = (lnp.asarray(table, dtype=x.dtype) for table in tables)
    first = 2 * (spectrum.real * cosine + spectrum.imag * sine)
    last = (2 if n % 4 == 1 else -2) * (spectrum.real * sine - spectrum.imag * cosine)
    odd, even = _reversed(last[..., 1::2]), _reversed(last[..., 2::2])
    return lnp.concatenate([part for part in (first[..., 1::2], even, first[..., ::2], odd) if part.shape[-1]], -1)


def _sine_1(x: Any) -> Any:
    """2·Σ x[j]·sin(π(j + 1)(k + 1)/(n + 1)): the spectrum of a line that is continued by its negated mirror image."""
    zero = lnp.zeros_like(x[..., :1])
    spectrum: Any = lnp.fft.rfft(lnp.concatenate([zero, x, zero, -_reversed(x)], -1))
    return -spectrum.imag[..., 1 : x.shape[-1] + 1]


def sine_2(x: Any, scale: float = 1.0, last: float = 1.0) -> Any:
    """2·Σ x[j]·sin(π(k + 1)(2j + 1)/2n), times `scale`, and for k = n − 1 times `last`."""
    return _reversed(_of_halves(x[..., ::2], -_reversed(x[..., 1::2]), scale, last))


def _sine_3(x: Any) -> Any:
    """(−1)ᵏ·x₍ₙ₋₁₎ + 2·Σ x[j]·sin(π(j + 1)(2k + 1)/2n): the inverse of type 2, times 2n."""
    even, odd = _to_halves(_reversed(x))
    return _interleaved(even, -odd)


def _sine_4(x: Any) -> Any:
    """2·Σ x[j]·sin(π(2j + 1)(2k + 1)/4n) for odd n."""
    return _of_odd_line(_reversed(x), -1.0)


COSINES: dict[int, Transform] = {1: _cosine_1, 2: cosine_2, 3: _cosine_3, 4: _cosine_4}
SINES: dict[int, Transform] = {1: _sine_1, 2: sine_2, 3: _sine_3, 4: _sine_4}
# The type of the inverse.
INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
