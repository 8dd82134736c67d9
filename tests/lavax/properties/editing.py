"""Entries taken out, put in and replaced, flat positions, subscripts that make arrays, bits and divisors."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from tests.lavax.properties.cases import (
    BOOL,
    DTYPES,
    F32,
    I32,
    INTEGERS,
    NAN,
    NUMBERS,
    Arguments,
    Case,
    Draw,
    axis_of,
    named,
    numbers,
    one,
    several,
    shapes,
)
from tests.lavax.properties.creation import offsets, options

U8 = np.dtype("uint8")
SPECIAL = (0.0, -0.0, math.inf, -math.inf, math.nan, 1e-42, 1e30)
small = st.integers(0, 4)


@st.composite
def chosen_entries(draw: Draw, extent: int, behind: int = 0) -> Any:
    """A position, positions in any number, a slice or a mask of an axis; a single one may be outside."""
    place = st.integers(-extent, extent - 1 + behind)
    kind = draw(st.sampled_from(["number", "numbers", "slice", "mask", "none"]))
    if kind == "number":
        return draw(st.integers(-extent - 1, extent + behind))
    if kind == "numbers" and extent + behind:
        return draw(st.lists(place, max_size=4))
    if kind == "mask":
        return np.array(draw(st.lists(st.booleans(), min_size=extent, max_size=extent)), bool)
    if kind == "slice":
        ends = st.integers(-extent - 1, extent + 1)
        return slice(draw(ends), draw(ends), draw(st.sampled_from([1, 2, -1])))
    return []


@st.composite
def deletions(draw: Draw) -> Arguments:
    shape = draw(shapes(1, 4))
    axis = axis_of(draw, len(shape), none=True)
    extent = math.prod(shape) if axis is None else shape[axis]
    return Arguments((numbers(draw, shape),), {"obj": draw(chosen_entries(extent)), "axis": axis})


@st.composite
def insertions(draw: Draw) -> Arguments:
    """Numbers, or rows for each position; only what both know how to broadcast."""
    shape = draw(shapes(1, 3, 1))
    axis = axis_of(draw, len(shape), none=True)
    extent = math.prod(shape) if axis is None else shape[axis]
    obj = draw(chosen_entries(extent, 1).filter(lambda obj: not isinstance(obj, np.ndarray)))
    dtype = draw(st.sampled_from(DTYPES))
    count = len(obj) if isinstance(obj, list) else 1
    values = numbers(draw, (), (dtype,))
    if isinstance(obj, list) and axis is not None and draw(st.booleans()):
        values = numbers(draw, [count if d == axis % len(shape) else n for d, n in enumerate(shape)], (dtype,))
    return Arguments((numbers(draw, shape, (dtype,)), values), {"obj": obj, "axis": axis})


def _insert(namespace: Any) -> Callable[..., Any]:
    return lambda x, values, obj, axis: namespace.insert(x, obj, values, axis)


@st.composite
def computed_insertions(draw: Draw) -> Arguments:
    """The positions are arguments too."""
    shape = draw(shapes(1, 3, 1))
    axis = axis_of(draw, len(shape))
    assert axis is not None
    count = draw(st.integers(1, 3))
    places = numbers(draw, draw(st.sampled_from([(), (count,)])), (I32,), -shape[axis], shape[axis])
    dtype = draw(st.sampled_from(DTYPES))
    rows = [places.size if d == axis % len(shape) else n for d, n in enumerate(shape)]
    values = numbers(draw, () if not places.ndim or draw(st.booleans()) else rows, (dtype,))
    return Arguments((numbers(draw, shape, (dtype,)), values, places), {"axis": axis})


@st.composite
def computed_deletions(draw: Draw) -> Arguments:
    shape = draw(shapes(1, 4, 1))
    axis = axis_of(draw, len(shape), none=True)
    extent = math.prod(shape) if axis is None else shape[axis]
    if draw(st.booleans()):
        return Arguments((numbers(draw, shape), numbers(draw, (), (I32,), -extent, extent - 1)), {"axis": axis})
    distinct = draw(st.lists(st.integers(0, extent - 1), unique=True, max_size=extent))
    return Arguments((numbers(draw, shape), np.array(distinct, I32)), {"axis": axis})


def _delete(namespace: Any) -> Callable[..., Any]:
    distinct = {} if namespace is np else {"assume_unique_indices": True}
    return lambda x, obj, axis: namespace.delete(x, obj, axis, **distinct)


@st.composite
def rows_of_zeros(draw: Draw) -> Arguments:
    x = numbers(draw, (draw(st.integers(0, 8)),), NUMBERS, -1, 1)
    x = np.where(np.abs(x) < 0.5, 0, x).astype(x.dtype)
    return Arguments((x,), {"trim": draw(st.sampled_from(["f", "b", "fb"]))})


@st.composite
def replacements(draw: Draw, smallest: int = 1) -> Arguments:
    x = numbers(draw, draw(shapes(0, 3, smallest)))
    places = numbers(draw, draw(shapes(1, 2)), (I32,), -x.size, x.size - 1)
    return Arguments((x, numbers(draw, draw(shapes(0, 1, 1)), (x.dtype,)), places))


def _put(namespace: Any) -> Callable[..., Any]:
    if namespace is not np:
        return lambda x, v, ind: namespace.put(x, ind, v, inplace=False)

    def theirs(x: np.ndarray, v: np.ndarray, ind: np.ndarray) -> np.ndarray:
        result = np.array(x)  # of an array without axes, too
        np.put(result, ind, v)
        return result

    return theirs


@st.composite
def masked(draw: Draw) -> Arguments:
    x = numbers(draw, draw(shapes(0, 3)))
    return Arguments((x, numbers(draw, x.shape, (BOOL,)), numbers(draw, draw(shapes(1, 1, 1)), (x.dtype,))))


def _place(namespace: Any) -> Callable[..., Any]:
    if namespace is not np:
        return lambda x, mask, values: namespace.place(x, mask, values, inplace=False)

    def theirs(x: np.ndarray, mask: np.ndarray, values: np.ndarray) -> np.ndarray:
        result = np.array(x, order="C")
        np.place(result, mask, values)
        return result

    return theirs


@st.composite
def diagonals(draw: Draw) -> Arguments:
    n, m = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    shape = draw(st.sampled_from([(n, m), (m, m, m)]))
    x = numbers(draw, shape)
    values = numbers(draw, draw(shapes(0, 1, 1)), (x.dtype,))
    return Arguments((x, values), {"wrap": draw(st.booleans())})


def _fill_diagonal(namespace: Any) -> Callable[..., Any]:
    if namespace is not np:
        return lambda x, values, wrap: namespace.fill_diagonal(x, values, wrap, inplace=False)

    def theirs(x: np.ndarray, values: np.ndarray, wrap: bool) -> np.ndarray:
        result = np.array(x, order="C")
        np.fill_diagonal(result, values, wrap)
        return result

    return theirs


@st.composite
def flat_positions(draw: Draw) -> Arguments:
    shape = draw(shapes(1, 4, 1))
    places = numbers(draw, draw(shapes(0, 3)), INTEGERS, 0, math.prod(shape) - 1)
    return Arguments((places,), {"shape": shape, "order": draw(st.sampled_from("CF"))})


@st.composite
def positions_by_axis(draw: Draw, mode: str) -> Arguments:
    shape = draw(shapes(1, 4, 1))
    outside = 0 if mode == "raise" else 5
    found = draw(arrays_of.mutually_broadcastable_shapes(num_shapes=len(shape), max_dims=2, max_side=3))
    places = [
        numbers(draw, one, (I32,), -outside, extent - 1 + outside)
        for one, extent in zip(found.input_shapes, shape, strict=True)
    ]
    return Arguments(tuple(places), {"dims": shape, "mode": mode, "order": draw(st.sampled_from("CF"))})


def _ravel_multi_index(namespace: Any) -> Callable[..., Any]:
    return lambda *places, **how: namespace.ravel_multi_index(places, **how)


@st.composite
def bytes_along(draw: Draw, dtypes: tuple[np.dtype, ...]) -> Arguments:
    """Bytes have elements: NumPy fills up empty arrays with what lies in memory."""
    shape = draw(shapes(1, 3, int(dtypes == (U8,))))
    chosen = {"axis": axis_of(draw, len(shape), none=True), "bitorder": draw(st.sampled_from(["big", "little"]))}
    return Arguments((numbers(draw, shape, dtypes, 0, 255 if dtypes == (U8,) else 1),), chosen)


bits = st.tuples(bytes_along((U8,)), st.one_of(st.none(), st.integers(-9, 40))).map(
    lambda drawn: Arguments(drawn[0].arrays, {**drawn[0].options, "count": drawn[1]})
)


@st.composite
def lines(draw: Draw) -> Arguments:
    count = draw(st.integers(1, 4))
    return Arguments(tuple(numbers(draw, (draw(small),), NUMBERS) for _ in range(count)))


@st.composite
def matrix(draw: Draw) -> Arguments:
    return Arguments((numbers(draw, (draw(small), draw(small)), NUMBERS),), {"k": draw(offsets)})


@st.composite
def slices(draw: Draw) -> Arguments:
    def line() -> slice:
        start, stop = draw(st.integers(-3, 3)), draw(st.integers(-3, 6))
        return slice(start, stop, draw(st.sampled_from([None, 1, 2, -1, 3j, 5j])))

    found = draw(st.one_of(st.just(line()), st.lists(st.builds(line), min_size=1, max_size=3).map(tuple)))
    return Arguments((), {"key": found})


def _subscripted(name: str) -> Callable[[Any], Callable[..., Any]]:
    return lambda namespace: lambda key: getattr(namespace, name)[key]


@st.composite
def joined(draw: Draw, rank: int) -> Arguments:
    n = draw(st.integers(1, 3))
    shape = (n,) if rank == 1 or draw(st.booleans()) else (n, 2)
    arrays = tuple(numbers(draw, shape, NUMBERS) for _ in range(draw(st.integers(1, 3))))
    return Arguments(arrays)


def _join(name: str, *directive: str) -> Callable[[Any], Callable[..., Any]]:
    return lambda namespace: lambda *arrays: getattr(namespace, name)[(*directive, *arrays, *arrays[:1])]


@st.composite
def scaled_lines(draw: Draw) -> Arguments:
    """For vectorize: two arrays of numbers and one of lines."""
    found = draw(arrays_of.mutually_broadcastable_shapes(signature="(),(n)->(n)", max_dims=3, min_side=1, max_side=3))
    return Arguments(tuple(numbers(draw, shape, (F32,)) for shape in found.input_shapes))


def _vectorized(namespace: Any) -> Callable[..., Any]:
    return namespace.vectorize(lambda x, line: x * line + line.sum(), signature="(),(n)->(n)")


@st.composite
def products(draw: Draw, signature: str) -> Arguments:
    found = draw(arrays_of.mutually_broadcastable_shapes(signature=signature, max_dims=3, min_side=0, max_side=3))
    return Arguments(tuple(numbers(draw, shape, NUMBERS) for shape in found.input_shapes))


CASES: dict[str, Case] = {
    "delete": named("delete", deletions(), eager=True),
    "delete at computed positions": Case(computed_deletions(), _delete),
    "insert": Case(insertions(), _insert, eager=True),
    "insert at computed positions": Case(
        computed_insertions(), lambda n: lambda x, values, obj, axis: n.insert(x, obj, values, axis)
    ),
    "trim_zeros": named("trim_zeros", rows_of_zeros(), eager=True),
    "put": Case(replacements(), _put),
    "place": Case(masked(), _place),
    "fill_diagonal": Case(diagonals(), _fill_diagonal),
    "unravel_index": named("unravel_index", flat_positions()),
    "ravel_multi_index": Case(positions_by_axis("raise"), _ravel_multi_index, eager=True),
    "ravel_multi_index outside": Case(
        st.sampled_from(["wrap", "clip"]).flatmap(positions_by_axis), _ravel_multi_index
    ),
    "packbits": named("packbits", bytes_along((*INTEGERS, BOOL))),
    "unpackbits": named("unpackbits", bits),
    "gcd": named("gcd", several(2, INTEGERS, ranges=((-40, 40),))),
    "lcm": named("lcm", several(2, INTEGERS, ranges=((-40, 40),))),
    "tril_indices_from": named("tril_indices_from", matrix(), eager=True),
    "triu_indices_from": named("triu_indices_from", matrix(), eager=True),
    "diag_indices_from": named("diag_indices_from", one(low=1, high=3)),
    "mask_indices": Case(
        options(n=small, k=offsets), lambda n: lambda k, **size: n.mask_indices(size["n"], n.triu, k), eager=True
    ),
    "mgrid[slices]": Case(slices(), _subscripted("mgrid"), eager=True, lenient=True),
    "ogrid[slices]": Case(slices(), _subscripted("ogrid"), eager=True, lenient=True),
    "ix_": named("ix_", lines().map(lambda drawn: Arguments(tuple(x.astype(I32) for x in drawn.arrays)))),
    "r_[arrays]": Case(joined(1), _join("r_")),
    "r_ with a rank": Case(joined(2), _join("r_", "-1,2,0")),
    "c_[arrays]": Case(joined(2), _join("c_")),
    "vectorize": Case(scaled_lines(), _vectorized),
    "matvec": named("matvec", products("(m,n),(n)->(m)"), lambda x, y: np.einsum("...mn,...n->...m", x, y)),
    "vecmat": named("vecmat", products("(m),(m,n)->(n)"), lambda x, y: np.einsum("...m,...mn->...n", x, y)),
    "copy": named("copy", one()),
    "fmax": named("fmax", several(2, special=NAN)),
    "fmin": named("fmin", several(2, special=NAN)),
    "spacing": named("spacing", one((F32,), special=SPECIAL), single=True),
    "real": named("real", one(NUMBERS)),
    "imag": named("imag", one(NUMBERS)),
    "conj": named("conj", one(NUMBERS)),
    "angle": Case(one((F32,), special=SPECIAL), lambda n: n.angle),
    "isreal": named("isreal", one()),
    "iscomplex": named("iscomplex", one()),
}
