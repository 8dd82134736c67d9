"""Dtypes of every width: promotion, conversion, rounding, and arithmetic that wraps."""
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.brain_floats import brain_floats_from_bits, brain_floats_to_bits

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
NAMES = ("bool", *INTEGERS, *FLOATS)
ALL_BITS = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)


def _in_the_standard(first: str, second: str) -> bool:
    kinds = {np.dtype(first).kind, np.dtype(second).kind}
    mixed = kinds == {"i", "u"} and "uint64" in (first, second)
    return not mixed and (len(kinds) == 1 or kinds == {"i", "u"})


@pytest.mark.parametrize(("first", "second"), list(itertools.product(NAMES, NAMES)))
def test_promotion(first: str, second: str) -> None:
    """The standard's table, which is NumPy's; bool yields to numbers and integers to the float."""
    x, y = lnp.zeros(2, first), lnp.zeros(2, second)
    kinds = {np.dtype(first).kind, np.dtype(second).kind}
    if _in_the_standard(first, second):
        wanted = np.promote_types(first, second)
    elif "b" in kinds or "f" in kinds:
        wanted = max(np.dtype(first), np.dtype(second), key=lambda dtype: "buif".index(dtype.kind.replace("i", "u")))
    else:
        wanted = np.dtype(np.int64)
    if wanted.itemsize == 8 and 8 not in (np.dtype(first).itemsize, np.dtype(second).itemsize):
        wanted = np.dtype(np.int32)  # 64 bits are not enabled
    assert lnp.where(lnp.zeros(2, bool), x, y).dtype == wanted


def test_bfloat16_in_promotion() -> None:
    x = lnp.zeros(2, lnp.bfloat16)
    for name in ("bool", *INTEGERS):
        assert (x + lnp.zeros(2, name)).dtype == lnp.bfloat16
    assert [(x + lnp.zeros(2, name)).dtype for name in FLOATS] == ["float32", "float32", "float64"]


@pytest.mark.parametrize("name", (*INTEGERS, *FLOATS))
def test_python_scalars_yield(name: str) -> None:
    x = lnp.ones(2, name)
    assert (x + 1).dtype == name
    assert (x + 1.5).dtype == (name if name in FLOATS else "float32")


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_wrap(name: str) -> None:
    random = np.random.default_rng(3)
    bounds = np.iinfo(name)
    x, y = (random.integers(bounds.min, bounds.max, 64, dtype=name, endpoint=True) for _ in range(2))
    ours = [lnp.asarray(array, name) for array in (x, y)]
    for op in ("add", "subtract", "multiply"):
        found = getattr(lnp, op)(*ours)
        assert found.dtype == name
        np.testing.assert_array_equal(np.asarray(found), getattr(np, op)(x, y))
    np.testing.assert_array_equal(np.asarray(lnp.sum(ours[0], dtype=name)), x.sum(dtype=name))


@pytest.mark.parametrize(("source", "target"), list(itertools.product(INTEGERS, (*INTEGERS, *FLOATS))))
def test_casts_of_integers_are_numpys(source: str, target: str) -> None:
    bounds = np.iinfo(source)
    x = np.random.default_rng(4).integers(bounds.min, bounds.max, 64, dtype=source, endpoint=True)
    with np.errstate(over="ignore"):
        expected = x.astype(target)
    np.testing.assert_array_equal(np.asarray(lnp.astype(lnp.asarray(x, source), target)), expected)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(FLOATS, INTEGERS)))
def test_casts_to_integers_saturate(source: str, target: str) -> None:
    x = np.array([0.7, -0.7, 3.9, -3.9, 1e30, -1e30, np.inf, -np.inf, np.nan, 60000.0], "f8")
    with np.errstate(over="ignore"):
        x = x.astype(source)
    bounds = np.iinfo(target)
    expected = [0 if v != v else int(min(max(v, bounds.min), bounds.max)) for v in x.astype(object)]
    pairs = zip(x, expected, strict=True)
    expected = [min(max(int(v), bounds.min), bounds.max) if np.isfinite(v) else e for v, e in pairs]
    found = np.asarray(lnp.astype(lnp.asarray(x, source), target))
    np.testing.assert_array_equal(found, np.array(expected, dtype=object).astype(target))


