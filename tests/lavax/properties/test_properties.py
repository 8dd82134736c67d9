"""Every public function of lavax.numpy against NumPy's, on arguments that hypothesis draws.

Each example is compared twice: the traced graph in float64 with NumPy in float64, and the function called at once
with NumPy arrays of any memory layout in float32, with a tolerance from the graph's condition at the arguments.
"""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import lavax as lx
import lavax.numpy as lnp
from lavax.numpy.arrays.scalar_types import ScalarType
from tests.lavax.properties.cases import WIDTHS, Case, check, in_widths
from tests.lavax.properties.table import CASES, WITHOUT_CASE

CHECKS = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.large_base_example,
          HealthCheck.filter_too_much, HealthCheck.data_too_large]  # fmt: skip
FEW = settings(max_examples=10, derandomize=True, database=None, suppress_health_check=CHECKS)
MANY = settings(max_examples=200, database=None, suppress_health_check=CHECKS)
SOME = settings(MANY, max_examples=20)
FEWER = settings(FEW, max_examples=4)


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("name", CASES)
@FEW
@given(data=st.data())
def test_as_numpy_does(name: str, data: st.DataObject) -> None:
    check(CASES[name], data.draw(CASES[name].arguments))


@pytest.mark.long
@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("name", CASES)
@MANY
@given(data=st.data())
def test_as_numpy_does_on_many_arguments(name: str, data: st.DataObject) -> None:
    check(CASES[name], data.draw(CASES[name].arguments))


WIDE = {family: st.sampled_from(names) for family, names in WIDTHS.items()}


def _check_in_some_widths(case: Case, data: st.DataObject, on_device: bool) -> None:
    """NumPy makes a float of uint64 with a signed integer, which stay integers here."""
    widths = {family: data.draw(names) for family, names in WIDE.items()}
    drawn = in_widths(data.draw(case.arguments), widths)
    dtypes = {array.dtype for array in drawn.arrays}
    assume(np.dtype(np.uint64) not in dtypes or not any(dtype.kind == "i" for dtype in dtypes))
    with lx.enable_x64():
        check(case, drawn, on_device)


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("name", [name for name in CASES if not CASES[name].single])
@FEWER
@given(data=st.data())
def test_as_numpy_does_in_some_widths(name: str, data: st.DataObject) -> None:
    """Every function meets a few; each width meets many functions."""
    _check_in_some_widths(CASES[name], data, False)


@pytest.mark.long
@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("name", [name for name in CASES if not CASES[name].single])
@MANY
@given(data=st.data())
def test_as_numpy_does_in_every_width(name: str, data: st.DataObject) -> None:
    _check_in_some_widths(CASES[name], data, False)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in CASES if not CASES[name].single])
@SOME
@given(data=st.data())
def test_on_the_device_in_every_width(name: str, data: st.DataObject) -> None:
    _check_in_some_widths(CASES[name], data, True)


# One of each kind of kernel is enough for the device: its tests of operations and random graphs have the rest.
ON_DEVICE = (
    "add", "floor_divide", "clip", "where", "sum", "var", "argmax", "nanmax", "cumsum", "median", "matmul", "cross",
    "interp", "sort", "argsort", "searchsorted", "take", "put_along_axis", "unique", "x[slices]", "x[positions]",
    "x.at[slices]", "x.at[positions].get", "concatenate", "pad", "roll", "repeat", "linspace", "tril",
    "gcd", "insert at computed positions", "packbits", "polyfit",
)  # fmt: skip
SPARSE = settings(FEW, max_examples=3)


@pytest.mark.parametrize("name", ON_DEVICE)
@SPARSE
@given(data=st.data())
def test_on_the_device(name: str, data: st.DataObject) -> None:
    check(CASES[name], data.draw(CASES[name].arguments), on_device=True)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
@SOME
@given(data=st.data())
def test_on_the_device_on_many_arguments(name: str, data: st.DataObject) -> None:
    check(CASES[name], data.draw(CASES[name].arguments), on_device=True)


def test_every_public_function_has_a_case() -> None:
    """By its name or by another of the same function."""
    checked = [getattr(lnp, name) for name in CASES if hasattr(lnp, name)]
    missing = [
        name
        for name in lnp.__all__
        if callable(found := getattr(lnp, name))
        and not isinstance(found, ScalarType)
        and name not in WITHOUT_CASE
        and not any(found is one for one in checked)
    ]
    assert not missing
    assert all(hasattr(lnp, name) and name not in CASES for name in WITHOUT_CASE)
    assert all(name in CASES for name in ON_DEVICE)
