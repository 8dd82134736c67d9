"""Pytrees: nested tuples, lists, dicts, None, named tuples and registered classes, with arrays as leaves."""
from lavax.tracer.pytrees.pytree import TreeDef, flatten, leaves, map, paths, structure, unflatten
from lavax.tracer.pytrees.registration import register_dataclass, register_node
from lavax.tracer.pytrees.tree_at import at
from lavax.tracer.pytrees.tree_tools import all, flatten_with_path, leaves_with_path, map_with_path, reduce, transpose

__all__ = [
    "TreeDef",
    "all",
    "at",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "paths",
    "reduce",
    "register_dataclass",
    "register_node",
    "structure",
    "transpose",
    "unflatten",
]
