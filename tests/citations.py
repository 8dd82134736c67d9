"""What the documentation and the docstrings cite: files, folders, links, and the lines that links lead to.

A link to a line has the name that is defined there for its text: [`fuse`](../passes/fuse/fuse.py#L375). Files are
cited by their path, or by as much of its end as tells them apart: emit/reduce/choose.py.
"""
from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path, PurePosixPath

from tools.site.reference import MODULES, public_names
from tools.site.rejected import anchor_of

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "api"
FOLDERS = (
    *("lavax", "tracer", "passes", "backends", "ir", "shaders_glsl"),
    *("tests", "benchmarks", "examples", "tools", "docs"),
)
# What was tried names files as they were called then.
HISTORY = tuple(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs" / "rejected").glob("*.md")))
LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<path>[^)#\s:]*)(?:#(?P<anchor>[^)\s]+))?\)")
_FILE = re.compile(r"(?<![\w./-])(?P<path>(?:\w[\w-]*/)*\w[\w-]*\.(?:py|glsl|comp|md|cpp|cfg|toml))(?![\w/])(?!\.\w)")
_FOLDER = re.compile(rf"(?<![\w./-])(?P<path>(?:{'|'.join(FOLDERS)})(?:/\w+)+)/?(?![\w/]|\.\w|\*)")
_SECTION = re.compile(r'\b(?P<page>docs/[\w/]+\.md), "(?P<title>[^"]+)"')
_LINE_BREAK = re.compile(r"\n\s*(?:#\s*)?")
_COMMAND = re.compile(r"`python -m benchmarks(?:\.(?P<module>[\w.]+))?(?P<words>(?: [\w.'*-]+)*)`")
# Files of users, in examples.
_ELSEWHERE = frozenset({"file.py", "model.py", "other.py", "shader.comp", "train.py"})


@cache
def _files() -> tuple[PurePosixPath, ...]:
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts]
    return tuple(PurePosixPath(path.relative_to(ROOT)) for path in (*found, *ROOT.glob("*.*")) if path.is_file())


def pages() -> list[Path]:
    return [path for path in (*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))) if _name(path) not in HISTORY]


def sources() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if folder != "docs")


def benchmark_commands() -> Iterator[tuple[str, str, list[str], list[str]]]:
    """The benchmarks that are cited: the file, the module behind `benchmarks`, names, and workloads (`--only`)."""
    for path in (*pages(), *sources()):
        text = _LINE_BREAK.sub(" ", path.read_text(encoding="utf-8"))
        for found in _COMMAND.finditer(text):
            words = found["words"].split()
            only = [word.strip("'") for option, word in pairwise(words) if option == "--only"]
            pairs = [pair for pair in pairwise(["", *words]) if pair[0] not in ("--only", "--library", "--out")]
            names = [word for _, word in pairs if not word.startswith("--")]
            yield _name(path), found["module"] or "", names, only


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def stale_citations() -> list[str]:
    """Every citation that leads nowhere, with the file and line where it stands."""
    found = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        found += [f"{_name(page)}:{line}: {fault}" for line, fault in faults_in_page(page, text)]
    for source in sources():
        whole = source.read_text(encoding="utf-8")
        if not missing_paths(whole):  # as in nearly every one: to find its prose takes ten times as long
            continue
        for line, text in prose_of(whole):
            found += [f"{_name(source)}:{line}: {fault}" for fault in missing_paths(text)]
    for path in (*pages(), *sources()):
        found += [f"{_name(path)}: {fault}" for fault in missing_sections(path.read_text(encoding="utf-8"))]
    return found


def missing_sections(text: str) -> Iterator[str]:
    """The sections that a text cites by their titles, as in docs/benchmarks.md, "On GPUs", and that the page lacks."""
    for cited in _SECTION.finditer(_LINE_BREAK.sub(" ", text)):
        page, title = ROOT / cited["page"], cited["title"]
        if page.exists() and not any(found.startswith(title) for found in _titles(page)):
            yield f'{cited["page"]} has no section "{title}"'


