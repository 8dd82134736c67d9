"""glslang in process: GLSL to SPIR-V, and SPIR-V to text.

Both calls release the interpreter's lock and may run in several threads at once. Where the extension
was not built, `available()` is False and the other functions may not be called.
"""
from __future__ import annotations

import threading
from typing import Any

try:
    from lavax.backends.vulkan.glslang import _glslang  # type: ignore[attr-defined, unused-ignore]
except ImportError:
    _glslang = None

_starting = threading.Lock()
_started = False


class GlslangError(Exception):
    """glslang refused its input; the text is its own message."""


def available() -> bool:
    """Whether the extension was built when lavax was installed, and loads."""
    return _glslang is not None


def version() -> str:
    """The version of the glslang that was linked, such as "12.0.0"."""
    lib = _glslang.lib
    return f"{lib.version_major}.{lib.version_minor}.{lib.version_patch}"


def compile_shader(source: str) -> bytes:
    """The SPIR-V 1.6 words of one compute shader for Vulkan 1.3. Raises GlslangError."""
    _start()
    ffi, lib = _glslang.ffi, _glslang.lib
    words, count, message = ffi.new("uint32_t **"), ffi.new("size_t *"), ffi.new("char **")
    if not lib.compile_shader(source.encode(), words, count, message):
        raise GlslangError(_take_text(message))
    spirv = bytes(ffi.buffer(words[0], count[0] * 4))
    lib.release(words[0])
    return spirv


def disassemble(spirv: bytes) -> str:
    """The text of a SPIR-V module, without the header lines. Raises GlslangError."""
    ffi, lib = _glslang.ffi, _glslang.lib
    text = ffi.new("char **")
    words = ffi.new("uint32_t[]", len(spirv) // 4)
    ffi.memmove(words, spirv, len(spirv) // 4 * 4)
    if not lib.disassemble_words(words, len(spirv) // 4, text):
        raise GlslangError(_take_text(text))
    return _take_text(text)


def _start() -> None:
    """Initialises glslang once a process; glslang's own initialisation is not safe in several threads."""
    global _started
    if _started:
        return
    with _starting:
        if not _started:
            _glslang.lib.start_glslang()
            _started = True


def _take_text(pointer: Any) -> str:
    """The text a call returned; its memory is given back."""
    if not pointer[0]:
        return ""
    text = bytes(_glslang.ffi.string(pointer[0])).decode(errors="replace")
    _glslang.lib.release(pointer[0])
    return text
