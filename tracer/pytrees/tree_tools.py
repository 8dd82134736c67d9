"""More functions of pytrees: leaves with their paths, reductions, and trees of trees transposed."""
from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

from lavax.base.errors import TreeMismatchError
from lavax.ir.location import user_error
from lavax.tracer.pytrees.pytree import IsLeaf, TreeDef, flatten, flatten_up_to, paths, unflatten

_FIRST = object()  # as `initial`: the fold begins with the first leaf


def flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[tuple[str, Any]], TreeDef]:
    """`(path, leaf)` for each leaf of `tree` in order, with paths as in `layers.0.w`, and its structure."""
    leaves, treedef = flatten(tree, is_leaf)
    return list(zip(paths(treedef), leaves, strict=True)), treedef


def leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[str, Any]]:
    """`(path, leaf)` for each leaf of `tree` in order."""
    return flatten_with_path(tree, is_leaf)[0]


def map_with_path(function: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """The tree of `function(path, leaf, *subtrees)` for each leaf of `tree`, with the subtrees of `rest` at that path.

    The path of a leaf is text, as in `layers.0.w`. Raises TreeMismatchError if one of `rest` does not begin with the
    structure of `tree`.
    """
    leaves, treedef = flatten(tree, is_leaf)
    columns = [flatten_up_to(treedef, other) for other in rest]
    rows = zip(paths(treedef), leaves, *columns, strict=True)
    return unflatten(treedef, [function(*row) for row in rows])


def transpose(outer: TreeDef, inner: TreeDef, tree: Any) -> Any:
    """From a tree of structure `outer` with trees of structure `inner` at its leaves, the tree nested the other way.

    Raises TreeMismatchError, with the path, if `tree` is not of that form.
    """
    rows = [flatten_up_to(inner, part) for part in flatten_up_to(outer, tree)]
    if not rows:
        raise user_error(
            TreeMismatchError, f"transpose: {outer!r} has no leaves, so there is nothing to put at those of {inner!r}"
        )
    return unflatten(inner, [unflatten(outer, column) for column in zip(*rows, strict=True)])


def reduce(function: Callable[[Any, Any], Any], tree: Any, initial: Any = _FIRST, is_leaf: IsLeaf = None) -> Any:
    """`function` folded over the leaves of `tree` in order, from `initial`, or else from the first leaf.

    Raises TypeError if there is neither.
    """
    leaves = flatten(tree, is_leaf)[0]
    return functools.reduce(function, leaves) if initial is _FIRST else functools.reduce(function, leaves, initial)


def all(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves of `tree` are true; True for a tree without leaves."""
    return builtins.all(flatten(tree, is_leaf)[0])