def _between(values: np.ndarray) -> np.ndarray:
    """float32 numbers around every 16-bit one: itself, halfway to the next, and next to halfway."""
    finite = np.unique(values[np.isfinite(values)].astype(np.float64))
    middle = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)
    normal = np.abs(middle) > 1e-37
    middle = middle[normal]
    return np.concatenate([finite.astype(np.float32), middle, np.nextafter(middle, np.float32(np.inf)),
                           np.nextafter(middle, np.float32(-np.inf))])  # fmt: skip


def test_float16_rounds_to_nearest_even_everywhere() -> None:
    x = _between(ALL_BITS.view(np.float16).astype(np.float32))
    x = np.concatenate([x, np.array([65519.996, 65520.0, 1e9, -1e9, np.inf, -np.inf, np.nan], np.float32)])
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    found = np.asarray(lnp.astype(lnp.asarray(x), lnp.float16))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.asarray(lnp.astype(lnp.asarray(expected), lnp.float32)), expected.astype("f4"))


def test_bfloat16_rounds_to_nearest_even_everywhere() -> None:
    x = _between(brain_floats_from_bits(ALL_BITS))
    x = x[(np.abs(x) >= np.finfo(np.float32).tiny) | (x == 0)]  # devices may flush what is denormal
    found = np.asarray(lnp.astype(lnp.asarray(x), lnp.bfloat16))
    np.testing.assert_array_equal(found, brain_floats_from_bits(brain_floats_to_bits(x)))


def test_bfloat16_on_the_host_rounds_to_the_nearest() -> None:
    x = np.random.default_rng(5).normal(size=1000)
    grid = np.unique(brain_floats_from_bits(ALL_BITS)[np.isfinite(brain_floats_from_bits(ALL_BITS))]).astype(np.float64)
    after = np.searchsorted(grid, x)
    low, high = grid[after - 1], grid[after]
    nearest = np.where(x - low < high - x, low, high)
    np.testing.assert_array_equal(brain_floats_from_bits(brain_floats_to_bits(x)), nearest)


def test_bfloat16_is_the_dtype_that_other_libraries_have() -> None:
    x = lnp.asarray([1.0, 2.5], lnp.bfloat16)
    assert x.dtype == np.dtype(ml_dtypes.bfloat16) == lnp.bfloat16 == "bfloat16"
    theirs = np.asarray(x)
    assert theirs.dtype == np.array(x).dtype == np.stack([x, x]).dtype == x.dtype
    assert np.asarray(x, np.float32).dtype == np.float32 and x.tolist() == [1.0, 2.5]
    for again in (lnp.asarray(theirs), lnp.asarray(theirs.astype(np.float32), ml_dtypes.bfloat16)):
        assert again.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(again), [1.0, 2.5])


@pytest.mark.parametrize("shape", [(), (0, 3), (256, 256), (64, 2, 512)])
def test_bfloat16_reaches_numpy_bit_for_bit(shape: tuple[int, ...]) -> None:
    bits = np.resize(ALL_BITS, shape)
    found = np.asarray(lnp.asarray(bits.view(ml_dtypes.bfloat16)))
    assert found.shape == shape and found.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(found.view(np.uint16), bits)


@pytest.mark.parametrize("wanted", ["uint8", "int16", "float16", "int32", "float32"])
@pytest.mark.parametrize("held", ["int8", "uint16", "float16", "uint32", "float32"])
def test_views_have_the_bits_of_numpys(held: str, wanted: str) -> None:
    x = np.random.default_rng(3).integers(1, 100, (3, 2, 8)).astype(held)
    np.testing.assert_array_equal(lnp.asarray(x).view(wanted), x.view(wanted))  # type: ignore[attr-defined]


