"""Whether the glslang extension survives compiling a shader, found out in a child process.

An extension that was linked wrongly may load, and then end the process at its first number. This module imports nothing
of lavax: setup.py runs it after the build, and a child process runs it as a program.
"""
from __future__ import annotations

import subprocess
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

# Constants whose digits exceed what a double holds take the long way, through the streams and locales of C++.
SHADER = """#version 460
layout(local_size_x = 8) in;
layout(binding = 0) buffer Numbers { float value[]; } numbers;
void main() {
    const float one = 3.14159265358979323846264338327950288419716939937510;
    const float two = 2.7182818284590452353602874713527e-30;
    numbers.value[gl_GlobalInvocationID.x] *= one + two + 1.175494350822287507968736537222e-38 + 16777215.999999999;
}
"""
_MAGIC = 0x07230203
_MOST_SECONDS = 60.0


def survives(extension: Path) -> bool | None:
    """Whether a child process compiles a shader with this file; None if no child could be started, or none in time."""
    backend = _folder_of_cffi()
    if backend is None or not _is_python(sys.executable):
        return None
    command = [sys.executable, "-I", "-S", __file__, str(extension), backend]
    quiet = subprocess.DEVNULL
    try:
        done = subprocess.run(command, stdin=quiet, stdout=quiet, stderr=quiet, timeout=_MOST_SECONDS, check=False)
    except (OSError, RuntimeError, subprocess.SubprocessError):  # as at the end of the interpreter
        return None
    return done.returncode == 0


def _folder_of_cffi() -> str | None:
    """Where the child finds the package that every extension of cffi's needs."""
    try:
        import _cffi_backend
    except ImportError:
        return None
    return str(Path(_cffi_backend.__file__).parent)


def _is_python(program: str | None) -> bool:
    """Whether a program is an interpreter: in one that embeds Python, it may be anything."""
    return bool(program) and not hasattr(sys, "frozen") and "py" in Path(str(program)).name.lower()


def _loaded(extension: str) -> Any:
    name = "_glslang"
    spec = spec_from_file_location(name, extension, loader=ExtensionFileLoader(name, extension))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compiles(extension: str) -> bool:
    module = _loaded(extension)
    ffi, lib = module.ffi, module.lib
    words, count, message = ffi.new("uint32_t **"), ffi.new("size_t *"), ffi.new("char **")
    if not lib.start_glslang() or not lib.compile_shader(SHADER.encode(), words, count, message):
        return False
    return bool(count[0] > 5 and words[0][0] == _MAGIC)


if __name__ == "__main__":
    sys.path.append(sys.argv[2])
    sys.exit(not _compiles(sys.argv[1]))
