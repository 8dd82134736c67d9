"""Building the glslang binding: which libraries it is linked against."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lavax.backends.vulkan.glslang import build

ROOT = Path(__file__).resolve().parents[4]
SOURCES = ROOT / "backends" / "vulkan" / "glslang"

# A compiler whose libraries end the process that loads them.
_COMPILER = """#!/bin/sh
case " $* " in
    *" -shared "*) code='void *PyInit__glslang(void) { __builtin_trap(); }'; kind="-shared -fPIC" ;;
    *) code='int nothing;'; kind="-c" ;;
esac
while [ "$1" != -o ]; do shift; done
echo "$code" | cc $kind -xc - -o "$2"
"""


def test_only_libraries_that_exist_are_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    """glslang 12 has libraries that 14 has not: one that is missing must not end the search, nor be taken."""
    existing = build.libraries_found()
    if not existing:
        pytest.skip("glslang's libraries are not installed, or there is no C compiler")
    monkeypatch.setattr(build, "LIBRARIES", (existing[0], "lavax-no-such-library", *existing[1:]))
    assert build.libraries_found() == existing


def test_an_extension_that_fails_after_the_build_is_not_installed(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    if not (SOURCES / "binding.cpp").is_file() or not build.libraries_found():
        pytest.skip("the sources of the binding, or glslang's libraries, are not here")
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE",
                 "lavax", "tracer", "ir", "passes", "backends", "shaders_glsl"):  # fmt: skip
        (tmp_path / name).symlink_to(ROOT / name)
    compiler = tmp_path / "compiler"
    compiler.write_text(_COMPILER)
    compiler.chmod(0o755)
    chosen = {"CC": str(compiler), "CXX": str(compiler), "LDSHARED": f"{compiler} -shared"}
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext"],
        cwd=tmp_path, env={**os.environ, **chosen}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "was built, but fails at a first shader: set CC and CXX to other compilers" in done.stdout + done.stderr
    assert not list((tmp_path / "build").rglob("*.so"))
