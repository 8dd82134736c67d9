"""Steps of Fourier transforms of real lines of odd length, on numbers whose parts lie side by side.

A line of n·m real points is transformed along n, whose frequencies beyond half are conjugates and left out, and then
as complex numbers along m. The last step gives half the spectrum. The inverse takes the same way back.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.ops.lowered.beside import BESIDE, check_beside, put_beside
from lavax.ir.ops.lowered.fourier import check_dtype, of_size
from lavax.ir.types import TensorType

# Which cosine transforms of odd lines a spectrum is made into; a negative one has its result in the opposite order.
ODD_TYPE_2, ODD_TYPE_2_REVERSED, ODD_TYPE_4 = 2, -2, 4
KINDS_OF_COSINES = (ODD_TYPE_2, ODD_TYPE_2_REVERSED, ODD_TYPE_4)


def _infer_from_reals(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    x, *tables = operands
    check_dtype("fourier_from_reals", x)
    if x.rank != 3 or x.shape[1] % 2 == 0:
        raise ShapeError(f"fourier_from_reals: {x} is no [lines,points,rest] of an odd number of points")
    lines, points, rest = x.shape
    _check_beside("fourier_from_reals", attrs, lines)
    if attrs["cosines"]:
        if rest != 1:
            raise ShapeError(f"fourier_from_reals: {x} has no whole lines for cosines")
        _check_tables("fourier_from_reals", x, tables, attrs["cosines"], points)
        return of_size("fourier_from_reals", declared, x, lines * points)
    columns = _columns("fourier_from_reals", declared, points, lines * rest)
    return of_size("fourier_from_reals", declared, x, 2 * lines * rest * columns)


def _infer_to_half(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    x, *tables = operands
    check_dtype("fourier_to_half", x)
    if x.rank != 5 or x.shape[-1] != 2 or not _holds(x.shape[3], attrs["columns"]):
        raise ShapeError(f"fourier_to_half: {x} is no [lines,points,rest,half of {attrs['columns']} columns,2]")
    lines, points, rest, _, _ = x.shape
    _check_beside("fourier_to_half", attrs, lines)
    length = points * rest * attrs["columns"]
    if attrs["cosines"]:
        _check_tables("fourier_to_half", x, tables, attrs["cosines"], length)
        return of_size("fourier_to_half", declared, x, lines * length)
    return of_size("fourier_to_half", declared, x, lines * (length + 1))


def _check_beside(name: str, attrs: Attributes, lines: int) -> None:
    check_beside(name, attrs, lines)
    if attrs["beside"] > 1 and attrs["cosines"]:
        raise ShapeError(f"{name}: half the spectra lie beside each other, not cosines")


def _check_tables(name: str, x: TensorType, tables: Sequence[TensorType], kind: int, length: int) -> None:
    table = x.with_shape((length // 2 + 1,))
    if kind not in KINDS_OF_COSINES:
        raise ShapeError(f"{name}: cosines are one of {KINDS_OF_COSINES}, not {kind}")
    if [*tables] != [table, table]:
        raise ShapeError(f"{name}: the tables of {x} are two {table}, not {[*map(str, tables)]}")


def _infer_from_half(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (x,) = operands
    check_dtype("fourier_from_half", x)
    if x.rank != 3 or x.shape[-1] != 2:
        raise ShapeError(f"fourier_from_half: {x} is no [lines,half,2]")
    lines, length, columns = x.shape[0], 2 * x.shape[1] - 1, attrs["columns"]
    if columns < 1 or attrs["rest"] < 1 or length % (columns * attrs["rest"]):
        raise ShapeError(f"fourier_from_half: {x} has no lines of {columns} columns and {attrs['rest']} places")
    held = _columns("fourier_from_half", declared, columns, lines * length // columns)
    return of_size("fourier_from_half", declared, x, 2 * lines * length // columns * held)


def _infer_to_reals(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (x,) = operands
    check_dtype("fourier_to_reals", x)
    if x.rank != 4 or x.shape[-1] != 2 or not _holds(x.shape[2], attrs["columns"]):
        raise ShapeError(f"fourier_to_reals: {x} is no [lines,rest,half of {attrs['columns']} columns,2]")
    if attrs["folded"] not in (-1, 0, 1):
        raise ShapeError(f"fourier_to_reals: folded is -1, 0 or 1, not {attrs['folded']}")
    lines, rest, _, _ = x.shape
    check_beside("fourier_to_reals", attrs, lines)
    return of_size("fourier_to_reals", declared, x, lines * rest * attrs["columns"])


def _holds(held: int, columns: int) -> bool:
    """Whether that is half of an odd number of columns, or some more."""
    return columns % 2 == 1 and columns // 2 < held <= columns


def _columns(name: str, declared: TensorType | None, columns: int, each: int) -> int:
    """How many of the columns the result has."""
    held = declared.size // (2 * each) if declared and each else columns // 2 + 1
    if not _holds(held, columns):
        raise ShapeError(f"{name}: the result has half of {columns} columns, not {declared}")
    return held


def _evaluate_from_reals(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    lines, points, rest = arrays[0].shape
    if attrs["cosines"]:
        return _evaluate_cosines(np.fft.rfft(arrays[0][..., 0]), arrays[1:], attrs["cosines"], type, dtype)
    held = type.size // (2 * lines * rest)
    places = np.outer(np.arange(held), np.arange(rest))
    found = np.fft.fft(arrays[0], axis=1)[:, :held] * np.exp(-2j * np.pi * places / (points * rest))
    return _by_parts(np.swapaxes(found, 1, 2), type, dtype)


def _evaluate_cosines(
    spectrum: np.ndarray, tables: Sequence[np.ndarray], kind: int, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    """The real numbers that tables make of half the spectra of lines."""
    length, (cosine, sine) = 2 * spectrum.shape[1] - 1, tables
    found = np.empty((len(spectrum), length))
    frequency = np.arange(length // 2 + 1)
    if kind == ODD_TYPE_4:
        place = (frequency + length * (1 - frequency % 2) - 1) // 2
        opposite, sign = length - 1 - place, 1 if length % 4 == 1 else -1
    else:
        place, opposite, sign = frequency, -frequency % length, 1
    found[:, opposite] = 2 * sign * (spectrum.real * sine - spectrum.imag * cosine)
    found[:, place] = 2 * (spectrum.real * cosine + spectrum.imag * sine)
    return np.asarray((found[:, ::-1] if kind < 0 else found).astype(dtype).reshape(type.shape))


def _evaluate_to_half(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    z = arrays[0][..., 0] + 1j * arrays[0][..., 1]
    lines, points, rest, _, _ = arrays[0].shape
    columns, other = attrs["columns"], points * rest
    z = np.fft.fft(z, axis=1).reshape(lines, other, -1)
    frequency = np.arange(other * columns // 2 + 1)
    row, column = np.divmod(frequency, columns)
    is_held = column <= columns // 2
    mirrored = z[:, np.where(is_held, row, other - 1 - row), np.where(is_held, column, columns - column)]
    found = np.where(is_held, mirrored, mirrored.conj())
    if attrs["cosines"]:
        return _evaluate_cosines(found, arrays[1:], attrs["cosines"], type, dtype)
    return _by_parts(found, type, dtype)


def _evaluate_from_half(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    s = arrays[0][..., 0] + 1j * arrays[0][..., 1]
    s[:, 0] = s[:, 0].real
    lines, rest, columns = len(s), attrs["rest"], attrs["columns"]
    points = (2 * s.shape[1] - 1) // (rest * columns)
    held = type.size // (2 * lines * rest * points)
    whole = np.concatenate([s, s[:, :0:-1].conj()], 1).reshape(lines, points, rest, columns)[..., :held]
    places = np.outer(np.arange(points), np.arange(rest))
    found = np.fft.ifft(whole, axis=1, norm="forward") * np.exp(2j * np.pi * places / (points * rest))[:, :, None]
    return _by_parts(np.swapaxes(found, 1, 2), type, dtype)


def _evaluate_to_reals(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    columns = attrs["columns"]
    z = (arrays[0][..., 0] + 1j * arrays[0][..., 1])[..., : columns // 2 + 1]
    rest = z.shape[1]
    z = z * np.exp(2j * np.pi * np.outer(np.arange(rest), np.arange(z.shape[2])) / (columns * rest))
    found = np.fft.irfft(z, columns, axis=2, norm="forward")
    lines = np.swapaxes(found, 1, 2).reshape(len(found), columns * rest)
    if attrs["folded"]:
        half = lines.shape[1] // 2
        back = attrs["folded"] * lines[:, :half:-1]
        pairs = np.stack([lines[:, :half], back], -1).reshape(len(lines), 2 * half)
        lines = np.concatenate([pairs, lines[:, half : half + 1]], 1)
    return np.asarray(lines.astype(dtype).reshape(type.shape))


def _by_parts(z: np.ndarray, type: TensorType, dtype: np.dtype) -> np.ndarray:
    return np.stack([z.real, z.imag], -1).astype(dtype).reshape(type.shape)


# f[b, n, m] -> [b, m, h, 2]: the first h frequencies of the transform along n, (n + 1)/2 or some more, turned as by
# `fourier_step`. With m = 1 and h = (n + 1)/2 that is half the spectrum of a line.
#
# With `cosines` and m = 1, as in the next operation, the spectrum a + bi of frequencies f up to half a line is made
# real with two tables c and s: [b, n, 1], [h], [h] -> [b, n]. Of type 2, 2(a·c + b·s) is at the place f, and
# 2(a·s − b·c) at n − f. −2: in the opposite order. Of type 4 (Chan and Ho 1990), the first is at the place k with
# 2k + 1 = f modulo n, and the other, negated if n is 3 modulo 4, at n − 1 − k.
#
# With `beside` half the spectra, or below the real lines, lie beside each other (beside.py).
_FROM_REALS = {"cosines": 0, **BESIDE}
define(
    Operation(
        "fourier_from_reals",
        "lowered",
        _infer_from_reals,
        put_beside(_evaluate_from_reals, 2),
        tuple(_FROM_REALS),
        typed=True,
        defaults=_FROM_REALS,
    )
)
# [b, n, m, h, 2] -> [b, (n·m·c + 1)/2, 2] for c `columns`, of which the first h are there: transforms along n. Column l
# of the frequency k at place p is the frequency l + c·(p + m·k) of the whole line, or if that lies beyond half the
# line, the conjugate of the opposite one.
_HALF = ("columns", *_FROM_REALS)
_HALF_BESIDE = put_beside(_evaluate_to_half, 2)
define(Operation("fourier_to_half", "lowered", _infer_to_half, _HALF_BESIDE, _HALF, True, defaults=_FROM_REALS))
# The inverse: [b, (n·m·c + 1)/2, 2] -> [b, m, n, h, 2] for m = `rest` and c `columns`: what `fourier_step` in reverse
# makes of the first h columns of the whole spectrum. The imaginary part of the first number is ignored.
_FROM_HALF = ("columns", "rest")
define(Operation("fourier_from_half", "lowered", _infer_from_half, _evaluate_from_half, _FROM_HALF, typed=True))
# [b, m, h, 2] -> f[b, n, m] for n `columns`, of which the first h are there: turned as there, and the sum over
# all n frequencies, of which k and n − k are conjugates. The imaginary part of the frequency 0 is ignored.
# With `folded` the line is x[0], x[2], …, x[3], x[1], and x is written, at odd places times that, 1 or −1.
_TO_REALS = {"folded": 0, **BESIDE}
define(
    Operation(
        "fourier_to_reals",
        "lowered",
        _infer_to_reals,
        put_beside(_evaluate_to_reals, 1),
        ("columns", *_TO_REALS),
        typed=True,
        defaults=_TO_REALS,
    )
)
