"""The structure of a pytree as text, for files: what its containers are, and their settings."""
from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from lavax.tracer.pytrees.pytree import TreeDef


def structure_text(treedef: TreeDef, path: str = "") -> dict[str, str]:
    """For the path of every container, its class and the settings that are part of the structure.

    The text is the same in every process: functions and classes stand in it by name.
    """
    if treedef.kind is None or treedef.kind.is_one_leaf:
        return {}
    found = {path: treedef.kind.name + ("" if treedef.data is None else _text(treedef.data))}
    names = treedef.kind.child_names(treedef.data, len(treedef.children))
    for name, child in zip(names, treedef.children, strict=True):
        found |= structure_text(child, f"{path}.{name}" if path else name)
    return found


def _text(setting: Any) -> str:
    if isinstance(setting, (tuple, list)):
        return f"({', '.join(map(_text, setting))})"
    if isinstance(setting, Mapping):
        return f"{{{', '.join(f'{name!r}: {_text(value)}' for name, value in setting.items())}}}"
    if dataclasses.is_dataclass(setting) and not isinstance(setting, type):
        values = (f"{entry.name}={_text(getattr(setting, entry.name))}" for entry in dataclasses.fields(setting))
        return f"{type(setting).__name__}({', '.join(values)})"
    if callable(setting) and hasattr(setting, "__qualname__"):
        return str(setting.__qualname__)
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(setting))
