"""`x.at[key].set(y)` and its kind, against NumPy's assignments and ufunc.at."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DtypeError, ShapeError
from tests.lavax.numpy.arrays import BOOL, F32, I32, U32, sample

pytestmark = pytest.mark.usefixtures("reference_backend")

SHAPE = (4, 3, 5)
KEYS: list[Any] = [
    1,
    -1,
    slice(None),
    slice(3, 0, -2),
    (slice(None), 2, slice(1, 4)),
    (..., slice(None, None, -1)),
    (None, 2, ..., 0),
    np.array([0, 2, 2, -1]),
    (slice(1, None), np.array([[0, 1], [1, 1]])),
    (np.array([0, 1]), slice(None), np.array([4, 4])),
    (np.array([3, 3]), 1, slice(None, None, 2)),
    (slice(None), np.array([1, 1, 1]), None, slice(4, 1, -1)),
    np.arange(60).reshape(SHAPE) % 3 == 0,
    np.array([True, False, True, True]),
    (slice(2, 2),),
]
UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


@pytest.mark.parametrize("dtype", [F32, I32, U32], ids=str)
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_updates(key: Any, dtype: np.dtype) -> None:
    x = sample(SHAPE, dtype)
    for updates in (np.asarray(2, dtype), sample(x[key].shape, dtype, seed=1)):
        expected = x.copy()
        expected[key] = updates
        np.testing.assert_array_equal(np.asarray(lnp.asarray(x).at[key].set(updates)), expected)
        for name, ufunc in UFUNCS.items():
            expected = x.copy()
            ufunc.at(expected, key, updates)
            found = getattr(lnp.asarray(x).at[key], name)(updates)
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-6, err_msg=name)


def test_divide_power_apply_and_get() -> None:
    x, key = np.abs(sample(SHAPE)) + 1, np.array([0, 2, 3])
    expected = x.copy()
    expected[key] /= 3
    np.testing.assert_allclose(np.asarray(lnp.asarray(x).at[key].divide(3.0)), expected, rtol=1e-6)
    expected[key] = x[key] ** 2
    np.testing.assert_allclose(np.asarray(lnp.asarray(x).at[key].power(2.0)), expected, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(lnp.asarray(x).at[key].apply(lambda x: x * x)), expected, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(lnp.asarray(x).at[key].get()), x[key])


def test_truth_values() -> None:
    x = sample((6,), BOOL)
    expected = x.copy()
    expected[[1, 4]] = [True, False]
    np.testing.assert_array_equal(np.asarray(lnp.asarray(x).at[np.array([1, 4])].set([True, False])), expected)
    np.testing.assert_array_equal(np.asarray(lnp.asarray(x).at[2:].max(True)), np.r_[x[:2], [True] * 4])
    with pytest.raises(DtypeError, match="not defined"):
        lnp.asarray(x).at[0].add(True)


def test_positions_outside() -> None:
    x = lnp.arange(5)
    with pytest.raises(IndexError, match="index 5"):
        x.at[np.array([0, 5])].set(9)
    with pytest.raises(IndexError, match="index -6"):
        x.at[-6].set(9)
    dropped = lx.compile(lambda x, i: x.at[i].add(1))(x, np.array([0, 5, -1, -7]))
    assert dropped.tolist() == [1, 1, 2, 3, 5]
    with pytest.raises(ShapeError, match="broadcast"):
        x.at[:2].set(np.zeros(3))


def test_the_last_of_several_stands() -> None:
    index = np.array([2, 0, 2, 2, 0])
    assert lnp.zeros(4).at[index].set(np.arange(5.0)).tolist() == [4, 0, 3, 0]


@pytest.mark.parametrize("name", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("key", [KEYS[4], KEYS[7], KEYS[9], KEYS[12]], ids=str)
def test_gradients_of_both(name: str, key: Any) -> None:
    x = sample(SHAPE)
    y = sample(x[key].shape, seed=1)
    weight = sample(SHAPE, seed=2)

    def loss(x: Any, y: Any) -> Any:
        return 3 * lnp.sum(weight * getattr(lnp.asarray(x).at[key], name)(y))

    for position, value in enumerate((x, y)):
        slope = np.asarray(lx.grad(loss, argnums=position)(x, y))
        direction = sample(value.shape, seed=3)
        ends = []
        for step in (1e-2, -1e-2):
            moved = [x, y]
            moved[position] = value + np.float32(step) * direction
            ends.append(float(loss(*moved)))
        np.testing.assert_allclose((slope * direction).sum(), (ends[0] - ends[1]) / 2e-2, rtol=3e-2, atol=3e-2)


def parts(extent: int) -> st.SearchStrategy[Any]:
    position = st.integers(-extent, extent - 1)
    return st.one_of(
        position,
        st.slices(extent),
        st.lists(position, min_size=1, max_size=4).map(np.array),
        st.lists(st.booleans(), min_size=extent, max_size=extent).map(np.array),
    )


@st.composite
def keys(draw: Any) -> tuple[Any, ...]:
    """Of arrays in a key all but one are of one position, so that they fit together."""
    chosen = [draw(parts(extent)) for extent in SHAPE[: draw(st.integers(0, 3))]]
    arrays = [place for place, part in enumerate(chosen) if isinstance(part, np.ndarray)]
    for place in arrays[1:]:
        chosen[place] = 0
    if draw(st.booleans()):
        chosen.insert(draw(st.integers(0, len(chosen))), None)
    if draw(st.booleans()):
        chosen.append(Ellipsis)
    return tuple(chosen)


@settings(max_examples=150)
@given(keys())
def test_any_key_reads_and_writes_as_numpy_does(key: tuple[Any, ...]) -> None:
    x = sample(SHAPE)
    np.testing.assert_array_equal(np.asarray(lnp.asarray(x)[key]), x[key])
    updates = sample(x[key].shape, seed=1)
    expected = x.copy()
    expected[key] = updates
    np.testing.assert_array_equal(np.asarray(lnp.asarray(x).at[key].set(updates)), expected)
    np.add.at(expected, key, updates)
    found: Callable[..., Any] = lnp.asarray(x).at[key].set(updates).at[key].add
    np.testing.assert_allclose(np.asarray(found(updates)), expected, rtol=1e-5, atol=1e-5)


COMPLEX = np.array([1 + 2j, 3 + 1j, 3 - 1j, np.nan], np.complex64)
COMPLEX_UPDATES = np.array([1 + 5j, 3 + 2j, 3 - 9j, 2 + 100j, 0.5 + 7j], np.complex64)


@pytest.mark.parametrize(("name", "ufunc"), [("max", np.maximum), ("min", np.minimum)])
def test_complex_numbers_are_ordered_by_their_real_parts_first(name: str, ufunc: np.ufunc) -> None:
    places, wanted = np.array([0, 1, 1, 2, 0]), COMPLEX.copy()
    ufunc.at(wanted, places, COMPLEX_UPDATES)
    at = lnp.asarray(COMPLEX).at
    np.testing.assert_array_equal(np.asarray(getattr(at[places], name)(COMPLEX_UPDATES)), wanted)
    compiled = lx.compile(lambda x, i, u: getattr(x.at[i], name)(u))
    np.testing.assert_array_equal(np.asarray(compiled(COMPLEX, places, COMPLEX_UPDATES)), wanted)
    wanted = COMPLEX.copy()
    wanted[1:3] = ufunc(wanted[1:3], 3)
    for key in (slice(1, 3), COMPLEX.real > 2):
        np.testing.assert_array_equal(np.asarray(getattr(at[key], name)(3.0)), wanted)
    outside = np.asarray(getattr(at[np.array([0, 7])], name)(COMPLEX_UPDATES[:2], mode="drop"))
    np.testing.assert_array_equal(outside[1:], COMPLEX[1:])
    bad = np.asarray(getattr(at[0], name)(complex(5, np.nan)))
    assert np.isnan(bad[0].real) and np.isnan(bad[0].imag) and bad[1] == COMPLEX[1]


@pytest.mark.parametrize("key", [slice(1, None), np.array([1, 2, 3])], ids=str)
def test_integers_are_joined_with_floats_before_they_are_cast(key: Any) -> None:
    x = lnp.asarray([1, 2, 3, 7])
    with pytest.warns(FutureWarning, match="cast to i32"):
        assert x.at[key].multiply(2.5).tolist() == [1, 5, 7, 17]
        assert x.at[key].subtract(2.5).tolist() == [1, 0, 0, 4]
        assert x.at[key].add(np.float32(2.5)).tolist() == [1, 4, 5, 9]
        assert x.at[key].max(np.float32(2.5)).tolist() == [1, 2, 3, 7]
        assert x.at[key].multiply(2.5).dtype == I32


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_updates_of_a_wider_dtype_are_joined_in_it() -> None:
    assert lnp.asarray([1, 2], dtype="uint8").at[1].multiply(2.5).tolist() == [1, 5]
    assert lnp.asarray([1, 200], dtype="uint8").at[1].min(np.int32(300)).tolist() == [1, 200]
    small = lnp.ones(1, dtype="bfloat16").at[np.zeros(4, I32)].add(np.full(4, 2.0**-9, F32))
    assert small.tolist() == [1 + 2.0**-7]


def test_quotients_of_integers_are_floats() -> None:
    quotients = lnp.asarray([1, 2, 3, 7]).at[2:].divide(2)
    assert quotients.dtype == F32
    assert quotients.tolist() == [1, 2, 1.5, 3.5]
    assert lnp.asarray([1, 3]).at[1].divide(2.5).tolist() == pytest.approx([1, 1.2])
    assert lnp.ones(2, dtype="float16").at[1].divide(np.float32(2)).dtype == np.float16
