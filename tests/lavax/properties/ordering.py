"""Sorting, searching, sets, taking and putting, indexing."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from tests.lavax.properties.cases import (
    DTYPES,
    F32,
    I32,
    NAN,
    NUMBERS,
    Arguments,
    Case,
    Draw,
    along,
    axis_of,
    named,
    numbers,
    one,
    shapes,
)

TIES = (np.nan, 0.0, 1.0)
falling = st.booleans()


def sorted_as_here(x: np.ndarray, axis: int | None, descending: bool) -> np.ndarray:
    """NumPy's sort; falling is the reverse of rising."""
    found = np.sort(x, axis)
    return np.flip(found, -1 if axis is None else axis) if descending else found


def order_as_here(x: np.ndarray, axis: int | None, descending: bool) -> np.ndarray:
    """NumPy's stable argsort; falling order, too, leaves equal elements in theirs."""
    x, along = (x.ravel(), -1) if axis is None else (x, axis)
    if not descending:
        return np.argsort(x, along, kind="stable")
    return x.shape[along] - 1 - np.flip(np.argsort(np.flip(x, along), along, kind="stable"), along)


def _top(x: np.ndarray, k: int, axis: int) -> list[np.ndarray]:
    order = np.take(order_as_here(x, axis, True), range(k), axis)
    return [np.take_along_axis(x, order, axis), order]


@st.composite
def ranked(draw: Draw, name: str) -> Arguments:
    shape = draw(shapes(1, 4, 1))
    axis = axis_of(draw, len(shape))
    assert axis is not None
    places = st.integers(0, shape[axis] - (name == "kth"))
    return Arguments((numbers(draw, shape, NUMBERS, special=NAN),), {name: draw(places), "axis": axis})


@st.composite
def keys(draw: Draw) -> Arguments:
    shape = draw(shapes(1, 3))
    arrays = tuple(numbers(draw, shape, NUMBERS, 0, 2) for _ in range(draw(st.integers(1, 3))))
    return Arguments(arrays, {"axis": axis_of(draw, len(shape))})


@st.composite
def searched(draw: Draw, name: str, values: tuple[Any, ...]) -> Arguments:
    row = np.sort(numbers(draw, (draw(st.integers(1, 6)),), NUMBERS))
    return Arguments((row, numbers(draw, draw(shapes(0, 3)), NUMBERS, -4, 4)), {name: draw(st.sampled_from(values))})


@st.composite
def positions_in(draw: Draw, low: int = 1, outside: bool = False) -> Arguments:
    shape = draw(shapes(low, 4, 1))
    axis = axis_of(draw, len(shape), none=True)
    extent = int(np.prod(shape)) if axis is None else shape[axis]
    mode = draw(st.sampled_from(["clip", "wrap"])) if outside else None
    beyond = 2 * extent if outside else 0
    places = numbers(draw, draw(shapes(0, 2)), (I32,), -extent - beyond, extent - 1 + beyond)
    return Arguments((numbers(draw, shape), places), {"axis": axis, **({"mode": mode} if mode else {})})


@st.composite
def positions_along(draw: Draw, put: bool = False) -> Arguments:
    shape = draw(shapes(1, 4, 1))
    axis = axis_of(draw, len(shape))
    assert axis is not None
    extent, taken = shape[axis], list(shape)
    taken[axis] = draw(st.integers(1, 4))
    if put:  # a place is named at most once, for NumPy does not say which value stands
        taken[axis] = min(taken[axis], extent)
        orders = np.argsort(numbers(draw, shape, (F32,)), axis).astype(I32)
        places = np.take(orders, range(taken[axis]), axis)
        values = numbers(draw, taken, NUMBERS, 0)
        return Arguments((numbers(draw, shape, NUMBERS), places, values), {"axis": axis, "inplace": False})
    return Arguments((numbers(draw, shape), numbers(draw, taken, (I32,), -extent, extent - 1)), {"axis": axis})


def _put(x: np.ndarray, indices: np.ndarray, values: np.ndarray, axis: int, inplace: bool) -> np.ndarray:
    assert not inplace, "traced values cannot be written to"
    result = np.array(x)
    np.put_along_axis(result, indices, values.astype(x.dtype), axis)
    return result


@st.composite
def masked(draw: Draw, flat: bool = False) -> Arguments:
    shape = draw(shapes(1, 4))
    axis = axis_of(draw, len(shape))
    assert axis is not None
    mask = numbers(draw, shape if flat else (shape[axis],), (I32,), 0, 1) > 0
    return Arguments((mask, numbers(draw, shape)), {} if flat else {"axis": axis})


