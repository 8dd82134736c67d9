"""Plain pytrees, of tuples, lists, dicts and None only: they can be written as data, and read without classes."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lavax.base.errors import ExportError
from lavax.tracer.pytrees import pytree
from lavax.tracer.pytrees.pytree import TreeDef

_EMPTY: tuple[Any, ...] = (None, (), [], {})
_NONE, _TUPLE, _LIST, _DICT = (pytree.structure(tree).kind for tree in _EMPTY)
_LEAF = "*"


def plain(tree: Any) -> Any:
    """The same tree, with named tuples and registered classes as dicts of their fields.

    Classes whose children have no names become tuples. The static parts of a class are left out. Random keys become
    their words.
    """
    leaves, treedef = pytree.flatten(tree)
    return _plain(treedef, iter(leaves))


def _plain(treedef: TreeDef, leaves: Iterator[Any]) -> Any:
    kind = treedef.kind
    if kind is None:
        return next(leaves)
    if kind.is_one_leaf:
        return next(leaves) if treedef.leaf_count else kind.unflatten(treedef.data, ())
    children = [_plain(child, leaves) for child in treedef.children]
    if kind in (_NONE, _TUPLE, _LIST, _DICT):
        return kind.unflatten(treedef.data, children)
    names = list(kind.child_names(treedef.data, len(children)))
    if all(name.isdigit() for name in names):
        return tuple(children)
    return dict(zip(names, children, strict=True))


def plain_order(treedef: TreeDef) -> tuple[TreeDef, list[int]]:
    """The structure of the plain tree, and the position of each of its leaves among those of `treedef`."""
    order, structure = pytree.flatten(plain(pytree.unflatten(treedef, range(treedef.leaf_count))))
    return structure, order


def to_data(treedef: TreeDef) -> Any:
    """The structure of a plain tree as JSON data. Raises ExportError for dict keys that JSON cannot hold."""
    kind = treedef.kind
    if kind is None:
        return _LEAF
    if kind is _NONE:
        return None
    children = [to_data(child) for child in treedef.children]
    if kind is not _DICT:
        return {"tuple" if kind is _TUPLE else "list": children}
    for key in treedef.data:
        if not isinstance(key, (str, int)):
            raise ExportError(f"the key {key!r} of a dict cannot be written: keys have to be strings or integers")
    return {"dict": [list(pair) for pair in zip(treedef.data, children, strict=True)]}


def from_data(data: Any) -> TreeDef:
    """The inverse of `to_data`. Raises ExportError for anything else."""
    return pytree.structure(_tree(data))


def _tree(data: Any) -> Any:
    match data:
        case "*":
            return 0
        case None:
            return None
        case {"tuple": [*children]}:
            return tuple(map(_tree, children))
        case {"list": [*children]}:
            return list(map(_tree, children))
        case {"dict": [*pairs]} if all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            return {key: _tree(child) for key, child in pairs}
    raise ExportError(f"{data!r:.60} is not the structure of a tree")
