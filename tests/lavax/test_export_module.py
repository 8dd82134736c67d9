"""`lavax.export` under the names of jax.export, and called as a function."""
from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ExportError, ShapeError, TreeMismatchError

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.array([1.0, -2.0, 3.0], "f")


def _function(x: Any, *, scale: Any) -> Any:
    return {"y": lnp.sin(x) * scale, "sum": (lnp.sum(x),)}


def _exported() -> lx.Exported:
    return lx.export.export(lx.jit(_function))(lx.ShapeDtypeStruct((3,), lnp.float32), scale=2.0)


def test_what_is_read_from_bytes_is_the_same() -> None:
    exported = _exported()
    blob = exported.serialize(vjp_order=1)
    assert isinstance(blob, bytearray)
    for one in (exported, lx.export.deserialize(blob), lx.export.deserialize(bytes(blob))):
        found = one.call(X, scale=2.0)
        np.testing.assert_allclose(found["y"], np.sin(X) * 2, rtol=1e-6)
        np.testing.assert_array_equal(found["sum"][0], 2.0)
        slope = lx.grad(lambda x, one=one: lnp.sum(lnp.cos(one.call(x, scale=2.0)["y"])))(lnp.asarray(X))
        np.testing.assert_allclose(slope, -np.sin(2 * np.sin(X)) * 2 * np.cos(X), rtol=2e-6)


def test_it_says_what_it_takes_and_gives() -> None:
    exported = _exported()
    assert exported.fun_name == "_function"
    assert exported.has_vjp()
    assert [(one.shape, one.dtype) for one in exported.in_avals] == [((3,), np.float32), ((), np.float32)]
    assert [(one.shape, one.dtype) for one in exported.out_avals] == [((), np.float32), ((3,), np.float32)]
    assert exported.in_tree == lx.tree.structure(((0,), {"scale": 0}))
    assert exported.out_tree == lx.tree.structure({"y": 0, "sum": (0,)})


def test_the_module_is_a_function_too() -> None:
    assert importlib.import_module("lavax.export") is lx.export
    from lavax.export import Exported, deserialize

    exported = lx.export(_function, X, scale=2.0)
    assert isinstance(exported, Exported)
    assert deserialize(exported.serialize()).as_text() == exported.as_text() == _exported().as_text()


def test_what_is_refused() -> None:
    with pytest.raises(ExportError, match="takes what jit gives"):
        lx.export.export(_function)
    with pytest.raises(ShapeError, match="was exported for"):
        _exported().call(X[:2], scale=2.0)
    with pytest.raises(TreeMismatchError, match="was exported for"):
        _exported().call(X)
    blob = _exported().serialize()
    for damaged in (b"", blob[:-9], bytes(len(blob))):
        with pytest.raises(ExportError, match="damaged, or not a function"):
            lx.export.deserialize(damaged)
