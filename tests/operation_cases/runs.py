"""Updates in order of their places, joined run by run: what scatters are made of."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod

import numpy as np

from lavax.ir import TensorType
from lavax.ir.graph import make_node
from lavax.ir.ops.indexing import JOINS
from tests.operation_cases.case import SAMPLED_DTYPES, Case, Shape, case_of, evaluated, generator, input_like, sample


def _runs(op: str) -> Iterator[Case]:
    """Updates of `count` places that rise, the last of them outside the array."""
    for dtype in SAMPLED_DTYPES:
        for join in (*JOINS, "set"):
            if dtype.kind == "bool" and join in ("add", "multiply"):
                continue
            for shape, axes, count, chunk in _RUNS:
                random = generator(f"{op}{dtype}{join}{shape}{axes}{count}")
                window = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
                extent = prod(shape[axis] for axis in axes)
                updates = sample(random, TensorType((count, *window), dtype))
                order = random.permutation(count).astype(np.int32)
                places = np.sort(random.integers(0, extent + 1, count)).astype(np.int32)
                runs, attrs = [updates, order, places], dict(join=join, chunk=chunk)
                label = f"{TensorType(shape, dtype)}-{count}-{chunk}-{join}"
                if op == "fold_runs":
                    yield case_of(op, label, runs, attrs)
                    continue
                levels = _levels(runs, join, chunk)
                array = sample(random, TensorType(shape, dtype))
                yield case_of(op, label, [array, *runs, *levels], attrs | dict(axes=axes))


# Shape of the array, axes of the places, number of updates, of those in a chunk.
_RUNS: tuple[tuple[Shape, tuple[int, ...], int, int], ...] = (
    ((5,), (0,), 17, 64),
    ((3, 4), (0,), 7, 64),
    ((2, 4, 2), (1,), 70, 64),
    ((2, 2, 3), (1, 2), 130, 8),
)


def _levels(runs: Sequence[np.ndarray], join: str, chunk: int) -> list[np.ndarray]:
    """Runs folded by chunks, chunks of those, and so on."""
    levels: list[np.ndarray] = []
    updates, order, places = runs
    while len(places) > chunk:
        nodes = [input_like(f"x{n}", array) for n, array in enumerate((updates, order, places))]
        node = make_node("fold_runs", nodes, dict(join=join, chunk=chunk))
        levels.append(evaluated(node, updates, order, places).astype(updates.dtype))
        updates, places = levels[-1], places[::chunk]
        order = np.arange(len(places), dtype=np.int32)
    return levels


def _join_places() -> Iterator[Case]:
    """Updates at places of which some are outside the array."""
    for dtype in SAMPLED_DTYPES:
        if dtype.name not in ("f32", "i32", "u32"):
            continue
        for join in ("add",) if dtype.is_float else ("add", "maximum", "minimum"):
            for batch, length, count in (((), 5, 70), ((2,), 300, 64), ((), 1, 9), ((3, 2), 30, 2)):
                random = generator(f"join_places{dtype}{join}{length}{count}")
                places = random.integers(-1, length + 1, (*batch, count)).astype(np.int32)
                array, updates = (sample(random, TensorType((*batch, n), dtype)) for n in (length, count))
                label = f"{TensorType((*batch, length), dtype)}-{count}-{join}"
                yield case_of("join_places", label, [array, updates, places], dict(join=join))


# Arrays, their rows, updates, elements of a line and of an update.
_SHARED_ROWS = (
    (1, 5, 40, 3, 3), (1, 40, 9, 8, 8), (1, 3, 33, 36, 36), (1, 1, 2, 1, 1), (3, 20, 64, 4, 4), (5, 9, 70, 72, 72),
    (3, 130, 35, 16, 15), (2, 600, 44, 8, 7), (9, 40, 80, 24, 20), (3, 3, 5, 4, 2),
)  # fmt: skip


def _join_rows() -> Iterator[Case]:
    """Rows at places of which some are outside the array: lanes have one element, four or eight, and some arrays share
    the updates, of which some have none left. Lines of the last ones go on behind the rows."""
    for dtype in SAMPLED_DTYPES:
        if dtype.name not in ("f32", "i32", "u32"):
            continue
        for join in ("add", "multiply", "maximum", "minimum", "set"):
            for copies, length, count, line, width in _SHARED_ROWS:
                random = generator(f"join_rows{dtype}{join}{copies}{length}{count}")
                places = random.integers(-1, length + 1, count).astype(np.int32)
                shapes = ((copies, length, line), (count, width))
                array, updates = (sample(random, TensorType(shape, dtype)) for shape in shapes)
                label = f"{TensorType(shapes[0], dtype)}-{count}-{width}-{join}"
                yield case_of("join_rows", label, [array, updates, places], dict(join=join))


# Lists of each place, places, updates and their elements: lanes have one, several, or vectors of them.
_LISTED_ROWS = (
    (1, 5, 40, 3), (1, 40, 9, 8), (2, 3, 33, 36), (1, 1, 2, 1), (3, 20, 64, 4), (4, 9, 70, 72), (2, 13, 35, 15),
)  # fmt: skip


def _link_rows() -> Iterator[Case]:
    for lists, extent, count, _ in _LISTED_ROWS:
        places = generator(f"link_rows{extent}{count}").integers(-1, extent + 1, count).astype(np.int32)
        ends = np.full(lists * extent + count, -1, np.int32)
        yield case_of("link_rows", f"{lists}-{extent}-{count}", [ends, places], dict(lists=lists, extent=extent))


def _join_lists() -> Iterator[Case]:
    """Rows in lists, some of which are empty."""
    for dtype in SAMPLED_DTYPES:
        if dtype.name not in ("f32", "i32", "u32"):
            continue
        for join in JOINS:
            for lists, extent, count, width in _LISTED_ROWS:
                random = generator(f"join_lists{dtype}{join}{extent}{count}")
                array, updates = (sample(random, TensorType((n, width), dtype)) for n in (extent, count))
                places = random.integers(-1, extent + 1, count).astype(np.int32)
                ends = np.full(lists * extent + count, -1, np.int32)
                nodes = [input_like(f"x{n}", given) for n, given in enumerate((ends, places))]
                linked = make_node("link_rows", nodes, dict(lists=lists, extent=extent))
                links = evaluated(linked, ends, places).astype(np.int32)
                label = f"{TensorType((extent, width), dtype)}-{count}-{lists}-{join}"
                yield case_of("join_lists", label, [array, updates, links], dict(join=join, lists=lists))


MAKERS: dict[str, Callable[[], Iterator[Case]]] = {
    "fold_runs": partial(_runs, "fold_runs"),
    "join_lists": _join_lists,
    "join_places": _join_places,
    "join_rows": _join_rows,
    "join_runs": partial(_runs, "join_runs"),
    "link_rows": _link_rows,
}
