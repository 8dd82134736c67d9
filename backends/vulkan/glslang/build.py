"""Builds the glslang extension at install time (cffi, API mode); setup.py names `ffibuilder`.

The extension is optional: where glslang's headers or libraries are missing the package installs
without it, and shaders are compiled by a program found on PATH instead.
"""
from __future__ import annotations

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


ffibuilder = FFI()
ffibuilder.cdef(DECLARATIONS)
ffibuilder.set_source(
    "lavax.backends.vulkan.glslang._glslang",
    (Path(__file__).parent / "binding.cpp").read_text(encoding="utf-8"),
    source_extension=".cpp",
    libraries=libraries_found(),
    optional=True,
)
