from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lavax.backends.vulkan import glslang
from lavax.backends.vulkan.compile import disk_cache, shader_compiler
from lavax.backends.vulkan.compile.brain_floats import BRAIN_FLOATS
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl, disassemble
from lavax.backends.vulkan.compile.spirv import fault_of_module
from lavax.base import config, counters
from lavax.base.errors import ShaderCompilerError
from tests.backends.vulkan.emit.shaders import ADD_ONE, HEADER

MAGIC = b"\x03\x02\x23\x07"
PROGRAMS = ("glslangValidator", "glslang", "glslc")

BROKEN = HEADER + """
void main() {
    uint i = gl_GlobalInvocationID.x;
    SLOT(0).value[i] = undeclared;
}
"""


@pytest.fixture(autouse=True)
def fresh_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("LAVAX_CACHE", str(tmp_path / "cache"))
    shader_compiler.forget_compiled()
    yield


@pytest.fixture(params=["in process", *PROGRAMS])
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Has the tests that ask for it run with each way to compile that this machine has."""
    way: str = request.param
    if way == "in process":
        if not glslang.available():
            pytest.skip("the glslang extension is not built")
    elif shutil.which(way) is None:
        pytest.skip(f"{way} is not on PATH")
    else:
        monkeypatch.setattr(glslang, "available", lambda: False)
        monkeypatch.setattr(shader_compiler, "COMPILERS", {way: shader_compiler.COMPILERS[way]})
    return way


def compiles() -> int:
    return counters.snapshot()["glsl_compiles"]


def test_every_compiler_makes_spirv_1_6(compiler: str) -> None:
    spirv = compile_glsl(ADD_ONE)
    assert spirv[:4] == MAGIC
    assert spirv[4:8] == b"\x00\x06\x01\x00", "the version word says 1.6"


def test_every_compiler_shows_the_lines_around_an_error(compiler: str) -> None:
    with pytest.raises(ShaderCompilerError) as caught:
        compile_glsl(BROKEN)
    lines = str(caught.value).splitlines()
    failing = BROKEN.splitlines().index("    SLOT(0).value[i] = undeclared;") + 1
    assert f"> {failing:4d} |     SLOT(0).value[i] = undeclared;" in lines
    assert f"  {failing - 1:4d} |     uint i = gl_GlobalInvocationID.x;" in lines
    assert not any(line.startswith("     1 |") for line in lines)


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(glslang, "available", lambda: False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ShaderCompilerError, match="apt install glslang-tools"):
        compile_glsl(ADD_ONE)
    with pytest.raises(ShaderCompilerError, match="apt install spirv-tools"):
        disassemble(MAGIC)


def test_a_shader_is_compiled_once_even_across_processes(compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = compiles()
    spirv = compile_glsl(ADD_ONE)
    assert compiles() == before + 1
    assert compile_glsl(ADD_ONE) == spirv
    shader_compiler.forget_compiled()
    assert compile_glsl(ADD_ONE) == spirv
    assert compiles() == before + 1


NO_MODULES = {
    "nothing": b"",
    "no whole words": MAGIC + b"\x00\x06\x01",
    "text": b"#version 460\n" * 20,
    "a header alone": MAGIC + b"\x00\x06\x01\x00" + bytes(4) + b"\x05\x00\x00\x00" + bytes(4),
    "another byte order": bytes(reversed(MAGIC)) + bytes(40),
    "a version to come": MAGIC + b"\x00\x09\x01\x00" + bytes(4) + b"\x05\x00\x00\x00" + bytes(8),
    "no identifiers": MAGIC + b"\x00\x06\x01\x00" + bytes(4) + bytes(8) + b"\x00\x00\x01\x00",
}


@pytest.mark.parametrize("name", NO_MODULES)
def test_what_is_no_module_is_neither_stored_nor_taken_from_disk(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAVAX_CACHE", str(tmp_path))  # other tests have filled the one that all share
    monkeypatch.setattr(glslang, "compile_shader", lambda source: NO_MODULES[name])
    monkeypatch.setattr(shader_compiler, "_compiled_by", lambda path, arguments, source: NO_MODULES[name])
    with pytest.raises(ShaderCompilerError, match="gave no SPIR-V module"):
        compile_glsl(ADD_ONE)
    assert not list(shader_compiler._spirv_cache().folder.glob("*"))


@pytest.mark.parametrize("name", NO_MODULES)
def test_what_is_no_module_on_disk_is_compiled_again(name: str) -> None:
    spirv = compile_glsl(ADD_ONE)
    cache, key = shader_compiler._spirv_cache(), shader_compiler._key(shader_compiler._compiler(), ADD_ONE)
    cache.store(key, NO_MODULES[name])
    shader_compiler.forget_compiled()
    assert compile_glsl(ADD_ONE) == spirv
    assert cache.load(key) == spirv


def test_a_module_whose_instructions_do_not_fill_it_is_not_kept() -> None:
    spirv = compile_glsl(ADD_ONE)
    assert fault_of_module(spirv) is None
    assert fault_of_module(spirv[:24]) == "its last instruction is cut short"
    assert fault_of_module(spirv + bytes(4)) == f"the instruction at word {len(spirv) // 4} has no words"


def test_a_compiler_that_writes_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = tmp_path / "glslangValidator"
    silent.write_text("#!/bin/sh\nexit 0\n")
    silent.chmod(0o755)
    monkeypatch.setattr(glslang, "available", lambda: False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(ShaderCompilerError, match="glslangValidator says that it succeeded, but wrote nothing"):
        compile_glsl(ADD_ONE)


def test_compiling_looks_at_the_whole_folder_only_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a shader takes to compile must not grow with the number of those on disk."""
    looked: list[Path] = []
    entries = disk_cache._entries
    monkeypatch.setattr(disk_cache, "_entries", lambda folder: looked.append(folder) or entries(folder))
    for number in range(4):
        compile_glsl(f"{ADD_ONE}// {number}")
    assert len(looked) == 1


