"""Writing to arrays: what an array holds afterwards, and what is refused."""
from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ArrayIndexError, DonatedArrayError, DtypeError, ShapeError
from lavax.tracer.values.backend import active

pytestmark = pytest.mark.usefixtures("reference_backend")

GIVEN = np.arange(24, dtype="f").reshape(2, 3, 4)
PLACES = np.array([[1, 0], [0, 1]])

KEYS: list[Any] = [
    1, -1, (0, 2), (1, 2, 3), (), ..., slice(None), slice(1, None), (slice(None), slice(None, None, -2)), (..., 1),
    (..., slice(1, 3)), (1, ..., None, 2), (None, 0), GIVEN > 7, GIVEN[:, :, 0] > 7, (0, GIVEN[0] > 2),
    (..., np.array([True, False, False, True])), np.array([1, 0]), PLACES, (slice(None), np.array([0, 2])),
    (np.array([0, 1]), np.array([2, 0])), (PLACES, ..., np.array([3, 0])), (1, np.array([0, 2]), slice(1, 3)),
    slice(0, 0), np.zeros(0, int), True, False, np.zeros(0, bool), np.zeros((2, 0), bool), (0, np.zeros(0, bool)),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("form", ["scalar", "whole"])
def test_written_as_in_numpy(key: Any, form: str) -> None:
    expected, array = GIVEN.copy(), lnp.asarray(GIVEN)
    shape = expected[key].shape
    value: Any = 5.5 if form == "scalar" else np.arange(100, 100 + np.prod(shape), dtype="f").reshape(shape)
    expected[key] = value
    same = array
    array[key] = value
    np.testing.assert_array_equal(np.asarray(same), expected)
    assert same is array and array.dtype == np.float32


@pytest.mark.parametrize("key", [slice(1, None), (slice(None), [2, 0]), GIVEN > 7, GIVEN[:, 0, 0] > 7])
def test_keys_and_values_may_be_arrays(key: Any) -> None:
    expected, array = GIVEN.copy(), lnp.asarray(GIVEN)
    expected[key] = 2 * GIVEN[key]
    parts = key if isinstance(key, tuple) else (key,)
    held = tuple(part if isinstance(part, slice) else lnp.asarray(np.asarray(part)) for part in parts)
    array[held] = 2 * array[held]
    np.testing.assert_array_equal(np.asarray(array), expected)


def test_values_are_broadcast() -> None:
    expected, array = GIVEN.copy(), lnp.asarray(GIVEN)
    row, column = np.array([1, 2, 3, 4], "f"), np.array([[[7], [8], [9]]], "f")
    for key, value in ((1, row), ((slice(None), slice(1)), row), (..., column), ((0, 0, slice(1)), row[:1])):
        expected[key] = value
        array[key] = lnp.asarray(value)
        np.testing.assert_array_equal(np.asarray(array), expected)
    with pytest.raises(ShapeError):
        array[0] = row[:2]
    with pytest.raises(ShapeError):
        array[0, 0, 0] = row
    np.testing.assert_array_equal(np.asarray(array), expected)


def test_an_array_may_be_written_with_itself() -> None:
    array = lnp.arange(5)
    array[1:] = array[:-1]
    array[...] = array
    array += array
    assert array.tolist() == [0, 0, 2, 4, 6]


def test_positions_outside() -> None:
    array = lnp.arange(3.0)
    for key in (3, -4, (0, 0), np.array([3])):
        with pytest.raises(ArrayIndexError):
            array[key] = 1
    array[lnp.asarray([7, 1])] = 9
    assert array.tolist() == [0, 9, 2]


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int32", 1.5),
        ("int32", np.ones(3, "f")),
        ("uint8", np.arange(3)),
        ("uint8", 256),
        ("uint8", -1),
        ("int8", 128),
        ("bool", 1),
        ("bool", np.ones(3, "u1")),
        ("bfloat16", "x"),
        ("float32", 1j),
    ],
)
def test_values_that_the_dtype_does_not_hold(dtype: str, value: Any) -> None:
    array = lnp.zeros(3, dtype)
    with pytest.raises(DtypeError):
        array[...] = value
    assert not np.asarray(array).any()


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float32", 3),
        ("float32", True),
        ("float16", np.float32(3)),
        ("bfloat16", np.float32(3)),
        ("float32", np.arange(3)),
        ("int8", np.arange(3)),
        ("int32", np.arange(3, dtype="u4")),
        ("uint8", 3),
        ("uint8", lnp.asarray(3)),
        ("uint8", True),
        ("bool", True),
    ],
)
def test_values_get_the_dtype_of_the_array(dtype: str, value: Any) -> None:
    array = lnp.zeros(3, dtype)
    array[...] = value
    assert array.dtype == lnp.zeros(1, dtype).dtype
    np.testing.assert_array_equal(np.asarray(array).astype("f"), np.broadcast_to(np.asarray(value, "f"), 3))


IN_PLACE: list[tuple[Any, str]] = [
    *[(function, "f4") for function in (operator.iadd, operator.isub, operator.imul, operator.itruediv)],
    *[(function, "f4") for function in (operator.ifloordiv, operator.imod, operator.ipow)],
    *[(function, "i4") for function in (operator.iadd, operator.ifloordiv, operator.imod, operator.ipow)],
    *[(function, "i4") for function in (operator.iand, operator.ior, operator.ixor)],
    *[(function, "i4") for function in (operator.ilshift, operator.irshift)],
    *[(function, "?") for function in (operator.iand, operator.ior, operator.ixor)],
]  # fmt: skip


