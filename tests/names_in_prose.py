"""The names of lavax that the prose of pages mentions in backticks, such as `lx.tree.map`, and that do not exist."""
from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import lavax as lx
from tests.pages import BLOCK

_CODE = re.compile(r"`([^`\n]+)`")
_NAME = re.compile(r"(?<![\w.\"/])(?P<short>lx|lnp|lavax|nn|optim)(?P<path>(?:\.[A-Za-z_]\w*)+)")
_MODULES = {"lx": "lavax", "lavax": "lavax", "lnp": "lavax.numpy", "nn": "lavax.nn", "optim": "lavax.optim"}


def unknown_names(text: str) -> Iterator[str]:
    """Those that lead nowhere, of a page with that text. Blocks of code are left out: they run."""
    for code in _CODE.findall(BLOCK.sub("", text)):
        for name in _NAME.finditer(code):
            if not _is_there(_MODULES[name["short"]] + name["path"]):
                yield name[0]


def _is_there(name: str) -> bool:
    _, *parts = name.split(".")
    found: Any = lx
    path = "lavax"
    for part in parts:
        path += f".{part}"
        found = getattr(found, part, None)
        if found is None:
            try:
                found = import_module(path)
            except ImportError:
                return False
    return True