@cache
def _titles(page: Path) -> tuple[str, ...]:
    """A page's headings, and the bold words that begin a paragraph or an entry of a list."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return tuple(line.lstrip("#-* ") for line in lines if re.match(r"#+ |(?:- )?\*\*", line))


def faults_in_page(page: Path, text: str) -> Iterator[tuple[int, str]]:
    """The lines of a page with that text that cite what is not there, and what that is."""
    for link in LINK.finditer(text):
        if (fault := fault_of_link(page, link)) is not None:
            yield text.count("\n", 0, link.start()) + 1, fault
    for number, line in enumerate(LINK.sub(lambda link: link["text"], text).splitlines(), 1):
        for fault in missing_paths(line):
            yield number, fault


def missing_paths(text: str) -> list[str]:
    """The files and folders that a text names and that are not there."""
    files = [found["path"] for found in _FILE.finditer(text)]
    folders = [found["path"] for found in _FOLDER.finditer(_FILE.sub(" ", text))]
    missing = [path for path in files if path not in _ELSEWHERE and PurePosixPath(path).parts not in _endings()]
    return [f"{path} is not there" for path in (*missing, *(path for path in folders if not _is_there(path)))]


@cache
def _endings() -> frozenset[tuple[str, ...]]:
    """As much of the end of each file's path as one may write."""
    return frozenset(file.parts[start:] for file in _files() for start in range(len(file.parts)))


def _is_there(path: str) -> bool:
    """Whether there is a folder of that path, or a module, as in passes/fuse/fuse."""
    return (ROOT / path).exists() or (ROOT / f"{path}.py").exists()


def fault_of_link(page: Path, link: re.Match[str]) -> str | None:
    """Why a link leads nowhere, or to a line that does not define the link's text; None if it is right."""
    target = (page.parent / link["path"]).resolve() if link["path"] else page
    if target.parent == REFERENCE:
        return None if _is_in_reference(target.stem, link["anchor"]) else f"{link[0]}: the reference has no such name"
    if not target.exists():
        return f"{link[0]}: {link['path']} is not there"
    anchor = link["anchor"]
    if anchor is None:
        return None
    if re.fullmatch(r"L\d+", anchor):
        lines = definitions(target.read_text(encoding="utf-8"), link["text"].strip("`"))
        return None if int(anchor[1:]) in lines else f"{link[0]}: that name is defined in line {lines or 'none'}"
    return None if anchor in headings(target.read_text(encoding="utf-8")) else f"{link[0]}: there is no such heading"


def _is_in_reference(page: str, anchor: str | None) -> bool:
    """Whether the reference, which is generated, has that page and on it that name, such as lavax.grad."""
    if anchor is None or page not in MODULES:
        return page in (*MODULES, "index")
    module, _, name = anchor.rpartition(".")
    return anchor in MODULES[page] or (module in MODULES[page] and name in public_names(import_module(module)))


def definitions(text: str, name: str) -> list[int]:
    """The lines of a file that define a name: of a function, a class, a variable, a GLSL function."""
    defined = re.compile(rf"\s*(?:(?:def|class) {name}\b|{name}\s*(?::[^=]*)?=|//! function {name}\b)")
    return [number for number, line in enumerate(text.splitlines(), 1) if defined.match(line)]


def headings(text: str) -> set[str]:
    """The anchors that a page's headings have."""
    return {anchor_of(title) for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def with_true_lines(page: Path, text: str) -> str:
    """The text of a page, with each link to a line led to where its name is defined now.

    A name that is no longer in the file that the link cites is looked for in all files. It is left as it is if there
    is none, or more than one.
    """

    def renewed(link: re.Match[str]) -> str:
        if not re.fullmatch(r"L\d+", link["anchor"] or "") or fault_of_link(page, link) is None:
            return link[0]
        name, cited = link["text"].strip("`"), (page.parent / link["path"]).resolve()
        files = [cited] if cited.exists() and definitions(cited.read_text(encoding="utf-8"), name) else sources()
        found = [(file, definitions(file.read_text(encoding="utf-8"), name)) for file in files]
        found = [(file, lines) for file, lines in found if lines]
        if len(found) != 1:
            return link[0]
        ((file, lines),) = found
        return f"[{link['text']}]({'../' * (len(page.relative_to(ROOT).parts) - 1)}{_name(file)}#L{lines[0]})"

    return LINK.sub(renewed, text)


def prose_of(text: str) -> Iterator[tuple[int, str]]:
    """The docstrings and comments of a module, each with its line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            docstring = ast.get_docstring(node, clean=False)
            if docstring is not None:
                for number, line in enumerate(docstring.splitlines()):
                    yield node.body[0].lineno + number, line
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