@st.composite
def flat_pair(draw: Draw, invert: bool = False) -> Arguments:
    arrays = tuple(numbers(draw, draw(shapes(0, 2)), NUMBERS, 0, 3) for _ in range(2))
    return Arguments(arrays, {"invert": draw(st.booleans())} if invert else {})


@st.composite
def distinct(draw: Draw) -> Arguments:
    shape = draw(shapes(1, 3, 1))
    asked = {f"return_{name}": draw(st.booleans()) for name in ("index", "inverse", "counts")}
    return Arguments(
        (numbers(draw, shape, NUMBERS, 0, 2, special=TIES),), {"axis": axis_of(draw, len(shape), none=True), **asked}
    )


def _unique(x: np.ndarray, axis: int | None, **asked: bool) -> Any:
    """NumPy's with a number in the place of NaN: equal rows that hold NaN stay apart in it (numpy/numpy#20873)."""
    if x.dtype.kind != "f" or axis is None:
        return np.unique(x, axis=axis, **asked)
    found = np.unique(np.where(np.isnan(x), np.inf, x), axis=axis, **asked)
    values, *rest = found if isinstance(found, tuple) else (found,)
    return [np.where(np.isinf(values), np.nan, values).astype(x.dtype), *rest]


@st.composite
def indexed(draw: Draw) -> Arguments:
    """Basic indexing: slices of any step, ints, None, Ellipsis."""
    shape = draw(shapes(0, 5))
    key = draw(arrays_of.basic_indices(shape, allow_newaxis=True))
    return Arguments((numbers(draw, shape),), {"key": key})


@st.composite
def gathered(draw: Draw) -> Arguments:
    """Two integer arrays that broadcast, among slices."""
    shape = draw(shapes(2, 4, 1))
    first, second = sorted(draw(st.permutations(range(len(shape))))[:2])
    found = draw(arrays_of.mutually_broadcastable_shapes(num_shapes=2, max_dims=2, min_side=0, max_side=3))
    left, right = (
        numbers(draw, places, (I32,), -shape[axis], shape[axis] - 1)
        for places, axis in zip(found.input_shapes, (first, second), strict=True)
    )
    whole = [slice(None, None, draw(st.sampled_from([1, 2, -1]))) for _ in shape]
    return Arguments((numbers(draw, shape), left, right), {"whole": whole, "axes": (first, second)})


def _gather(x: Any, left: Any, right: Any, whole: list[slice], axes: tuple[int, int]) -> Any:
    key: list[Any] = list(whole)
    key[axes[0]], key[axes[1]] = left, right
    return x[tuple(key)]


def _read(namespace: Any) -> Callable[..., Any]:
    return lambda x, **options: _gather(namespace.asarray(x), **options)


UPDATES: dict[str, Callable[[np.ndarray, Any, Any], None]] = {
    "set": lambda x, key, y: x.__setitem__(key, y),
    "add": lambda x, key, y: x.__setitem__(key, x[key] + y),
    "multiply": lambda x, key, y: x.__setitem__(key, x[key] * y),
    "min": lambda x, key, y: x.__setitem__(key, np.minimum(x[key], y)),
    "max": lambda x, key, y: x.__setitem__(key, np.maximum(x[key], y)),
}


@st.composite
def updated(draw: Draw) -> Arguments:
    shape = draw(shapes(0, 4))
    key = draw(arrays_of.basic_indices(shape, allow_newaxis=False))
    x = numbers(draw, shape, NUMBERS)
    y = numbers(draw, np.zeros(shape)[key].shape, (x.dtype,))
    return Arguments((x, y), {"key": key, "join": draw(st.sampled_from(list(UPDATES)))})


def _updated_in_numpy(x: np.ndarray, y: np.ndarray, key: Any, join: str) -> np.ndarray:
    result = np.array(x)
    UPDATES[join](result, key, y)
    return result


def _updated_here(namespace: Any) -> Callable[..., Any]:
    return lambda x, y, key, join: getattr(namespace.asarray(x).at[key], join)(y)


@st.composite
def outside(draw: Draw) -> Arguments:
    shape = draw(shapes(1, 3, 1))
    places = numbers(draw, draw(shapes(0, 2)), (I32,), -2 * shape[0], 2 * shape[0])
    return Arguments((numbers(draw, shape, (F32, I32)), places), {"mode": draw(st.sampled_from(["clip", "fill"]))})


