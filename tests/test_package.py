"""The package as a whole: what is installed, who imports whom, and what it needs to be imported."""
from __future__ import annotations

import ast
import configparser
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from lavax.backends.vulkan.compile.shader_compiler import compile_glsl

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("lavax", "tracer", "passes", "backends", "ir", "shaders_glsl")
PROGRAMS = ("benchmarks", "examples")
LEAVES = ("lavax.config", "lavax.counters", "lavax.errors", "lavax.recent")
SHADERS = sorted(path for path in (ROOT / "shaders_glsl").rglob("*") if path.suffix in (".glsl", ".comp"))

# What each part of lavax may import besides itself and the leaves. The front door, which is the folder
# lavax/ less the leaves, may import all.
MAY_IMPORT: dict[str, frozenset[str]] = {
    "lavax.ir": frozenset(),
    "lavax.shaders_glsl": frozenset(),
    "lavax.passes": frozenset({"lavax.ir"}),
    "lavax.tracer": frozenset({"lavax.passes", "lavax.ir"}),
    "lavax.backends": frozenset({"lavax.passes", "lavax.ir", "lavax.shaders_glsl"}),
    "lavax": frozenset({"lavax.tracer", "lavax.passes", "lavax.backends", "lavax.ir", "lavax.shaders_glsl"}),
} | {leaf: frozenset() for leaf in LEAVES}


def settings() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def module_name(path: Path) -> str:
    """The name that the file `path` of a room is imported by; a package by its folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    prefix = () if parts[0] == "lavax" else ("lavax",)
    return ".".join(prefix + parts).removesuffix(".__init__")


def imported(tree: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    """The full names that a module imports anywhere in its text: of modules, or of what is in them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = module.split(".")[: -(node.level - is_package) or None] if node.level else []
            source = ".".join(parents + ([node.module] if node.module else []))
            yield from (f"{source}.{alias.name}" for alias in node.names)


def part_of(name: str) -> str | None:
    """The part of lavax that holds `name`, or None if it is not lavax's."""
    parts = name.split(".")
    known = (".".join(parts[:length]) for length in (2, 1))
    return next((part for part in known if part in MAY_IMPORT), None)


def forbidden_imports(text: str, module: str, is_package: bool = False) -> list[str]:
    home = part_of(module)
    assert home is not None
    allowed = MAY_IMPORT[home] | {home, None}
    if home not in LEAVES:
        allowed |= set(LEAVES)
    names = imported(ast.parse(text), module, is_package)
    return [f"{module} imports {name}" for name in names if part_of(name) not in allowed]


def environment_reads(text: str) -> list[int]:
    """The lines that name the process environment."""
    names = {"environ", "environb", "getenv", "getenvb"}
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if (isinstance(node, ast.Attribute) and node.attr in names)
        or (isinstance(node, ast.ImportFrom) and node.module == "os" and names & {alias.name for alias in node.names})
    ]


def run_without_vulkan(program: str) -> subprocess.CompletedProcess[str]:
    """Runs `program` where `import vulkan` fails, as it does on a machine with no Vulkan loader."""
    blocked = f"import sys\nsys.modules['vulkan'] = None\n{program}"
    return subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, cwd=ROOT, check=False)


def test_setup_lists_every_package() -> None:
    listed = settings()["options"]["packages"].split()
    found = {module_name(path) for path in sources(*ROOMS) if path.name == "__init__.py"}
    assert len(listed) == len(set(listed))
    assert set(listed) == found


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


@pytest.mark.parametrize("path", sources(*ROOMS), ids=module_name)
def test_imports_follow_the_arrows(path: Path) -> None:
    assert forbidden_imports(path.read_text(encoding="utf-8"), module_name(path), path.name == "__init__.py") == []


@pytest.mark.parametrize(
    ("text", "module", "is_package"),
    [
        ("import lavax.tracer", "lavax.ir.graph", False),
        ("from lavax import passes", "lavax.ir.graph", False),
        ("from ..tracer import proxy", "lavax.ir.graph", False),
        ("from ...tracer import proxy", "lavax.ir.ops", True),
        ("def late():\n    from lavax.backends import vulkan", "lavax.tracer.cache", False),
        ("import lavax", "lavax.passes.fuse", False),
        ("from lavax.errors import LavaxError", "lavax.config", False),
    ],
)
def test_a_forbidden_import_is_seen(text: str, module: str, is_package: bool) -> None:
    assert len(forbidden_imports(text, module, is_package)) == 1


@pytest.mark.parametrize(
    ("text", "module", "is_package"),
    [
        ("from lavax.errors import ShapeError", "lavax.ir.types", False),
        ("from lavax import config, counters", "lavax.backends.vulkan.device", False),
        ("from .types import TensorType", "lavax.ir.graph", False),
        ("from .types import TensorType", "lavax.ir", True),
        ("import numpy, os.path", "lavax.config", False),
        ("from lavax.backends import vulkan", "lavax.profiler", False),
    ],
)
def test_an_allowed_import_is_let_pass(text: str, module: str, is_package: bool) -> None:
    assert forbidden_imports(text, module, is_package) == []


@pytest.mark.parametrize("text", ["import os\nos.environ['A']", "import os\nos.getenv('A')", "from os import getenv"])
def test_a_read_of_the_environment_is_seen(text: str) -> None:
    assert environment_reads(text)


def test_only_config_reads_the_environment() -> None:
    found = {
        str(path.relative_to(ROOT)): lines
        for path in sources(*ROOMS, *PROGRAMS)
        if path != ROOT / "lavax" / "config.py" and (lines := environment_reads(path.read_text(encoding="utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize("path", SHADERS, ids=lambda path: path.name)
def test_every_shader_compiles_on_its_own(path: Path) -> None:
    assert compile_glsl(path.read_text(encoding="utf-8"))


def test_lavax_is_imported_without_vulkan() -> None:
    finished = run_without_vulkan("import lavax, lavax.numpy\nassert sys.modules['vulkan'] is None")
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
    house = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("## The way of the data")[0]
    named = set(re.findall(r"([\w/]+)/(?=[\s,:;)])", house))
    folders = {path.parent.relative_to(ROOT) for path in sources(*ROOMS, *PROGRAMS)} - {Path("backends")}
    assert [str(folder) for folder in sorted(folders) if str(folder) not in named and folder.name not in named] == []
