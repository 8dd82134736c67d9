"""The package as a whole: what is installed, who imports whom, and what it needs to be imported."""
from __future__ import annotations

import ast
import configparser
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from lavax.backends.vulkan.compile.shader_compiler import compile_glsl
from tests.test_house import ROOMS, module_name

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("benchmarks", "examples")
SHADERS = sorted(path for path in (ROOT / "shaders_glsl").rglob("*") if path.suffix in (".glsl", ".comp"))

def settings() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def nodes_of(text: str, names: Iterable[str]) -> Iterator[ast.AST]:
    """The nodes of a source; none of one that has none of these names in it, as most have not."""
    return ast.walk(ast.parse(text)) if any(name in text for name in names) else iter(())


def environment_reads(text: str) -> list[int]:
    """The lines that name the process environment."""
    names = {"environ", "environb", "getenv", "getenvb"}
    return [
        node.lineno
        for node in nodes_of(text, names)
        if (isinstance(node, ast.Attribute) and node.attr in names)
        or (isinstance(node, ast.ImportFrom) and node.module == "os" and names & {alias.name for alias in node.names})
    ]


def run_without_vulkan(program: str) -> subprocess.CompletedProcess[str]:
    """Runs `program` where `import vulkan` fails, as it does on a machine with no Vulkan loader."""
    blocked = f"import sys\nsys.modules['vulkan'] = None\n{program}"
    return subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, cwd=ROOT, check=False)


def test_setup_finds_every_package() -> None:
    program = "from setuptools.dist import Distribution as D; D.has_ext_modules = lambda self: False\n"
    program += "from distutils.core import run_setup; print(*run_setup('setup.py', stop_after='init').packages)"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    found = finished.stdout.splitlines()[-1].split()  # some versions tell before how they try the compiler
    assert len(found) == len(set(found))
    assert set(found) == {module_name(path) for path in sources(*ROOMS) if path.name == "__init__.py"}


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for path in sources(*ROOMS)}
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_every_room_is_mapped() -> None:
    lines = settings()["options"]["package_dir"].strip().splitlines()
    mapping = {name.strip(): folder.strip() for name, folder in (line.split("=") for line in lines)}
    assert mapping == {module_name(ROOT / room / "__init__.py"): room for room in ROOMS}


def test_shaders_are_installed() -> None:
    patterns = [pattern.strip() for pattern in settings()["options.package_data"]["lavax.shaders_glsl"].split(",")]
    files = (path for path in (ROOT / "shaders_glsl").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    others = [path for path in files if path.suffix != ".py"]
    assert [path for path in others if path.parent != ROOT / "shaders_glsl"] == []
    assert [path for path in others if not any(fnmatch(path.name, pattern) for pattern in patterns)] == []


@pytest.mark.parametrize("text", ["import os\nos.environ['A']", "import os\nos.getenv('A')", "from os import getenv"])
def test_a_read_of_the_environment_is_seen(text: str) -> None:
    assert environment_reads(text)


def test_only_config_reads_the_environment() -> None:
    config = ROOT / "lavax" / "base" / "config.py"
    found = {
        str(path.relative_to(ROOT)): lines
        for path in sources(*ROOMS, *PROGRAMS)
        if path != config and (lines := environment_reads(path.read_text(encoding="utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize("path", SHADERS, ids=lambda path: path.name)
def test_every_shader_compiles_on_its_own(path: Path) -> None:
    assert compile_glsl(path.read_text(encoding="utf-8"))


def test_lavax_is_imported_without_vulkan() -> None:
    finished = run_without_vulkan("import lavax, lavax.numpy\nassert sys.modules['vulkan'] is None")
    assert (finished.returncode, finished.stderr) == (0, "")


def test_numpy_knows_the_name_bfloat16() -> None:
    finished = run_without_vulkan(
        "import lavax.numpy, numpy\n"
        "assert numpy.dtype('bfloat16') == lavax.numpy.dtype('bfloat16') == lavax.numpy.bfloat16"
    )
    assert (finished.returncode, finished.stderr) == (0, "")


def test_a_function_is_lowered_to_spirv_without_vulkan() -> None:
    finished = run_without_vulkan(
        "import numpy, lavax as lx\n"
        "double = lx.compile(lambda x: x + x)\n"
        "print(double.lower(numpy.ones(3, numpy.float32)).as_text('spirv'))\n"
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "OpEntryPoint GLCompute" in finished.stdout


def test_the_architecture_names_every_folder() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    house = page.split("\n## The house\n")[1].split("\n## ")[0]
    named = set(re.findall(r"([\w/]+)/(?=[\s,:;)])", house))
    folders = {path.parent.relative_to(ROOT) for path in sources(*ROOMS, *PROGRAMS)} - {Path("backends")}
    assert [str(folder) for folder in sorted(folders) if str(folder) not in named and folder.name not in named] == []


# Names that NumPy has from 2.0 on; setup.cfg says which version is the oldest.
NEW_IN_NUMPY = {
    "acos", "acosh", "asin", "asinh", "astype", "atan", "atan2", "atanh", "bitwise_count", "bitwise_invert",
    "bitwise_left_shift", "bitwise_right_shift", "bool", "concat", "cumulative_prod", "cumulative_sum",
    "isdtype", "long", "matrix_transpose", "matvec", "permute_dims", "pow", "trapezoid", "ulong", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "unstack", "vecdot", "vecmat",
}


def test_the_oldest_numpy_has_what_is_used() -> None:
    assert "numpy>=1.26" in settings()["options"]["install_requires"].split()
    used = {
        f"{path.relative_to(ROOT)}:{node.lineno}: np.{node.attr}"
        for path in sources(*ROOMS)
        for node in nodes_of(path.read_text(encoding="utf-8"), NEW_IN_NUMPY)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np"
        if node.attr in NEW_IN_NUMPY
    }
    saved = {
        f"{path.relative_to(ROOT)}:{node.lineno}: allow_pickle would be one of the arrays"
        for path in sources(*ROOMS)
        for node in nodes_of(path.read_text(encoding="utf-8"), ["savez"])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith("savez")
        if any(keyword.arg == "allow_pickle" for keyword in node.keywords)
    }
    assert used | saved == set()
