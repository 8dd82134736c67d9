"""Steps of Fourier transforms, on complex numbers whose parts lie side by side, and steps of those of real lines."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.ops.lowered.beside import BESIDE, check_beside, put_beside
from lavax.ir.types import TensorType, float32, float64

_DTYPES = (float32, float64)
# What of a spectrum is written alone: real parts, or negated imaginary ones of all but the ends, which have none; or
# that its conjugates are.
ONLY_REAL, ONLY_SINES, CONJUGATES = 1, 2, 3


def _infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (x,) = operands
    check_dtype("fourier_step", x)
    if x.rank != 5 or x.shape[-1] != 2:
        raise ShapeError(f"fourier_step: {x} is no [lines,points,rest,behind,2]")
    _, points, rest, behind, _ = x.shape
    reverse = attrs["reverse"]
    _check_fold("fourier_step", x, attrs, rest if reverse else behind, 0 if reverse else points * rest * behind)
    check_beside("fourier_step", attrs, x.shape[0])
    return of_size("fourier_step", declared, x, x.size)


def _evaluate(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    whole, is_folded = arrays[0], attrs["folded"] != 0
    if is_folded and not attrs["reverse"]:
        whole = folded_line(whole.reshape(len(whole), -1), attrs["folded"]).reshape(whole.shape)
    x = whole[..., 0] + 1j * whole[..., 1]
    _, points, rest, _ = x.shape
    transform, norm = (np.fft.ifft, "forward") if attrs["reverse"] else (np.fft.fft, "backward")
    places = np.outer(np.arange(points), np.arange(rest))
    roots = np.exp((2j if attrs["reverse"] else -2j) * np.pi * places / (points * rest))
    found = np.swapaxes(transform(x, axis=1, norm=norm) * roots[:, :, None], 1, 2)  # type: ignore[arg-type]
    parts = np.stack([found.real, found.imag], -1).astype(dtype)
    if is_folded and attrs["reverse"]:
        parts = unfolded_line(parts.reshape(len(parts), -1), attrs["folded"])
    return parts.reshape(type.shape)


def folded_line(lines: np.ndarray, sign: int) -> np.ndarray:
    """The numbers of lines [b, n, …] at even places, and those at odd ones from the last to the first."""
    return np.concatenate([lines[:, ::2], sign * lines[:, 1::2][:, ::-1]], 1)


def unfolded_line(lines: np.ndarray, sign: int) -> np.ndarray:
    """The other way."""
    found, half = np.empty_like(lines), (lines.shape[1] + 1) // 2
    found[:, ::2], found[:, 1::2] = lines[:, :half], sign * lines[:, half:][:, ::-1]
    return found


def _check_fold(name: str, x: TensorType, attrs: Attributes, apart: int, read: int = 0) -> None:
    """A line is folded if it is whole: `apart` is 1. One that is read so has an even number of complex numbers."""
    if attrs["folded"] not in (-1, 0, 1):
        raise ShapeError(f"{name}: folded is -1, 0 or 1, not {attrs['folded']}")
    if attrs["folded"] and (apart != 1 or read % 2):
        even = "" if read % 2 == 0 else " of an even number of points"
        raise ShapeError(f"{name}: {x} has no whole lines{even} to fold")


# [b, n, m, c, 2] -> [b, m, n, c, 2], in whatever shape is declared: transforms along n, times exp(∓2πi·km/(n·m))
# for frequency k at place m. A transform of n·m points is this step and then one along m, of the result as
# [b, m, 1, n·c, 2]. With `reverse` the sign of all exponents is +. With `folded` a first step (c = 1) reads a line of
# 2n·m real numbers x[0], x[2], …, x[3], x[1], and a last one in reverse (m = 1) has numbers in that order, which it
# writes to their places; those at odd places are multiplied by `folded`, 1 or −1.
# With `beside` the result are real lines, of an inverse, that lie beside each other (beside.py), as in the operations
# below.
_FOLD = {"folded": 0}
_FOLD_BESIDE = {**_FOLD, **BESIDE}
_STEP = ("reverse", *_FOLD_BESIDE)
_REALS_BESIDE = put_beside(_evaluate, 1)
define(Operation("fourier_step", "lowered", _infer, _REALS_BESIDE, _STEP, typed=True, defaults=_FOLD_BESIDE))


def _infer_spectrum(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (x,) = operands
    check_dtype("fourier_spectrum", x)
    if x.rank != 4 or x.shape[-1] != 2:
        raise ShapeError(f"fourier_spectrum: {x} is no [lines,points,behind,2]")
    lines, points, behind, _ = x.shape
    whole = points * behind + 1
    sizes = {0: 2 * whole, ONLY_REAL: whole, ONLY_SINES: whole - 2, CONJUGATES: 2 * whole}
    if attrs["only"] not in sizes:
        raise ShapeError(f"fourier_spectrum: only is one of {(*sizes,)}, not {attrs['only']}")
    check_beside("fourier_spectrum", attrs, lines)
    if attrs["beside"] > 1 and attrs["only"] in (ONLY_REAL, ONLY_SINES):
        raise ShapeError(f"fourier_spectrum: whole numbers lie beside each other, not what only={attrs['only']} leaves")
    return of_size("fourier_spectrum", declared, x, lines * sizes[attrs["only"]])


def _infer_cosines(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    x, cosines, sines = operands
    check_dtype("fourier_cosines", x)
    if x.rank != 4 or x.shape[-1] != 2:
        raise ShapeError(f"fourier_cosines: {x} is no [lines,points,behind,2]")
    lines, points, behind, _ = x.shape
    table = x.with_shape((points * behind + 1,))
    if (cosines, sines) != (table, table):
        raise ShapeError(f"fourier_cosines: the tables of {x} are two {table}, not {cosines} and {sines}")
    _check_fold("fourier_cosines", x, attrs, behind, points)
    check_beside("fourier_cosines", {"beside": attrs["beside"]}, lines)
    return of_size("fourier_cosines", declared, x, 2 * lines * points * behind)


def _infer_join(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (x,) = operands
    check_dtype("fourier_join", x)
    if x.rank != 3 or x.shape[-1] != 2 or x.shape[1] < 2:
        raise ShapeError(f"fourier_join: {x} is no [lines,half+1,2]")
    if attrs["rest"] < 1 or (x.shape[1] - 1) % attrs["rest"]:
        raise ShapeError(f"fourier_join: {x} has no lines of {attrs['rest']} places")
    _check_fold("fourier_join", x, attrs, attrs["rest"])
    check_beside("fourier_join", attrs, x.shape[0])
    return of_size("fourier_join", declared, x, 2 * x.shape[0] * (x.shape[1] - 1))


def _infer_from_cosines(
    operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None
) -> TensorType:
    (x,) = operands
    check_dtype("fourier_from_cosines", x)
    if x.rank != 2 or x.shape[1] < 2 or x.shape[1] % 2:
        raise ShapeError(f"fourier_from_cosines: {x} is no [lines,2·half]")
    if attrs["rest"] < 1 or x.shape[1] // 2 % attrs["rest"]:
        raise ShapeError(f"fourier_from_cosines: {x} has no lines of {attrs['rest']} places")
    _check_fold("fourier_from_cosines", x, attrs, attrs["rest"])
    return of_size("fourier_from_cosines", declared, x, x.size)


def check_dtype(name: str, x: TensorType) -> None:
    if x.dtype not in _DTYPES:
        raise DtypeError(f"{name} is not defined for {x} (f32 and f64 only)")


def of_size(name: str, declared: TensorType | None, x: TensorType, size: int) -> TensorType:
    if declared is None or declared.dtype != x.dtype or declared.size != size:
        raise ShapeError(f"{name}: the result has {size} {x.dtype}, not {declared}")
    return declared


def _evaluate_spectrum(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    z = arrays[0][..., 0] + 1j * arrays[0][..., 1]
    lines, points, behind = z.shape
    half = points * behind
    z = np.fft.fft(z, axis=1).reshape(lines, half)
    ahead = np.concatenate([z, z[:, :1]], 1)
    mirrored = ahead[:, ::-1].conj()
    found = (ahead + mirrored) / 2 - 0.5j * np.exp(-1j * np.pi * np.arange(half + 1) / half) * (ahead - mirrored)
    if attrs.get("only") == CONJUGATES:
        found = found.conj()
    elif attrs.get("only"):
        part = found.real if attrs["only"] == ONLY_REAL else -found.imag[:, 1:-1]
        return np.asarray(part.astype(dtype).reshape(type.shape))
    return np.stack([found.real, found.imag], -1).astype(dtype).reshape(type.shape)


def _evaluate_cosines(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    x = arrays[0]
    lines, points, behind, _ = x.shape
    half = points * behind
    form = TensorType((lines, half + 1, 2), type.dtype)
    if attrs["folded"]:
        x = folded_line(x.reshape(lines, -1), attrs["folded"]).reshape(x.shape)
    spectrum = _evaluate_spectrum([x], attrs, form, np.dtype(np.float64))
    real, imaginary = spectrum[..., 0], spectrum[..., 1]
    ahead = 2 * (real * arrays[1] + imaginary * arrays[2])
    back = 2 * (real * arrays[2] - imaginary * arrays[1])
    found = np.concatenate([ahead, back[:, 1:half][:, ::-1]], 1)
    found = found[:, ::-1] if attrs["reverse"] else found
    return np.asarray(found.astype(dtype).reshape(type.shape))


def _evaluate_join(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    s = arrays[0][..., 0] + 1j * arrays[0][..., 1]
    s[:, [0, -1]] = s[:, [0, -1]].real
    return _joined(s, attrs, type, dtype)


def _evaluate_from_cosines(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    x = with_first(arrays[0], attrs["first"])
    half = x.shape[1] // 2
    ahead = x[:, : half + 1]
    back = np.concatenate([np.zeros_like(ahead[:, :1]), x[:, half:][:, ::-1]], 1)
    return _joined((ahead - 1j * back) * np.exp(1j * np.pi * np.arange(half + 1) / (4 * half)), attrs, type, dtype)


def with_first(x: np.ndarray, factor: float) -> np.ndarray:
    """Lines [b, n, …] whose first number is multiplied by a factor."""
    return np.concatenate([x[:, :1] * factor, x[:, 1:]], 1)


def _joined(s: np.ndarray, attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    lines, half, rest = s.shape[0], s.shape[1] - 1, attrs["rest"]
    ahead, mirrored = s[:, :half], s[:, :0:-1].conj()
    z = ahead + mirrored + 1j * np.exp(1j * np.pi * np.arange(half) / half) * (ahead - mirrored)
    pairs = np.stack([z.real, z.imag], -1).reshape(lines, half // rest, rest, 1, 2)
    return _evaluate([pairs], {"reverse": True, "folded": attrs["folded"]}, type, dtype)


# The last step of the transform of real lines, of which neighbours are parts of a complex number: [b, n, c, 2] ->
# [b, n·c + 1, 2]. Transforms along n, whose results z[k] hold the spectra of even and odd places, taken apart:
# (z[k] + z̄[h−k])/2 − i/2·exp(−πi·k/h)·(z[k] − z̄[h−k]) for h = n·c, with k and h − k modulo h.
# With `only` there are the real parts [b, n·c + 1] (1), or the negated imaginary ones of k from 1 to h − 1 (2), or the
# conjugates (3).
_ONLY = {"only": 0, **BESIDE}
_NUMBERS_BESIDE = put_beside(_evaluate_spectrum, 2)
_SPECTRUM = tuple(_ONLY)
define(Operation("fourier_spectrum", "lowered", _infer_spectrum, _NUMBERS_BESIDE, _SPECTRUM, True, defaults=_ONLY))
# The same of a line of 2h real numbers, whose spectrum a + bi tables c and s of frequencies make real: [b, n, c, 2],
# [h + 1], [h + 1] -> [b, 2h]: 2(a[k]·c[k] + b[k]·s[k]) at the place k, and 2(a[k]·s[k] − b[k]·c[k]) at 2h − k for k
# from 1 to h − 1; with `reverse` all in the opposite order. With `folded` (c = 1) the line is read as by
# `fourier_step`.
_COSINES = put_beside(_evaluate_cosines, 1)
define(Operation("fourier_cosines", "lowered", _infer_cosines, _COSINES, _STEP, True, defaults=_FOLD_BESIDE))
# The first step of the inverse: [b, n·m + 1, 2] -> [b, m, n, 2] for m = `rest`, as `fourier_step` in reverse does
# of s[k] + s̄[h−k] + i·exp(πi·k/h)·(s[k] − s̄[h−k]) for h = n·m. The imaginary parts of s[0] and s[h] are ignored.
# With `folded` (m = 1) the line is written as by `fourier_step`.
_JOIN = ("rest", *_FOLD_BESIDE)
_JOIN_BESIDE = put_beside(_evaluate_join, 1)
define(Operation("fourier_join", "lowered", _infer_join, _JOIN_BESIDE, _JOIN, typed=True, defaults=_FOLD_BESIDE))
# The same of the spectrum that a cosine transform of type 3 of lines x [b, 2h] has: s[k] = (x[k] − i·x[2h−k])·
# exp(πi·k/4h) for k from 0 to h, with x[2h] = 0. The first number of x is multiplied by `first`.
define(
    Operation(
        "fourier_from_cosines",
        "lowered",
        _infer_from_cosines,
        _evaluate_from_cosines,
        ("rest", "folded", "first"),
        True,
        defaults={**_FOLD, "first": 1.0},
    )
)
