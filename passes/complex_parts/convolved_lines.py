"""Fourier transforms of lines of any length as convolutions with a chirp (Bluestein 1970), in steps of their own.

−2jk = (k − j)² − j² − k²: the frequencies are a convolution of the points with a chirp, between products with its
conjugate. Of n points and m frequencies it has n + m − 1 numbers, which are padded to a length that is convenient.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lavax.ir.graph import Node
from lavax.ir.types import TensorType
from lavax.passes.build.builder import build, concatenate, flip, pad, reshape, scale, slice_along
from lavax.passes.complex_parts.parts import interleaved
from lavax.passes.complex_parts.roots import chirp


def transformed(x: Node, length: int, reverse: bool, steps: Sequence[int]) -> Node:
    """[b, n, 2] -> [b, n, 2]."""
    return _convolved(x, interleaved(chirp(length, x.dtype, not reverse)), length, False, steps)


def half_spectrum(x: Node, steps: Sequence[int]) -> Node:
    """Of real lines [b, n] -> [b, n//2 + 1, 2]."""
    lines, length = x.shape
    table = interleaved(chirp(length, x.dtype, True))
    return _convolved(reshape(x, (lines, length, 1)), table, length // 2 + 1, False, steps)


def real_line(spectrum: Node, length: int, steps: Sequence[int]) -> Node:
    """[b, n//2 + 1, 2] -> [b, n] for an odd n: Σ c[k]·exp(2πi·jk/n) over half the spectrum has half the real part, but
    for what the frequency 0 gives. Parts that a real line cannot have are ignored."""
    return _convolved(spectrum, interleaved(chirp(length, spectrum.dtype, False)), length, True, steps)


def _convolved(x: Node, table: Node, wanted: int, is_real: bool, steps: Sequence[int]) -> Node:
    """The first frequencies of lines whose chirp is the table [count, 2], or their real parts, of those of which half
    the spectrum is given."""
    lines, length, _ = x.shape
    padded, (first, *others, last) = prod(steps), steps
    own = slice_along(table, 0, 0, length)
    if is_real:
        own = concatenate([slice_along(own, 0, 0, 1), scale(slice_along(own, 0, 1, length), 2.0)], 0)
    form = x.type.with_shape((lines, padded // first, first, 2))
    attrs = {"points": first, "rest": padded // first}
    x = build("fourier_padded", x, _in_rows(own, padded // first), type=form, **attrs)
    x = _steps(x, others, False)
    spectrum = _spectrum(table, length, wanted, padded)
    ahead = reshape(x, (lines, last, padded // last, 2))
    x = build("fourier_filtered", ahead, spectrum, type=x.type.with_shape((lines, padded // last, last, 2)))
    x = reshape(_steps(x, others[::-1], True), (lines, first, padded // first, 2))
    after = _in_rows(scale(slice_along(table, 0, 0, wanted), 1 / padded), padded // first)
    shape = (lines, wanted) if is_real else (lines, wanted, 2)
    type = TensorType(shape, x.dtype)
    return build("fourier_cut", x, after, type=type, length=wanted, real=is_real)


def _steps(x: Node, widths: Sequence[int], reverse: bool) -> Node:
    """[b, rest, behind, 2] after the steps of these widths, in the same form."""
    for width in widths:
        lines, rest, behind, _ = x.shape
        form = reshape(x, (lines, width, rest // width, behind, 2))
        type = x.type.with_shape((lines, rest // width, width * behind, 2))
        x = build("fourier_step", form, type=type, reverse=reverse)
    return x


def _in_rows(table: Node, rest: int) -> Node:
    """The table with zeros behind, up to a multiple of `rest`."""
    return pad(table, (0, 0), (-table.shape[0] % rest, 0), (0, 0), 0.0)


def _spectrum(table: Node, length: int, wanted: int, padded: int) -> Node:
    """The transform of the chirp's conjugate at the places 0, 1, … below `wanted`, and −1, −2, … above −`length`."""
    real, imaginary = (slice_along(table, 1, side, side + 1) for side in (0, 1))
    conjugate = concatenate([real, scale(imaginary, -1.0)], 1)
    between = padded - wanted - length + 1
    ahead = pad(slice_along(conjugate, 0, 0, wanted), (0, 0), (between, 0), (0, 0), 0.0)
    line = concatenate([ahead, flip(slice_along(conjugate, 0, 1, length), (0,))], 0)
    whole = reshape(line, (1, padded, 1, 1, 2))
    return build("fourier_step", whole, type=table.type.with_shape((padded, 2)), reverse=False)
