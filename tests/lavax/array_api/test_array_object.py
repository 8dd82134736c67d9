"""What the standard says of the array object, of devices, copies and exchange, and of what the namespace tells."""
from __future__ import annotations

import cmath
import operator
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DtypeError, ShapeError

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.arange(6, dtype="f").reshape(2, 3)


def test_python_numbers() -> None:
    for value in (True, False, 3, -2, 2.5, float("inf"), -0.0):
        array = lnp.asarray(value)
        assert (bool(array), float(array), complex(array)) == (bool(value), float(value), complex(value))
        assert type(complex(array)) is complex
    assert bool(lnp.asarray(float("nan"))) and bool(lnp.asarray(-float("inf")))
    nan = complex(lnp.asarray(float("nan")))
    assert cmath.isnan(nan) and nan.imag != nan.imag
    assert int(lnp.asarray(2.7)) == 2 and int(lnp.asarray(-2.7)) == -2 and int(lnp.asarray(True)) == 1
    assert [10, 20, 30][lnp.asarray(1)] == 20 and operator.index(lnp.asarray(-3, dtype=lnp.int8)) == -3
    for none in (True, 2.0, [1]):
        with pytest.raises(TypeError):
            operator.index(lnp.asarray(none))
    with pytest.raises(ValueError, match="NaN"):
        int(lnp.asarray(float("nan")))
    with pytest.raises(OverflowError):
        int(lnp.asarray(float("inf")))
    for convert in (bool, int, float, complex):
        with pytest.raises((TypeError, ValueError)):
            convert(lnp.asarray(X))
        with pytest.raises(TypeError):
            lx.compile(lambda x, convert=convert: convert(x), static_argnums=1)(1.0)


def test_attributes() -> None:
    x = lnp.asarray(X)
    assert (x.shape, x.ndim, x.size, x.dtype) == ((2, 3), 2, 6, lnp.float32) and isinstance(x.shape, tuple)
    assert x.T.tolist() == x.mT.tolist() == X.T.tolist()
    with pytest.raises(ShapeError):
        _ = lnp.asarray([1]).mT
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2024.12") is lnp
    assert lnp.__array_api_version__ == "2024.12"


@pytest.mark.parametrize(
    "call",
    [
        lambda x: lnp.sum(x, axis=2),
        lambda x: lnp.expand_dims(x, axis=4),
        lambda x: lnp.squeeze(x, axis=5),
        lambda x: lnp.concat([x, x], axis=-3),
        lambda x: lnp.stack([x, x], axis=4),
        lambda x: lnp.flip(x, axis=2),
        lambda x: lnp.moveaxis(x, 0, 3),
        lambda x: lnp.sort(x, axis=2),
        lambda x: lnp.unstack(x, axis=2),
        lambda x: lnp.take(x, lnp.asarray([0]), axis=7),
        lambda x: lnp.cumulative_sum(x, axis=2),
        lambda x: lnp.permute_dims(x, (0, 2)),
    ],
)
def test_an_axis_that_is_not_there(call: Any) -> None:
    with pytest.raises(IndexError, match="axis") as caught:
        call(lnp.asarray(X))
    assert isinstance(caught.value, ShapeError), "a ValueError, as it is in NumPy"


def test_devices() -> None:
    x = lnp.asarray(X)
    info = lnp.__array_namespace_info__()
    assert x.device == info.default_device() and x.device in info.devices()
    made = [
        lnp.arange(3, device=x.device), lnp.asarray(X, device=x.device), lnp.empty(2, device=x.device),
        lnp.empty_like(x, device=x.device), lnp.eye(2, device=x.device), lnp.from_dlpack(X, device=x.device),
        lnp.full(2, 1, device=x.device), lnp.full_like(x, 1, device=x.device), lnp.ones(2, device=x.device),
        lnp.linspace(0, 1, 3, device=x.device), lnp.ones_like(x, device=x.device), lnp.zeros(2, device=x.device),
        lnp.zeros_like(x, device=x.device), lnp.astype(x, lnp.int8, device=x.device), x.to_device(x.device),
    ]  # fmt: skip
    assert all(array.device == x.device for array in made)
    for refused in (lambda: lnp.ones(2, device="another"), lambda: x.to_device("another")):
        with pytest.raises(ValueError, match="another"):
            refused()


