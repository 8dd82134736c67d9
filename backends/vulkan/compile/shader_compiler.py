"""GLSL to SPIR-V, and SPIR-V to text: by glslang in process if the extension was built, else by programs on PATH.

Needs no Vulkan loader. Compiled shaders are cached in memory and on disk, by source and compiler version.
"""
from __future__ import annotations

import functools
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path

from lavax.backends.vulkan import glslang
from lavax.backends.vulkan.compile.background import in_background, wait_for_background
from lavax.backends.vulkan.compile.brain_floats import BRAIN_FLOATS, with_brain_floats
from lavax.backends.vulkan.compile.disk_cache import DiskCache, folder_of
from lavax.backends.vulkan.compile.exact_floats import EXACT_FLOATS, with_exact_floats
from lavax.backends.vulkan.compile.in_process import compiles_in_process
from lavax.backends.vulkan.compile.ordered_floats import ORDERED_FLOATS, with_ordered_floats
from lavax.backends.vulkan.compile.spirv import fault_of_header, fault_of_module
from lavax.base import config, counters
from lavax.base.errors import ShaderCompilerError
from lavax.base.quick_dataclasses import dataclass

CACHE_LIMIT_BYTES = 64 << 20

# An error message shows this many lines before and after a failing one.
LINES_AROUND = 4

NO_COMPILER = (
    "No GLSL compiler was found: lavax has no glslang extension that works (see LAVAX_GLSL), and none of the programs "
    "{programs} is on PATH. Install glslang (Debian and Ubuntu: apt install glslang-tools; macOS: brew install "
    "glslang; Windows: the Vulkan SDK). With its headers as well (apt install g++ glslang-dev spirv-tools), "
    "installing lavax again builds the extension, which compiles faster."
)
NO_DISASSEMBLER = (
    "No SPIR-V disassembler was found: lavax has no glslang extension that works, and none of the programs "
    "{programs} is on PATH. Install SPIRV-Tools (Debian and Ubuntu: apt install spirv-tools; macOS: brew install "
    "spirv-tools; Windows: the Vulkan SDK)."
)


@dataclass(frozen=True)
class _Compiler:
    """A compiler. `identity`: its program and version. `compile` raises GlslangError."""

    identity: str
    compile: Callable[[str], bytes] = field(compare=False)


# How modules are changed after they are compiled, by the marks of their shaders.
CHANGES: dict[str, Callable[[bytes], bytes]] = {
    BRAIN_FLOATS: with_brain_floats,
    EXACT_FLOATS: with_exact_floats,
    ORDERED_FLOATS: with_ordered_floats,
}

# The most compiled shaders kept in memory. Programs no longer need them.
REMEMBERED = 1024

_counting = threading.Lock()

# Modules by compiler and source.
_remembered: dict[tuple[_Compiler, str], bytes] = {}


def compile_glsl(source: str) -> bytes:
    """The SPIR-V 1.6 module of the compute shader `source`, for Vulkan 1.3.

    Safe in several threads at once. Raises ShaderCompilerError if no compiler is installed, or if the compiler refuses
    the source; the message then has the failing lines.
    """
    compiler = _compiler()
    known = _known(compiler, source)
    if known is not None:
        return known
    count_compilation()
    return _keep(compiler, source, _compiled(compiler, source))


def known_module(source: str) -> bytes | None:
    """The module of a shader if memory or disk has it."""
    return _known(_compiler(), source)


def keep_modules(modules: Mapping[str, bytes]) -> None:
    """Has compile_glsl know the modules of shaders, by their source: at once in memory, and soon on disk."""
    compiler = _compiler()
    for source, spirv in modules.items():
        _remember((compiler, source), spirv)
    cache, entries = _spirv_cache(), [(_key(compiler, source), spirv) for source, spirv in modules.items()]

    def store() -> None:
        for key, spirv in entries:
            cache.store(key, spirv)

    in_background(store)


def compile_again(source: str) -> bytes:
    """As compile_glsl, for a module that the driver refused: what memory and disk have of it is forgotten first."""
    forget_compiled()  # first: the module may be still to be written
    _spirv_cache().drop(_key(_compiler(), source))
    return compile_glsl(source)


def forget_compiled() -> None:
    """Empties the cache in memory. What is still to be written to disk is written first."""
    wait_for_background()
    _remembered.clear()


def count_compilation() -> None:
    """Counts a shader that glslang compiles."""
    with _counting:
        counters.count("glsl_compiles")


def accepts_extension(name: str) -> bool:
    """Whether the installed compiler knows a GLSL extension; the answer is kept on disk."""
    try:
        compiler = _compiler()
    except ShaderCompilerError:
        return False
    cache = _disk_cache(folder_of("compiler"))
    key = f"{compiler.identity}\n{name}"
    known = cache.load(key)
    if known is None:
        try:
            compiler.compile(f"#version 460\n#extension {name} : require\nvoid main() {{}}\n")
            known = b"known"
        except glslang.GlslangError:
            known = b"unknown"
        cache.store(key, known)
    return known == b"known"


def disassemble(spirv: bytes) -> str:
    """The text of a SPIR-V module, one instruction per line. Raises ShaderCompilerError."""
    if compiles_in_process():
        try:
            return glslang.disassemble(spirv)
        except glslang.GlslangError as error:
            raise ShaderCompilerError(f"This is not a SPIR-V module: {error}") from error
    for program, arguments in DISASSEMBLERS.items():
        found = shutil.which(program)
        if found:
            return _disassembled_by(found, arguments, spirv)
    raise ShaderCompilerError(NO_DISASSEMBLER.format(programs=", ".join(DISASSEMBLERS)))


