"""Whether shaders are compiled in process: by the glslang extension, if it was built and survives."""
from __future__ import annotations

import functools
import os
import sys
import threading
import warnings
from pathlib import Path

from lavax.backends.vulkan import glslang
from lavax.backends.vulkan.compile.disk_cache import DiskCache, folder_of
from lavax.backends.vulkan.glslang import probe
from lavax.base import config

_KNOWN_BYTES = 1 << 20
_SURVIVES, _DIES = b"survives", b"dies"

_probing = threading.Lock()


def compiles_in_process() -> bool:
    """Whether the extension is to be used. A file that is new to this machine first compiles a shader in a child."""
    chosen = config.glsl_compiler()
    if chosen == "program":
        return False
    if chosen == "extension":
        return glslang.available()
    file = glslang.extension_file()
    return file is not None and is_sound(file) and glslang.available()


def is_sound(file: Path) -> bool:
    """Whether this file of the extension survived a shader. The answer is kept on disk, by the file's identity."""
    with _probing:
        return _probed(file)


@functools.cache
def _probed(file: Path) -> bool:
    cache, key = DiskCache(folder_of("compiler"), _KNOWN_BYTES), _identity(file)
    known = cache.load(key)
    if known not in (_SURVIVES, _DIES):
        survived = probe.survives(file)
        if survived is None:
            return True  # as it was found after the build: here no child can be started
        known = _SURVIVES if survived else _DIES
        cache.store(key, known)
    if known == _DIES:
        warnings.warn(
            f"lavax's glslang extension ({file}) fails in this process's Python, so shaders are compiled by a program, "
            "which takes longer. Installing lavax again, with another C++ compiler, builds the extension again; "
            "LAVAX_GLSL=program silences this warning.",
            RuntimeWarning,
            stacklevel=2,
        )
    return known == _SURVIVES


def _identity(file: Path) -> str:
    status = os.stat(file)
    return "\n".join(map(str, ("probe", file, status.st_size, status.st_mtime_ns, status.st_ino, sys.version)))
