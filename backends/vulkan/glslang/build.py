"""Builds the glslang extension at install time (cffi, API mode); setup.py names `ffibuilder`.

The extension is optional: where glslang's headers or libraries are missing the package installs
without it, and shaders are compiled by a program found on PATH instead.
"""
from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from cffi import FFI
from setuptools._distutils.ccompiler import new_compiler
from setuptools._distutils.sysconfig import customize_compiler

DECLARATIONS = """
    static const int version_major;
    static const int version_minor;
    static const int version_patch;
    int start_glslang();
    int compile_shader(const char *source, uint32_t **words, size_t *count, char **message);
    int disassemble_words(const uint32_t *words, size_t count, char **text);
    void release(void *memory);
"""

# In link order. Which of them exist depends on the version of glslang: 12 has all, 15 only some.
LIBRARIES = (
    "glslang",
    "MachineIndependent",
    "GenericCodeGen",
    "OGLCompiler",
    "OSDependent",
    "HLSL",
    "SPIRV",
    "glslang-default-resource-limits",
    "SPIRV-Tools-opt",
    "SPIRV-Tools",
)


def libraries_found() -> list[str]:
    """Those of LIBRARIES that the machine's linker finds, asked one by one."""
    compiler = new_compiler(force=True)  # each answer is a program of its own, however new the last one is
    customize_compiler(compiler)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "empty.c"
        source.write_text("int main(void) { return 0; }\n")
        try:
            objects = compiler.compile([str(source)], output_dir=folder)
        except Exception:  # of a class that depends on whose distutils was imported first
            return []
        return [name for name in LIBRARIES if _links(compiler, objects, name, folder)]


def _links(compiler: object, objects: list[str], library: str, folder: str) -> bool:
    try:
        compiler.link_executable(objects, "probe", output_dir=folder, libraries=[library])  # type: ignore[attr-defined]
    except Exception:  # as above
        return False
    return True


# Only the extension's entry is visible. Otherwise thousands of symbols of glslang and of C++'s library, if that is
# linked statically, are mixed with those of other copies in the process, such as the driver's compiler has.
COMPILE_ARGUMENTS = [] if sys.platform == "win32" else ["-fvisibility=hidden", "-fvisibility-inlines-hidden"]
LINK_ARGUMENTS = [] if sys.platform in ("win32", "darwin") else ["-Wl,--exclude-libs,ALL"]

ffibuilder = FFI()
ffibuilder.cdef(DECLARATIONS)
ffibuilder.set_source(
    "lavax.backends.vulkan.glslang._glslang",
    (Path(__file__).parent / "binding.cpp").read_text(encoding="utf-8"),
    source_extension=".cpp",
    libraries=libraries_found(),
    extra_compile_args=COMPILE_ARGUMENTS,
    extra_link_args=LINK_ARGUMENTS,
    optional=True,
)
