"""`vmap` of lavax.numpy's functions equals the function of each element, by graphs in float64."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lavax as lx
import lavax.numpy as lnp
from lavax.ir import interpret, verify
from tests.lavax.numpy.arrays import traced
from tests.lavax.properties.cases import REFUSALS, TINY, Arguments
from tests.lavax.properties.table import CASES
from tests.lavax.properties.test_properties import FEW, MANY

pytestmark = pytest.mark.usefixtures("reference_backend")

BATCHED = [name for name, case in CASES.items() if not case.eager and name not in ("arange", "broadcast_shapes")]


def check(name: str, drawn: Arguments) -> None:
    case = CASES[name]
    function = lambda *arrays: case.call(lnp)(*arrays, **drawn.options)  # noqa: E731
    if not drawn.arrays:
        return
    elements = [drawn.arrays, tuple(np.flip(array) for array in drawn.arrays)]
    try:
        alone = traced(function, *drawn.arrays)
    except REFUSALS:
        return  # tests/lavax/properties/test_properties.py has what is refused
    together = traced(lx.vmap(function), *(np.stack(pair) for pair in zip(*elements, strict=True)))
    verify(together)
    held = np.float32 if case.single else np.float64
    found = interpret(together, *(np.stack(pair) for pair in zip(*elements, strict=True)), dtype=held)
    expected = zip(*(interpret(alone, *arrays, dtype=held) for arrays in elements), strict=True)
    for output, ours, right in zip(together.outputs, found, map(np.stack, expected), strict=True):
        assert output.type.shape == right.shape
        assert ours.dtype == right.dtype
        np.testing.assert_allclose(ours, right, rtol=1e-12, atol=TINY)


@pytest.mark.parametrize("name", BATCHED)
@settings(FEW, max_examples=5)
@given(data=st.data())
def test_of_many_as_of_each(name: str, data: st.DataObject) -> None:
    check(name, data.draw(CASES[name].arguments))


@pytest.mark.long
@pytest.mark.parametrize("name", BATCHED)
@MANY
@given(data=st.data())
def test_of_many_as_of_each_on_many_arguments(name: str, data: st.DataObject) -> None:
    check(name, data.draw(CASES[name].arguments))
