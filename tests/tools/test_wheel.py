"""Wheels that would fail on other machines are refused; the one that is built needs no compiler.

The long tests install what tools/build_wheel.py builds where nothing can be compiled, and train the digits there. They
download what lavax needs with pip.
"""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from lavax.backends.vulkan import glslang
from tools.build_wheel import ENTRY, EXTENSION, LICENSES, build, faults, faults_of_extension

ROOT = Path(__file__).resolve().parents[2]
TAG = "lavax-0.1.0-cp311-abi3-manylinux_2_34_x86_64.whl"
# Runs in the bare environment: what would compile a shader or a C program there, and how lavax compiles shaders.
SURROUNDINGS = """
import shutil
from lavax.backends.vulkan import glslang
programs = "cc", "gcc", "g++", "c++", "clang", "glslang", "glslangValidator", "glslc", "cmake", "make"
assert [name for name in programs if shutil.which(name)] == []
assert glslang.available(), "the extension is not in the wheel, or does not load"
print("glslang", glslang.version())
"""
PACKAGES = ("python3", "python3-venv", "libvulkan1", "mesa-vulkan-drivers")


def wheel_of(folder: Path, name: str, members: Sequence[str]) -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        for member in members:
            archive.writestr(member, "")
    return path


LICENSED = tuple(f"lavax-0.1.0.dist-info/licenses/{name}" for name in LICENSES.values())


@pytest.mark.parametrize(
    ("name", "members", "fault"),
    [
        ("lavax-0.1.0-cp311-abi3-linux_x86_64.whl", LICENSED, "not a manylinux tag"),
        (TAG, (*LICENSED, "tests/test_house.py"), "tests/test_house.py is no part of the package"),
        (TAG, LICENSED[:1], f"{LICENSED[1].rpartition('/')[2]} is missing"),
        (TAG, LICENSED, "was not built"),
    ],
)
def test_a_wheel_that_is_not_fit_is_refused(tmp_path: Path, name: str, members: Sequence[str], fault: str) -> None:
    assert any(fault in line for line in faults(wheel_of(tmp_path, name, members)))


def test_an_extension_that_needs_other_libraries_is_refused() -> None:
    """Python itself, or a library of it, needs such as libz, and does not define what the extension has to."""
    pytest.importorskip("elftools", reason="reads shared objects")
    found = list(faults_of_extension(Path(sys.executable).resolve().read_bytes()))
    assert any(f"does not define {ENTRY}" in line for line in found)
    assert any("symbols of its libraries" in line for line in found)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("auditwheel", reason="builds the wheel: pip install 'lavax[wheel]'")
    if not glslang.available():
        pytest.skip("glslang's headers or libraries are missing here")
    return build(tmp_path_factory.mktemp("dist"))


def run(command: Sequence[str | Path], **variables: str) -> str:
    """What a command prints, run with no more of the environment than `variables`."""
    words = [str(word) for word in command]  # in another folder, where `import lavax` finds what is installed
    finished = subprocess.run(words, env=variables, cwd="/", capture_output=True, text=True, check=False)
    assert finished.returncode == 0, f"{command}\n{finished.stdout}{finished.stderr}"
    return finished.stdout


def accuracy_in(printed: str) -> float:
    """The accuracy, in per cent, that examples/digits.py prints."""
    found = re.search(r"^accuracy: ([\d.]+) %$", printed, re.MULTILINE)
    assert found is not None, printed
    return float(found[1])


@pytest.mark.long
def test_it_is_audited_and_holds_the_extension(wheel: Path) -> None:
    assert list(faults(wheel)) == []
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    shaders = [path.name for path in (ROOT / "shaders_glsl").iterdir() if path.suffix in (".glsl", ".comp")]
    assert shaders and {EXTENSION, "lavax/py.typed", *(f"lavax/shaders_glsl/{name}" for name in shaders)} <= names


@pytest.mark.long
def test_it_installs_and_trains_without_a_compiler(wheel: Path, tmp_path: Path) -> None:
    """Where PATH has nothing but the environment's own programs, and CC would fail."""
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    python, programs = environment / "bin" / "python", str(environment / "bin")
    wanted = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", f"{wheel}[examples]"]
    run(wanted, **{**os.environ, "PATH": programs, "CC": "/bin/false", "CXX": "/bin/false", "PYTHONPATH": ""})
    bare = {"PATH": programs, "HOME": str(tmp_path)}
    assert run([python, "-c", SURROUNDINGS], **bare).startswith("glslang ")
    example = shutil.copy(ROOT / "examples" / "digits.py", tmp_path)
    assert accuracy_in(run([python, example, "--quick", "--out", tmp_path / "out"], **bare)) > 90


@pytest.fixture(scope="module")
def bare_debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The root of a Debian with Python, the Vulkan loader and Mesa's drivers, of the release that runs here."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("needs root and debootstrap")
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    archives = run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], **os.environ).splitlines()
    root = tmp_path_factory.mktemp("debian")
    names = f"--include={','.join(PACKAGES)}"
    run(["debootstrap", "--variant=minbase", names, release["VERSION_CODENAME"], root, archives[0]], **os.environ)
    yield root
    shutil.rmtree(root)


@pytest.mark.long
def test_it_installs_and_trains_on_a_bare_debian(wheel: Path, bare_debian: Path) -> None:
    """No headers, no compiler, no network: pip has the wheels in a folder."""
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    bare = {"PATH": "/venv/bin:/usr/bin:/bin", "HOME": "/root"}
    inside = [shutil.which("chroot") or "/usr/sbin/chroot", bare_debian]
    theirs = run([*inside, "/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], **bare)
    if theirs.strip() != ours:
        pytest.skip(f"pip here loads wheels for Python {ours}; Debian has {theirs.strip()}")
    wheels = bare_debian / "wheels"
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "--dest", wheels]
    run([*download, f"{wheel}[examples]"], **os.environ)
    shutil.copy(ROOT / "examples" / "digits.py", bare_debian)
    run([*inside, "/usr/bin/python3", "-m", "venv", "/venv"], **bare)
    run([*inside, "pip", "install", "--quiet", "--no-index", "--find-links", "/wheels", "lavax[examples]"], **bare)
    assert list((bare_debian / "usr" / "include").rglob("*.h")) == []
    assert run([*inside, "/venv/bin/python", "-c", SURROUNDINGS], **bare).startswith("glslang ")
    assert accuracy_in(run([*inside, "/venv/bin/python", "/digits.py", "--quick", "--out", "/out"], **bare)) > 90