def test_views_that_do_not_fit() -> None:
    for x, dtype in ((lnp.zeros(3, "uint8"), "int16"), (lnp.zeros((), "uint8"), "int16"), (lnp.zeros(()), "uint8")):
        with pytest.raises(ShapeError, match="view: "):
            x.view(dtype)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4", "uint2"])
def test_narrow_numbers_of_ml_dtypes_are_converted_where_a_dtype_is_given(name: str) -> None:
    narrow = np.array([0, 1, 2, 3], getattr(ml_dtypes, name))
    for dtype in ("float32", "bfloat16", "int8"):
        found = lnp.asarray(narrow, dtype)
        assert found.dtype == dtype
        np.testing.assert_array_equal(np.asarray(found, np.float32), narrow.astype(np.float32))
    with pytest.raises(DtypeError, match=rf"{name} has no counterpart here: .*asarray\(x, dtype\) converts"):
        lnp.asarray(narrow)


def test_float64_to_16_bits_rounds_once() -> None:
    x = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11, 1 + 2.0**-11 - 2.0**-40])
    found = np.asarray(lnp.astype(lnp.asarray(x, lnp.float64), lnp.float16))
    np.testing.assert_array_equal(found, x.astype(np.float16))


def test_sums_of_16_bits_accumulate_in_float32() -> None:
    for dtype in (lnp.float16, lnp.bfloat16):
        assert float(lnp.sum(lnp.full((4096,), 1.0, dtype))) == 4096.0
        assert float(lnp.matmul(lnp.full((2, 4096), 1.0, dtype), lnp.full((4096, 2), 1.0, dtype))[0, 0]) == 4096.0


# Of 6000 numbers about 18, with weights about 1: partial sums and products leave the range of float16, results do not.
LARGE, WEIGHTS = (np.random.default_rng(0).uniform(*span, 6000).astype(np.float16) for span in ((5, 30), (0.5, 2)))
SMALL, ROWS = (LARGE / 8192).astype(np.float16), LARGE.reshape(40, 150)
ACCUMULATING: dict[str, tuple[Callable[[Any], Callable[..., Any]], tuple[np.ndarray, ...]]] = {
    "sum": (lambda n: n.sum, (SMALL,)),
    "mean": (lambda n: n.mean, (LARGE,)),
    "nanmean": (lambda n: n.nanmean, (LARGE,)),
    "var": (lambda n: n.var, (LARGE,)),
    "nanstd": (lambda n: n.nanstd, (LARGE,)),
    "average": (lambda n: lambda x, w: n.average(x, weights=w), (LARGE, WEIGHTS)),
    "average of rows": (lambda n: lambda x, w: n.average(x, 1, w), (ROWS, WEIGHTS[:150])),
    "cov": (lambda n: lambda x: n.cov(x)[0, 0], (ROWS,)),
    "trapezoid": (lambda n: lambda y: n.trapezoid(y, dx=2.0**-9), (LARGE,)),
    "trapezoid of points": (lambda n: lambda y, x: n.trapezoid(y, x), (np.full_like(LARGE, 3e4), SMALL)),
    "gradient": (lambda n: n.gradient, (LARGE,)),
    "cross": (lambda n: lambda x: n.cross(x[:, :3], x[:, 3:6]), (ROWS,)),
    "cumsum": (lambda n: n.cumsum, (SMALL,)),
    "dot": (lambda n: n.dot, (SMALL, WEIGHTS)),
    "vecdot": (lambda n: n.vecdot, (SMALL, WEIGHTS)),
    "products that cancel": (lambda n: lambda x: n.vdot(x, n.asarray([1, -1], x.dtype) * x), (LARGE[:1] * [16, 16],)),
    "matmul": (lambda n: lambda x: n.matmul(x, x.T), (ROWS / 16,)),
    "convolve": (lambda n: n.convolve, (SMALL[:300], WEIGHTS[:200])),
    "norm": (lambda n: n.linalg.norm, (LARGE,)),
    "norm of rows": (lambda n: lambda x: n.linalg.norm(x, axis=1), (ROWS,)),
    "norm of a matrix": (lambda n: lambda x: n.linalg.norm(x, "fro"), (ROWS,)),
    "norm of columns": (lambda n: lambda x: n.linalg.norm(x, 1), (ROWS,)),
    "polyval": (lambda n: n.polyval, (WEIGHTS[:8], SMALL * 256)),
    "sum of one repeated": (lambda n: lambda x: n.sum(n.broadcast_to(x[0], (10**6,))), (SMALL / 64,)),
}


