"""Pytrees: nested tuples, lists, dicts, None, named tuples and registered classes, with arrays as leaves."""
from lavax.tracer.pytrees.key_trees import flatten, leaves, map, structure
from lavax.tracer.pytrees.keys import keystr
from lavax.tracer.pytrees.pytree import TreeDef, paths, unflatten
from lavax.tracer.pytrees.registration import register_dataclass, register_node
from lavax.tracer.pytrees.registration import static_field as static
from lavax.tracer.pytrees.tree_at import at
from lavax.tracer.pytrees.tree_tools import (
    all,
    broadcast,
    flatten_with_path,
    leaves_with_path,
    map_with_path,
    reduce,
    reduce_associative,
    transpose,
)

__all__ = [
    "TreeDef",
    "all",
    "at",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "keystr",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "paths",
    "reduce",
    "reduce_associative",
    "register_dataclass",
    "register_node",
    "static",
    "structure",
    "transpose",
    "unflatten",
]
