"""Every operation defined once more, element by element in plain Python, for the tests of the interpreter."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tests.ir.definitions.attention import ATTENTION
from tests.ir.definitions.contraction import conv, dot, shear, unshear
from tests.ir.definitions.definition import Definition
from tests.ir.definitions.elementwise import (
    ELEMENTWISE,
    bitcast,
    cast,
    elementwise,
    greatest,
    least,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    threefry,
)
from tests.ir.definitions.indexing import fold_runs, gather, join_places, join_rows, join_runs, scatter
from tests.ir.definitions.movement import broadcast, concatenate, flip, pad, reshape, slice_, transpose
from tests.ir.definitions.reductions import FOLDS, folded, position
from tests.ir.definitions.routines import (
    chunk_total,
    count_digits,
    cumulative,
    cumulative_chunk,
    fourier_from_half,
    fourier_from_reals,
    fourier_join,
    fourier_spectrum,
    fourier_step,
    fourier_to_half,
    fourier_to_reals,
    log_of_sum,
    merge_runs,
    move_by_digit,
    search_sorted,
    select_greatest,
    sort,
    sort_order,
    sort_runs,
    top_order,
    unsort,
)

LINE_FOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "cumulative_sum": FOLDS["add"],
    "cumulative_prod": FOLDS["multiply"],
    "cumulative_max": FOLDS["maximum"],
    "cumulative_min": FOLDS["minimum"],
    "cumulative_logsumexp": log_of_sum,
}
DEFINITIONS: dict[str, Definition] = {
    **{op: elementwise(function) for op, function in ELEMENTWISE.items()},
    "cast": cast,
    "shift_left": shift_left,
    "shift_right_logical": shift_right_logical,
    "shift_right_arithmetic": shift_right_arithmetic,
    "bitcast": bitcast,
    "population_count": lambda arrays, attrs, type, place: (int(arrays[0][place]) % 2**type.dtype.bits).bit_count(),
    "threefry": threefry,
    "sum": folded(lambda *x: sum(x)),
    "prod": folded(lambda *x: math.prod(x)),
    "max": folded(greatest),
    "min": folded(least),
    "argmax": position(lambda a, b: a > b),
    "argmin": position(lambda a, b: a < b),
    "reshape": reshape,
    "transpose": transpose,
    "broadcast": broadcast,
    "slice": slice_,
    "pad": pad,
    "concatenate": concatenate,
    "flip": flip,
    "gather": gather,
    "scatter_set": scatter(lambda held, update: update),
    **{f"scatter_{join}": scatter(function) for join, function in FOLDS.items()},
    **{op: cumulative(join) for op, join in LINE_FOLDS.items()},
    "chunk_totals": chunk_total(LINE_FOLDS),
    "cumulative_chunks": cumulative_chunk(LINE_FOLDS),
    "fourier_from_half": fourier_from_half,
    "fourier_from_reals": fourier_from_reals,
    "fourier_join": fourier_join,
    "fourier_spectrum": fourier_spectrum,
    "fourier_step": fourier_step,
    "fourier_to_half": fourier_to_half,
    "fourier_to_reals": fourier_to_reals,
    "sort": sort,
    "sort_order": sort_order,
    "sort_runs": sort_runs,
    "top_order": top_order,
    "select_greatest": select_greatest,
    "unsort": unsort,
    "merge_runs": merge_runs,
    "search_sorted": search_sorted,
    "count_digits": count_digits,
    "move_by_digit": move_by_digit,
    "fold_runs": fold_runs,
    "join_places": join_places,
    "join_rows": join_rows,
    "join_runs": join_runs,
    "dot": dot,
    "conv": conv,
    "shear": shear,
    "unshear": unshear,
    **ATTENTION,
    "constant": lambda arrays, attrs, type, place: attrs["value"],
    "iota": lambda arrays, attrs, type, place: place[attrs["axis"]],
}