def test_copies() -> None:
    x = lnp.asarray(X)
    same = [lnp.asarray(x), lnp.asarray(x, copy=False), lnp.astype(x, lnp.float32, copy=False)]
    same += [lnp.reshape(x, (2, 3), copy=False), lnp.from_dlpack(x, copy=False)]
    same += [lnp.asarray(x, dtype="float32"), lnp.asarray(x, dtype=lnp.float32, copy=False)]
    assert all(array is x for array in same)
    own = [lnp.asarray(x, copy=True), lnp.astype(x, lnp.float32), lnp.reshape(x, (2, 3), copy=True)]
    own += [lnp.from_dlpack(x), lnp.from_dlpack(x, copy=True), lnp.asarray(X), lnp.from_dlpack(X)]
    for array in own:
        array[...] = -1
    assert x.tolist() == X.tolist() == np.arange(6).reshape(2, 3).tolist()
    given = X.copy()
    taken = lnp.asarray(given)
    given[...] = 7
    assert taken.tolist() == X.tolist(), "numbers of NumPy are copied too"
    for refused in (
        lambda: lnp.asarray(X, copy=False), lambda: lnp.asarray(x, dtype=lnp.int8, copy=False),
        lambda: lnp.reshape(x, (3, 2), copy=False),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="copy"):
            refused()


def test_exchange() -> None:
    for dtype in ("bool", "int8", "int32", "uint8", "uint32", "float16", "float32"):
        given = X.astype(dtype)
        array = lnp.from_dlpack(given)
        assert array.dtype == given.dtype
        back = np.from_dlpack(array)
        assert back.dtype == given.dtype and back.tolist() == given.tolist()
    with lx.enable_x64():
        assert lnp.from_dlpack(X.astype("f8")).dtype == np.float64
        assert lnp.from_dlpack(X.astype("i8")).dtype == np.int64
    x = lnp.asarray(X)
    assert "dltensor" in repr(x.__dlpack__(stream=None, max_version=(1, 0), dl_device=x.__dlpack_device__(), copy=True))
    assert "versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    for options in ({"copy": False}, {"stream": 1}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError):
            x.__dlpack__(**options)
    with pytest.raises(BufferError, match="copy"):
        lnp.from_dlpack(X, copy=False)


