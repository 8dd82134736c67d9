"""More functions of pytrees: leaves with their paths, reductions, and trees of trees transposed."""
from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import Any

from lavax.base.errors import TreeMismatchError
from lavax.ir.location import user_error
from lavax.tracer.pytrees.key_trees import flatten, structure
from lavax.tracer.pytrees.keys import KeyPath
from lavax.tracer.pytrees.pytree import (
    LEAF,
    IsLeaf,
    TreeDef,
    broadcast_prefix,
    composed,
    flatten_up_to,
    kind_of,
    unflatten,
)

_FIRST = object()  # as `initializer`: the fold begins with the first leaf


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], TreeDef]:
    """`(path, leaf)` for each leaf of `tree` in order, and its structure.

    A path is the tuple of keys that lead to the leaf, whose text is as in `layers.0.w`. With `is_leaf_takes_path`,
    `is_leaf` gets the path and the subtree.
    """
    ends = _with_path(is_leaf, is_leaf_takes_path)
    found: list[tuple[KeyPath, Any]] = []
    return found, _collect(tree, KeyPath(), ends, found)


def _with_path(is_leaf: Callable[..., bool] | None, takes_path: bool) -> Callable[[KeyPath, Any], bool]:
    if is_leaf is None:
        return lambda path, tree: False
    return is_leaf if takes_path else lambda path, tree: is_leaf(tree)


def _collect(
    tree: Any, path: KeyPath, ends: Callable[[KeyPath, Any], bool], found: list[tuple[KeyPath, Any]]
) -> TreeDef:
    kind = None if ends(path, tree) else kind_of(tree)
    if kind is None:
        found.append((path, tree))
        return LEAF
    children, data = kind.flatten(tree)
    keys = kind.child_keys(data, len(children)) if kind.tree_keys is None else kind.tree_keys(tree)
    parts = [
        _collect(child, KeyPath((*path, key)), ends, found) for key, child in zip(keys, children, strict=True)
    ]
    return composed(kind, data, parts)


def leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """`(path, leaf)` for each leaf of `tree` in order, as `flatten_with_path`."""
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """The tree of `f(path, leaf, *subtrees)` for each leaf of `tree`, with the subtrees of `rest` at that path.

    Paths are those of `flatten_with_path`. Raises TreeMismatchError if one of `rest` does not begin with the structure
    of `tree`.
    """
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [flatten_up_to(treedef, other) for other in rest]
    return unflatten(treedef, [f(*pair, *row) for pair, *row in zip(pairs, *columns, strict=True)])


def transpose(outer_treedef: TreeDef, inner_treedef: TreeDef | None, pytree_to_transpose: Any) -> Any:
    """The tree nested the other way: from `outer_treedef` with trees of `inner_treedef` at its leaves.

    Without `inner_treedef` it is the structure of the first of those. Raises TreeMismatchError, with the path, if
    `pytree_to_transpose` is not of that form.
    """
    parts = flatten_up_to(outer_treedef, pytree_to_transpose)
    if not parts:
        place = "" if inner_treedef is None else f" at those of {inner_treedef!r}"
        raise user_error(
            TreeMismatchError, f"transpose: {outer_treedef!r} has no leaves, so there is nothing to put{place}"
        )
    held = structure(parts[0]) if inner_treedef is None else inner_treedef
    rows = [flatten_up_to(held, part) for part in parts]
    return unflatten(held, [unflatten(outer_treedef, column) for column in zip(*rows, strict=True)])


def reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _FIRST, is_leaf: IsLeaf = None) -> Any:
    """`function` folded over the leaves of `tree` in order, from `initializer`, or else from the first leaf.

    Raises TypeError if there is neither.
    """
    leaves = flatten(tree, is_leaf)[0]
    if initializer is _FIRST:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def reduce_associative(
    operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = _FIRST, is_leaf: IsLeaf = None
) -> Any:
    """The leaves of `tree` joined by an associative `operation`, neighbours first, so that terms stay of like size.

    `identity` is the result for no leaves. Raises TypeError if there are none and it is not given.
    """
    leaves = flatten(tree, is_leaf)[0]
    if not leaves and identity is _FIRST:
        raise user_error(TypeError, "reduce_associative: a tree without leaves needs an identity")
    while len(leaves) > 1:
        pairs = [operation(*leaves[start : start + 2]) for start in range(0, len(leaves) - 1, 2)]
        leaves = pairs + leaves[len(leaves) // 2 * 2 :]
    return leaves[0] if leaves else identity


def all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves of `tree` are true; True for a tree without leaves."""
    return builtins.all(flatten(tree, is_leaf)[0])


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree of the structure of `full_tree`; each leaf of `prefix_tree` stands at every leaf below its place.

    Raises TreeMismatchError, with the path, if `full_tree` does not begin with the structure of `prefix_tree`.
    """
    treedef = structure(full_tree, is_leaf)

    def ends(node: Any) -> bool:
        return kind_of(node) is None or (is_leaf is not None and is_leaf(node))

    return unflatten(treedef, broadcast_prefix(prefix_tree, treedef, ends))


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether none of these is a container."""
    return builtins.all(kind_of(each) is None or (is_leaf is not None and is_leaf(each)) for each in iterable)
