"""Reductions over segments, against loops in NumPy and against JAX."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp

pytestmark = pytest.mark.usefixtures("reference_backend")

JOINS: dict[str, tuple[Callable[..., Any], float]] = {
    "segment_sum": (np.sum, 0),
    "segment_prod": (np.prod, 1),
    "segment_max": (np.max, -np.inf),
    "segment_min": (np.min, np.inf),
}
IDS = np.array([2, 0, 2, 5, -1, 0])  # 5 and -1 name no segment; 1 and 3 have no rows


@pytest.mark.parametrize("name", JOINS)
def test_against_numpy(name: str) -> None:
    data = np.random.default_rng(0).normal(size=(6, 3)).astype("f")
    join, empty = JOINS[name]
    wanted = [join(data[k == IDS], axis=0) if (k == IDS).any() else np.full(3, empty) for k in range(4)]
    np.testing.assert_allclose(np.asarray(getattr(lx.ops, name)(data, IDS, 4)), wanted, rtol=1e-6)
    compiled = lx.compile(lambda d, i: getattr(lx.ops, name)(d, i, num_segments=4))
    np.testing.assert_allclose(np.asarray(compiled(data, IDS)), wanted, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in JOINS if name != "segment_prod"])  # of which JAX has no gradient
def test_against_jax(name: str) -> None:
    jax = pytest.importorskip("jax", reason="compares with JAX")
    generator = np.random.default_rng(1)
    data, weights = generator.normal(size=(6, 2)).astype("f"), generator.normal(size=(4, 2)).astype("f")

    def loss(module: Any, numpy: Any, x: Any) -> Any:
        made = getattr(module.ops, name)(numpy.sin(x), IDS, 4)
        return 3 * numpy.sum(numpy.where(numpy.isfinite(made), made, 0.0) * weights)

    wanted = jax.grad(lambda x: loss(jax, jax.numpy, x))(data)
    np.testing.assert_allclose(np.asarray(lx.grad(lambda x: loss(lx, lnp, x))(data)), wanted, rtol=1e-5)


def test_extrema_of_complex_numbers() -> None:
    data, ids = np.array([1 + 2j, 3 + 1j, 3 - 1j], np.complex64), np.array([0, 1, 1])
    assert np.asarray(lx.ops.segment_max(data, ids, 3)).tolist() == [1 + 2j, 3 + 1j, complex(-np.inf, 0)]
    assert np.asarray(lx.ops.segment_min(data, ids, 3)).tolist() == [1 + 2j, 3 - 1j, complex(np.inf, 0)]


def test_sums_without_a_number_of_segments() -> None:
    assert np.asarray(lx.ops.segment_sum(np.arange(5.0), np.array([0, 0, 1, 1, 2]))).tolist() == [1, 5, 4]
    assert np.asarray(lx.ops.segment_max(np.array([3, 1]), np.array([1, 1]), 2)).tolist() == [-(2**31), 3]
    assert np.asarray(lx.ops.segment_sum(np.ones((2, 2, 3)), np.array([[0, 1], [1, 1]]), 2)).tolist() == [
        [1] * 3, [3] * 3,
    ]
    assert np.asarray(lx.ops.segment_sum(np.arange(3.0), np.array([0, 7, -3]), 2, mode="clip")).tolist() == [2, 1]
    with pytest.raises(lx.DtypeError, match=r"segment_sum: segment_ids must be integers"):
        lx.ops.segment_sum(np.ones(2), np.ones(2), 2)
    with pytest.raises(lx.ShapeError, match="leading axes"):
        lx.ops.segment_sum(np.ones(2), np.array([1, 2, 3]), 2)


@pytest.mark.parametrize("mode", [None, "drop", "fill"])
def test_rows_of_no_segment_take_no_row_of_the_result(mode: Any) -> None:
    """Nor is the result copied without such a row; numbers may be known while tracing."""
    data = np.arange(18, dtype="f").reshape(6, 3)
    known = lx.compile(lambda d: lx.ops.segment_sum(d, IDS, 4, mode=mode))
    given = lx.compile(lambda d, i: lx.ops.segment_sum(d, i, num_segments=4, mode=mode))
    assert "f32[5,3]" not in given.lower(data, IDS).as_text("ir")
    wanted = [data[k == IDS].sum(0) for k in range(4)]
    np.testing.assert_array_equal(np.asarray(known(data)), wanted)
    np.testing.assert_array_equal(np.asarray(given(data, IDS)), wanted)
    with pytest.raises(ValueError, match="mode is one of"):
        lx.ops.segment_sum(data, IDS, 4, mode="wrap")


@pytest.mark.parametrize("mode", [None, "clip"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint32])
def test_more_segments_than_the_dtype_of_their_numbers_holds(dtype: type[np.generic], mode: Any) -> None:
    data, ids = np.arange(5, dtype="f") + 1, np.array([0, 2, 100, 2, 127], dtype)
    expected = np.zeros(256, "f")
    np.add.at(expected, ids.astype(int), data)
    found = lx.compile(lambda d, i: lx.ops.segment_sum(d, i, 256, mode=mode))(data, ids)
    np.testing.assert_array_equal(np.asarray(found), expected)
    far = lx.ops.segment_sum(data, np.array([0, 1, 2**32 - 1, 2**31, 1], np.uint32), 3, mode=mode)
    assert np.asarray(far).tolist() == [1, 7, 7 if mode else 0]


def test_one_number_for_all_rows() -> None:
    ids = np.array([0, 1, 1, 1, 5])
    assert lx.ops.segment_sum(3.0, ids, 2).tolist() == [3, 9]
    assert lx.ops.segment_max(np.float32(3), ids, 3).tolist() == [3, 3, -np.inf]
