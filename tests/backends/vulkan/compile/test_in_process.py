"""The glslang extension is tried in a child process before this one relies on it."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from lavax.backends.vulkan import glslang
from lavax.backends.vulkan.compile import in_process, shader_compiler
from lavax.backends.vulkan.compile.in_process import compiles_in_process, is_sound
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl
from lavax.backends.vulkan.glslang import build, probe
from tests.backends.vulkan.emit.shaders import ADD_ONE


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("LAVAX_CACHE", str(tmp_path / "cache"))
    shader_compiler.forget_compiled()
    in_process._probed.cache_clear()
    yield
    in_process._probed.cache_clear()


@pytest.fixture
def extension() -> Path:
    found = glslang.extension_file()
    if found is None:
        pytest.skip("the glslang extension is not built")
    return found


@pytest.fixture
def crashing(tmp_path: Path) -> Path:
    """An extension that ends the process which loads it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    file = tmp_path / "_glslang.so"
    source = "void *PyInit__glslang(void) { __builtin_trap(); }"
    subprocess.run([compiler, "-shared", "-fPIC", "-xc", "-", "-o", file], input=source, text=True, check=True)
    return file


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that child processes are started for."""
    asked: list[Path] = []
    survives = probe.survives
    monkeypatch.setattr(probe, "survives", lambda file: asked.append(file) or survives(file))
    return asked


def test_the_extension_that_was_built_survives(extension: Path, children: list[Path]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert is_sound(extension) and is_sound(extension)
    in_process._probed.cache_clear()  # as in another process
    assert is_sound(extension)
    assert children == [extension], "one child for the file, ever"


def test_a_new_file_is_tried_again(extension: Path, children: list[Path], tmp_path: Path) -> None:
    copy = tmp_path / extension.name
    shutil.copy(extension, copy)
    assert is_sound(copy)
    in_process._probed.cache_clear()
    os.utime(copy, (1, 1))
    assert is_sound(copy)
    assert children == [copy, copy]


def test_one_that_dies_is_not_used_and_one_warning_says_so(
    crashing: Path, children: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not any(map(shutil.which, shader_compiler.COMPILERS)):
        pytest.skip("no program that compiles shaders is on PATH")
    monkeypatch.setattr(glslang, "extension_file", lambda: crashing)
    monkeypatch.setattr(glslang, "available", lambda: pytest.fail("it must not be loaded"))
    with pytest.warns(RuntimeWarning, match="extension .* fails .* LAVAX_GLSL=program") as warned:
        assert compile_glsl(ADD_ONE)[:4] == b"\x03\x02\x23\x07"
        assert compile_glsl(f"{ADD_ONE}// another")
    assert len(warned) == 1
    in_process._probed.cache_clear()
    with pytest.warns(RuntimeWarning):
        assert not compiles_in_process()
    assert children == [crashing], "that it dies is remembered, too"


@pytest.mark.parametrize("content", [b"", b"no library"])
def test_what_is_no_library_does_not_survive(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "_glslang.so"
    file.write_bytes(content)
    assert probe.survives(file) is False


def test_where_no_child_can_be_started_the_build_is_trusted(extension: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("", None, "/nowhere/python3", "/usr/bin/paint"):
        monkeypatch.setattr(sys, "executable", program)
        in_process._probed.cache_clear()
        assert probe.survives(extension) is None
        assert is_sound(extension)
    assert not list(Path(os.environ["LAVAX_CACHE"]).rglob("*")), "nothing was found out"


def test_a_setting_forces_either(extension: Path, children: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAVAX_GLSL", "extension")
    assert compiles_in_process()
    monkeypatch.setenv("LAVAX_GLSL", "program")
    assert not compiles_in_process()
    monkeypatch.setenv("LAVAX_GLSL", "magic")
    with pytest.raises(ValueError, match='LAVAX_GLSL must be "extension" or "program", got \'magic\''):
        compiles_in_process()
    assert not children, "a setting needs no answer"


def test_importing_lavax_does_not_load_the_extension() -> None:
    program = "import sys, lavax, lavax.numpy; print([name for name in sys.modules if '_glslang' in name])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_glslang_that_cannot_start_says_so_and_is_tried_again(
    extension: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = glslang._extension()

    class Lib:
        started = 0

        def start_glslang(self) -> int:
            Lib.started += 1
            return 0

    class Failing:
        lib = Lib()
        ffi = real.ffi

    monkeypatch.setattr(glslang, "_started", False)
    monkeypatch.setattr(glslang, "_extension", lambda: Failing)
    for _ in range(2):
        with pytest.raises(glslang.GlslangError, match="could not be initialised"):
            glslang.compile_shader(ADD_ONE)
    assert Lib.started == 2


@pytest.mark.skipif(not build.LINK_ARGUMENTS or shutil.which("nm") is None, reason="needs nm, and a linker of ELF")
def test_the_extension_shows_no_symbol_but_its_entry(extension: Path) -> None:
    done = subprocess.run(["nm", "-D", "--defined-only", extension], capture_output=True, text=True, check=True)
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["PyInit__glslang"]


def test_the_file_is_found_while_another_thread_loads_it() -> None:
    """The module stands in sys.modules then, and has no spec yet. In a process of its own, before the first use."""
    program = """
import sys, types
from lavax.backends.vulkan import glslang
name = "lavax.backends.vulkan.glslang._glslang"
found = glslang.extension_file()
sys.modules[name] = types.ModuleType(name)          # its __spec__ is None
assert glslang.extension_file() == found
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[4])
