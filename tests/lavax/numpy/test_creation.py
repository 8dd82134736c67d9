"""Arrays made from data, from nothing, or by counting, against NumPy's."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DtypeError, ShapeError
from tests.lavax.numpy.arrays import BOOL, DTYPES, F32, I32, SHAPES, U32, check, sample

pytestmark = pytest.mark.usefixtures("reference_backend")


def same(found: Any, expected: Any, dtype: np.dtype | None = None) -> None:
    assert isinstance(found, lnp.ndarray) and not found.weak
    assert found.shape == np.shape(expected)
    assert dtype is None or found.dtype == dtype
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [*SHAPES, 3], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_value_everywhere(shape: Any, dtype: np.dtype) -> None:
    same(lnp.zeros(shape), np.zeros(shape), F32)
    same(lnp.ones(shape, dtype), np.ones(shape, dtype), dtype)
    same(lnp.full(shape, 1, dtype), np.full(shape, 1, dtype), dtype)
    same(lnp.full(shape, 2.5), np.full(shape, 2.5), F32)
    assert lnp.empty(shape, dtype).shape == np.empty(shape).shape
    like = np.ones(shape, dtype)
    same(lnp.zeros_like(like), np.zeros_like(like), dtype)
    same(lnp.ones_like(lnp.array(like), I32), np.ones_like(like, I32), I32)
    same(lnp.full_like(like, 1, shape=(2,)), np.full_like(like, 1, shape=(2,)), dtype)
    assert lnp.empty_like(like).dtype == dtype


def test_arrays_like_a_description() -> None:
    shape = lx.ShapeDtypeStruct((2, 3), "bfloat16")
    assert (lnp.zeros_like(shape).shape, lnp.empty_like(shape).dtype) == ((2, 3), lnp.bfloat16)
    same(lnp.ones_like(shape, I32), np.ones((2, 3)), I32)
    same(lnp.full_like(shape, 2, shape=4), np.full(4, 2), lnp.bfloat16)
    assert lnp.iscomplexobj(lx.ShapeDtypeStruct((), "complex64")) and lnp.iscomplexobj(lnp.complex64)
    assert lnp.isrealobj(shape) and not lnp.iscomplexobj(lnp.float32)


def test_full_of_an_array() -> None:
    check(lambda x: lnp.full((2, 3), x), lambda x: np.full((2, 3), x), sample((3,)))
    check(lambda x: lnp.full_like(x, x, I32), lambda x: np.full_like(x, x, I32), sample((2, 3)))


@pytest.mark.parametrize(
    "arguments",
    [(5,), (0,), (-3,), (2, 7), (7, 2), (2, 9, 3), (9, 2, -3), (5.0,),
     (0, 1, 0.25), (1.5, 4), (1, 0, -0.5), (np.int32(4),), (3, 3)],
)  # fmt: skip
def test_arange(arguments: tuple[Any, ...]) -> None:
    expected = np.arange(*arguments)
    same(lnp.arange(*arguments), expected, F32 if expected.dtype.kind == "f" else I32)
    same(lnp.arange(*arguments, dtype=F32), np.arange(*arguments, dtype=F32), F32)


def test_arange_in_other_dtypes() -> None:
    same(lnp.arange(2, 7, dtype=U32), np.arange(2, 7, dtype=U32), U32)
    same(lnp.arange(lnp.array(4)), np.arange(4), I32)
    with pytest.raises(DtypeError, match="arange counts in numbers"):
        lnp.arange(3, dtype=bool)
    with pytest.raises(ShapeError, match="step must not be 0"):
        lnp.arange(0, 3, 0)


@pytest.mark.parametrize(
    ("start", "stop"),
    [(0, 1), (-2.5, 7), (3, 3), (1, -1), (np.zeros(3, F32), 2), (np.ones((2, 1), F32), np.arange(3, dtype=I32))],
)
@pytest.mark.parametrize("num", [0, 1, 2, 7])
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace(start: Any, stop: Any, num: int, endpoint: bool) -> None:
    same(lnp.linspace(start, stop, num, endpoint), np.linspace(start, stop, num, endpoint), F32)
    same(lnp.linspace(start, stop, num, endpoint, axis=-1), np.linspace(start, stop, num, endpoint, axis=-1), F32)


def test_linspace_ends_where_it_should() -> None:
    found = np.asarray(lnp.linspace(0.1, 0.7, 1000))
    assert (found[0], found[-1]) == (np.float32(0.1), np.float32(0.7))
    same(lnp.linspace(0, 5, 4, dtype=I32), np.linspace(0, 5, 4, dtype=I32), I32)
    with pytest.raises(ShapeError, match="linspace: -1"):
        lnp.linspace(0, 1, -1)


@pytest.mark.parametrize(("rows", "columns"), [(3, None), (2, 4), (4, 2), (0, 3), (1, 1)])
@pytest.mark.parametrize("k", [0, 1, -2, 9])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_eye(rows: int, columns: int | None, k: int, dtype: np.dtype) -> None:
    same(lnp.eye(rows, columns, k, dtype), np.eye(rows, columns, k, dtype), dtype)
    same(lnp.identity(rows), np.identity(rows), F32)


@pytest.mark.parametrize(
    ("data", "dtype"),
    [(2.5, F32), (3, I32), (True, BOOL), ([1, 2], I32), ([[1.0], [2]], F32), ([], F32), (np.float64(2), F32),
     (np.arange(3), I32), (np.ones((2, 0)), F32), ([True, False], BOOL), ((1, (2)), I32),
     (memoryview(b"ab"), np.dtype(np.uint8)), (range(2, 9, 3), I32),
     (np.arange(6).reshape(2, 3).T, I32), (np.array(4.0), F32)],
)  # fmt: skip
def test_arrays_of_data(data: Any, dtype: np.dtype) -> None:
    same(lnp.array(data), np.asarray(data), dtype)
    same(lnp.array(data, F32), np.asarray(data), F32)
    assert lnp.asarray(data).dtype == dtype


def test_python_scalars_are_weak_as_arrays_only_by_asarray() -> None:
    assert lnp.asarray(2).weak and not lnp.array(2).weak and not lnp.asarray(2, I32).weak
    x = lnp.array([1.0])
    assert lnp.asarray(x) is x


def test_arrays_of_traced_values() -> None:
    arrays = sample(()), sample((), I32)
    check(lambda x, y: lnp.array([[x, 1], [y, x]]), lambda x, y: np.array([[x, 1], [y, x]], F32), *arrays)
    check(lambda x: lnp.array([x, x * 2], I32), lambda x: np.array([x, x * 2], I32), sample((2, 3)))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("wanted", DTYPES, ids=str)
def test_astype(dtype: np.dtype, wanted: np.dtype) -> None:
    for shape in SHAPES:
        x = sample(shape, dtype, 0, 3)
        check(lambda x: lnp.astype(x, wanted), lambda x: x.astype(wanted), x)


def test_floats_as_integers_stay_in_range() -> None:
    x = np.array([3e9, -3e9, np.nan, np.inf, 1.9, -1.9], F32)
    expected = [2**31 - 1, -(2**31), 0, 2**31 - 1, 1, -1]
    np.testing.assert_array_equal(np.asarray(lnp.astype(x, I32)), expected)
    np.testing.assert_array_equal(np.asarray([lnp.full((), number, I32) for number in x]), expected)


@pytest.mark.parametrize("name", ["float32", "int32", "uint32", "bool_"])
def test_names_of_dtypes(name: str) -> None:
    ours, numpys = getattr(lnp, name), np.dtype(getattr(np, name))
    assert ours == numpys and numpys == ours and np.dtype(ours) == numpys
    assert ours == ours and ours != "text" and ours != lnp.ones and ours == getattr(lnp, name)
    assert {ours: 1}[ours] == 1 and ours in {numpys}
    assert lnp.zeros(2, ours).dtype == ours
    assert repr(ours) == f"lavax.numpy.{numpys.name}" and ours.__name__ == numpys.name
    called = ours(1)
    same(called, 1, numpys)
    same(ours([0, 1]), [0, 1], numpys)
    same(ours(), 0, numpys)
    assert np.zeros(2, ours).dtype == numpys


def test_names_that_mean_one_of_our_dtypes() -> None:
    meant = {F32: ("float32", float, np.float32), I32: (int, "int32"), BOOL: (bool,), U32: (np.uint32,)}
    meant |= {np.dtype(name): (name, np.dtype(name)) for name in ("float64", "int64", "uint64", "float16", "int8")}
    for dtype, names in meant.items():
        for name in names:
            assert lnp.zeros(1, name).dtype == dtype
    for name in ("float8", np.clongdouble, str, "nonsense", None.__class__):
        with pytest.raises(DtypeError, match="use one of float32, int32"):
            lnp.zeros(1, name)
    assert lnp.finfo(lnp.float32).max == np.finfo(np.float32).max
    assert lnp.iinfo(int).max == 2**31 - 1


@pytest.mark.parametrize(
    "call", [lambda: lnp.array("text"), lambda: lnp.add(object(), 2), lambda: lnp.array({}), lambda: lnp.ones(2) + None]
)
def test_what_is_no_array(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError):
        call()
    with pytest.raises(ShapeError, match="no negative extents"):
        lnp.zeros((2, -1))


@pytest.mark.parametrize(
    "call",
    [
        *(lnp.exp, lnp.sum, lnp.argmax, lnp.transpose, lnp.flip, lnp.isnan, lnp.round, lnp.mean, lnp.any),
        lambda x: lnp.add(x, x),
        lambda x: lnp.where(x, x, 0),
        lambda x: lnp.matmul(x, lnp.transpose(x)),
        lambda x: lnp.einsum("ij,kj", x, x),
        lambda x: lnp.take(x, [1, 0], 0),
        lambda x: lnp.concatenate([x, x]),
        lambda x: lnp.pad(x, 1),
        lambda x: lnp.power(x, 2),
        lambda x: lnp.clip(x, 0, 1),
    ],
)
def test_data_of_any_kind(call: Callable[[Any], lnp.ndarray]) -> None:
    numbers = sample((2, 3))
    expected = np.asarray(call(lnp.array(numbers)))
    ours = lnp.array(numbers)
    for data in (numbers, numbers.astype(np.float64), numbers.tolist(), list(numbers), ours, list(ours)):
        found = call(data)
        assert isinstance(found, lnp.ndarray)
        np.testing.assert_array_equal(np.asarray(found), expected)