def text_of_module(source: str) -> str:
    """The text of the SPIR-V module of a shader. Raises ShaderCompilerError.

    A disassembler that does not know the extension by which floats keep their order shows the module without it.
    """
    try:
        return disassemble(compile_glsl(source))
    except ShaderCompilerError:
        if ORDERED_FLOATS not in source:
            raise
        plain = disassemble(compile_glsl(source.replace(ORDERED_FLOATS, "")))
        return f"; The disassembler does not know SPV_KHR_float_controls2, which the module has besides.\n{plain}"


@functools.cache
def _disk_cache(folder: Path) -> DiskCache:
    return DiskCache(folder, CACHE_LIMIT_BYTES)


def _spirv_cache() -> DiskCache:
    return _disk_cache(folder_of("spirv"))


def _key(compiler: _Compiler, source: str) -> str:
    """What a module follows from: some are changed after they are compiled, so these also follow from lavax."""
    changed_by = f" lavax {config.VERSION}" if any(mark in source for mark in CHANGES) else ""
    return f"{compiler.identity}{changed_by}\n{source}"


def _known(compiler: _Compiler, source: str) -> bytes | None:
    place = compiler, source
    spirv = _remembered.get(place)
    if spirv is not None:
        return spirv
    spirv = _spirv_cache().load(_key(compiler, source))
    if spirv is None or fault_of_header(spirv) is not None:
        return None
    _remember(place, spirv)
    return spirv


def _keep(compiler: _Compiler, source: str, spirv: bytes) -> bytes:
    _spirv_cache().store(_key(compiler, source), spirv)
    _remember((compiler, source), spirv)
    return spirv


def _remember(place: tuple[_Compiler, str], spirv: bytes) -> None:
    """Without a lock, which another thread might hold when the process is forked: each step is one of the dict's."""
    _remembered[place] = spirv
    if len(_remembered) > REMEMBERED:
        for older in list(_remembered)[: REMEMBERED // 2]:
            _remembered.pop(older, None)


def _compiled(compiler: _Compiler, source: str) -> bytes:
    try:
        spirv = compiler.compile(source)
    except glslang.GlslangError as error:
        raise ShaderCompilerError(_explain(source, str(error))) from error
    fault = fault_of_module(spirv)
    if fault is not None:
        raise ShaderCompilerError(f"{compiler.identity.strip()} gave no SPIR-V module for a shader: {fault}")
    for mark, change in CHANGES.items():
        if mark in source:
            spirv = change(spirv)
    return spirv


# Compilers, best first: the arguments before the names of the result and the source.
COMPILERS = {
    "glslangValidator": ("-V", "--target-env", "vulkan1.3", "-o"),
    "glslang": ("-V", "--target-env", "vulkan1.3", "-o"),
    "glslc": ("--target-env=vulkan1.3", "-o"),
}

# Disassemblers, best first: the arguments before the file's name.
DISASSEMBLERS = {
    "spirv-dis": ("--no-color", "--no-header"),
}


def _compiler() -> _Compiler:
    if compiles_in_process():
        return _Compiler(f"glslang {glslang.version()} in process", glslang.compile_shader)
    for program, arguments in COMPILERS.items():
        found = shutil.which(program)
        if found:
            return _Compiler(_program_identity(found), functools.partial(_compiled_by, found, arguments))
    raise ShaderCompilerError(NO_COMPILER.format(programs=", ".join(COMPILERS)))


@functools.cache
def _program_identity(path: str) -> str:
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    return f"{path} {version}"


def _compiled_by(path: str, arguments: tuple[str, ...], source: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "shader.comp").write_text(source, encoding="utf-8")
        command = [path, *arguments, "shader.spv", "shader.comp"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise glslang.GlslangError(done.stdout + done.stderr)
        try:
            return (Path(folder) / "shader.spv").read_bytes()
        except OSError:
            raise glslang.GlslangError(f"{path} says that it succeeded, but wrote nothing") from None


def _disassembled_by(path: str, arguments: tuple[str, ...], spirv: bytes) -> str:
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "shader.spv"
        module.write_bytes(spirv)
        done = subprocess.run([path, *arguments, str(module)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ShaderCompilerError(f"This is not a SPIR-V module: {done.stderr}")
    return done.stdout


# glslang writes "ERROR: 0:12: …" in process and "ERROR: shader.comp:12: …" as a program; glslc begins with the file.
_LINE_OF_ERROR = re.compile(r"(?:^|\n)(?:ERROR: )?(?:0|shader\.comp):(\d+): ")


def _explain(source: str, message: str) -> str:
    """The compiler's message, and the numbered source lines around the first line that it names."""
    found = _LINE_OF_ERROR.search(message)
    lines = source.splitlines()
    failing = int(found.group(1)) if found else 0
    first, last = (failing - LINES_AROUND, failing + LINES_AROUND) if failing else (1, len(lines))
    shown = [
        f"{'>' if number == failing else ' '} {number:4d} | {text}"
        for number, text in enumerate(lines, start=1)
        if first <= number <= last
    ]
    return "The GLSL compiler refused a shader:\n" + message.strip() + "\n" + "\n".join(shown)