@pytest.mark.parametrize("name", ACCUMULATING)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_results_of_16_bits_accumulate_in_float32(name: str, dtype: str) -> None:
    """The result is the exact one but for one rounding, and float32's along the way."""
    function, arrays = ACCUMULATING[name]
    given = [lnp.asarray(array, dtype) for array in arrays]
    exact = np.asarray(function(np)(*(np.asarray(array).astype(np.float64) for array in given)))
    for call in (function(lnp), lx.compile(function(lnp))):
        found = call(*given)
        assert found.dtype == dtype
        unit = 2.0 ** (-11 if dtype == "float16" else -8)
        np.testing.assert_allclose(np.asarray(found).astype(np.float64), exact, rtol=1.05 * unit, atol=2.0**-24)


def test_every_operation_rounds_bfloat16() -> None:
    x = lnp.asarray([1.0, 3.0], lnp.bfloat16)
    compiled = lx.compile(lambda x: (x / 3) * 3 - x)
    third = brain_floats_from_bits(brain_floats_to_bits(np.array([1 / 3, 1.0])))
    product = brain_floats_from_bits(brain_floats_to_bits(third * np.float32(3)))
    expected = brain_floats_from_bits(brain_floats_to_bits(product - np.array([1, 3], np.float32)))
    for found in (compiled(x), (x / 3) * 3 - x):
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_gradients_keep_the_dtype() -> None:
    for dtype in (lnp.float16, lnp.bfloat16, lnp.float64):
        x = lnp.asarray([1.0, 2.0], dtype)
        slope = lx.grad(lambda x: lnp.sum(x * x))(x)
        assert slope.dtype == dtype
        np.testing.assert_array_equal(np.asarray(slope), [2.0, 4.0])
    through = lx.grad(lambda x: lnp.sum(lnp.astype(x, lnp.bfloat16) ** 2).astype(lnp.float32))(lnp.arange(3.0))
    np.testing.assert_array_equal(np.asarray(through), [0.0, 2.0, 4.0])


def test_64_bit_data_stay_so_only_where_asked_for() -> None:
    x = np.array([0.1, 1e300])
    assert lnp.asarray(x[:1]).dtype == np.float32
    np.testing.assert_array_equal(np.asarray(lnp.asarray(x, lnp.float64)), x)
    with lx.enable_x64():
        np.testing.assert_array_equal(np.asarray(lnp.asarray(x)), x)
        assert lnp.asarray(np.arange(3)).dtype == np.int64
    np.testing.assert_array_equal(np.asarray(lnp.asarray([1 << 40], lnp.int64) * 3), [3 << 40])


def test_bits_of_every_width() -> None:
    key = lx.random.key(0)
    words = np.asarray(lx.random.bits(key, (5,)))
    for width in (8, 16):
        np.testing.assert_array_equal(np.asarray(lx.random.bits(key, (5,), f"uint{width}")), words % 2**width)
    wide = np.asarray(lx.random.bits(key, (5,), "uint64"))
    np.testing.assert_array_equal((wide >> np.uint64(32)) ^ (wide & np.uint64(2**32 - 1)), words)


def test_limits() -> None:
    assert lnp.finfo(lnp.bfloat16).max == float(brain_floats_from_bits(np.array([0x7F7F], np.uint16))[0])
    assert lnp.finfo(lnp.float16).bits == 16 and lnp.iinfo(lnp.uint64).max == 2**64 - 1
    with pytest.raises(DtypeError, match="iinfo: f32 is not an integer"):
        lnp.iinfo(lnp.float32)
    with pytest.raises(DtypeError, match="-1 is outside uint8"):
        lnp.asarray([1], lnp.uint8) + -1
