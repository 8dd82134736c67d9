"""The import switch: a program's file is ordinary JAX code, which is run with its own imports or with lavax's."""
from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parent / "programs"
DOUBLES = Path(__file__).parent / "doubles"  # of programs that are run with 64 bits enabled
FILES = sorted(path.stem for path in FOLDER.glob("*.py"))

Program = Callable[[], Mapping[str, Any]]


class _Switch(ast.NodeTransformer):
    """Imports of jax become imports of lavax, under the names that the program uses."""

    def visit_Import(self, node: ast.Import) -> ast.Import:
        for alias in node.names:
            if alias.name.split(".")[0] == "jax":
                alias.asname = alias.asname or "jax"
                alias.name = _switched(alias.name)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        if node.module and node.module.split(".")[0] == "jax":
            node.module = _switched(node.module)
        return node


def _switched(module: str) -> str:
    return "lavax" + module.removeprefix("jax")


def programs_in(file: str, library: str, folder: Path = FOLDER) -> dict[str, Program]:
    """The programs of a file, by name, run by `library`: "jax" or "lavax". They are its functions without parameters.

    Functions that begin with an underscore, or take arguments, are parts of programs.
    """
    path = folder / f"{file}.py"
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    if library == "lavax":
        tree = ast.fix_missing_locations(_Switch().visit(tree))
    module = ModuleType(f"{library}_{file}")
    sys.modules[module.__name__] = module  # where dataclasses look
    exec(compile(tree, str(path), "exec"), vars(module))
    return {
        name: made
        for name, made in vars(module).items()
        if inspect.isfunction(made)
        and made.__module__ == module.__name__
        and not name.startswith("_")
        and not inspect.signature(made).parameters
    }


def names_in(file: str, folder: Path = FOLDER) -> list[str]:
    """The names of the programs in a file, without running it."""
    tree = ast.parse((folder / f"{file}.py").read_text(encoding="utf-8"))
    return [
        part.name
        for part in tree.body
        if isinstance(part, ast.FunctionDef) and not part.name.startswith("_") and not ast.unparse(part.args)
    ]
