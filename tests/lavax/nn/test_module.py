"""Modules: pytrees with settings, constructors, and fields that never change."""
from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn

pytestmark = pytest.mark.usefixtures("reference_backend")


class Affine(nn.Module):
    scale: Any
    offset: Any = None
    name: str = nn.field(static=True, default="affine")

    def __call__(self, x: Any) -> Any:
        return x * self.scale if self.offset is None else x * self.scale + self.offset


class Stack(nn.Module):
    parts: list[Affine]
    depth: int = nn.field(static=True)

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.parts = [Affine(np.float32(i + 2)) for i in range(depth)]

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x


class Named(Stack):
    """Adds nothing, and keeps the constructor of its parent."""


def test_fields_are_leaves_and_settings_are_structure() -> None:
    model = Affine(np.float32(2), np.float32(3))
    assert lx.tree.leaves(model) == [2, 3]
    assert lx.tree.structure(model) is lx.tree.structure(Affine(np.float32(5), np.float32(7)))
    assert lx.tree.structure(model) is not lx.tree.structure(model.replace(name="other"))
    assert [str(path) for path, _ in lx.tree.leaves_with_path(Stack(2))] == ["parts.0.scale", "parts.1.scale"]


def test_gradients_are_modules() -> None:
    found = lx.grad(lambda model, x: lnp.sin(model(x)))(Stack(2), np.float32(0.1))
    assert isinstance(found, Stack) and found.depth == 2
    np.testing.assert_allclose([float(p.scale) for p in found.parts], 0.1 * np.cos(0.6) * np.array([3, 2]), rtol=1e-6)


def test_modules_are_mapped_and_compiled() -> None:
    model = Affine(np.float32(2), np.array([1, 2], "f"))
    x = np.ones((3, 2), "f")
    np.testing.assert_array_equal(lx.compile(lambda m, x: lx.vmap(m)(x))(model, x), [[3, 4]] * 3)


def test_a_subclass_keeps_the_constructor() -> None:
    assert isinstance(Named(3).parts[2], Affine)


def test_modules_do_not_change() -> None:
    model = Stack(1)
    with pytest.raises(AttributeError, match=r"Stack\.depth is set already, .* use replace\(depth=\.\.\.\)"):
        model.depth = 2
    with pytest.raises(AttributeError, match="Stack has no field 'width'; declare it"):
        model.width = 2  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del model.depth
    with pytest.raises(TypeError, match=r"Stack\.replace: no field width"):
        model.replace(width=3)
    assert model.replace(depth=5).depth == 5 and model.depth == 1


def test_modules_are_copied_and_pickled() -> None:
    for made in (copy.deepcopy(Stack(2)), pickle.loads(pickle.dumps(Stack(2)))):
        assert isinstance(made, Stack) and made.depth == 2 and float(made.parts[1].scale) == 3


def test_the_text_of_a_module_shows_shapes() -> None:
    layer = nn.Conv2d(3, 4, 3, padding=1, key=lx.random.key(0))
    assert repr(layer) == (
        "Conv2d(weight=f32[4,3,3,3], bias=f32[4], stride=(1, 1), padding=1, dilation=(1, 1), groups=1, "
            "padding_mode='zeros')"
    )
    assert repr(Affine(nn.BatchNorm(2).initial_state())) == (
        "Affine(scale=BatchNormState(mean=f32[2], variance=f32[2]), offset=None, name='affine')"
    )
    assert repr(Stack(1)) == "Stack(parts=[Affine(scale=np.float32(2.0), offset=None, name='affine')], depth=1)"


class Pair(nn.Module):
    first: Any
    second: Any


def leaf_counts(tree: Any) -> int:
    return len(lx.tree.leaves(tree))


def test_a_module_is_flattened_once() -> None:
    model = Pair(Pair(np.float32(1), (np.float32(2), None)), Affine(np.float32(3)))
    leaves, treedef = lx.tree.flatten(model)
    leaves.clear()  # a list of the caller's own
    assert [float(leaf) for leaf in lx.tree.leaves(model)] == [1, 2, 3] and lx.tree.structure(model) is treedef
    assert set(vars(model)) == {"first", "second"} and vars(copy.copy(model)) == vars(model)
    changed = model.replace(second=np.float32(4))
    assert [float(leaf) for leaf in lx.tree.leaves(changed)] == [1, 2, 4]
    assert [float(leaf) for leaf in lx.tree.leaves(copy.deepcopy(changed))] == [1, 2, 4]


def test_what_changes_in_a_module_is_flattened_each_time() -> None:
    held: list[Any] = [np.float32(1)]
    model = Pair(held, (held, {"a": np.float32(2)}))
    assert leaf_counts(model) == 3
    held.append(np.float32(5))
    assert leaf_counts(model) == 5 and leaf_counts((model, model)) == 10
    model.second[1]["b"] = np.float32(6)
    assert leaf_counts(model) == 6


def test_a_rebuilt_module_has_the_leaves_that_it_was_rebuilt_from() -> None:
    model = Pair(Affine(np.float32(1)), np.float32(2))
    doubled = lx.tree.map(lambda leaf: leaf * 2, model)
    assert [float(leaf) for leaf in lx.tree.leaves(doubled)] == [2, 4]
    longer = lx.tree.map(lambda leaf: (leaf, [leaf]), model)  # what stood for a leaf is a container now
    assert leaf_counts(longer) == 4
    longer.second[1].append(np.float32(3))
    assert leaf_counts(longer) == 5


def test_a_module_whose_fields_are_not_all_set_is_not_kept() -> None:
    class Late(nn.Module):
        first: Any
        second: Any

        def __init__(self) -> None:
            self.first = np.float32(1)
            with pytest.raises(AttributeError, match="second"):
                lx.tree.leaves(self)
            self.second = np.float32(2)

    assert leaf_counts(Late()) == 2