@pytest.mark.parametrize(("function", "dtype"), IN_PLACE)
def test_operators_leave_other_names_alone(function: Any, dtype: str) -> None:
    left, right = np.array([[3, 1, 5], [2, 7, 4]]).astype(dtype), np.array([2, 1, 3]).astype(dtype)
    expected, array = left.copy(), lnp.asarray(left)
    function(expected, right)
    same = array
    result = function(array, lnp.asarray(right))
    assert result is not same and result.dtype == left.dtype
    np.testing.assert_array_equal(np.asarray(same), left)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6)


def test_operators_have_shapes_and_dtypes_of_their_own() -> None:
    column, counts, unsigned = lnp.zeros((3, 1)), lnp.arange(3), lnp.zeros(3, "uint8")
    column += np.ones(3, "f")
    unsigned -= counts
    counts += 0.5
    assert column.shape == (3, 3) and unsigned.dtype == np.int32 and counts.tolist() == [0.5, 1.5, 2.5]
    counts @= np.ones((3, 2), "f")
    assert counts.tolist() == [4.5, 4.5]
    with pytest.raises(TypeError):
        counts += "x"


def test_numpy_takes_part() -> None:
    array, numbers = lnp.arange(3.0), np.arange(3.0)
    array += numbers
    numbers += np.asarray(array)
    assert array.tolist() == [0, 2, 4] and numbers.tolist() == [0, 3, 6]


def test_traced_values_are_not_written() -> None:
    def set_first(x: Any) -> Any:
        x[0] = 1
        return x

    kept = lnp.zeros(3)

    def set_outer(x: Any) -> Any:
        kept[0] = x[0]
        return x

    for function in (set_first, set_outer):
        for transform in (lx.compile, lx.vmap, lx.grad):
            with pytest.raises(TypeError, match=r"x = x\.at\[key\]\.set\(value\)"):
                transform(function)(lnp.ones((3, 3)))
    assert kept.tolist() == [0, 0, 0]


def test_operators_make_new_values_while_a_function_is_traced() -> None:
    outer, given = lnp.ones(3), lnp.arange(3.0)

    def added(x: Any) -> Any:
        before = x
        x += 1
        total = outer
        total += x
        return total * before

    assert lx.compile(added)(given).tolist() == [0 * 2, 1 * 3, 2 * 4]
    assert lx.grad(lambda x: added(x).sum())(given).tolist() == [2, 4, 6]
    assert outer.tolist() == [1, 1, 1] and given.tolist() == [0, 1, 2]
    assert lx.compile(lambda x: operator.iadd(x, 0.5))(np.arange(2)).tolist() == [0.5, 1.5], "as in JAX: x = x + 0.5"


def test_weak_numbers() -> None:
    """An array of Python scalars alone stays weak only if Python scalars alone are written to it."""
    weak = lnp.asarray(2.0)
    weak[...] = 3.0
    assert (weak * lnp.ones(2, "float16")).dtype == np.float16 and float(weak) == 3
    weak[...] = lnp.ones((), "float16")
    assert weak.dtype == np.float32 and (weak * lnp.ones(2, "float16")).dtype == np.float32


def test_donated_arrays_are_not_written() -> None:
    array = lx.device_put(np.ones(3, "f"))
    lx.compile(lambda x: x + 1, donate_argnums=0)(array)
    for key in (0, ...):
        with pytest.raises(DonatedArrayError):
            array[key] = 1
    with pytest.raises(DonatedArrayError):
        array += 1


REPLACING: list[tuple[str, tuple[Any, ...]]] = [
    ("put", ([0, 5, -1], [9.0, 8.0])),
    ("put", ([], [])),
    ("place", (GIVEN[0] > 2, [9.0, 8.0])),
    ("fill_diagonal", (7.0,)),
    ("put_along_axis", (np.array([[1], [0], [3]]), 5.0, 1)),
    ("put_along_axis", (np.array([1, 7]), 5.0, None)),
]


@pytest.mark.parametrize(("name", "arguments"), REPLACING)
def test_functions_that_write(name: str, arguments: tuple[Any, ...]) -> None:
    expected, array = GIVEN[0].copy(), lnp.asarray(GIVEN[0])
    getattr(np, name)(expected, *arguments)
    function = getattr(lnp, name)
    new = function(array, *arguments, inplace=False)
    np.testing.assert_array_equal(np.asarray(new), expected)
    np.testing.assert_array_equal(np.asarray(array), GIVEN[0])
    assert function(array, *arguments) is array
    np.testing.assert_array_equal(np.asarray(array), expected)
    for call in (lambda: function(GIVEN[0], *arguments), lambda: lx.compile(lambda x: function(x, *arguments))(array)):
        with pytest.raises(ValueError, match=f"{name}: .*inplace=False"):
            call()


def test_one_program_serves_all_positions() -> None:
    x, image = lnp.zeros(10), lnp.zeros((4, 5), "int32")
    for _ in range(2):  # the first program fills the zeros in
        x[0], image[0, 0], image[0] = 1.0, 1, lnp.ones(5, "int32")
    compiled = active().compiled  # type: ignore[attr-defined]  # of the reference backend
    before = len(compiled)
    for i in range(1, 4):
        x[i], image[i, i], image[-i] = float(i), i, lnp.full(5, i, "int32")
    assert len(compiled) == before
    assert x.tolist() == [1, 1, 2, 3, 0, 0, 0, 0, 0, 0] and image[1].tolist() == [3] * 5
