"""Pytrees as their users see them: an array of random keys is a leaf, and no container of its words."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lavax.tracer.pytrees import pytree
from lavax.tracer.pytrees.pytree import IsLeaf, TreeDef, flatten_up_to, unflatten


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeDef]:
    """The leaves of `tree` in order, and its structure. A subtree for which `is_leaf` returns True is a leaf."""
    if is_leaf is None:
        found = pytree.flatten(tree)
        return pytree.flatten(tree, pytree.is_one_leaf) if found[1].holds_keys else found
    return pytree.flatten(tree, lambda part: pytree.is_one_leaf(part) or is_leaf(part))


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of `tree`, in order."""
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> TreeDef:
    """The structure of `tree`."""
    return flatten(tree, is_leaf)[1]


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """The tree of `f(leaf, *subtrees)` for each leaf of `tree`, with the subtrees of `rest` at the same path.

    Raises TreeMismatchError if one of `rest` does not begin with the structure of `tree`.
    """
    found, treedef = flatten(tree, is_leaf)
    columns = [flatten_up_to(treedef, other) for other in rest]
    return unflatten(treedef, [f(*row) for row in zip(found, *columns, strict=True)])
