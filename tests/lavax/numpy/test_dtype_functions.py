"""Dtypes of every width: functions of dtypes, dtypes of reductions, and conversions from and to NumPy."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DtypeError

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
NAMES = ("bool", *SIGNED, *UNSIGNED, *FLOATS)
KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric")


def numpy_agrees(first: str, second: str) -> bool:
    """NumPy makes wider floats of integers with floats, and floats of uint64 with signed integers; nothing else."""
    kinds = {np.dtype(first).kind, np.dtype(second).kind}
    return kinds <= {"f", "b"} or ("f" not in kinds and not ("uint64" in (first, second) and "i" in kinds))


def expected_promotion(first: str, second: str) -> np.dtype[Any]:
    """That of the array API; an integer yields to a float, and uint64 with a signed integer is int64."""
    if numpy_agrees(first, second):
        return np.promote_types(first, second)
    floats = [name for name in (first, second) if name in FLOATS]
    return np.dtype(max(floats, key=FLOATS.index) if floats else "int64")


@pytest.mark.parametrize(("first", "second"), list(itertools.product(NAMES, NAMES)))
def test_promotion_is_the_same_for_dtypes_arrays_and_sums(first: str, second: str) -> None:
    expected = expected_promotion(first, second)
    assert lnp.can_cast(first, second) == np.can_cast(first, second)
    if expected.itemsize == 8 and 8 not in (np.dtype(first).itemsize, np.dtype(second).itemsize):
        expected = np.dtype(np.int32)  # 64 bits are not enabled
    x, y = lnp.zeros(2, dtype=first), lnp.zeros(2, dtype=second)
    assert lnp.promote_types(first, second) == lnp.result_type(x, y) == lnp.add(x, y).dtype == expected


@pytest.mark.parametrize("name", NAMES)
def test_kinds_are_those_of_numpy(name: str) -> None:
    for kind in (*KINDS, ("signed integer", "bool")):
        assert lnp.isdtype(np.dtype(name), kind) == np.isdtype(np.dtype(name), kind), kind


@pytest.mark.parametrize("name", [*SIGNED, *UNSIGNED])
def test_limits_of_integers(name: str) -> None:
    found, expected = lnp.iinfo(name), np.iinfo(name)
    assert all(getattr(found, part) == getattr(expected, part) for part in ("bits", "min", "max", "dtype"))


@pytest.mark.parametrize("name", FLOATS)
def test_limits_of_floats(name: str) -> None:
    found, expected = lnp.finfo(name), np.finfo(name)
    parts = ("bits", "eps", "min", "max", "smallest_normal", "dtype")
    assert all(getattr(found, part) == getattr(expected, part) for part in parts)


@pytest.mark.parametrize("name", NAMES)
def test_data_comes_in_and_goes_out_in_its_own_width(name: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(name)
    with lx.enable_x64():
        held, shared = lnp.asarray(array), lnp.from_dlpack(array)
    back = np.asarray(held)
    assert held.dtype == back.dtype == shared.dtype == np.from_dlpack(held).dtype == array.dtype
    for same in (back, np.asarray(shared), np.from_dlpack(held)):
        np.testing.assert_array_equal(same, array)


def test_data_of_64_bits_are_converted_once() -> None:
    between = np.array([1 + 2**-11 + 2**-40])  # rounded to float32 first, it would be a tie
    assert np.asarray(lnp.asarray(between, dtype="float16"))[0] == np.float16(between[0]) == 1 + 2**-10
    assert int(lnp.asarray(np.array([2**32 - 1]), dtype="uint32")[0]) == 2**32 - 1


@pytest.mark.parametrize("function", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("name", NAMES[1:])
def test_narrow_integers_are_accumulated_in_32_bits(name: str, function: str) -> None:
    x = np.array([3, 100, 90], name) if name not in FLOATS else np.array([3, 5, 7], name)
    found = getattr(lnp, function)(lnp.asarray(x, dtype=name))
    kind = np.dtype(name).kind
    held = np.dtype(f"{kind}4") if kind in "iu" and x.itemsize < 4 else np.dtype(name)
    assert found.dtype == held
    np.testing.assert_array_equal(np.asarray(found), getattr(np, function)(x, dtype=held))


@pytest.mark.parametrize("function", ["mean", "var", "std", "nanmean", "nanvar", "average"])
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_many_floats_of_16_bits_have_an_average(name: str, function: str) -> None:
    x = lnp.asarray(np.arange(100_000, dtype=np.float32) % 2 * 8 + 1, dtype=name)
    found = getattr(lnp, function)(x)
    expected = {"mean": 5, "nanmean": 5, "average": 5, "std": 4}.get(function, 16)
    assert found.dtype == x.dtype
    assert float(found) == expected


@pytest.mark.parametrize("index", [*SIGNED, *UNSIGNED])
def test_indices_may_have_any_width(index: str) -> None:
    x = np.arange(300, dtype=np.float32)
    places = np.array([5, 100, 0, 127], index)
    counted = places if index in UNSIGNED else np.array([-1, 100, -128, 127], index)
    held = lnp.asarray(counted, dtype=index)
    # Traced, so that positions are not known.
    taken = lx.compile(lambda a, i: (lnp.take(a, i), a[i], lnp.take_along_axis(a, i), a.at[i].set(0.0)))
    found = taken(x, held)
    written = x.copy()
    written[counted] = 0
    for ours, right in zip(found, (x[counted], x[counted], x[counted], written), strict=True):
        np.testing.assert_array_equal(np.asarray(ours), right)


def test_indices_of_64_bits_beyond_the_array_read_nan() -> None:
    x = np.arange(5, dtype=np.float32)
    places = lnp.asarray(np.array([2**32 + 1, -(2**33), 3]), dtype="int64")
    np.testing.assert_array_equal(np.asarray(lx.compile(lnp.take)(x, places)), [np.nan, np.nan, 3])
    unsigned = lnp.asarray(np.array([2**31 + 7, 2**32 - 1, 3]), dtype="uint32")
    np.testing.assert_array_equal(np.asarray(lx.compile(lnp.take)(x, unsigned)), [np.nan, np.nan, 3])


@pytest.mark.parametrize("name", FLOATS)
def test_neighbours_are_those_of_the_width(name: str) -> None:
    special = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, np.finfo(name).max, np.finfo(name).tiny], name)
    x, y = (grid.ravel() for grid in np.meshgrid(special, special))
    found = np.asarray(lnp.nextafter(lnp.asarray(x, dtype=name), lnp.asarray(y, dtype=name)))
    with np.errstate(all="ignore"):
        expected = np.where(x == y, y, np.nextafter(x, y))  # of two zeros NumPy gives in float16 the other one
    assert found.dtype == name
    # By their bits, but that of a NaN.
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), ~numbers)
    np.testing.assert_array_equal(found[numbers].view(f"u{found.itemsize}"), expected[numbers].view(f"u{x.itemsize}"))


def test_neighbours_in_bfloat16() -> None:
    x = lnp.asarray([1.0, -2.0, 0.0, 3.3895313892515355e38], dtype="bfloat16")
    y = lnp.asarray([2.0, 2.0, -1.0, float("inf")], dtype="bfloat16")
    expected = [1 + 2.0**-7, -2 + 2.0**-7, -(2.0**-133), np.inf]
    np.testing.assert_array_equal(np.asarray(lnp.nextafter(x, y)).astype(np.float64), expected)


@pytest.mark.parametrize("function", ["linspace", "logspace", "geomspace"])
def test_spaces_of_float64_have_its_digits(function: str) -> None:
    found = getattr(lnp, function)(0.1, 0.7, 11, dtype="float64")
    np.testing.assert_allclose(np.asarray(found), getattr(np, function)(0.1, 0.7, 11), rtol=1e-15)


@pytest.mark.parametrize("other", ["bfloat16", "int32", "bool", "uint8"])
def test_bfloat16_is_promoted_as_operations_promote_it(other: str) -> None:
    """JAX's table, too: bfloat16 with integers and truth values is bfloat16."""
    x, y = lnp.ones(2, lnp.bfloat16), lnp.ones(2, other)
    assert lnp.promote_types(lnp.bfloat16, other) == lnp.result_type(x, y) == lnp.add(x, y).dtype == lnp.bfloat16
    assert lnp.promote_types(lnp.bfloat16, lnp.float32) == lnp.result_type(x, np.float32(1)) == np.float32


@pytest.mark.parametrize("given", [3, np.ones(2, np.float32)])
def test_promote_types_refuses_what_is_no_dtype(given: object) -> None:
    assert lnp.promote_types(int, "int8") == np.int8
    for pair in ((given, "int8"), ("int8", given)):
        with pytest.raises(DtypeError):
            lnp.promote_types(*pair)
