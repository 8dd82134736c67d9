"""Trees with some of their nodes replaced."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax import nn
from lavax.base.errors import TreeMismatchError


class Pair(nn.Module):
    left: Any
    right: Any = None
    name: str = nn.field(static=True, default="pair")


TREE = {"a": Pair(1, (2, 3)), "b": [4, None]}


def test_leaves_subtrees_and_none_are_replaced() -> None:
    made = lx.tree.at(lambda t: t["a"].left, TREE, 10)
    assert made["a"].left == 10 and made["a"].right == (2, 3) and made["b"] == [4, None]
    assert TREE["a"].left == 1  # type: ignore[attr-defined]
    assert lx.tree.at(lambda t: t["a"].right, TREE, {"new": 5})["a"].right == {"new": 5}
    assert lx.tree.at(lambda t: t["b"][1], TREE, 6)["b"] == [4, 6]
    assert lx.tree.at(lambda t: t["b"][0], TREE, None)["b"] == [None, None]
    assert lx.tree.at(lambda t: t, TREE, 7) == 7


def test_several_at_once_and_by_a_function() -> None:
    made = lx.tree.at(lambda t: (t["b"][0], t["a"].right[1]), TREE, (40, 30))
    assert made["b"] == [40, None] and made["a"].right == (2, 30)
    made = lx.tree.at(lambda t: [t["a"].right, t["a"].left], TREE, replace_fn=lambda node: [node, node])
    assert made["a"].right == [(2, 3), (2, 3)] and made["a"].left == [1, 1]


def test_layers_of_a_model() -> None:
    model = nn.MLP(2, 3, 4, 1, key=lx.random.key(0))
    zeros = np.zeros((3, 4), np.float32)
    made = lx.tree.at(lambda m: m.layers[-1].weight, model, zeros)
    assert isinstance(made, nn.MLP) and made.layers[-1].weight is zeros
    assert made.layers[0].weight is model.layers[0].weight
    swapped = lx.tree.at(lambda m: m.layers, model, replace_fn=lambda layers: layers[::-1])
    assert swapped.layers[0].weight is model.layers[1].weight


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match="give either a replacement or replace_fn"):
        lx.tree.at(lambda t: t["b"], TREE)
    with pytest.raises(TreeMismatchError, match="`where` must return nodes of the tree, got str"):
        lx.tree.at(lambda t: t["a"].name, TREE, "other")
    with pytest.raises(TreeMismatchError, match="picked 2 nodes, so the replacement must be a tuple or list"):
        lx.tree.at(lambda t: (t["b"], t["a"]), TREE, 5)
    with pytest.raises(TreeMismatchError, match="picked 2 nodes, of which 1 are at a place of their own"):
        lx.tree.at(lambda t: (t["b"], t["b"][0]), TREE, (1, 2))
