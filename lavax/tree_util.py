"""Pytrees under the names of jax.tree_util: the functions of `lavax.tree`, registration of classes, key paths."""
from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from lavax.tracer.pytrees.key_trees import flatten, leaves, map, structure
from lavax.tracer.pytrees.keys import DictKey, FlattenedIndexKey, GetAttrKey, KeyPath, SequenceKey, keystr
from lavax.tracer.pytrees.node_classes import (
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)
from lavax.tracer.pytrees.partial import Partial
from lavax.tracer.pytrees.pytree import TreeDef, is_tree_node, kind_of, unflatten
from lavax.tracer.pytrees.registration import register_dataclass
from lavax.tracer.pytrees.tree_tools import (
    all,
    all_leaves,
    broadcast,
    flatten_with_path,
    leaves_with_path,
    map_with_path,
    reduce,
    reduce_associative,
    transpose,
)

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]

PyTreeDef = TreeDef
KeyEntry = Any  # a key: of one of the classes above, or of one's own
tree_all = all
tree_broadcast = broadcast
tree_flatten = flatten
tree_flatten_with_path = flatten_with_path
tree_leaves = leaves
tree_leaves_with_path = leaves_with_path
tree_map = map
tree_map_with_path = map_with_path
tree_reduce = reduce
tree_reduce_associative = reduce_associative
tree_structure = structure
tree_transpose = transpose
tree_unflatten = unflatten


def treedef_is_leaf(treedef: TreeDef) -> bool:
    """Whether the structure is that of a leaf."""
    return treedef.kind is None


def treedef_children(treedef: TreeDef) -> list[TreeDef]:
    """The structures of the children."""
    return list(treedef.children)


def treedef_tuple(treedefs: Iterable[TreeDef]) -> TreeDef:
    """The structure of a tuple of trees of these structures."""
    return structure(tuple(unflatten(treedef, range(treedef.leaf_count)) for treedef in treedefs))


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """The children of a container, and the data that it is rebuilt with. Raises ValueError for a leaf."""
    kind = kind_of(tree)
    if kind is None:
        raise ValueError(f"flatten_one_level: a {type(tree).__name__} is a leaf, not a container")
    return kind.flatten(tree)


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """`(key, child)` for each child of a container, and its data. Raises ValueError for a leaf."""
    children, data = flatten_one_level(tree)
    kind, parts = kind_of(tree), list(children)
    assert kind is not None
    keys = kind.child_keys(data, len(parts)) if kind.tree_keys is None else kind.tree_keys(tree)
    return list(zip(keys, parts, strict=True)), data
