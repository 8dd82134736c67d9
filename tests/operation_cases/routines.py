"""Cumulative operations, sorting and searching, with the steps that sorting is made of."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from lavax.ir import TensorType
from lavax.ir.graph import make_node
from lavax.ir.ops.cumulative import CUMULATIVE
from lavax.ir.ops.lowered.fourier import CONJUGATES, ONLY_REAL, ONLY_SINES
from lavax.ir.ops.lowered.odd_lines import KINDS_OF_COSINES
from lavax.ir.types import float32, float64
from tests.operation_cases.case import (
    ANYWHERE,
    AWAY_FROM_ZERO,
    SAMPLED_DTYPES,
    Case,
    Shape,
    case_of,
    evaluated,
    generator,
    input_like,
    sample,
    special_values,
)


def _lines() -> Iterator[tuple[Shape, int]]:
    yield from (((1,), 0), ((3,), 0), ((41,), 0), ((3, 17), 0), ((3, 17), 1))
    yield from (((2, 3, 64), 2), ((0,), 0), ((2, 1, 3), 1))


def _cumulative(op: str) -> Iterator[Case]:
    for dtype in SAMPLED_DTYPES:
        if dtype.kind not in CUMULATIVE[op][0]:
            continue
        for shape, axis in _lines():
            random = generator(f"{op}{dtype}{shape}{axis}")
            domain = AWAY_FROM_ZERO if op == "cumulative_prod" else ANYWHERE
            values = sample(random, TensorType(shape, dtype), domain)
            if op == "cumulative_prod" and dtype.is_float:
                values = np.sign(values) * (1 + np.abs(values) / 100)
            for reverse in (False, True):
                attrs = dict(axis=axis, reverse=reverse)
                yield case_of(op, f"{TensorType(shape, dtype)}-{axis}-{reverse}", [values], attrs)
        attrs = dict(axis=0, reverse=False)
        yield case_of(op, f"special-{dtype}", [special_values(dtype)], attrs, special=True)


_LINES_AND_CHUNKS = (((41,), 0, 8), ((3, 17), 0, 2), ((3, 16), 1, 4), ((2, 3, 4), 2, 9), ((0,), 0, 4))


def _chunks(op: str) -> Iterator[Case]:
    for dtype in SAMPLED_DTYPES:
        for fold in [name for name, (kinds, _) in CUMULATIVE.items() if dtype.kind in kinds]:
            for shape, axis, chunk in _LINES_AND_CHUNKS:
                for reverse in (False, True):
                    attrs = dict(fold=fold, axis=axis, chunk=chunk, reverse=reverse)
                    random = generator(f"{op}{dtype}{shape}{axis}{fold}")
                    values = sample(random, TensorType(shape, dtype), AWAY_FROM_ZERO)
                    if fold == "cumulative_prod" and dtype.is_float:
                        values = np.sign(values) * (1 + np.abs(values) / 100)
                    parts = (*shape[:axis], -(-shape[axis] // chunk), *shape[axis + 1 :])
                    starts = [sample(random, TensorType(parts, dtype))] if op == "cumulative_chunks" else []
                    yield case_of(op, f"{fold}-{TensorType(shape, dtype)}-{axis}-{reverse}", [values, *starts], attrs)


def _sorting(op: str) -> Iterator[Case]:
    for dtype in SAMPLED_DTYPES:
        for shape, axis in _lines():
            values = sample(generator(f"{op}{dtype}{shape}{axis}"), TensorType(shape, dtype))
            label, special = f"{TensorType(shape, dtype)}-{axis}", op == "sort_order"
            yield case_of(op, label, [values], dict(axis=axis), special=special)
        special = np.concatenate([special_values(dtype)] * 7)
        yield case_of(op, f"special-{dtype}", [special], dict(axis=0), special=True)


def _top_order() -> Iterator[Case]:
    for dtype in SAMPLED_DTYPES:
        for shape, axis in _lines():
            values = sample(generator(f"top_order{dtype}{shape}{axis}"), TensorType(shape, dtype))
            for count in {shape[axis], shape[axis] // 3}:
                label = f"{TensorType(shape, dtype)}-{axis}-{count}"
                attrs = dict(axis=axis, count=count, signed_zeros=False)
                yield case_of("top_order", label, [values], attrs, special=True)
        special = np.concatenate([special_values(dtype)] * 7)
        for signed in (False, True):
            attrs = dict(axis=0, count=len(special) // 2, signed_zeros=signed)
            yield case_of("top_order", f"special-{dtype}-{signed}", [special], attrs, special=True)


def _select_greatest() -> Iterator[Case]:
    for dtype in SAMPLED_DTYPES:
        if dtype.bits > 32 or dtype.kind == "bool":
            continue
        for shape, count in (((1, 5), 5), ((3, 41), 8), ((2, 64), 16), ((2, 1), 1), ((0, 3), 2), ((2, 2, 300), 128)):
            values = sample(generator(f"select_greatest{dtype}{shape}{count}"), TensorType(shape, dtype))
            for by_place in (False, True):
                attrs = dict(count=count, by_place=by_place)
                yield case_of("select_greatest", f"{TensorType(shape, dtype)}-{count}-{by_place}", [values], attrs)
        special = np.concatenate([special_values(dtype)] * 7)
        attrs = dict(count=len(special) // 2, by_place=False)
        yield case_of("select_greatest", f"special-{dtype}", [special], attrs, special=True)


def _unsort() -> Iterator[Case]:
    for dtype in SAMPLED_DTYPES:
        for shape, axis in _lines():
            random = generator(f"unsort{dtype}{shape}{axis}")
            order = np.argsort(random.random(shape), axis=axis).astype(np.int32)
            arrays = [sample(random, TensorType(shape, dtype)), order]
            yield case_of("unsort", f"{TensorType(shape, dtype)}-{axis}", arrays, dict(axis=axis))


def _sort_runs() -> Iterator[Case]:
    for dtype in SAMPLED_DTYPES:
        for shape, run in (((1, 5), 5), ((3, 41), 8), ((2, 64), 16), ((2, 1), 4), ((0, 3), 2), ((2, 2, 17), 4)):
            values = sample(generator(f"sort_runs{dtype}{shape}{run}"), TensorType(shape, dtype))
            yield case_of("sort_runs", f"{TensorType(shape, dtype)}-{run}", [values], dict(run=run))


def _merge_runs() -> Iterator[Case]:
    for dtype in SAMPLED_DTYPES:
        for shape, run in (((3, 41), 32), ((2, 90), 32), ((2, 3), 32), ((2, 1), 32), ((0, 3), 32), ((2, 2, 65), 32)):
            keys = sample(generator(f"merge_runs{dtype}{shape}{run}"), TensorType(shape, dtype))
            order = evaluated(make_node("sort_runs", [input_like("x", keys)], dict(run=run)), keys)
            yield case_of("merge_runs", f"{TensorType(shape, dtype)}-{run}", [keys, order], dict(run=run))


_DIGITS = (((7,), 0, 4, 16), ((2, 70), 3, 6, 32), ((3, 41), 24, 8, 16), ((2, 1), 8, 8, 16), ((0, 5), 0, 4, 16))


def _digits(op: str) -> Iterator[tuple[str, np.ndarray, Mapping[str, int]]]:
    for shape, shift, bits, tile in _DIGITS:
        values = generator(f"{op}{shape}").integers(0, 2**64, shape, dtype=np.uint64)
        attrs = dict(bits=bits, tile=tile)
        yield f"{list(shape)}-{bits}-u64", values, attrs | dict(shift=shift + 32, tied=False)
        words = values.astype(np.uint32)
        yield f"{list(shape)}-{bits}", words, attrs | dict(shift=shift, tied=False)
        words = np.where(words % 3 == 0, 2**31 - 1, np.where(words % 3 == 1, 2**31, words)).astype(np.uint32)
        yield f"{list(shape)}-{bits}-tied", words, attrs | dict(shift=shift, tied=True)


def _count_digits() -> Iterator[Case]:
    for label, values, attrs in _digits("count_digits"):
        yield case_of("count_digits", label, [values], attrs)


def _move_by_digit() -> Iterator[Case]:
    for label, values, attrs in _digits("move_by_digit"):
        counts = evaluated(make_node("count_digits", [input_like("x", values)], attrs), values)
        flat = counts.reshape(*counts.shape[:-2], -1 if counts.size else 0)
        starts = (np.cumsum(flat, axis=-1) - flat).reshape(counts.shape).astype(np.int32)
        yield case_of("move_by_digit", label, [values, starts], attrs)






def _search_sorted() -> Iterator[Case]:
    for dtype in SAMPLED_DTYPES:
        for batch, length, count in (((), 5, 3), ((), 41, 64), ((3,), 17, 4), ((2, 3), 1, 5), ((), 0, 3), ((2,), 3, 0)):
            random = generator(f"search_sorted{dtype}{batch}{length}{count}")
            rows = np.sort(sample(random, TensorType((*batch, length), dtype)), axis=-1)
            values = sample(random, TensorType((*batch, count), dtype))
            for right in (False, True):
                label = f"{TensorType(rows.shape, dtype)}-{count}-{right}"
                yield case_of("search_sorted", label, [rows, values], dict(right=right))
        special = np.sort(special_values(dtype))
        yield case_of("search_sorted", f"special-{dtype}", [special, special], dict(right=False), special=True)


def _fourier_steps() -> Iterator[Case]:
    forms = ((1, 1, 1, 1), (3, 8, 1, 1), (2, 4, 3, 1), (2, 3, 4, 5), (1, 7, 2, 2), (5, 13, 1, 3), (2, 12, 5, 2))
    for (lines, points, rest, behind), dtype in product(forms, (float32, float64)):
        operand = TensorType((lines, points, rest, behind, 2), dtype)
        values = sample(generator(f"fourier{points}{rest}{behind}"), operand)
        for reverse in (False, True):
            for shape in ((lines, rest, points, behind, 2), (values.size // 2, 2)):
                label = f"{dtype}-{points}-{rest}-{behind}-{reverse}-{len(shape)}"
                yield case_of("fourier_step", label, [values], dict(reverse=reverse), TensorType(shape, dtype))
    yield from _folded_steps()


# Points, and columns of a first or of a last step: of a line alone, of even and odd numbers, and by lanes.
_FOLDED = ((1, 2), (8, 1), (4, 6), (5, 4), (33, 4), (48, 2), (2, 3), (3, 50))


def _folded_steps() -> Iterator[Case]:
    for (points, columns), dtype, fold in product(_FOLDED, (float32, float64), (1, -1)):
        for reverse in (False, True):
            form = (2, points, 1, columns, 2) if reverse else (2, points, columns, 1, 2)
            values = sample(generator(f"folded{points}{columns}"), TensorType(form, dtype))
            result = (2, 2 * points * columns) if reverse else (2, columns, points, 2)
            attrs = dict(reverse=reverse, folded=fold)
            label = f"folded-{dtype}-{points}-{columns}-{reverse}-{fold}"
            yield case_of("fourier_step", label, [values], attrs, TensorType(result, dtype))


_REAL_LINES = ((1, 1, 1), (3, 8, 1), (2, 5, 1), (2, 4, 3), (1, 3, 4), (2, 2, 2))
# Also those whose lanes write fours, which begin at every word of four, and by line and point at another one.
_COSINE_LINES = (*_REAL_LINES, (3, 9, 12), (3, 5, 13), (2, 6, 14), (1, 3, 15))


def _spectra() -> Iterator[Case]:
    for (lines, points, behind), dtype in product(_REAL_LINES, (float32, float64)):
        operand = TensorType((lines, points, behind, 2), dtype)
        values = sample(generator(f"spectrum{points}{behind}"), operand)
        result = TensorType((lines, points * behind + 1, 2), dtype)
        yield case_of("fourier_spectrum", f"{dtype}-{points}-{behind}", [values], {}, result)
    for (lines, points, behind), dtype in product((*_REAL_LINES, (2, 64, 1), (2, 50, 1)), (float32, float64)):
        half = points * behind
        values = sample(generator(f"part{points}{behind}"), TensorType((lines, points, behind, 2), dtype))
        for only, places in ((ONLY_REAL, half + 1), (ONLY_SINES, half - 1)):
            result, label = TensorType((lines, places), dtype), f"{dtype}-{points}-{behind}-only-{only}"
            yield case_of("fourier_spectrum", label, [values], dict(only=only), result)
        result, label = TensorType((lines, half + 1, 2), dtype), f"{dtype}-{points}-{behind}-conjugates"
        yield case_of("fourier_spectrum", label, [values], dict(only=CONJUGATES), result)


def _cosines() -> Iterator[Case]:
    for (lines, points, behind), dtype, reverse in product(_COSINE_LINES, (float32, float64), (False, True)):
        random, half = generator(f"cosines{points}{behind}"), points * behind
        values = sample(random, TensorType((lines, points, behind, 2), dtype))
        tables = [sample(random, TensorType((half + 1,), dtype)) for _ in range(2)]
        label, result = f"{dtype}-{points}-{behind}-{reverse}", TensorType((lines, 2 * half), dtype)
        yield case_of("fourier_cosines", label, [values, *tables], dict(reverse=reverse), result)
        if behind == 1 and points % 2 == 0:
            attrs = dict(reverse=reverse, folded=1 - 2 * reverse)
            yield case_of("fourier_cosines", f"folded-{label}", [values, *tables], attrs, result)


def _joins() -> Iterator[Case]:
    for (lines, points, rest), dtype in product(_REAL_LINES, (float32, float64)):
        values = sample(generator(f"join{points}{rest}"), TensorType((lines, points * rest + 1, 2), dtype))
        result = TensorType((lines, rest, points, 2), dtype)
        yield case_of("fourier_join", f"{dtype}-{points}-{rest}", [values], dict(rest=rest), result)
    for points, dtype, fold in product((2, 8, 10, 96, 1000), (float32, float64), (1, -1)):
        values = sample(generator(f"join{points}"), TensorType((2, points + 1, 2), dtype))
        result = TensorType((2, 2 * points), dtype)
        yield case_of("fourier_join", f"folded-{dtype}-{points}-{fold}", [values], dict(rest=1, folded=fold), result)


def _from_cosines() -> Iterator[Case]:
    for (lines, points, rest), dtype in product(_REAL_LINES, (float32, float64)):
        values = sample(generator(f"cosines{points}{rest}"), TensorType((lines, 2 * points * rest), dtype))
        result = TensorType((lines, rest, points, 2), dtype)
        yield case_of("fourier_from_cosines", f"{dtype}-{points}-{rest}", [values], dict(rest=rest), result)
        label, attrs = f"first-{dtype}-{points}-{rest}", dict(rest=rest, first=1.5)
        yield case_of("fourier_from_cosines", label, [values], attrs, result)
    for points, dtype, fold in product((2, 8, 10, 96), (float32, float64), (1, -1)):
        values = sample(generator(f"cosines{points}"), TensorType((2, 2 * points), dtype))
        attrs, result = dict(rest=1, folded=fold), TensorType((2, 2 * points), dtype)
        yield case_of("fourier_from_cosines", f"folded-{dtype}-{points}-{fold}", [values], attrs, result)


# Lines, points and columns of a step, and neighbours: both columns of a line, and one, two and four lines.
_PAIRED = (
    (2, 3, 4, 1), (2, 6, 2, 1), (1, 5, 1, 1), (2, 4, 3, 1), (2, 5, 3, 3), (1, 4, 3, 2), (2, 6, 1, 4), (1, 20, 2, 8),
)  # fmt: skip


def _trigonometric_4() -> Iterator[Case]:
    """Even lengths along any axis."""
    shapes = (((3, 2), 1), ((2, 12), 1), ((10, 3), 0), ((2, 32, 2), 1), ((2, 22), 1), ((20, 3), 0))
    for (shape, axis), dtype, sines in product(shapes, (float32, float64), (False, True)):
        values = sample(generator(f"trigonometric{shape}"), TensorType(shape, dtype))
        yield case_of("trigonometric_4", f"{dtype}-{shape}-{axis}-{sines}", [values], dict(axis=axis, sines=sines))


def _paired(op: str) -> Iterator[Case]:
    for (lines, points, columns, behind), dtype, sines in product(_PAIRED, (float32, float64), (False, True)):
        half = points * columns
        whole, pairs = (lines, 2 * half, behind), (lines, points, columns, behind, 2)
        operand, result, attrs = {
            "fourier_paired": (whole, whole, {}),
            "fourier_from_paired": (whole, (lines, columns, points, behind, 2), {"points": points}),
            "fourier_to_paired": (pairs, whole, {}),
        }[op]
        values = sample(generator(f"paired{half}{behind}"), TensorType(operand, dtype))
        type = TensorType(result, dtype)
        label = f"{dtype}-{points}-{columns}-{behind}-{sines}"
        yield case_of(op, label, [values], {**attrs, "sines": sines}, type)


# Shapes of half a spectrum, the axis of which it is, the length of the whole one, and axes of opposite frequencies.
_HALVES: tuple[tuple[Shape, int, int, tuple[int, ...]], ...] = (
    ((4, 5), 1, 8, (0,)), ((5, 4), 1, 6, (0,)), ((3, 4), 1, 7, (0,)), ((4, 3, 2), 1, 4, (0,)), ((3, 2, 3), 1, 3, (0,)),
    ((3, 5, 4), 0, 4, (1, 2)), ((2, 3, 5), 2, 9, (1,)), ((3, 4, 5), 2, 8, (0, 1)), ((3, 4, 2), 0, 5, (1,)),
    ((4,), 0, 6, ()),
)  # fmt: skip


def _whole_spectrum() -> Iterator[Case]:
    for (shape, axis, length, opposite), dtype in product(_HALVES, (float32, float64)):
        values = sample(generator(f"whole{shape}{axis}"), TensorType((*shape, 2), dtype))
        result = (*shape[:axis], length, *shape[axis + 1 :], 2)
        attrs = dict(axis=axis, length=length, opposite=opposite)
        label = f"{dtype}-{shape}-{axis}-{length}"
        yield case_of("whole_spectrum", label, [values], attrs, TensorType(result, dtype))


# Lines, points of a real line, and the columns that are held of their frequencies.
_ODD_LINES = ((1, 1, 1), (3, 7, 4), (2, 9, 5), (2, 15, 8), (5, 5, 4))


def _from_reals() -> Iterator[Case]:
    for (lines, points, held), rest, dtype in product(_ODD_LINES, (1, 3), (float32, float64)):
        values = sample(generator(f"reals{points}{rest}"), TensorType((lines, points, rest), dtype))
        result = TensorType((lines, rest, held, 2), dtype)
        yield case_of("fourier_from_reals", f"{dtype}-{points}-{rest}", [values], {}, result)
    for (lines, points, _), dtype, kind in product(_ODD_LINES, (float32, float64), KINDS_OF_COSINES):
        random, result = generator(f"cosines{points}"), TensorType((lines, points), dtype)
        values = sample(random, TensorType((lines, points, 1), dtype))
        tables = [sample(random, TensorType((points // 2 + 1,), dtype)) / 8 for _ in range(2)]
        label = f"{dtype}-{points}-cosines{kind}"
        yield case_of("fourier_from_reals", label, [values, *tables], dict(cosines=kind), result)


def _to_reals() -> Iterator[Case]:
    for (lines, points, held), rest, dtype in product(_ODD_LINES, (1, 3), (float32, float64)):
        values = sample(generator(f"to{points}{rest}"), TensorType((lines, rest, held, 2), dtype))
        result = TensorType((lines, points, rest), dtype)
        label = f"{dtype}-{points}-{rest}"
        yield case_of("fourier_to_reals", label, [values], dict(columns=points), result)
        for fold in (1, -1):
            attrs, line = dict(columns=points, folded=fold), TensorType((lines, points * rest), dtype)
            yield case_of("fourier_to_reals", f"{label}-{fold}", [values], attrs, line)


# Points of the step and between them.
_OF_HALF = ((3, 1), (5, 3), (35, 1))


def _to_half() -> Iterator[Case]:
    for (lines, columns, held), (points, rest), dtype in product(_ODD_LINES[1:], _OF_HALF, (float32, float64)):
        values = sample(generator(f"half{points}{rest}{columns}"), TensorType((lines, points, rest, held, 2), dtype))
        result = TensorType((lines, points * rest * columns // 2 + 1, 2), dtype)
        label = f"{dtype}-{points}-{rest}-{columns}"
        yield case_of("fourier_to_half", label, [values], dict(columns=columns), result)
        length = points * rest * columns
        line, random = TensorType((lines, length), dtype), generator(f"tables{length}")
        tables = [sample(random, TensorType((length // 2 + 1,), dtype)) / 8 for _ in range(2)]
        for kind in KINDS_OF_COSINES:
            attrs = dict(columns=columns, cosines=kind)
            yield case_of("fourier_to_half", f"{label}-cosines{kind}", [values, *tables], attrs, line)


# Lines, points of the step and columns.
_CONVOLVED = ((1, 2, 4), (3, 6, 10), (2, 32, 2))


def _padded() -> Iterator[Case]:
    for (lines, points, rest), dtype, parts in product(_CONVOLVED, (float32, float64), (1, 2)):
        for length in (1, rest, 2 * rest - 1, points * rest - 2):
            random = generator(f"padded{points}{rest}{length}")
            values = sample(random, TensorType((lines, length, parts), dtype))
            table = sample(random, TensorType((-(-length // rest) * rest, 2), dtype))
            table[length:] = 0
            result, attrs = TensorType((lines, rest, points, 2), dtype), dict(points=points, rest=rest)
            label = f"{dtype}-{points}-{rest}-{length}-{parts}"
            yield case_of("fourier_padded", label, [values, table], attrs, result)


def _filtered() -> Iterator[Case]:
    for (lines, points, rest), dtype in product(_CONVOLVED, (float32, float64)):
        random = generator(f"filtered{points}{rest}")
        values = sample(random, TensorType((lines, points, rest, 2), dtype))
        table = sample(random, TensorType((points * rest, 2), dtype)) / points
        result = TensorType((lines, rest, points, 2), dtype)
        yield case_of("fourier_filtered", f"{dtype}-{points}-{rest}", [values, table], {}, result)


def _cut() -> Iterator[Case]:
    for (lines, points, rest), dtype, real in product(_CONVOLVED, (float32, float64), (False, True)):
        for length in (1, rest, 2 * rest - 1, points * rest):
            random = generator(f"cut{points}{rest}{length}")
            values = sample(random, TensorType((lines, points, rest, 2), dtype))
            table = sample(random, TensorType((-(-length // rest) * rest, 2), dtype))
            result = TensorType((lines, length) if real else (lines, length, 2), dtype)
            label = f"{dtype}-{points}-{rest}-{length}-{real}"
            yield case_of("fourier_cut", label, [values, table], dict(length=length, real=real), result)


def _from_half() -> Iterator[Case]:
    for (lines, columns, held), (points, rest), dtype in product(_ODD_LINES[1:], _OF_HALF, (float32, float64)):
        operand = TensorType((lines, points * rest * columns // 2 + 1, 2), dtype)
        values = sample(generator(f"whole{points}{rest}{columns}"), operand)
        result = TensorType((lines, rest, points, held, 2), dtype)
        label = f"{dtype}-{points}-{rest}-{columns}"
        yield case_of("fourier_from_half", label, [values], dict(columns=columns, rest=rest), result)


# Lines, points of a line of real numbers, and neighbours.
_ACROSS = ((1, 1, 2), (3, 2, 4), (2, 7, 6), (2, 12, 1), (1, 16, 4), (2, 20, 2))


def _across_from_reals() -> Iterator[Case]:
    for (lines, points, behind), rest, dtype in product(_ACROSS, (1, 3), (float32, float64)):
        values = sample(generator(f"across{points}{rest}"), TensorType((lines, points, rest, behind), dtype))
        result = TensorType((lines, rest, points // 2 + 1, behind, 2), dtype)
        yield case_of("fourier_across_from_reals", f"{dtype}-{points}-{rest}", [values], {}, result)
        for fold in (1, -1, 2):
            label = f"folded-{dtype}-{points}-{rest}-{fold}"
            yield case_of("fourier_across_from_reals", label, [values], dict(folded=fold), result)
    for (lines, points, behind), dtype, sign in product(_ACROSS, (float32, float64), (1, -1)):
        random, result = generator(f"cosines across{points}"), TensorType((lines, points, behind), dtype)
        values = sample(random, TensorType((lines, points, 1, behind), dtype))
        tables = [sample(random, TensorType((points // 2 + 1,), dtype)) / 8 for _ in range(2)]
        for fold in (0, sign):
            attrs, label = dict(folded=fold, cosines=sign), f"cosines-{dtype}-{points}-{sign}-{fold}"
            yield case_of("fourier_across_from_reals", label, [values, *tables], attrs, result)


def _across_to_reals() -> Iterator[Case]:
    for (lines, points, behind), rest, dtype in product(_ACROSS, (1, 3), (float32, float64)):
        operand = TensorType((lines, rest, points // 2 + 1, behind, 2), dtype)
        values = sample(generator(f"across to{points}{rest}"), operand)
        result = TensorType((lines, points, rest, behind), dtype)
        yield case_of("fourier_across_to_reals", f"{dtype}-{points}-{rest}", [values], dict(columns=points), result)
        for fold in (1, -1, 2):
            attrs, label = dict(columns=points, folded=fold), f"folded-{dtype}-{points}-{rest}-{fold}"
            yield case_of("fourier_across_to_reals", label, [values], attrs, result)
    for (lines, points, behind), dtype, fold in product(_ACROSS, (float32, float64), (0, 1, -1)):
        result = TensorType((lines, points, behind), dtype)
        values = sample(generator(f"cosines to{points}"), result)
        attrs, label = dict(columns=points, folded=fold, cosines=1, first=1.5), f"cosines-{dtype}-{points}-{fold}"
        yield case_of("fourier_across_to_reals", label, [values], attrs, result)


# Points of the step and between them.
_OF_HALF_ACROSS = ((2, 1), (3, 1), (4, 3), (35, 1))


def _across_to_half() -> Iterator[Case]:
    for (lines, columns, behind), (points, rest), dtype in product(_ACROSS[1:], _OF_HALF_ACROSS, (float32, float64)):
        operand = TensorType((lines, points, rest, columns // 2 + 1, behind, 2), dtype)
        values = sample(generator(f"across half{points}{rest}{columns}"), operand)
        result = TensorType((lines, points * rest * columns // 2 + 1, behind, 2), dtype)
        label = f"{dtype}-{points}-{rest}-{columns}"
        yield case_of("fourier_across_to_half", label, [values], dict(columns=columns), result)
        length, random = points * rest * columns, generator(f"tables across{points}{rest}{columns}")
        tables = [sample(random, TensorType((length // 2 + 1,), dtype)) / 8 for _ in range(2)]
        for sign in (1, -1):
            attrs, form = dict(columns=columns, cosines=sign), TensorType((lines, length, behind), dtype)
            yield case_of("fourier_across_to_half", f"{label}-cosines{sign}", [values, *tables], attrs, form)


def _across_from_half() -> Iterator[Case]:
    for (lines, columns, behind), (points, rest), dtype in product(_ACROSS[1:], _OF_HALF_ACROSS, (float32, float64)):
        length = points * rest * columns
        operand = TensorType((lines, length // 2 + 1, behind, 2), dtype)
        values = sample(generator(f"across whole{points}{rest}{columns}"), operand)
        result = TensorType((lines, rest, points, columns // 2 + 1, behind, 2), dtype)
        label = f"{dtype}-{points}-{rest}-{columns}"
        attrs = dict(length=length, columns=columns, rest=rest)
        yield case_of("fourier_across_from_half", label, [values], attrs, result)
        values = sample(generator(f"cosines whole{length}"), TensorType((lines, length, behind), dtype))
        yield case_of("fourier_across_from_half", f"{label}-cosines", [values], {**attrs, "cosines": 1}, result)
        attrs |= {"cosines": 1, "first": 1.5}
        yield case_of("fourier_across_from_half", f"{label}-first", [values], attrs, result)


# Shapes of x and of the weights, stride, dilation, terms of a part.
_DEPTHWISE: tuple[tuple[Shape, Shape, tuple[int, ...], tuple[int, ...], int], ...] = (
    ((2, 1, 6, 7, 4), (1, 3, 3, 4), (1, 1), (1, 1), 9),
    ((1, 2, 9, 8, 5), (2, 3, 2, 5), (2, 1), (1, 3), 4),
    ((3, 2, 12, 8), (2, 8, 8), (1,), (1,), 4),
    ((1, 1, 4, 5, 6, 3), (1, 2, 1, 3, 3), (1, 2, 3), (3, 1, 1), 7),
)


def _depthwise() -> Iterator[Case]:
    for (x, weights, stride, dilation, run), dtype in product(_DEPTHWISE, (float32, float64)):
        values = [sample(generator(f"depthwise{shape}"), TensorType(shape, dtype)) for shape in (x, weights)]
        attrs = dict(stride=stride, dilation=dilation, run=run)
        yield case_of("depthwise_conv", f"{TensorType(x, dtype)}-{weights}-{run}", values, attrs)


# Of six lines, three beside each other: the shapes of the operand and of the result, and other attributes. Cosines have
# two tables beside.
_BESIDE: dict[str, tuple[Shape, Shape, dict[str, Any]]] = {
    "fourier_cosines": ((6, 8, 1, 2), (2, 16, 3), {"reverse": True, "folded": -1}),
    "fourier_from_reals": ((6, 7, 1), (2, 4, 3, 2), {}),
    "fourier_join": ((6, 9, 2), (2, 16, 3), {"rest": 1}),
    "fourier_paired": ((6, 8, 1), (2, 8, 3), {"sines": True}),
    "fourier_spectrum": ((6, 8, 3, 2), (2, 25, 3, 2), {"only": CONJUGATES}),
    "fourier_step": ((6, 8, 1, 5, 2), (2, 80, 3), {"reverse": True}),
    "fourier_to_half": ((6, 3, 1, 4, 2), (2, 11, 3, 2), {"columns": 7}),
    "fourier_to_reals": ((6, 3, 4, 2), (2, 21, 3), {"columns": 7}),
}


def _also_beside(op: str, others: Callable[[], Iterator[Case]]) -> Iterator[Case]:
    yield from others()
    (operand, result, attrs) = _BESIDE[op]
    for dtype in (float32, float64):
        random, table = generator(f"beside{op}"), TensorType((prod(operand[1:3]) + 1,), dtype)
        values = sample(random, TensorType(operand, dtype))
        tables = [sample(random, table) for _ in range(2 if op == "fourier_cosines" else 0)]
        yield case_of(op, f"{dtype}-beside", [values, *tables], {**attrs, "beside": 3}, TensorType(result, dtype))


MAKERS: dict[str, Callable[[], Iterator[Case]]] = {
    **{op: partial(_cumulative, op) for op in CUMULATIVE},
    **{op: partial(_chunks, op) for op in ("chunk_totals", "cumulative_chunks")},
    **{op: partial(_sorting, op) for op in ("sort", "sort_order")},
    "top_order": _top_order,
    "select_greatest": _select_greatest,
    "sort_runs": _sort_runs,
    "unsort": _unsort,
    "depthwise_conv": _depthwise,
    "fourier_across_from_half": _across_from_half,
    "fourier_across_from_reals": _across_from_reals,
    "fourier_across_to_half": _across_to_half,
    "fourier_across_to_reals": _across_to_reals,
    "fourier_cosines": partial(_also_beside, "fourier_cosines", _cosines),
    "fourier_from_cosines": _from_cosines,
    "fourier_from_half": _from_half,
    "fourier_from_reals": partial(_also_beside, "fourier_from_reals", _from_reals),
    "fourier_cut": _cut,
    "fourier_filtered": _filtered,
    "fourier_join": partial(_also_beside, "fourier_join", _joins),
    **{op: partial(_paired, op) for op in ("fourier_from_paired", "fourier_to_paired")},
    "fourier_paired": partial(_also_beside, "fourier_paired", partial(_paired, "fourier_paired")),
    "fourier_padded": _padded,
    "fourier_spectrum": partial(_also_beside, "fourier_spectrum", _spectra),
    "fourier_step": partial(_also_beside, "fourier_step", _fourier_steps),
    "fourier_to_half": partial(_also_beside, "fourier_to_half", _to_half),
    "fourier_to_reals": partial(_also_beside, "fourier_to_reals", _to_reals),
    "merge_runs": _merge_runs,
    "trigonometric_4": _trigonometric_4,
    "whole_spectrum": _whole_spectrum,
    "search_sorted": _search_sorted,
    "count_digits": _count_digits,
    "move_by_digit": _move_by_digit,
}
