"""Pytrees under JAX's names: registration, key paths, and functions with arguments as trees."""
from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax import tree_util as tu
from lavax.base.errors import TreeMismatchError

Pair = namedtuple("Pair", ["left", "right"])


@tu.register_pytree_node_class
class Scaled:
    """Its data have no hash, as in JAX's own page on methods."""

    def __init__(self, x: Any, factor: int) -> None:
        self.x = x
        self.factor = factor

    def tree_flatten(self) -> tuple[tuple[Any], dict[str, int]]:
        return (self.x,), {"factor": self.factor}

    @classmethod
    def tree_unflatten(cls, data: dict[str, int], children: tuple[Any]) -> Scaled:
        return cls(*children, **data)

    @lx.jit
    def product(self, y: Any) -> Any:
        return self.factor * self.x * y


@dataclass
class Special:
    x: Any
    y: Any


class OwnKey:
    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return f"<{self.name}>"


tu.register_pytree_with_keys(
    Special,
    lambda s: (((tu.GetAttrKey("x"), s.x), (OwnKey("y"), s.y)), None),
    lambda data, children: Special(*children),
)


@tu.register_static
class Name(str):
    pass


@partial(tu.register_dataclass, data_fields=["w", "b"], meta_fields=["name"])
@dataclass
class Layer:
    b: Any
    w: Any
    name: str = "layer"


@tu.register_dataclass
@dataclass
class Marked:
    x: Any
    kind: str = lx.tree.static(default="add")


class Plain:
    def __init__(self, a: Any, b: Any = 0) -> None:
        self.a, self.b = a, b


tu.register_dataclass(Plain, data_fields=["a"], meta_fields=["b"])


def test_data_without_a_hash() -> None:
    assert float(Scaled(2.0, 3).product(5.0)) == 30
    assert tu.tree_structure(Scaled(1, 2)) is tu.tree_structure(Scaled(5, 2))
    assert tu.tree_structure(Scaled(1, 2)) is not tu.tree_structure(Scaled(1, 3))
    gradient = lx.grad(lambda s: s.product(2.0))(Scaled(4.0, 3))
    assert isinstance(gradient, Scaled) and float(gradient.x) == 6


def test_key_paths() -> None:
    tree = {"a": Pair(1, [2, None]), "s": Special(Scaled(3, 1), 4)}
    pairs, treedef = tu.tree_flatten_with_path(tree)
    assert [tu.keystr(path) for path, _ in pairs] == [
        "['a'].left", "['a'].right[0]", "['s'].x[<flat index 0>]", "['s']<y>",
    ]
    assert [tu.keystr(path, simple=True, separator="/") for path, _ in pairs][:3] == ["a/left", "a/right/0", "s/x/0"]
    assert pairs[0][0] == (tu.DictKey("a"), tu.GetAttrKey("left")) and pairs[0][0][0].key == "a"
    assert f"{pairs[1][0]}" == str(pairs[1][0]) == "a.right.0"
    assert treedef is tu.tree_structure(tree)
    assert lx.tree.paths(treedef) == ["a.left", "a.right.0", "s.x.0", "s.1"]
    deep = tu.tree_leaves_with_path([[1, 2], [3]], is_leaf=lambda path, x: len(path) == 1, is_leaf_takes_path=True)
    assert [(tu.keystr(path), leaf) for path, leaf in deep] == [("[0]", [1, 2]), ("[1]", [3])]


def test_the_same_paths_as_jax() -> None:
    jax = pytest.importorskip("jax", reason="compares with JAX")
    tree = {"b": Pair(1, [2, None]), "a": (3, {"x": 4, "w": []}), "c": 5}
    ours = [(tu.keystr(path), leaf) for path, leaf in tu.tree_leaves_with_path(tree)]
    assert ours == [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]
    mine, theirs = tu.tree_structure(tree), jax.tree_util.tree_structure(tree)
    assert (mine.num_leaves, mine.num_nodes, len(mine.children())) == (
        theirs.num_leaves, theirs.num_nodes, len(theirs.children()),
    )


def test_treedefs() -> None:
    treedef = tu.tree_structure({"a": [1, 2], "b": 3})
    assert (treedef.num_leaves, treedef.num_nodes) == (3, 5)
    assert treedef.unflatten([1, 2, 3]) == {"a": [1, 2], "b": 3}
    assert treedef.children() == tu.treedef_children(treedef) == [tu.tree_structure([0, 0]), tu.tree_structure(0)]
    assert tu.treedef_is_leaf(treedef.children()[1]) and not tu.treedef_is_leaf(treedef)
    assert tu.treedef_tuple([treedef, treedef]) is tu.tree_structure(({"a": [1, 2], "b": 3},) * 2)
    assert treedef.node_data() == (dict, ("a", "b")) and tu.tree_structure(1).node_data() is None
    assert treedef.flatten_up_to({"a": [[1], 2], "b": (3,)}) == [[1], 2, (3,)]
    pair = tu.tree_structure((0, 0))
    assert pair.compose(treedef) is tu.tree_structure(({"a": [1, 2], "b": 3},) * 2)
    assert tu.tree_structure(0).compose(pair) is pair.compose(tu.tree_structure(0)) is pair


