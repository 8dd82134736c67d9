"""Where in the user's program a value was made."""
from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from types import FrameType


@cache
def _own_folders() -> tuple[str, ...]:
    """The rooms of lavax as they lie on disk: side by side in a checkout, inside the package once installed."""
    rooms = Path(__file__).resolve().parent.parent
    folders = [rooms / room for room in ("ir", "tracer", "passes", "backends")]
    folders += [Path(folder).resolve() for folder in sys.modules["lavax"].__path__]
    return tuple(str(folder) + os.sep for folder in folders)


@cache
def _is_own(filename: str) -> bool:
    return str(Path(filename).resolve()).startswith(_own_folders())


def user_location() -> str | None:
    """The nearest line outside lavax on the call stack, as "file:line"."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not _is_own(frame.f_code.co_filename):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return None
