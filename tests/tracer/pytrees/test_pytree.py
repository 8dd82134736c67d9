from __future__ import annotations

import copy
import pickle
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.base.errors import TreeMismatchError
from lavax.tree import flatten, leaves, map, paths, register_dataclass, register_node, structure, unflatten

Pair = namedtuple("Pair", ["left", "right"])


@register_dataclass(static=("name",))
@dataclass(frozen=True)
class Layer:
    w: Any
    b: Any
    name: str = "layer"
    rate: float = field(default=1.0, metadata={"static": True})

    def __post_init__(self) -> None:
        assert self.w is not None


class Box:
    def __init__(self, content: Any) -> None:
        self.content = content


register_node(Box, lambda box: ([box.content], None), lambda data, children: Box(*children), lambda d, n: ["content"])

TREES = [
    1.0,
    (),
    None,
    [1, (2, 3), []],
    {"b": 1, "a": [2, None], "c": {}},
    Pair(1, Pair(2, [3])),
    {"layers": [Layer(1, 2), Layer(3, (4, 5), "other")]},
    {2: 1, 10: 2, "x": 3},
    OrderedDict(b=1, a=[2, None]),
    defaultdict(list, {"b": 1, "a": (2, 3)}),
]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_a_tree_comes_back(tree: Any) -> None:
    found, treedef = flatten(tree)
    assert unflatten(treedef, found) == tree
    assert type(unflatten(treedef, found)) is type(tree)
    assert treedef.leaf_count == len(found)
    assert len(paths(treedef)) == len(found)


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_equal_structures_are_one_object(tree: Any) -> None:
    treedef = structure(tree)
    assert structure(map(lambda leaf: object(), tree)) is treedef
    assert copy.deepcopy(treedef) is treedef
    assert pickle.loads(pickle.dumps(treedef)) is treedef


def test_leaves_are_in_order_and_dicts_by_key() -> None:
    assert leaves({"b": 1, "a": (2, [3]), "c": None}) == [2, 3, 1]
    assert structure({"b": 1, "a": 2}) is structure({"a": 1, "b": 2})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1,), [1]),
        ({"a": 1}, {"b": 1}),
        (None, ()),
        (Pair(1, 2), (1, 2)),
        (Layer(1, 2), Layer(1, 2, "other")),
        ({"a": 1, "b": 2}, OrderedDict(a=1, b=2)),
        (OrderedDict(a=1, b=2), OrderedDict(b=1, a=2)),
        (defaultdict(int, a=1), defaultdict(float, a=1)),
    ],
)
def test_different_structures_differ(one: Any, other: Any) -> None:
    assert structure(one) is not structure(other)


def test_static_fields_of_different_types_differ() -> None:
    assert structure(Layer(1, 2, rate=1.0)) is not structure(Layer(1, 2, rate=True))


@dataclass
class Scaled:
    x: Any
    settings: Any


register_dataclass(Scaled, ["x"], ["settings"])
UNHASHABLE = [
    ({"a": 2, "b": [1, {3}]}, {"b": [1, {3}], "a": 2}, {"a": 2.0, "b": [1, {3}]}),
    ([1, (2, [3])], [1, (2, [3])], [1, (2, [4])]),
    (np.arange(3), np.arange(3), np.arange(3.0)),
    ({"a": bytearray(b"x")}, {"a": bytearray(b"x")}, {"a": bytearray(b"y")}),
]


@pytest.mark.parametrize(("settings", "same", "other"), UNHASHABLE, ids=str)
def test_settings_without_a_hash(settings: Any, same: Any, other: Any) -> None:
    assert structure(Scaled(1, settings)) is structure(Scaled(2, same))
    assert structure(Scaled(1, settings)) is not structure(Scaled(1, other))
    back = map(lambda x, y: x + y, Scaled(1, settings), Scaled(2, same))
    assert back.x == 3 and str(back.settings) == str(settings) and type(back.settings) is type(settings)


def test_settings_that_are_changed_later_make_another_program() -> None:
    scaled = Scaled(1.0, {"factor": 2})
    function = lx.compile(lambda scaled: Scaled(scaled.x * scaled.settings["factor"], scaled.settings))
    first = function(scaled)
    assert float(first.x) == 2
    scaled.settings["factor"] = first.settings["factor"] = 3
    assert float(function(scaled).x) == 3
    assert float(function(Scaled(1.0, {"factor": 2})).x) == 2


def test_unhashable_keys_of_containers_are_named() -> None:
    register_node(Named, lambda named: ([], named.name), lambda data, children: Named(data), lambda d, n: [])
    with pytest.raises(TypeError, match="Named"):
        structure(Named(["a"]))


class Named:
    def __init__(self, name: Any) -> None:
        self.name = name


def test_dicts_of_other_kinds() -> None:
    assert leaves(OrderedDict(b=1, a=2)) == [1, 2]
    assert leaves(defaultdict(int, b=1, a=2)) == [2, 1]
    doubled = map(lambda leaf: 2 * leaf, defaultdict(list, a=1))
    assert doubled["a"] == 2 and doubled["new"] == []
    gradient = lx.compile(lx.grad(lambda p: p["b"] * p["a"] ** 2))(OrderedDict(b=3.0, a=2.0))
    assert [(name, float(part)) for name, part in gradient.items()] == [("b", 4), ("a", 12)]


def test_paths() -> None:
    tree = {"layers": [Layer(1, (2, 3))], "pair": Pair(4, Box(5))}
    assert paths(structure(tree)) == [
        "layers.0.w", "layers.0.b.0", "layers.0.b.1", "pair.left", "pair.right.content",
    ]  # fmt: skip


def test_map_over_several_trees() -> None:
    assert map(lambda a, b: a + b, {"x": [1, 2]}, {"x": [10, 20]}) == {"x": [11, 22]}
    assert map(lambda a, b: (a, b), {"x": 1}, {"x": [10, 20]}) == {"x": (1, [10, 20])}
    assert map(lambda a: 0, [1, (2, 3)], is_leaf=lambda part: isinstance(part, tuple)) == [0, 0]


@pytest.mark.parametrize("other", [{"x": 1}, {"x": [1]}, {"y": [1, 2]}, {"x": (1, 2)}, 3])
def test_map_says_where_trees_differ(other: Any) -> None:
    with pytest.raises(TreeMismatchError, match="at "):
        map(lambda a, b: a, {"x": [1, 2]}, other)


def test_wrong_number_of_leaves() -> None:
    with pytest.raises(TreeMismatchError, match="2 leaves, got 3"):
        unflatten(structure((1, 2)), [1, 2, 3])


def test_registration_is_checked() -> None:
    with pytest.raises(TypeError, match="not a dataclass"):
        register_dataclass(Box)
    with pytest.raises(ValueError, match="already"):
        register_dataclass(Layer)
    with pytest.raises(ValueError, match="no field missing"):
        register_dataclass(static=("missing",))(dataclass(type("Empty", (), {})))


def test_registered_classes_go_through_compile_and_grad() -> None:
    layer = Layer(2.0, 3.0)
    gradient = lx.grad(lambda layer, x: layer.w * x + layer.b * layer.rate)(layer, 5.0)
    assert isinstance(gradient, Layer) and gradient.name == "layer"
    assert (float(gradient.w), float(gradient.b)) == (5.0, 1.0)
    assert float(lx.compile(lambda box: Box(box.content + 1))(Box(1.0)).content) == 2.0


def test_reading_a_treedef() -> None:
    assert repr(structure({"a": [1, None]})) == "dict(a=list(0=*, 1=None()))"
