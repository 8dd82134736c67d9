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

    typedef struct {
        void *device;
        uint64_t cache;
        void *create_module;
        void *destroy_module;
        void *create_pipelines;
    } pipeline_driver;
    typedef struct {
        int made;
        uint64_t pipeline;
        const uint32_t *words;
        size_t count;
        double compiler_seconds;
        double driver_seconds;
    } made_pipeline;
    static const int brain_floats;
    static const int exact_floats;
    static const int ordered_floats;
    void *new_workers(size_t most);
    void *begin_pipeline(void *threads, const pipeline_driver *driver, const char *source, int changes,
                         const void *module, size_t nbytes, void *info, size_t module_offset);
    made_pipeline wait_for_pipeline(void *threads, void *begun);
    void end_workers(void *threads);
    void drop_workers(void *threads);
"""
# In this order, they are one file for the compiler.
SOURCES = ("binding.cpp", "modules.cpp", "ordered_floats.cpp", "workers.cpp")

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
# C++'s headers make their templates visible whatever the compiler is told, so the linker is told, too.
LINK_ARGUMENTS = (
    []
    if sys.platform in ("win32", "darwin")
    else ["-Wl,--exclude-libs,ALL", f"-Wl,--version-script={Path(__file__).parent / 'exports.map'}"]
)

ffibuilder = FFI()
ffibuilder.cdef(DECLARATIONS)
ffibuilder.set_source(
    "lavax.backends.vulkan.glslang._glslang",
    "\n".join((Path(__file__).parent / name).read_text(encoding="utf-8") for name in SOURCES),
    source_extension=".cpp",
    libraries=libraries_found(),
    extra_compile_args=COMPILE_ARGUMENTS,
    extra_link_args=LINK_ARGUMENTS,
    optional=True,
)
