"""Trees of arrays in dicts, lists and tuples, which every library's tracer accepts."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


def map_tree(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """The tree of `function` of corresponding leaves of the trees, which have the same structure."""
    if isinstance(tree, dict):
        return {key: map_tree(function, tree[key], *(other[key] for other in rest)) for key in sorted(tree)}
    if isinstance(tree, (list, tuple)):
        return type(tree)(map_tree(function, *row) for row in zip(tree, *rest, strict=True))
    return function(tree, *rest)


def leaves_of(tree: Any) -> list[Any]:
    """The leaves in order; dicts go by sorted key."""
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves_of(tree[key])]
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in leaves_of(part)]
    return [tree]


def with_leaves(tree: Any, leaves: Iterable[Any]) -> Any:
    """A tree of the structure of `tree` with other leaves."""
    remaining: Iterator[Any] = iter(leaves)
    return map_tree(lambda _: next(remaining), tree)
