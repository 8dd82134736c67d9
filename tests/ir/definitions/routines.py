"""Cumulative operations, sorting and searching."""
from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from lavax.ir import TensorType
from tests.ir.definitions.definition import Definition, Place


def cumulative(join: Callable[[Any, Any], Any]) -> Definition:
    def element(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
        axis = attrs["axis"]
        before = range(type.shape[axis] - 1, place[axis] - 1, -1) if attrs["reverse"] else range(place[axis] + 1)
        return reduce(join, [arrays[0][(*place[:axis], k, *place[axis + 1 :])].item() for k in before])

    return element


def _chunk(array: np.ndarray, attrs: Mapping[str, Any], place: Place, number: int) -> list[Any]:
    """A chunk's elements of the line through `place`, in the order in which they are folded."""
    axis, chunk = attrs["axis"], attrs["chunk"]
    line = [array[(*place[:axis], k, *place[axis + 1 :])].item() for k in range(array.shape[axis])]
    return (line[::-1] if attrs["reverse"] else line)[number * chunk : (number + 1) * chunk]


def chunk_total(joins: Mapping[str, Callable[[Any, Any], Any]]) -> Definition:
    def element(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
        return reduce(joins[attrs["fold"]], _chunk(arrays[0], attrs, place, place[attrs["axis"]]))

    return element


def cumulative_chunk(joins: Mapping[str, Callable[[Any, Any], Any]]) -> Definition:
    def element(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
        axis = attrs["axis"]
        along = type.shape[axis] - 1 - place[axis] if attrs["reverse"] else place[axis]
        number, behind = divmod(along, attrs["chunk"])
        start = arrays[1][(*place[:axis], number, *place[axis + 1 :])].item()
        return reduce(joins[attrs["fold"]], _chunk(arrays[0], attrs, place, number)[: behind + 1], start)

    return element


def log_of_sum(x: float, y: float) -> float:
    if x == y:
        return x + math.log(2)
    return max(x, y) + math.log1p(math.exp(-abs(x - y))) if x == x and y == y else math.nan


def rank_key(value: Any) -> tuple[bool, Any]:
    """NaN is behind all numbers."""
    return (True, 0) if value != value else (False, value)


def order_of(row: Sequence[Any], among: Sequence[int]) -> list[int]:
    return sorted(among, key=lambda k: rank_key(row[k]))


def sort_order(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    axis = attrs["axis"]
    row = [arrays[0][(*place[:axis], k, *place[axis + 1 :])].item() for k in range(type.shape[axis])]
    return order_of(row, range(len(row)))[place[axis]]


def sort(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    axis = attrs["axis"]
    return arrays[0][(*place[:axis], sort_order(arrays, attrs, type, place), *place[axis + 1 :])].item()


def top_order(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    axis = attrs["axis"]
    extent = arrays[0].shape[axis]
    row = [arrays[0][(*place[:axis], k, *place[axis + 1 :])].item() for k in range(extent)]
    sign = [isinstance(x, float) and x == 0 and math.copysign(1, x) > 0 and attrs["signed_zeros"] for x in row]
    return sorted(range(extent), key=lambda k: (rank_key(row[k]), sign[k]), reverse=True)[place[axis]]


def select_greatest(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    row = arrays[0][place[:-1]].tolist()
    chosen = sorted(range(len(row)), key=lambda k: rank_key(row[k]), reverse=True)[: attrs["count"]]
    return (sorted(chosen) if attrs["by_place"] else chosen)[place[-1]]


def unsort(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    axis = attrs["axis"]
    line = [(*place[:axis], k, *place[axis + 1 :]) for k in range(type.shape[axis])]
    (source,) = (at for at in line if arrays[1][at] == place[axis])
    return arrays[0][source].item()


def sort_runs(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    row, run = arrays[0][place[:-1]].tolist(), attrs["run"]
    start = place[-1] // run * run
    return order_of(row, range(start, min(start + run, len(row))))[place[-1] - start]


def merge_runs(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    row, order, pair = arrays[0][place[:-1]].tolist(), arrays[1][place[:-1]].tolist(), 2 * attrs["run"]
    start = place[-1] // pair * pair
    return order_of(row, order[start : start + pair])[place[-1] - start]


def search_sorted(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    row, wanted = arrays[0][place[:-1]].tolist(), rank_key(arrays[1][place].item())
    return sum(rank_key(x) < wanted or (attrs["right"] and rank_key(x) == wanted) for x in row)


def digit_of(value: np.ndarray, attrs: Mapping[str, Any]) -> int:
    counted = int(value) + (attrs["tied"] and value == 2**31 - 1)
    return counted // 2 ** attrs["shift"] % 2 ** attrs["bits"]


def count_digits(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    *row, digit, tile = place
    start = tile * attrs["tile"]
    values = arrays[0][tuple(row)][start : start + attrs["tile"]]
    return sum(digit_of(value, attrs) == digit for value in values)


def move_by_digit(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """The starts of the cases are those that put the whole row in order."""
    *row, rank = place
    return sorted(arrays[0][tuple(row)].tolist(), key=lambda value: digit_of(value, attrs))[rank]


def _beside(words: int, *form: int) -> Callable[[Definition], Definition]:
    """Of a definition whose places are of lines that follow each other, in that form, one of lines that may lie beside
    each other, whose numbers have so many words."""

    def decorated(definition: Definition) -> Definition:
        def defined(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
            count = attrs.get("beside", 1)
            if count == 1:
                return definition(arrays, attrs, type, place)
            lines = len(arrays[0])
            shape = np.empty(type.size).reshape(lines, *form).shape
            beside = (lines // count, type.size // (lines * words), count, words)
            part, number, line, word = np.unravel_index(np.ravel_multi_index(place, type.shape), beside)
            at = ((part * count + line) * beside[1] + number) * words + word
            inner = tuple(int(n) for n in np.unravel_index(at, shape))
            return definition(arrays, {**attrs, "beside": 1}, TensorType(shape, type.dtype), inner)

        return defined

    return decorated


@_beside(2, -1, 2)
def fourier_spectrum(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """The transform of the real line whose points, in the order of the steps before, are pairs of numbers; of one part
    alone the real one, or the negated imaginary one without the ends; or their conjugates."""
    x = arrays[0]
    _, points, behind, _ = x.shape
    if attrs.get("only") == 3:
        return fourier_spectrum(arrays, {"only": 0}, type, place) * (-1 if place[-1] else 1)
    if attrs.get("only"):
        line, at = place
        is_real, both = attrs["only"] == 1, {"only": 0}
        number = fourier_spectrum(arrays, both, type, (line, at, 0) if is_real else (line, at + 1, 1))
        return number if is_real else -number
    line, k, side = place
    half = points * behind

    def pair(frequency: int) -> complex:
        own, back = divmod(frequency % half, behind)
        turns = (cmath.exp(-2j * math.pi * (own * point % points) / points) for point in range(points))
        return sum(complex(*x[line, point, back]) * turn for point, turn in enumerate(turns))

    z, mirrored = pair(k), pair(half - k).conjugate()
    total = (z + mirrored) / 2 - 0.5j * cmath.exp(-1j * math.pi * k / half) * (z - mirrored)
    return (total.real, total.imag)[side]


def _with_order(value: Callable[[int], Any], fold: int, length: int, place: int) -> Any:
    """The number at a place of a line whose numbers in the order of cosine transforms are given."""
    if not fold:
        return value(place)
    if fold == 2:
        return value((length - place) % length)
    return fold * value(length - 1 - place // 2) if place % 2 else value(place // 2)


def _in_order(x: np.ndarray, fold: int) -> np.ndarray:
    """Lines in the order of cosine transforms, or turned round."""
    if not fold:
        return x
    lines = x.reshape(len(x), -1)
    length = lines.shape[1]
    found = np.empty_like(lines)
    if fold == 2:
        return lines[:, [-at % length for at in range(length)]].reshape(x.shape)
    for place in range(length):
        at = place // 2 if place % 2 == 0 else length - 1 - place // 2
        found[:, at] = (fold if place % 2 else 1) * lines[:, place]
    return found.reshape(x.shape)


@_beside(1, -1)
def fourier_cosines(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """What tables make of the number of a frequency, or of the one that is mirrored in the middle of the line."""
    x, cosines, sines = arrays
    x = _in_order(x, attrs["folded"])
    line, at = place
    length = type.shape[-1]
    at = length - 1 - at if attrs["reverse"] else at
    frequency = min(at, length - at)
    real, imaginary = (fourier_spectrum([x], {}, type, (line, frequency, side)) for side in (0, 1))
    cosine, sine = cosines[frequency], sines[frequency]
    return 2 * (real * cosine + imaginary * sine if at == frequency else real * sine - imaginary * cosine)


@_beside(1, 1, -1, 2)
def fourier_join(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """A step in reverse, of the pairs that a half of a spectrum gives."""
    s = arrays[0]
    half, rest = s.shape[1] - 1, attrs["rest"]
    points = half // rest
    if attrs["folded"]:
        line, at = place
        form = TensorType((len(s), 1, half, 2), type.dtype)
        plain = {**attrs, "folded": 0}
        return _with_order(
            lambda at: fourier_join(arrays, plain, form, (line, 0, at // 2, at % 2)), attrs["folded"], 2 * half, at
        )
    line, other, frequency, side = place
    total = 0j
    for point in range(points):
        k = point * rest + other
        here, mirrored = (complex(s[line, at, 0], s[line, at, 1] * (0 < at < half)) for at in (k, half - k))
        even, odd = here + mirrored.conjugate(), here - mirrored.conjugate()
        z = even + 1j * cmath.exp(1j * math.pi * k / half) * odd
        total += z * cmath.exp(2j * math.pi * (frequency * point % points) / points)
    total *= cmath.exp(2j * math.pi * frequency * other / half)
    return (total.real, total.imag)[side]


def _with_first(x: np.ndarray, factor: float) -> np.ndarray:
    found = x.copy()
    found[:, 0] *= factor
    return found


def fourier_from_cosines(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """The first step of an inverse, of the spectrum that a cosine transform has: of x[k] and x[2h − k], turned."""
    x = _with_first(arrays[0], attrs["first"])
    lines, length = x.shape
    spectrum = np.empty((lines, length // 2 + 1, 2))
    for line, k in product(range(lines), range(length // 2 + 1)):
        number = complex(x[line, k], -x[line, length - k] if k else 0.0) * cmath.exp(0.5j * math.pi * k / length)
        spectrum[line, k] = number.real, number.imag
    return fourier_join([spectrum], attrs, type, place)


@_beside(1, -1)
def fourier_step(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """The sum of the points of a line, each turned by its place and frequency, and then by the twiddle factor."""
    x, fold = arrays[0], attrs["folded"]
    lines, points, rest, behind, _ = x.shape
    if fold and attrs["reverse"]:
        line, at = place
        form, plain = TensorType((lines, points, behind, 2), type.dtype), {"reverse": True, "folded": 0}

        def number(at: int) -> Any:
            return fourier_step(arrays, plain, form, (line, at // 2 // behind, at // 2 % behind, at % 2))

        return _with_order(number, fold, 2 * points * behind, at)
    x = _in_order(x, fold)
    at = np.ravel_multi_index(place, type.shape)
    line, other, frequency, back, side = (int(n) for n in np.unravel_index(at, (lines, rest, points, behind, 2)))
    turn = 2j * math.pi * (1 if attrs["reverse"] else -1)
    total = sum(
        complex(*x[line, point, other, back]) * cmath.exp(turn * (frequency * point % points) / points)
        for point in range(points)
    )
    total *= cmath.exp(turn * frequency * other / (points * rest))
    return (total.real, total.imag)[side]


def trigonometric_4(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """Twice the sum of a line's numbers times cosines or sines of odd parts of a turn."""
    axis = attrs["axis"]
    line = np.moveaxis(arrays[0], axis, -1)[(*place[:axis], *place[axis + 1 :])]
    return _of_type_4(line, attrs["sines"], place[axis])


def _of_type_4(line: np.ndarray, sines: bool, k: int) -> float:
    wave, turns = (math.sin if sines else math.cos), 8 * len(line)
    return 2 * sum(
        float(x) * wave(2 * math.pi * ((2 * j + 1) * (2 * int(k) + 1) % turns) / turns) for j, x in enumerate(line)
    )


def whole_spectrum(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """A number of half the spectrum, or the conjugate of that whose frequencies are the opposite ones."""
    (x,), axis, length = arrays, attrs["axis"], attrs["length"]
    *at, side = (int(n) for n in place)
    if at[axis] < x.shape[axis]:
        return x[(*at, side)]
    turned = [-k % x.shape[other] if other in attrs["opposite"] else k for other, k in enumerate(at)]
    turned[axis] = length - at[axis]
    return -x[(*turned, 1)] if side else x[(*turned, 0)]


@_beside(1, -1, 1)
def fourier_paired(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    line, k, back = place
    return _of_type_4(arrays[0][line, :, back], attrs["sines"], int(k))


def fourier_from_paired(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """A step of the numbers of which the parts are as far from both ends of a line, turned."""
    (x,), points = arrays, attrs["points"]
    lines, length, behind = x.shape
    pairs = np.empty((lines, points, length // 2 // points, behind, 2))
    for line, j, back in product(range(lines), range(length // 2), range(behind)):
        real, imaginary = float(x[line, 2 * j, back]), float(x[line, length - 1 - 2 * j, back])
        real, imaginary = (imaginary, real) if attrs["sines"] else (real, imaginary)
        number = complex(real, imaginary) * cmath.exp(-2j * math.pi * (4 * j + 1) / (8 * length))
        pairs[line, *divmod(j, length // 2 // points), back] = number.real, number.imag
    return fourier_step([pairs], {"reverse": False, "folded": 0}, type, place)


def fourier_to_paired(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """Of a step's number, turned, the real part is at an even place, and the other one as far from the end."""
    x, (line, at, back) = arrays[0], place
    lines, points, columns, behind, _ = x.shape
    length = 2 * points * columns
    k = int(at if at % 2 == 0 else length - 1 - at) // 2
    form = TensorType((lines, points, columns, behind, 2), type.dtype)
    step = {"reverse": False, "folded": 0}
    whole = x.reshape(lines, points, 1, columns * behind, 2)
    number = complex(
        *(fourier_step([whole], step, form, (line, k // columns, k % columns, back, side)) for side in (0, 1))
    )
    number *= 2 * cmath.exp(-1j * math.pi * k / length)
    return number.real if at % 2 == 0 else number.imag if attrs["sines"] else -number.imag


@_beside(2, -1, 2)
def fourier_from_reals(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """The sum of the real points of a line, each turned by its place and frequency, and then by the twiddle factor."""
    x = arrays[0]
    lines, points, rest = x.shape
    if attrs["cosines"]:
        form = TensorType((lines, 1, points // 2 + 1, 2), type.dtype)
        line, at = place

        def part(frequency: int, side: int) -> Any:
            return fourier_from_reals(arrays, {"cosines": 0}, form, (line, 0, frequency, side))

        return _odd_cosine(part, arrays[1:], attrs["cosines"], points, at)
    held = type.size // (2 * lines * rest)
    at = np.ravel_multi_index(place, type.shape)
    line, other, frequency, side = (int(n) for n in np.unravel_index(at, (lines, rest, held, 2)))
    turns = [_turned(-frequency * (point * rest + other), points * rest) for point in range(points)]
    return _part(sum(x[line, point, other] * turn for point, turn in enumerate(turns)), side)


def _odd_cosine(
    part: Callable[[int, int], Any], tables: Sequence[np.ndarray], kind: int, length: int, at: int
) -> Any:
    """What tables make of the number of a frequency, or of the opposite one: of type 4 that of 2·at + 1."""
    at = length - 1 - at if kind < 0 else at
    frequency = (2 * at + 1) % length if kind == 4 else at
    is_own = frequency <= length // 2
    frequency = frequency if is_own else length - frequency
    real, imaginary = (part(frequency, side) for side in (0, 1))
    cosine, sine = (table[frequency] for table in tables)
    if is_own:
        return 2 * (real * cosine + imaginary * sine)
    sign = -1 if kind == 4 and length % 4 == 3 else 1
    return 2 * sign * (real * sine - imaginary * cosine)


@_beside(2, -1, 2)
def fourier_to_half(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """The frequency column + columns·row of the line, or the conjugate of the opposite one."""
    x, columns = arrays[0], attrs["columns"]
    _, points, rest, _, _ = x.shape
    if attrs["cosines"]:
        line, at = place
        plain = {**attrs, "cosines": 0}

        def part(frequency: int, side: int) -> Any:
            return fourier_to_half(arrays, plain, type, (line, frequency, side))

        return _odd_cosine(part, arrays[1:], attrs["cosines"], points * rest * columns, at)
    line, frequency, side = place
    is_held = frequency % columns <= columns // 2
    row, column = divmod(frequency if is_held else points * rest * columns - frequency, columns)
    own, other = divmod(row, rest)
    found = sum(complex(*x[line, point, other, column]) * _turned(-own * point, points) for point in range(points))
    return _part(found if is_held else found.conjugate(), side)


def fourier_from_half(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """A step in reverse, of the columns of the whole spectrum that half of it gives."""
    s, columns, rest = arrays[0], attrs["columns"], attrs["rest"]
    length = 2 * s.shape[1] - 1
    points = length // (columns * rest)
    line, other, frequency, column, side = place

    def whole(k: int) -> complex:
        real, imaginary = s[line, min(k, length - k)]
        return complex(real, (imaginary if 2 * k < length else -imaginary) * (k > 0))

    numbers = [whole(column + columns * (other + rest * point)) for point in range(points)]
    found = sum(x * _turned(frequency * (point * rest + other), points * rest) for point, x in enumerate(numbers))
    return _part(found, side)


@_beside(1, -1)
def fourier_to_reals(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """The real part of the sum over all frequencies, those beyond half as conjugates."""
    z, points = arrays[0], attrs["columns"]
    lines, rest, _, _ = z.shape
    if attrs["folded"]:
        line, at = place
        form, plain = TensorType((lines, points * rest), type.dtype), {**attrs, "folded": 0}

        def number(at: int) -> Any:
            return fourier_to_reals(arrays, plain, form, (line, at))

        return _with_order(number, attrs["folded"], points * rest, at)
    at = np.ravel_multi_index(place, type.shape)
    line, point, other = (int(n) for n in np.unravel_index(at, (lines, points, rest)))
    turns = {k: _turned(k * (point * rest + other), points * rest) for k in range(1, points // 2 + 1)}
    return z[line, other, 0, 0] + 2 * sum((complex(*z[line, other, k]) * turn).real for k, turn in turns.items())


def fourier_across_from_reals(
    arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place
) -> Any:
    """As `fourier_from_reals`, of each of the lines behind."""
    x = arrays[0]
    lines, points, rest, behind = x.shape
    if attrs["folded"]:
        whole = np.swapaxes(x.reshape(lines, points * rest, behind), 1, 2).reshape(lines * behind, -1)
        x = np.swapaxes(_in_order(whole, attrs["folded"]).reshape(lines, behind, -1), 1, 2).reshape(x.shape)
    if attrs["cosines"]:
        line, row, back = place
        half = TensorType((lines, points // 2 + 1, behind, 2), type.dtype)
        plain = {"folded": 0, "cosines": 0}

        def part(frequency: int, side: int) -> Any:
            return fourier_across_from_reals([x], plain, half, (line, frequency, back, side))

        return _odd_cosine(part, arrays[1:], 2 * attrs["cosines"], points, row)
    at = np.ravel_multi_index(place, type.shape)
    form = (lines, rest, points // 2 + 1, behind, 2)
    line, other, frequency, back, side = (int(n) for n in np.unravel_index(at, form))
    turns = [_turned(-frequency * (point * rest + other), points * rest) for point in range(points)]
    return _part(sum(x[line, point, other, back] * turn for point, turn in enumerate(turns)), side)


def fourier_across_to_half(
    arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place
) -> Any:
    """The frequency column + columns·row of the line, or the conjugate of the opposite one; the ends are real."""
    x, columns = arrays[0], attrs["columns"]
    _, points, rest, held, _, _ = x.shape
    if attrs["cosines"]:
        line, row, back = place

        def part(frequency: int, side: int) -> Any:
            return fourier_across_to_half(arrays, {**attrs, "cosines": 0}, type, (line, frequency, back, side))

        return _odd_cosine(part, arrays[1:], 2 * attrs["cosines"], points * rest * columns, row)
    line, frequency, back, side = place
    if side == 1 and frequency in (0, points * rest * columns / 2):
        return 0.0
    is_held = frequency % columns < held
    row, column = divmod(frequency if is_held else points * rest * columns - frequency, columns)
    own, other = divmod(row, rest)
    numbers = (complex(*x[line, point, other, column, back]) for point in range(points))
    found = sum(number * _turned(-own * point, points) for point, number in enumerate(numbers))
    return _part(found if is_held else found.conjugate(), side)


def _spectrum_across(x: np.ndarray) -> np.ndarray:
    """Of lines of a cosine transform of type 3, x[k] and x[n − k], turned."""
    length = x.shape[1]
    k = np.arange(length // 2 + 1)[:, None]
    opposite = np.where(k > 0, x[:, -k[:, 0]], 0.0)
    numbers = (x[:, k[:, 0]] - 1j * opposite) * np.exp(0.5j * math.pi * k / length)
    return np.stack([numbers.real, numbers.imag], -1)


def fourier_across_from_half(
    arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place
) -> Any:
    """A step in reverse, of the columns of the whole spectrum that half of it gives."""
    s, length, columns, rest = arrays[0], attrs["length"], attrs["columns"], attrs["rest"]
    s = _spectrum_across(_with_first(s, attrs["first"])) if attrs["cosines"] else s
    points = length // (columns * rest)
    line, other, frequency, column, back, side = place

    def whole(k: int) -> complex:
        real, imaginary = s[line, min(k, length - k), back]
        return complex(real, (imaginary if 2 * k < length else -imaginary) * (k > 0 and 2 * k != length))

    numbers = [whole(column + columns * (other + rest * point)) for point in range(points)]
    found = sum(x * _turned(frequency * (point * rest + other), points * rest) for point, x in enumerate(numbers))
    return _part(found, side)


def fourier_across_to_reals(
    arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place
) -> Any:
    """The real part of the sum over all frequencies, those beyond half as conjugates."""
    z, points = arrays[0], attrs["columns"]
    z = _spectrum_across(_with_first(z, attrs["first"]))[:, None] if attrs["cosines"] else z
    lines, rest, _, behind, _ = z.shape
    at = np.ravel_multi_index(place, type.shape)
    line, point, other, back = (int(n) for n in np.unravel_index(at, (lines, points, rest, behind)))
    if attrs["folded"]:
        plain = {"columns": points, "folded": 0, "cosines": 0}
        form = TensorType((lines, points * rest, behind), type.dtype)

        def number(at: int) -> Any:
            return fourier_across_to_reals([z], plain, form, (line, at, back))

        return _with_order(number, attrs["folded"], points * rest, point * rest + other)
    found = z[line, other, 0, back, 0]
    for k in range(1, points // 2 + 1):
        twice = 1 if 2 * k == points else 2
        turned = complex(*z[line, other, k, back]) * _turned(k * other, points * rest)
        turned = turned.real if 2 * k == points else turned
        found += twice * (turned * _turned(k * point, points)).real
    return found


def fourier_padded(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """The sum of a column's points times the table, each turned, and then by the twiddle factor."""
    (x, table), points, rest = arrays, attrs["points"], attrs["rest"]
    line, column, frequency, side = place
    length, parts = x.shape[1:]

    def number(at: int) -> complex:
        return (complex(*x[line, at]) if parts == 2 else complex(x[line, at, 0])) * complex(*table[at])

    places = range(column, length, rest)
    total = sum(number(at) * _turned(-(at // rest) * frequency, points) for at in places)
    return _part(total * _turned(-column * frequency, points * rest), side)


def fourier_filtered(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """A column's transform times the table, transformed back, and then times the twiddle factor."""
    x, table = arrays
    line, column, point, side = place
    _, points, rest, _ = x.shape
    total = 0j
    for frequency in range(points):
        own = sum(complex(*x[line, at, column]) * _turned(-at * frequency, points) for at in range(points))
        total += own * complex(*table[frequency * rest + column]) * _turned(point * frequency, points)
    return _part(total * _turned(column * point, points * rest), side)


def fourier_cut(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """The sum of a column's points, each turned back, times the table."""
    x, table = arrays
    line, at, side = place if not attrs["real"] else (*place, 0)
    _, points, rest, _ = x.shape
    row, column = divmod(at, rest)
    total = sum(complex(*x[line, point, column]) * _turned(point * row, points) for point in range(points))
    return _part(total * complex(*table[at]), side)


def _turned(place: int, length: int) -> complex:
    """The root of unity at a place."""
    return cmath.exp(2j * math.pi * (place % length) / length)


def _part(number: complex, side: int) -> float:
    return (number.real, number.imag)[side]


def depthwise_conv(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """The products of a part of the elements of a window with what they lie over."""
    x, weights = arrays
    part, row, *window, channel = place
    terms = list(np.ndindex(*weights.shape[:-1]))[part * attrs["run"] : (part + 1) * attrs["run"]]
    total = 0
    for summed, *element in terms:
        numbers = zip(window, attrs["stride"], element, attrs["dilation"], strict=True)
        at = [o * stride + k * dilation for o, stride, k, dilation in numbers]
        total += x[(row, summed, *at, channel)].item() * weights[(summed, *element, channel)].item()
    return total
