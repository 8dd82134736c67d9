"""Steps of Fourier transforms of real lines whose neighbours in memory are neighbouring lines, on numbers whose parts
lie side by side.

A line of n·m real points is transformed along n, whose frequencies beyond half are conjugates and left out, and then
as complex numbers along m. The last step gives half the spectrum. The inverse takes the same way back. `behind` lines
lie next to each other in each array.

Cosine transforms read and write whole lines in an order of their own (`folded`), of type 2 they leave real numbers that
two tables make of a spectrum, and those of type 3 make the spectrum of real numbers (`cosines`).
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.ops.lowered.fourier import check_dtype, folded_line, of_size, unfolded_line, with_first
from lavax.ir.types import TensorType

TURNED = 2  # lines whose numbers but the first are in the opposite order, whose spectra are the conjugates


def _infer_from_reals(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    x, *tables = operands
    check_dtype("fourier_across_from_reals", x)
    if x.rank != 4:
        raise ShapeError(f"fourier_across_from_reals: {x} is no [lines,points,rest,behind]")
    lines, points, rest, behind = x.shape
    _check_fold("fourier_across_from_reals", attrs)
    if attrs["cosines"]:
        if rest != 1:
            raise ShapeError(f"fourier_across_from_reals: {x} has no whole lines for cosines")
        _check_tables("fourier_across_from_reals", x, tables, attrs["cosines"], points)
        return of_size("fourier_across_from_reals", declared, x, x.size)
    return of_size("fourier_across_from_reals", declared, x, 2 * lines * rest * (points // 2 + 1) * behind)


def _infer_to_half(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    x, *tables = operands
    check_dtype("fourier_across_to_half", x)
    columns = attrs["columns"]
    if x.rank != 6 or x.shape[-1] != 2 or columns < 1 or x.shape[3] != columns // 2 + 1:
        raise ShapeError(
            f"fourier_across_to_half: {x} is no [lines,points,rest,half of {columns} columns,behind,2]"
        )
    lines, points, rest, _, behind, _ = x.shape
    length = points * rest * columns
    if attrs["cosines"]:
        _check_tables("fourier_across_to_half", x, tables, attrs["cosines"], length)
        return of_size("fourier_across_to_half", declared, x, lines * length * behind)
    return of_size("fourier_across_to_half", declared, x, 2 * lines * (length // 2 + 1) * behind)


def _check_fold(name: str, attrs: Attributes) -> None:
    if attrs["folded"] not in (-1, 0, 1, TURNED):
        raise ShapeError(f"{name}: folded is -1, 0, 1 or {TURNED}, not {attrs['folded']}")


def _check_tables(name: str, x: TensorType, tables: Sequence[TensorType], cosines: int, length: int) -> None:
    table = x.with_shape((length // 2 + 1,))
    if cosines not in (-1, 1):
        raise ShapeError(f"{name}: cosines is -1, 0 or 1, not {cosines}")
    if [*tables] != [table, table]:
        raise ShapeError(f"{name}: the tables of {x} are two {table}, not {[*map(str, tables)]}")


def _infer_from_half(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (x,) = operands
    check_dtype("fourier_across_from_half", x)
    length, columns, rest = attrs["length"], attrs["columns"], attrs["rest"]
    if attrs["cosines"]:
        if x.rank != 3 or x.shape[1] != length:
            raise ShapeError(f"fourier_across_from_half: {x} is no [lines,{length},behind]")
    elif x.rank != 4 or x.shape[-1] != 2 or x.shape[1] != length // 2 + 1:
        raise ShapeError(f"fourier_across_from_half: {x} is no [lines,half of {length},behind,2]")
    if columns < 1 or rest < 1 or length % (columns * rest):
        raise ShapeError(f"fourier_across_from_half: {x} has no lines of {columns} columns and {rest} places")
    lines, _, behind, *_ = x.shape
    size = 2 * lines * length // columns * (columns // 2 + 1) * behind
    return of_size("fourier_across_from_half", declared, x, size)


def _infer_to_reals(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (x,) = operands
    check_dtype("fourier_across_to_reals", x)
    columns = attrs["columns"]
    _check_fold("fourier_across_to_reals", attrs)
    if attrs["cosines"]:
        if x.rank != 3 or x.shape[1] != columns:
            raise ShapeError(f"fourier_across_to_reals: {x} is no [lines,{columns},behind]")
        return of_size("fourier_across_to_reals", declared, x, x.size)
    if x.rank != 5 or x.shape[-1] != 2 or columns < 1 or x.shape[2] != columns // 2 + 1:
        raise ShapeError(f"fourier_across_to_reals: {x} is no [lines,rest,half of {columns} columns,behind,2]")
    lines, rest, _, behind, _ = x.shape
    return of_size("fourier_across_to_reals", declared, x, lines * rest * columns * behind)


def _evaluate_from_reals(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    x, *tables = arrays
    lines, points, rest, behind = x.shape
    if attrs["folded"]:
        whole, fold = x.reshape(lines, points * rest, behind), attrs["folded"]
        x = (_turned(whole) if fold == TURNED else folded_line(whole, fold)).reshape(x.shape)
    if attrs["cosines"]:
        return _cosines_of(np.fft.rfft(x[:, :, 0], axis=1), tables, attrs["cosines"], points, type, dtype)
    places = np.outer(np.arange(points // 2 + 1), np.arange(rest))
    found = np.fft.rfft(x, axis=1) * np.exp(-2j * np.pi * places / (points * rest))[:, :, None]
    return _by_parts(np.swapaxes(found, 1, 2), type, dtype)


def _evaluate_to_half(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    z = arrays[0][..., 0] + 1j * arrays[0][..., 1]
    lines, points, rest, held, behind = z.shape
    columns, other = attrs["columns"], points * rest
    z = np.fft.fft(z, axis=1).reshape(lines, other, held, behind)
    row, column = np.divmod(np.arange(other * columns // 2 + 1), columns)
    is_held = column < held
    found = z[:, np.where(is_held, row, other - 1 - row), np.where(is_held, column, columns - column)]
    found = np.where(is_held[:, None], found, found.conj())
    ends = [0, -1] if other * columns % 2 == 0 else [0]
    found[:, ends] = found[:, ends].real
    if attrs["cosines"]:
        return _cosines_of(found, arrays[1:], attrs["cosines"], other * columns, type, dtype)
    return _by_parts(found, type, dtype)


def _cosines_of(
    spectrum: np.ndarray, tables: Sequence[np.ndarray], sign: int, length: int, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    """The real numbers that tables make of half the spectra of lines."""
    cosine, sine = (table[:, None] for table in tables)
    ahead = 2 * (spectrum.real * cosine + spectrum.imag * sine)
    back = 2 * (spectrum.real * sine - spectrum.imag * cosine)
    found = np.concatenate([ahead, back[:, 1 : (length + 1) // 2][:, ::-1]], 1)
    return np.asarray((found[:, ::-1] if sign < 0 else found).astype(dtype).reshape(type.shape))


def _spectra_of_cosines(x: np.ndarray, first: float) -> np.ndarray:
    """Half the spectra that lines [b, n, c] of a cosine transform of type 3 have, whose first number has a factor."""
    x, length = with_first(x, first), x.shape[1]
    half = length // 2 + 1
    back = np.concatenate([np.zeros_like(x[:, :1]), x[:, :0:-1]], 1)
    return np.asarray((x - 1j * back)[:, :half] * np.exp(0.5j * np.pi * np.arange(half) / length)[:, None])


def _evaluate_from_half(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    x, length, columns, rest = arrays[0], attrs["length"], attrs["columns"], attrs["rest"]
    s = _spectra_of_cosines(x, attrs["first"]) if attrs["cosines"] else x[..., 0] + 1j * x[..., 1]
    ends = [0, -1] if length % 2 == 0 else [0]
    s[:, ends] = s[:, ends].real
    lines, _, behind = s.shape
    points = length // (rest * columns)
    mirrored = s[:, 1 : (length + 1) // 2][:, ::-1].conj()
    whole = np.concatenate([s, mirrored], 1).reshape(lines, points, rest, columns, behind)[:, :, :, : columns // 2 + 1]
    places = np.outer(np.arange(points), np.arange(rest))
    roots = np.exp(2j * np.pi * places / (points * rest))[:, :, None, None]
    return _by_parts(np.swapaxes(np.fft.ifft(whole, axis=1, norm="forward") * roots, 1, 2), type, dtype)


def _evaluate_to_reals(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    x, columns = arrays[0], attrs["columns"]
    z = _spectra_of_cosines(x, attrs["first"])[:, None] if attrs["cosines"] else x[..., 0] + 1j * x[..., 1]
    rest = z.shape[1]
    places = np.outer(np.arange(rest), np.arange(z.shape[2]))
    z = z * np.exp(2j * np.pi * places / (columns * rest))[:, :, None]
    found = np.swapaxes(np.fft.irfft(z, columns, axis=2, norm="forward"), 1, 2)
    if attrs["folded"]:
        found, fold = found.reshape(len(found), columns * rest, found.shape[-1]), attrs["folded"]
        found = _turned(found) if fold == TURNED else unfolded_line(found, fold)
    return np.asarray(found.astype(dtype).reshape(type.shape))


def _turned(lines: np.ndarray) -> np.ndarray:
    return np.concatenate([lines[:, :1], lines[:, :0:-1]], 1)


def _by_parts(z: np.ndarray, type: TensorType, dtype: np.dtype) -> np.ndarray:
    return np.stack([z.real, z.imag], -1).astype(dtype).reshape(type.shape)


# f[b, n, m, c] -> [b, m, n/2 + 1, c, 2]: the frequencies up to half of the transform along n, turned as by
# `fourier_step`. With m = 1 that is half the spectrum. With `folded` lines of n·m numbers are read in the order x[0],
# x[2], …, x[3], x[1], those at odd places times `folded`, 1 or −1, or if it is 2, in the order x[0], x[n·m − 1], …,
# x[1]. With `cosines` (m = 1) two tables c and s [n/2 + 1]
# make real numbers f[b, n, c] of the spectrum a + bi: 2(a[k]·c[k] + b[k]·s[k]) at the place k, and 2(a[k]·s[k] −
# b[k]·c[k]) at n − k for k below n/2, without 0; all in the opposite order if `cosines` is −1.
_FROM_REALS = {"folded": 0, "cosines": 0}
define(
    Operation(
        "fourier_across_from_reals",
        "lowered",
        _infer_from_reals,
        _evaluate_from_reals,
        tuple(_FROM_REALS),
        True,
        defaults=_FROM_REALS,
    )
)
# [b, n, m, l/2 + 1, c, 2] -> [b, n·m·l/2 + 1, c, 2] for l `columns`: transforms along n. Column j of the frequency k at
# place p is the frequency j + l·(p + m·k) of the whole line, or if that lies beyond half the line, the conjugate of the
# opposite one. The imaginary parts of the frequency 0, and of the last one of an even length, are zeros. With `cosines`
# there are real numbers f[b, n·m·l, c], as above.
_COSINES = {"cosines": 0}
_TO_HALF = ("columns", "cosines")
define(
    Operation("fourier_across_to_half", "lowered", _infer_to_half, _evaluate_to_half, _TO_HALF, True, defaults=_COSINES)
)
# The inverse, for a line of `length` n·m·l: [b, length/2 + 1, c, 2] -> [b, m, n, l/2 + 1, c, 2] for m = `rest` and l
# `columns`: what `fourier_step` in reverse makes of the columns of the whole spectrum up to half. The imaginary parts
# of the first number, and for an even length of the last one, are ignored. With `cosines` 1 the operand is x
# f[b, length, c], whose spectrum is s[k] = (x[k] − i·x[length − k])·exp(πi·k/2·length), with x[length] = 0 and x[0]
# multiplied by `first`.
_FROM_COSINES = {"cosines": 0, "first": 1.0}
define(
    Operation(
        "fourier_across_from_half",
        "lowered",
        _infer_from_half,
        _evaluate_from_half,
        ("length", "columns", "rest", *_FROM_COSINES),
        True,
        defaults=_FROM_COSINES,
    )
)
# [b, m, n/2 + 1, c, 2] -> f[b, n, m, c] for n `columns`: turned as there, and the sum over all n frequencies, of which
# k and n − k are conjugates. The imaginary part of the frequency 0 is ignored, and for an even n that of n/2. With
# `folded` the numbers of whole lines are in the order of `fourier_across_from_reals`, and written to their places. With
# `cosines` 1 (m = 1) the operand is x f[b, n, c], as above.
_TO_REALS = {"folded": 0, **_FROM_COSINES}
define(
    Operation(
        "fourier_across_to_reals",
        "lowered",
        _infer_to_reals,
        _evaluate_to_reals,
        ("columns", *_TO_REALS),
        True,
        defaults=_TO_REALS,
    )
)
