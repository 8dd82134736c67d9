"""Trees of arrays as vectors."""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import optim, random


def test_trees_as_vectors() -> None:
    tree = {"a": np.array([1, -4], np.float32), "b": None, "c": np.zeros((0, 2), np.float32), "d": np.float32(2)}
    assert [float(fold(tree)) for fold in (optim.tree.sum, optim.tree.max, optim.tree.min)] == [-1, 2, -4]
    assert float(optim.tree.sum(optim.tree.ones_like(tree))) == 3
    assert float(optim.tree.sum({})) == 0
    with pytest.raises(ValueError, match="max: the tree has no numbers"):
        optim.tree.max({"a": None})


def test_complex_leaves_are_conjugated_and_have_real_parts() -> None:
    tree = {"z": lnp.asarray([1 + 2j, -3j]), "x": lnp.asarray([5.0])}
    conjugates, parts = optim.tree.conj(tree), optim.tree.real(tree)
    assert np.array_equal(conjugates["z"], [1 - 2j, 3j]) and np.array_equal(parts["z"], [1, 0])
    assert parts["z"].dtype == lnp.float32 and conjugates["x"] is tree["x"] and parts["x"] is tree["x"]


def test_trees_are_close_if_all_their_numbers_are() -> None:
    tree = {"a": lnp.asarray([1.0, np.nan]), "b": (lnp.asarray(2.0), None)}
    moved = {"a": lnp.asarray([1.0, np.nan]), "b": (lnp.asarray(2.001), None)}
    assert not optim.tree.allclose(tree, tree)
    assert optim.tree.allclose(tree, tree, equal_nan=True)
    assert not optim.tree.allclose(tree, moved, equal_nan=True)
    assert lx.compile(optim.tree.allclose)(tree["b"], moved["b"], 1e-3)
    assert optim.tree.allclose({}, {})


def test_draws_have_shapes_and_dtypes_of_leaves_and_keys_of_their_own() -> None:
    tree = {"a": lnp.zeros((300, 2)), "b": [lnp.zeros((300, 2)), lnp.zeros(3, lnp.bfloat16)]}
    draws = optim.tree.random_like(random.key(1), tree)
    assert lx.tree.map(lambda x: (x.shape, x.dtype), draws) == lx.tree.map(lambda x: (x.shape, x.dtype), tree)
    assert abs(float(np.corrcoef(np.ravel(draws["a"]), np.ravel(draws["b"][0]))[0, 1])) < 0.2
    keys = lx.tree.leaves(optim.tree.split_key_like(random.key(1), tree))
    uniform = optim.tree.random_like(random.key(1), tree, random.uniform, lnp.float32)
    assert np.array_equal(uniform["b"][1], random.uniform(keys[2], (3,)))
