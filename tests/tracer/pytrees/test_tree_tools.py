"""Leaves with their places, and trees of trees turned inside out."""
from __future__ import annotations

import pytest

from lavax import tree
from lavax.base.errors import TreeMismatchError

TREE = {"layers": [{"w": 1, "b": 2}, {"w": 3, "b": 4}], "scale": (5,)}


def test_paths_go_with_leaves() -> None:
    pairs, treedef = tree.flatten_with_path(TREE)
    assert [(str(path), leaf) for path, leaf in pairs] == [
        ("layers.0.b", 2), ("layers.0.w", 1), ("layers.1.b", 4), ("layers.1.w", 3), ("scale.0", 5),
    ]
    assert treedef is tree.structure(TREE)
    assert tree.leaves_with_path(TREE) == pairs
    named = tree.map_with_path(lambda path, leaf, other: f"{path}={leaf + other}", TREE, TREE)
    assert named["layers"][1]["w"] == "layers.1.w=6"
    with pytest.raises(TreeMismatchError, match="at layers"):
        tree.map_with_path(lambda path, *leaves: path, TREE, {"layers": [], "scale": (0,)})


def test_transpose() -> None:
    inner = tree.structure({"w": 0, "b": 0})
    turned = tree.transpose(tree.structure([0, 0]), inner, TREE["layers"])
    assert turned == {"w": [1, 3], "b": [2, 4]}
    assert tree.transpose(inner, tree.structure([0, 0]), turned) == TREE["layers"]
    with pytest.raises(TreeMismatchError, match="expected dict"):
        tree.transpose(tree.structure([0, 0]), inner, [{"w": 1, "b": 2}, 3])
    with pytest.raises(TreeMismatchError, match="has no leaves"):
        tree.transpose(tree.structure(()), inner, ())


def test_reduce() -> None:
    assert tree.reduce(lambda total, leaf: total + leaf, TREE, 10) == 25
    assert tree.reduce(lambda total, leaf: f"{total}{leaf}", TREE) == "21435"
    assert tree.reduce(lambda total, leaf: total + leaf, (), None) is None
    with pytest.raises(TypeError, match="empty"):
        tree.reduce(lambda total, leaf: total + leaf, ())


def test_all() -> None:
    assert tree.all(TREE) and tree.all({})
    assert not tree.all({"a": 1, "b": [0]})
