"""`x[…]`, take and take_along_axis against NumPy's."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ConcretizationError, ShapeError
from tests.lavax.numpy.arrays import BOOL, DTYPES, F32, I32, U32, check, sample

pytestmark = pytest.mark.usefixtures("reference_backend")

SHAPE = (4, 5, 3, 2)
BASIC: list[Any] = [
    0, -1, np.int64(2), np.array(1), (), ..., None, slice(None), (1, 2, 0, 1), (..., 1), (1, ...), (0, ..., -1),
    (slice(1, 3), 2), slice(None, None, -1), (slice(None), slice(4, 0, -2)), (slice(-3, None), ..., slice(None, -1)),
    (None, 1, None, ..., None), (slice(3, 1), 0), slice(10, 20), (slice(None, None, 2), slice(1, None, 3)),
    (..., slice(5, None, -1)), (slice(2, 2, -1),), (slice(1, 2), slice(None, None, -4)), (slice(-1, -5, -3),),
]  # fmt: skip
ARRAYS: dict[str, Any] = {
    "one": lambda i, j: i,
    "second axis": lambda i, j: (slice(None), i),
    "last axis": lambda i, j: (..., j[0] * 0),
    "two side by side": lambda i, j: (i, j[0]),
    "two that broadcast": lambda i, j: (i[:, None], j[0]),
    "two side by side in the middle": lambda i, j: (slice(None), j[0], j[0] * 0),
    "two apart": lambda i, j: (i, slice(None), j[0] * 0),
    "an int before, side by side": lambda i, j: (0, i),
    "an int and an array apart": lambda i, j: (0, slice(None), j[0]),
    "an array and an int apart by an Ellipsis": lambda i, j: (i, ..., 0),
    "an array after an int, later": lambda i, j: (slice(None), 1, j[0]),
    "with a slice backwards": lambda i, j: (slice(None, None, -2), i),
    "with None before": lambda i, j: (None, i),
    "with None between": lambda i, j: (i, None, i),
    "with None after": lambda i, j: (i, i, None),
    "with None and slices": lambda i, j: (slice(None), None, i, slice(1, 2), None),
    "two axes": lambda i, j: j,
    "rank 0": lambda i, j: (i[0], slice(None), j[0, 0] * 0),
    "all axes": lambda i, j: (i, i, i * 0, i * 0),
}


@pytest.mark.parametrize("key", BASIC, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_basic(key: Any, dtype: np.dtype) -> None:
    check(lambda x: x[key], lambda x: x[key], sample(SHAPE, dtype))


@pytest.mark.parametrize("case", ARRAYS)
@pytest.mark.parametrize("dtype", [I32, U32], ids=str)
def test_index_arrays(case: str, dtype: np.dtype) -> None:
    """Traced ones, and ones that the program knows."""
    make = ARRAYS[case]
    x = sample(SHAPE)
    i, j = np.array([3, 0, 2], dtype), np.array([[2, 1, 0], [1, 1, 2]], dtype)
    if dtype == I32:
        i, j = i - 4 * (i == 3), j - 3 * (j == 2)
    check(lambda x, i, j: x[make(i, j)], lambda x, i, j: x[make(i, j)], x, i, j)
    np.testing.assert_array_equal(np.asarray(lnp.array(x)[make(i, j)]), x[make(i, j)])


def test_lists_and_no_positions() -> None:
    x = lnp.array(sample((4, 3)))
    for key in ([0, 2], [-1], [], [[0], [1]], (slice(None), [2, 0]), np.zeros((0, 2), I32)):
        np.testing.assert_array_equal(np.asarray(x[key]), np.asarray(x)[key])
    np.testing.assert_array_equal(np.asarray(x[[lnp.array(1), 2]]), np.asarray(x)[[1, 2]])


def test_an_array_without_elements_or_axes() -> None:
    check(lambda x: x[1:, ::-1], lambda x: x[1:, ::-1], np.zeros((3, 0), F32))
    check(lambda x: x[..., None], lambda x: x[..., None], np.array(2, F32))
    check(lambda x, i: x[:, i], lambda x, i: x[:, i], np.zeros((0, 3), F32), np.array([1, 0], I32))


def test_computed_positions_outside_are_held_to_the_range() -> None:
    x, i = lnp.arange(5), lnp.array([-9, -5, 4, 5, 100])
    np.testing.assert_array_equal(np.asarray(x[i]), [0, 0, 4, 4, 4])
    np.testing.assert_array_equal(np.asarray(lnp.take(x, i, mode="clip")), [0, 0, 4, 4, 4])
    np.testing.assert_array_equal(np.asarray(lnp.take_along_axis(x, i, mode="clip")), [0, 0, 4, 4, 4])


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (4, r"index 4 is outside axis 0 of f32\[4,3\], which has extent 4"),
        ((0, -4), r"index -4 is outside axis 1 of f32\[4,3\], which has extent 3"),
        ([0, 7], r"index 7 is outside axis 0"),
        ((slice(None), np.array([1, -4])), r"index -4 is outside axis 1"),
        ((0, 0, 0), r"too many indices: 3 for f32\[4,3\], which has 2 axes"),
        ((..., 0, ...), "one Ellipsis"),
        ("a", "got 'a'"),
        (1.0, "got 1.0"),
    ],
)
def test_keys_that_do_not_fit(key: Any, words: str) -> None:
    with pytest.raises(IndexError, match=words) as found:
        lnp.zeros((4, 3))[key]
    assert "test_indexing.py:" in str(found.value)


@pytest.mark.parametrize(
    "key",
    [
        np.arange(12).reshape(4, 3) % 2 == 0,
        [True, False, True, False],
        (slice(None), np.array([True, False, True])),
        (np.array([True, False, True, True]), np.array([1, 0, 2])),
        (..., np.zeros(3, BOOL)),
        (None, np.array([True, False, True, False]), None),
    ],
)
def test_masks_stand_for_positions(key: Any) -> None:
    x = sample((4, 3))
    np.testing.assert_array_equal(np.asarray(lnp.asarray(x)[key]), x[key])
    given = key if isinstance(key, tuple) else (key,)
    as_values = tuple(lnp.asarray(part) if isinstance(part, (np.ndarray, list)) else part for part in given)
    np.testing.assert_array_equal(np.asarray(lnp.asarray(x)[as_values]), x[key])


def test_masks_that_do_not_fit_and_floats_are_no_positions() -> None:
    x = lnp.zeros((4, 3))
    for mask in (np.zeros((4, 2), BOOL), [True, False], lnp.zeros((2,), bool)):
        with pytest.raises(IndexError, match="a mask of shape"):
            x[mask]
    for numbers in (x, np.ones(2), [0.5], [1j], lnp.zeros(2, lnp.complex64)):
        with pytest.raises(IndexError, match="must be integers"):
            x[numbers]


@pytest.mark.parametrize(
    "key", [((0, 2),), ((0, 2), 1), (slice(None), (1, 0, 1)), ((0, 2), (1, 2)), (..., (-1,)), (((0,), (3,)), (1, 2))]
)
def test_a_tuple_within_a_key_is_positions(key: Any) -> None:
    x = sample((4, 3))
    np.testing.assert_array_equal(np.asarray(lnp.asarray(x)[key]), x[key])
    np.testing.assert_array_equal(np.asarray(lx.compile(lambda x: x[key])(x)), x[key])
    changed = x.copy()
    changed[key] = 7
    np.testing.assert_array_equal(np.asarray(lnp.asarray(x).at[key].set(7)), changed)
    written = lnp.array(x)
    written[key] = 7
    np.testing.assert_array_equal(np.asarray(written), changed)


def test_a_tuple_of_truths_within_a_key_is_a_mask() -> None:
    x, key = sample((4, 3)), ((True, False, True, False), 1)
    np.testing.assert_array_equal(np.asarray(lnp.asarray(x)[key]), x[key])


def test_updates_at_masks_that_do_not_fit_are_index_errors() -> None:
    for mask in (np.zeros((4, 2), BOOL), np.zeros(2, BOOL), lnp.zeros((2,), bool)):
        with pytest.raises(IndexError, match="a mask of shape"):
            lnp.zeros((4, 3)).at[mask].set(1)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("places", [np.array([1, 0, -1], I32), np.array([[0, 1], [2, 2]], U32), np.array(1, I32)])
def test_take(axis: int | None, places: np.ndarray) -> None:
    x = sample((3, 4, 5))
    check(lambda x, i: lnp.take(x, i, axis), lambda x, i: np.take(x, i, axis), x, places)
    check(lambda x: lnp.take(x, 2, axis), lambda x: np.take(x, 2, axis), x)
    with pytest.raises(IndexError, match="index 60 is outside"):
        lnp.take(x, [0, 60], axis)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_take_along_axis(dtype: np.dtype) -> None:
    for shape, places, axis in [
        ((3, 4), (3, 1), -1), ((3, 4), (3, 6), 1), ((3, 4), (2, 4), 0), ((3, 4), (1, 2), 1), ((1, 4), (3, 2), 1),
        ((2, 3, 4), (2, 5, 4), 1), ((2, 3, 4), (1, 1, 4), 0), ((4,), (7,), 0), ((2, 3), (2, 0), 1),
        ((2, 1, 2, 3), (2, 4, 1, 1), 3),
    ]:  # fmt: skip
        x = sample(shape, dtype)
        extent = shape[axis]
        i = sample(places, I32, -extent, extent - 1, seed=1)
        check(lambda x, i: lnp.take_along_axis(x, i, axis), lambda x, i: np.take_along_axis(x, i, axis), x, i)  # noqa: B023
        first = np.zeros(places, I32)
        check(lambda x: lnp.take_along_axis(x, first, axis), lambda x: np.take_along_axis(x, first, axis), x)  # noqa: B023
    check(
        lambda x, i: lnp.take_along_axis(x, i, None), lambda x, i: np.take_along_axis(x, i, None),
        sample((2, 3)), np.array([5, 0, -1], I32),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "filling"), [("f4", np.nan), ("i4", -(2**31)), ("u4", 2**32 - 1), ("?", True)], ids=str
)
@pytest.mark.parametrize("computed", [False, True])
def test_positions_outside_are_filled_where_that_is_asked_for(dtype: str, filling: Any, computed: bool) -> None:
    x = np.array([1, 0, 1], dtype)
    places = np.array([0, -3, -4, 2, 3, 100], np.int32)
    given = lnp.asarray(places) if computed else places
    expected = np.array([1, 1, filling, 1, filling, filling], dtype)
    for found in (lnp.take(x, given, mode="fill"), lnp.take_along_axis(x, given, 0, mode="fill")):
        np.testing.assert_array_equal(np.asarray(found), expected)
    for number in (0, 1):
        expected[[2, 4, 5]] = number
        np.testing.assert_array_equal(np.asarray(lnp.take(x, given, mode="fill", fill_value=number)), expected)
    held = np.asarray(lnp.take_along_axis(x, given, 0, mode="clip"))
    np.testing.assert_array_equal(held, x[np.clip(places, -3, 2)])


def test_take_along_axis_of_shapes_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match=r"take_along_axis: i32\[2,1\] .* axis 1 of f32\[3,4\]"):
        lnp.take_along_axis(sample((3, 4)), lnp.zeros((2, 1), I32), 1)
    with pytest.raises(ShapeError, match="take_along_axis"):
        lnp.take_along_axis(sample((3, 4)), lnp.zeros((3,), I32), 1)
    with pytest.raises(IndexError, match="index 4 is outside axis 1"):
        lnp.take_along_axis(sample((3, 4)), np.full((3, 1), 4), 1)
    with pytest.raises(IndexError, match="must be integers"):
        lnp.take_along_axis(sample((3, 4)), lnp.zeros((3, 1)), 1)


@pytest.mark.parametrize("key", [True, False, np.bool_(True), np.array(False)], ids=repr)
def test_one_truth_value_chooses_all_or_nothing(key: Any) -> None:
    for x in (sample((3, 2)), sample((), I32), sample((0, 2))):
        check(lambda x: x[key], lambda x: x[key], x)
        expected = x.copy()
        expected[key] = 7
        np.testing.assert_array_equal(lnp.asarray(x).at[key].set(7), expected)
    assert lnp.asarray(sample((3, 2)))[lnp.asarray(key)].shape == (int(key), 3, 2)
    with pytest.raises(ConcretizationError):
        lx.compile(lambda x, key: x[key])(sample((3,)), key)
    changed = lx.compile(lambda x, key: x.at[key].add(1))(np.zeros(3, F32), key)
    np.testing.assert_array_equal(changed, np.full(3, int(key), F32))


def test_the_parts_of_an_array_one_by_one() -> None:
    x = sample((3, 2))
    check(lambda x: list(x), lambda x: list(x), x)