def test_classes() -> None:
    layer = Layer(w=1.0, b=2.0)
    assert tu.tree_leaves(layer) == [1.0, 2.0]
    assert tu.tree_map(lambda leaf: leaf * 2, layer) == Layer(w=2.0, b=4.0)
    assert tu.tree_leaves((Name("a"), 1)) == [1]
    assert tu.tree_structure(Name("a")) is not tu.tree_structure(Name("b"))
    assert tu.tree_leaves(Marked(1.0)) == [1.0] and tu.tree_map(str, Marked(1.0, "max")) == Marked("1.0", "max")
    rebuilt = tu.tree_map(lambda leaf: leaf + 1, Plain(1, 5))
    assert (rebuilt.a, rebuilt.b) == (2, 5)
    assert tu.is_tree_node(Layer) and tu.is_tree_node(dict) and not tu.is_tree_node(float)
    with pytest.raises(TypeError, match="both data_fields and meta_fields"):
        tu.register_dataclass(Pair, data_fields=["left"])
    half: Any = dataclass(type("Half", (), {"__annotations__": {"a": int, "b": int}}))
    with pytest.raises(ValueError, match="b of Half stands in none"):
        tu.register_dataclass(half, ["a"], [])
    with pytest.raises(ValueError, match="Half has no field c"):
        tu.register_dataclass(half, ["a", "c"], ["b"])
    with pytest.raises(ValueError, match="b of Half cannot be both data and settings"):
        tu.register_dataclass(half, ["a", "b"], ["b"])


def test_partial_goes_through_compiled_functions() -> None:
    def power(n: int, x: Any, scale: Any = 1.0) -> Any:
        return scale * x**n

    function = tu.Partial(power, 3, scale=2.0)
    assert tu.tree_leaves(function) == [3, 2.0]
    assert float(lx.jit(lambda f, x: f(x))(function, 2.0)) == 16
    gradient = lx.grad(lambda f: f(2.0))(tu.Partial(lambda a, x: a * x, 5.0))
    assert isinstance(gradient, tu.Partial) and float(gradient.args[0]) == 2
    back = lx.jit(lambda x: tu.Partial(power, 2, scale=x))(3.0)
    assert float(back(2.0)) == 12


def test_whole_trees() -> None:
    assert tu.tree_reduce(lambda a, b: a + b, [1, (2, 3)], initializer=4) == 10
    assert tu.tree_reduce_associative(lambda a, b: f"({a}{b})", list("abcde")) == "(((ab)(cd))e)"
    assert tu.tree_reduce_associative(max, [], identity=7) == 7
    with pytest.raises(TypeError, match="identity"):
        tu.tree_reduce_associative(max, [])
    assert tu.tree_broadcast({"a": 1, "b": 2}, {"a": (0, [0]), "b": 0}) == {"a": (1, [1]), "b": 2}
    with pytest.raises(TreeMismatchError, match="prefix"):
        tu.tree_broadcast({"a": 1}, [0])
    assert tu.all_leaves([1, "a"]) and not tu.all_leaves([1, [2]])
    assert tu.tree_transpose(tu.tree_structure([0, 0]), None, [{"w": 1}, {"w": 2}]) == {"w": [1, 2]}
    assert tu.flatten_one_level({"b": [1], "a": 2}) == ((2, [1]), ("a", "b"))
    assert tu.flatten_one_level_with_keys(Special(1, 2))[0][0] == (tu.GetAttrKey("x"), 1)
    with pytest.raises(ValueError, match="float is a leaf"):
        tu.flatten_one_level(1.0)


def test_ravel_pytree() -> None:
    tree = {"a": np.arange(6, dtype="f").reshape(2, 3), "b": [np.array([1, 2]), 0.5]}
    vector, back = lx.flatten_util.ravel_pytree(tree)
    assert np.asarray(vector).tolist() == [0, 1, 2, 3, 4, 5, 1, 2, 0.5]
    again = back(2 * vector)
    assert again["b"][0].dtype == np.int32 and np.asarray(again["b"][0]).tolist() == [2, 4]
    gradient = lx.grad(lambda v: lx.numpy.sum(back(v)["a"] ** 2))(vector)
    assert np.asarray(gradient).tolist() == [0, 2, 4, 6, 8, 10, 0, 0, 0]
    with pytest.raises(lx.ShapeError, match="9 elements"):
        back(np.zeros(3))
    mixed, back = lx.flatten_util.ravel_pytree([1 / 3, lx.numpy.ones(2, "float16")])
    assert mixed.dtype == np.float32 and float(mixed[0]) == np.float32(1 / 3)
    assert [leaf.dtype for leaf in back(mixed)] == [np.float32, np.float16]
    empty, back = lx.flatten_util.ravel_pytree([])
    assert empty.shape == (0,) and back(empty) == []