@pytest.mark.parametrize(("mark", "again"), [("", 0), (BRAIN_FLOATS, 1)])
def test_another_version_makes_the_modules_anew_that_lavax_changes(
    mark: str, again: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shader_compiler, "with_brain_floats", lambda spirv: spirv)
    source = ADD_ONE + mark
    compile_glsl(source)
    monkeypatch.setattr(config, "VERSION", "another")
    shader_compiler.forget_compiled()
    before = counters.snapshot()["glsl_compiles"]
    compile_glsl(source)
    assert counters.snapshot()["glsl_compiles"] - before == again


def test_disassembly_in_process_and_by_program_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    if not glslang.available() or shutil.which("spirv-dis") is None:
        pytest.skip("needs the glslang extension and spirv-dis")
    spirv = compile_glsl(ADD_ONE)
    inside = disassemble(spirv)
    assert 'OpEntryPoint GLCompute %main "main"' in inside
    monkeypatch.setattr(glslang, "available", lambda: False)
    assert disassemble(spirv).strip() == inside.strip()


@pytest.mark.parametrize("spirv", [b"", b"no module at all"])
def test_what_is_no_module_is_refused(spirv: bytes) -> None:
    with pytest.raises(ShaderCompilerError, match="not a SPIR-V module"):
        disassemble(spirv)


def test_many_threads_may_be_the_first_to_compile() -> None:
    program = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from lavax.backends.vulkan import glslang\n"
        "source = '#version 460\\nlayout(local_size_x = %d) in;\\nvoid main() {}\\n'\n"
        "sources = [source % (1 + index % 64) for index in range(256)]\n"
        "with ThreadPoolExecutor(8) as threads:\n"
        "    together = list(threads.map(glslang.compile_shader, sources))\n"
        "assert together == [glslang.compile_shader(source) for source in sources]\n"
    )
    if not glslang.available():
        pytest.skip("the glslang extension is not built")
    subprocess.run([sys.executable, "-c", program], check=True)


def test_compiling_needs_no_vulkan_loader() -> None:
    program = (
        "import sys\n"
        "sys.modules['vulkan'] = None\n"
        "from lavax.backends.vulkan.plan import plan, profile\n"
        "from lavax.backends.vulkan.compile.shader_compiler import compile_glsl, disassemble\n"
        "print(disassemble(compile_glsl('#version 460\\nlayout(local_size_x = 8) in;\\nvoid main() {}')))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "OpEntryPoint" in done.stdout


def test_a_module_that_was_still_to_be_written_is_forgotten_on_disk_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver may refuse it before a slow disk has it."""
    store = disk_cache.DiskCache.store

    def slow(self: disk_cache.DiskCache, key: str, payload: bytes) -> None:
        time.sleep(0.2)
        store(self, key, payload)

    expected = compile_glsl(ADD_ONE)
    monkeypatch.setattr(disk_cache.DiskCache, "store", slow)
    shader_compiler.keep_modules({ADD_ONE: expected})
    before = compiles()
    assert shader_compiler.compile_again(ADD_ONE) == expected
    assert compiles() == before + 1