def test_what_the_namespace_tells() -> None:
    info = lnp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    signed, unsigned = {"int8", "int16", "int32", "int64"}, {"uint8", "uint16", "uint32", "uint64"}
    kinds = {
        "bool": {"bool"}, "signed integer": signed, "unsigned integer": unsigned, "integral": signed | unsigned,
        "real floating": {"float32", "float64"}, "complex floating": {"complex64", "complex128"},
        "numeric": signed | unsigned | {"float32", "float64", "complex64", "complex128"},
        ("bool", "signed integer"): {"bool"} | signed, (): set(),
    }  # fmt: skip
    for kind, names in kinds.items():
        found = info.dtypes(kind=kind)
        assert set(found) == names
        for name, dtype in found.items():
            assert dtype == getattr(lnp, name) and lnp.isdtype(dtype, kind)
    assert info.dtypes() == info.dtypes(device=info.default_device()) == info.dtypes(kind=("bool", "numeric"))
    assert info.default_dtypes(device=info.default_device()) == info.default_dtypes()
    for refused in (
        lambda: info.dtypes(kind="whole"), lambda: info.dtypes(device="x"), lambda: info.default_dtypes(device="x"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"whole|x"):
            refused()


def test_limits() -> None:
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        found, right = lnp.iinfo(getattr(lnp, name)), np.iinfo(name)
        assert (found.bits, found.min, found.max, found.dtype) == (right.bits, right.min, right.max, name)
        assert {type(found.bits), type(found.min), type(found.max)} == {int}
    for name in ("float32", "float64"):
        found, right = lnp.finfo(lnp.ones(1, name)), np.finfo(name)
        for field in ("bits", "eps", "max", "min", "smallest_normal", "dtype"):
            assert getattr(found, field) == getattr(right, field)


def test_promotion_of_what_is_given() -> None:
    assert lnp.result_type(lnp.arange(3), 2.5) == lnp.float32 and lnp.result_type(1, lnp.int8) == lnp.int8
    assert lnp.result_type(lnp.float32, 1, True) == lnp.float32
    assert lnp.can_cast(lnp.int8, lnp.int32) and not lnp.can_cast(lnp.int32, lnp.int8)
    assert lnp.can_cast(lnp.ones(1), lnp.float64) and not lnp.can_cast(lnp.float64, lnp.float32)
    assert lnp.isdtype(lnp.int8, (lnp.float32, "integral")) and not lnp.isdtype(lnp.int8, ("bool", "real floating"))


def test_positions_of_one_key() -> None:
    """Of several arrays of positions in one key, and of truth values, with ranges and new axes between."""
    numbers = np.arange(60).reshape(3, 4, 5)
    x = lnp.asarray(numbers)
    rows, columns = np.array([[0], [2]]), np.array([1, 3])
    for key in (
        (rows, columns), (rows, columns, 2), (rows, slice(1, 3), columns), (..., columns), (None, rows, columns),
        (rows, columns, ..., slice(None, None, -1)), (1, columns), (columns - 4, 0), (numbers > 30,),
        (0, numbers[0] > 7), (..., numbers[0, 0] > 2),
    ):  # fmt: skip
        held = tuple(lnp.asarray(part) if isinstance(part, np.ndarray) else part for part in key)
        np.testing.assert_array_equal(np.asarray(x[held]), numbers[key])


def test_special_numbers_in_sets_and_searches() -> None:
    given = lnp.asarray([float("nan"), 1.0, float("nan"), -0.0, 0.0])
    values, indices, inverse, counts = lnp.unique_all(given)
    assert values.tolist()[:2] == [0, 1] and np.isnan(values.tolist()[2:]).all() and counts.tolist() == [2, 1, 1, 1]
    assert indices.tolist() == [3, 1, 0, 2] and inverse.tolist() == [2, 1, 3, 0, 0]
    assert lnp.unique_counts(given).counts.tolist() == counts.tolist() and lnp.unique_values(given).shape == (4,)
    assert lnp.unique_inverse(lnp.asarray([[3, 1], [1, 3]])).inverse_indices.tolist() == [[1, 0], [0, 1]]
    assert int(lnp.count_nonzero(given)) == 3 and bool(lnp.all(lnp.asarray([float("nan")])))
    assert np.isnan(float(lnp.max(given))) and np.isnan(float(lnp.min(given))) and int(lnp.argmax(given)) == 0
    for extremum in (lnp.max, lnp.min, lnp.argmax, lnp.argmin):
        with pytest.raises(ShapeError):
            extremum(lnp.ones(0))
    assert float(lnp.sum(lnp.ones(0))) == 0 and float(lnp.prod(lnp.ones(0))) == 1
    assert np.isnan(float(lnp.mean(lnp.ones(0)))) and not bool(lnp.any(lnp.ones(0))) and bool(lnp.all(lnp.ones(0)))


def test_integers_in_lists_stay_exact() -> None:
    """Also those of 64 bits without a sign, which NumPy rounds beside smaller ones."""
    held = lnp.asarray([2**63 + 1, 0], dtype=lnp.uint64)
    assert held.tolist() == [2**63 + 1, 0] and lnp.asarray([[2**64 - 1]], dtype=lnp.uint64).tolist() == [[2**64 - 1]]
    assert lnp.asarray([2**63 + 1, -1], dtype=lnp.float32).tolist() == [2.0**63, -1]
    for numbers in ([2**63 + 1, 0], [2**63 + 1, -1], [2**64, 0], [-(2**63) - 1, 0]):
        for dtype in (None, lnp.int64):
            with pytest.raises(DtypeError):
                lnp.asarray(numbers, dtype=dtype)
