"""glslang in process: GLSL to SPIR-V, and SPIR-V to text.

Both calls release the interpreter's lock and may run in several threads at once. Where the extension
was not built, `available()` is False and the other functions may not be called.
"""
from __future__ import annotations

import functools
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_finding = threading.Lock()
_starting = threading.Lock()
_started = False


class GlslangError(Exception):
    """glslang refused its input; the text is its own message."""


def extension_file() -> Path | None:
    """The file of the extension, which this does not load; None if it was not built when lavax was installed."""
    with _finding:
        return _found_file()


@functools.cache
def _found_file() -> Path | None:
    """Looked for once, and before the extension is loaded: a module that another thread loads has no spec yet."""
    found = find_spec(f"{__name__}._glslang")
    return None if found is None or found.origin is None else Path(found.origin)


def available() -> bool:
    """Whether the extension was built when lavax was installed, and loads."""
    return _extension() is not None


@functools.cache
def _extension() -> Any:
    """The extension, loaded at its first use: importing lavax neither waits for it nor relies on it."""
    if extension_file() is None:
        return None
    try:
        from lavax.backends.vulkan.glslang import _glslang  # type: ignore[attr-defined, unused-ignore]
    except ImportError:
        return None
    return _glslang


def version() -> str:
    """The version of the glslang that was linked, such as "12.0.0"."""
    lib = _extension().lib
    return f"{lib.version_major}.{lib.version_minor}.{lib.version_patch}"


def compile_shader(source: str) -> bytes:
    """The SPIR-V 1.6 words of one compute shader for Vulkan 1.3. Raises GlslangError."""
    extension = started()
    ffi, lib = extension.ffi, extension.lib
    words, count, message = ffi.new("uint32_t **"), ffi.new("size_t *"), ffi.new("char **")
    if not lib.compile_shader(source.encode(), words, count, message):
        raise GlslangError(_take_text(message))
    spirv = bytes(ffi.buffer(words[0], count[0] * 4))
    lib.release(words[0])
    return spirv


def disassemble(spirv: bytes) -> str:
    """The text of a SPIR-V module, without the header lines. Raises GlslangError."""
    ffi, lib = _extension().ffi, _extension().lib
    text = ffi.new("char **")
    words = ffi.new("uint32_t[]", len(spirv) // 4)
    ffi.memmove(words, spirv, len(spirv) // 4 * 4)
    if not lib.disassemble_words(words, len(spirv) // 4, text):
        raise GlslangError(_take_text(text))
    return _take_text(text)


def started() -> Any:
    """The extension, with glslang initialised once a process, which is not safe in several threads at once.

    Raises GlslangError if that fails; the next call tries again.
    """
    global _started
    if not _started:
        with _starting:
            if not _started:
                if not _extension().lib.start_glslang():
                    raise GlslangError("glslang could not be initialised in this process")
                _started = True
    return _extension()


def _take_text(pointer: Any) -> str:
    """The text a call returned; its memory is given back."""
    if not pointer[0]:
        return ""
    text = bytes(_extension().ffi.string(pointer[0])).decode(errors="replace")
    _extension().lib.release(pointer[0])
    return text
