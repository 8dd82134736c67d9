"""Arrays, keys and numbers that Hypothesis draws through the namespace of the standard.

Hypothesis makes arrays with the functions of the namespace and by writing to them. It asks for complex dtypes from
version 2022.12 on, so this is its first version.
"""
from __future__ import annotations

import operator
from typing import Any

import hypothesis.extra.array_api as array_api
import hypothesis.extra.numpy as arrays_of_numpy
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lavax.numpy as lnp

pytestmark = pytest.mark.usefixtures("reference_backend")

drawn = array_api.make_strategies_namespace(lnp, api_version="2021.12")
often = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
# The reference interpreter computes in float64, which does not hold all integers of 64 bits.
DTYPES = st.sampled_from([lnp.bool, lnp.int8, lnp.int16, lnp.int32, lnp.uint8, lnp.uint16, lnp.uint32, lnp.float32])
SHAPES = drawn.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)


@often
@given(st.data())
def test_parts_are_read_and_written(data: Any) -> None:
    x = data.draw(drawn.arrays(DTYPES, SHAPES))
    numbers = np.array(x)
    key = data.draw(
        drawn.indices(x.shape, allow_newaxis=True)
        | arrays_of_numpy.arrays(bool, x.shape)
        | (arrays_of_numpy.integer_array_indices(x.shape) if x.size and x.ndim else st.just(...))
    )
    np.testing.assert_array_equal(np.asarray(x[key]), numbers[key])
    value = data.draw(drawn.from_dtype(x.dtype) | drawn.arrays(x.dtype, numbers[key].shape))
    written, expected = lnp.asarray(x, copy=True), numbers.copy()
    written[key] = value
    expected[key] = np.asarray(value)
    np.testing.assert_array_equal(np.asarray(written), expected)
    np.testing.assert_array_equal(np.asarray(x), numbers)
    assert written.dtype == x.dtype


@often
@given(st.data())
def test_operators_in_place(data: Any) -> None:
    dtype = data.draw(st.sampled_from([lnp.int32, lnp.uint8, lnp.float32]))
    shape = data.draw(SHAPES)
    within = {"min_value": -1000, "max_value": 1000} if dtype == lnp.float32 else {}
    x, y = (data.draw(drawn.arrays(dtype, shape, elements=within or None)) for _ in range(2))
    for operate in ("add", "sub", "mul"):
        left, right = getattr(operator, f"i{operate}")(lnp.asarray(x), y), np.array(x)
        getattr(right, f"__i{operate}__")(np.asarray(y))
        np.testing.assert_array_equal(np.asarray(left), right)
        assert left.dtype == dtype


@often
@given(drawn.arrays(DTYPES, SHAPES))
def test_sets_have_what_arrays_have(x: Any) -> None:
    values, indices, inverse, counts = lnp.unique_all(x)
    flat = np.asarray(x).ravel()
    np.testing.assert_array_equal(np.asarray(values), flat[np.asarray(indices)])
    np.testing.assert_array_equal(np.asarray(values)[np.asarray(inverse)], np.asarray(x))
    assert inverse.shape == x.shape and int(lnp.sum(counts)) == x.size
    assert np.asarray(counts).tolist() == np.bincount(np.asarray(inverse).ravel(), minlength=values.size).tolist()
