"""Pytrees: nested tuples, lists, dicts, None, named tuples and registered classes, with arrays as leaves."""
from lavax.tracer.pytree import TreeDef, flatten, leaves, map, paths, structure, unflatten
from lavax.tracer.registration import register_dataclass, register_node

__all__ = [
    "TreeDef",
    "flatten",
    "leaves",
    "map",
    "paths",
    "register_dataclass",
    "register_node",
    "structure",
    "unflatten",
]
