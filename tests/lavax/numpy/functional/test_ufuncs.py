"""The methods of `add`, `maximum` and their like, and of functions made by `frompyfunc`, against NumPy's."""
from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ShapeError
from tests.closeness import close

pytestmark = pytest.mark.usefixtures("reference_backend")

I32 = np.array([[3, 1, 4, 1], [5, 9, 2, 6], [5, 3, 5, 8]], np.int32)
F32 = (I32 - 4.5).astype(np.float32) / 3
BOOL = I32 > 3
TRUTH = ["logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"]
SUMS = ["add", "multiply", "maximum", "minimum"]
NAMES = {
    "i": [*SUMS, "subtract", *TRUTH],
    "f": [*SUMS, "subtract", "logaddexp", "logaddexp2"],
    "b": [*SUMS, *TRUTH],
}
ARRAYS = {"i": I32, "f": F32, "b": BOOL}
CASES = [(name, kind) for kind, names in NAMES.items() for name in names]
PLACES, UPDATES = np.array([0, 2, 0]), np.array([1, 2, 3])


def _same(found: Any, expected: np.ndarray) -> None:
    if expected.dtype.kind == "f":
        close(found, expected)
    else:
        np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_methods(name: str, kind: str) -> None:
    ours, theirs, x = getattr(lnp, name), getattr(np, name), ARRAYS[kind]
    assert isinstance(ours, lnp.ufunc) and (ours.nin, ours.nout, ours.nargs) == (2, 1, 3)
    assert ours.identity == theirs.identity
    _same(ours(x, x[0]), theirs(x, x[0]))
    for axis in (0, 1, -1):
        _same(ours.reduce(x, axis=axis), theirs.reduce(x, axis=axis))
        _same(ours.reduce(x, axis=axis, keepdims=True), theirs.reduce(x, axis=axis, keepdims=True))
        if kind != "b" or name not in ("add", "multiply"):  # which lavax counts
            _same(ours.accumulate(x, axis=axis), theirs.accumulate(x, axis=axis))
    first = x[0, 0].item()
    _same(ours.reduce(x, where=BOOL, initial=first), theirs.reduce(x, where=BOOL, initial=first))
    _same(ours.outer(x, x[0]), theirs.outer(x, x[0]))
    updates = x[1, :3] if kind == "b" else UPDATES.astype(x.dtype)
    expected = x[0].copy()
    theirs.at(expected, PLACES, updates)
    _same(ours.at(x[0], PLACES, updates, inplace=False), expected)


@pytest.mark.parametrize("name", ["add", "maximum", "subtract"])
def test_reductions_between_places(name: str) -> None:
    for x in (I32, F32):
        for axis, places in ((1, [0, 2, 1]), (0, [0, 1])):
            _same(getattr(lnp, name).reduceat(x, places, axis=axis), getattr(np, name).reduceat(x, places, axis=axis))


def test_all_axes_and_no_elements() -> None:
    _same(lnp.subtract.reduce(F32, axis=None), np.subtract.reduce(F32.ravel()))
    assert lnp.subtract.reduce(F32, axis=None, keepdims=True).shape == (1, 1)
    _same(lnp.logaddexp.reduce(np.zeros((0, 2), np.float32)), np.full(2, -np.inf, np.float32))
    with pytest.raises(ValueError, match=r"subtract.reduce: there are no elements"):
        lnp.subtract.reduce(np.zeros((0, 2), np.float32))


@pytest.mark.parametrize("name", ["add", "maximum", "logaddexp", "bitwise_xor"])
def test_several_axes(name: str) -> None:
    ours, theirs = getattr(lnp, name), getattr(np, name)
    x = (I32 if name == "bitwise_xor" else F32).reshape(3, 2, 2)
    for axis in ((0, 1), (2, 0), (-1,), (), (0, 1, 2)):
        for keepdims in (False, True):
            found = ours.reduce(x, axis=axis, keepdims=keepdims)
            expected = theirs.reduce(x, axis=axis, keepdims=keepdims)
            assert found.shape == expected.shape
            _same(found, expected)


def test_narrow_integers() -> None:
    """Sums have the bits of `sum`, and what makes floats of integers makes them between places, too."""
    x = np.array([100, 100, 3], np.int8)
    assert lnp.add.reduce(x) == 203 and lnp.multiply.reduce(x) == 30_000
    assert lnp.add.reduce(x).dtype == np.int32 and lnp.add.reduce(x.astype(np.uint8)).dtype == np.uint32
    close(lnp.logaddexp.reduceat(x, [0, 2]), [100 + np.log(2), 3])


def test_copies_and_pickles_are_the_function_itself() -> None:
    for name in ("add", "maximum", "logical_or", "logaddexp", "negative"):
        function = getattr(lnp, name)
        assert pickle.loads(pickle.dumps(function)) is function
        assert copy.deepcopy([function])[0] is function is copy.copy(function)
    made = lnp.frompyfunc(lambda x, y: x * y, 2, 1)
    assert copy.copy(made)(2, 3) == 6


def test_one_argument() -> None:
    found = lnp.negative.at(F32[0], PLACES, inplace=False)
    np.testing.assert_array_equal(np.asarray(found), F32[0] * [1, 1, -1, 1])  # twice at 0
    for method in (lnp.negative.reduce, lnp.negative.accumulate):
        with pytest.raises(ValueError, match="of functions of two arrays"):
            method(F32)


def test_functions_of_python() -> None:
    ours = lnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1, identity=0)
    assert isinstance(ours, lnp.ufunc) and ours.identity == 0
    close(ours(F32, F32[0]), F32 + 2 * F32[0])
    close(ours.reduce(F32), 2 * F32.sum(0))
    close(ours.accumulate(F32, axis=1)[:, 1], F32[:, 0] + 2 * F32[:, 1])
    close(ours.outer(F32[0], F32[1]), F32[0][:, None] + 2 * F32[1])
    close(ours.at(F32[0], [1, 1], 1.0, inplace=False), F32[0] + np.array([0, 4, 0, 0]))
    halves, squares = lnp.frompyfunc(lambda x: (x / 2, x * x), 1, 2)(F32)
    close(halves, F32 / 2)
    close(squares, F32**2)


def test_traced_and_differentiated() -> None:
    close(lx.compile(lnp.logaddexp.reduce)(F32), np.logaddexp.reduce(F32))
    close(lx.grad(lambda x: lnp.logaddexp.reduce(x))(F32[0]), np.exp(F32[0]) / np.exp(F32[0]).sum())
    assert lx.compile(lnp.add)(1, 2).dtype == np.int32 and lx.grad(lnp.multiply)(2.0, 3.0) == 3
    assert "add" in repr(lnp.add) and lnp.add.__doc__


def test_what_does_not_fit() -> None:
    with pytest.raises(NotImplementedError, match="inplace=False"):
        lnp.add.at(F32[0], 0, 1.0)
    with pytest.raises(ValueError, match="initial is needed"):
        lnp.subtract.reduce(F32, where=BOOL)
    with pytest.raises(ShapeError, match="one axis"):
        lnp.add.reduceat(F32, [[0]])