def _read_outside(x: np.ndarray, places: np.ndarray, mode: str) -> np.ndarray:
    n = len(x)
    held = x[np.clip(places, -n, n - 1)]
    valid = ((places >= -n) & (places < n)).reshape(places.shape + (1,) * (x.ndim - 1))
    return held if mode == "clip" else np.where(valid, held, x.dtype.type(7))


@st.composite
def updates_outside(draw: Draw) -> Arguments:
    x, places = draw(outside()).arrays
    y = numbers(draw, places.shape + x.shape[1:], (x.dtype,))
    return Arguments((x, places, y), {"mode": draw(st.sampled_from(["clip", "drop"]))})


def _added_outside(x: np.ndarray, places: np.ndarray, y: np.ndarray, mode: str) -> np.ndarray:
    n = len(x)
    result = np.array(x)
    valid = (places >= -n) & (places < n)
    kept = np.clip(places, -n, n - 1) if mode == "clip" else places[valid]
    np.add.at(result, kept, y if mode == "clip" else y[valid])
    return result


def _add(namespace: Any) -> Callable[..., Any]:
    return lambda x, places, y, mode: namespace.asarray(x).at[namespace.asarray(places)].add(y, mode=mode)


def _get(namespace: Any) -> Callable[..., Any]:
    def function(x: Any, places: Any, mode: str) -> Any:
        options = {"fill_value": 7} if mode == "fill" else {}
        return namespace.asarray(x).at[namespace.asarray(places)].get(mode=mode, **options)

    return function


CASES: dict[str, Case] = {
    "sort": named("sort", along(low=1, none=True, special=TIES, descending=falling), sorted_as_here),
    "argsort": named("argsort", along(low=1, none=True, special=TIES, descending=falling), order_as_here),
    "lexsort": Case(keys(), lambda n: lambda *rows, axis: n.lexsort(rows, axis)),
    "partition": named("partition", ranked("kth"), lambda x, kth, axis: np.sort(x, axis)),
    "argpartition": named("argpartition", ranked("kth"), lambda x, kth, axis: np.argsort(x, axis, kind="stable")),
    "top_k": named("top_k", ranked("k"), _top),
    "searchsorted": named("searchsorted", searched("side", ("left", "right"))),
    "digitize": Case(searched("right", (False, True)), lambda n: lambda bins, x, right: n.digitize(x, bins, right)),
    "take": named("take", positions_in()),
    "take outside": named("take", positions_in(outside=True)),
    "take_along_axis": named("take_along_axis", positions_along()),
    "put_along_axis": named("put_along_axis", positions_along(put=True), _put),
    "compress": named("compress", masked(), eager=True),
    "extract": named("extract", masked(flat=True), eager=True),
    "nonzero": named("nonzero", one(low=1, range=(-1, 1)), eager=True),
    "flatnonzero": named("flatnonzero", one(range=(-1, 1)), eager=True),
    "argwhere": named("argwhere", one(range=(-1, 1)), eager=True),
    "isin": named("isin", flat_pair(invert=True)),
    "union1d": named("union1d", flat_pair(), eager=True),
    "intersect1d": named("intersect1d", flat_pair(), eager=True),
    "setdiff1d": named("setdiff1d", flat_pair(), eager=True),
    "setxor1d": named("setxor1d", flat_pair(), eager=True),
    "unique": named("unique", distinct(), _unique, eager=True),
    **{
        name: named(name, one(NUMBERS, high=3, range=(0, 2), special=TIES[1:]), theirs, eager=True)
        for name, theirs in {
            "unique_all": None,
            "unique_counts": None,
            "unique_inverse": None,
            "unique_values": lambda x: np.unique(x, equal_nan=False),
        }.items()
    },
    "x[slices]": Case(indexed(), lambda n: lambda x, key: n.asarray(x)[key]),
    "x[positions]": Case(gathered(), _read),
    "x[mask]": Case(masked(flat=True), lambda n: lambda mask, x: n.asarray(x)[mask], eager=True),
    "x.at[slices]": Case(updated(), _updated_here, _updated_in_numpy),
    "x.at[positions].add": Case(updates_outside(), _add, _added_outside),
    "x.at[positions].get": Case(outside(), _get, _read_outside),
    "astype": Case(
        st.tuples(one(DTYPES, range=(0, 9)), st.sampled_from(DTYPES)).map(
            lambda pair: Arguments(pair[0].arrays, {"dtype": pair[1]})
        ),
        lambda n: lambda x, dtype: n.astype(x, dtype),
    ),
}
