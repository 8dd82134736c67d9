"""The code blocks of the documentation's pages, and how they are checked.

What stands behind a fence's language says what the block is:

    ```python               runs, after the blocks before it, in one namespace and an empty folder
    ```python raises NAME   raises lavax.NAME
    ```python in PATH       stands in that file; so does a block of any other language
    ```python LABEL         runs in another test, which knows the label
    ```text printed         what the Python block before it prints
    ```text message         the message of the error that the Python block before it raises
    ```text STAGE k1        a dump, see tests/documents.py
    ```sh                   runs in another test
    ```text                 is not checked; neither are blocks of other languages

Notebooks are pages: each code cell is a block, and its text is what it prints.
"""
from __future__ import annotations

import base64
import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import lavax as lx
from lavax.tracer.compiled.lowered import STAGES

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(?P<head>[^\n`]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
LANGUAGES = frozenset({"python", "text", "console", "sh", "glsl", "cpp", "toml"})
_SHOWN = (("printed",), ("message",))
# Those of blocks that other tests run.
LABELS = frozenset({"models", "onnx", "images", "texts", "sklearn", "train.py", "cost", "memory", "profile"})


@dataclass(frozen=True)
class Block:
    """A fenced block; `label` is what stands behind the language."""

    page: str
    language: str
    label: tuple[str, ...]
    body: str
    line: int

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def runs(self) -> bool:
        return self.language == "python" and not self.label

    @property
    def fault(self) -> str | None:
        """Why nobody knows how to check the block."""
        if self.language not in LANGUAGES:
            return f"{self.place}: the language {self.language!r} is none of {', '.join(sorted(LANGUAGES))}"
        match self.label:
            case () | ("in", _):
                return None
            case ("raises", name) if self.language == "python" and hasattr(lx, name):
                return None
            case ("printed" | "message",) if self.language == "text":
                return None
            case (stage, *_) if self.language == "text" and stage.split(":")[0] in STAGES:
                return None
            case (label,) if label in LABELS:
                return None
        return f"{self.place}: nobody knows how to check {' '.join(self.label)!r}"


def pages() -> list[str]:
    """All pages and notebooks, by their paths in the repository."""
    found = [path for kind in ("*.md", "*.ipynb") for path in DOCS.rglob(kind) if "checkpoints" not in str(path)]
    return sorted(path.relative_to(ROOT).as_posix() for path in (*found, *ROOT.glob("*.md")))


def blocks_of(page: str, text: str | None = None) -> list[Block]:
    """The fenced blocks of a page, in order."""
    if page.endswith(".ipynb"):
        return list(_blocks_of_notebook(page))
    text = (ROOT / page).read_text(encoding="utf-8") if text is None else text
    found = []
    for match in BLOCK.finditer(text):
        language, *label = match["head"].split() or [""]
        found.append(Block(page, language, tuple(label), match["body"], text[: match.start()].count("\n") + 1))
    return found


def _blocks_of_notebook(page: str) -> Iterator[Block]:
    cells = json.loads((ROOT / page).read_text(encoding="utf-8"))["cells"]
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            yield Block(page, "python", (), "".join(cell["source"]) + "\n", number)
            yield Block(page, "text", ("printed",), _printed(cell), number)


def _printed(cell: dict[str, Any]) -> str:
    return "".join("".join(each["text"]) for each in cell["outputs"] if each["output_type"] == "stream")


def outdented_code(page: str) -> Iterator[str]:
    """The indented code blocks of a page: only fences say what they are."""
    text = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), (ROOT / page).read_text(encoding="utf-8"))
    lines = text.splitlines()
    for number, line in enumerate(lines):
        blank_before = number == 0 or not lines[number - 1].strip()
        if line.startswith("    ") and blank_before and not _in_list(lines[:number]):
            yield f"{page}:{number + 1}: {line.strip()}"


def _in_list(lines: list[str]) -> bool:
    """Whether an indented line after these belongs to an item of a list, or to a box."""
    for line in reversed(lines):
        if line.strip() and not line.startswith(" "):
            return re.match(r"([-*]|\d+\.|:|!!!|\?\?\?|===) ", line) is not None
    return False


def run(page: str) -> Iterator[tuple[Block, str, bytes]]:
    """Runs the Python blocks of a page.

    Gives each with what it printed or the message of its error, and with the picture that a notebook shows below it.
    """
    names: dict[str, Any] = {"__name__": "page"}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for block in blocks_of(page):
            if block.language == "python" and block.label[:1] in ((), ("raises",)):
                printed = StringIO()
                with redirect_stdout(printed):
                    message = _run(block, names)
                printed.write(message)
                yield block, printed.getvalue(), _picture(block, names)


def _picture(block: Block, names: dict[str, Any]) -> bytes:
    """The figure that a cell ends with, as PNG; b"" if it ends with another line."""
    if block.body.rstrip().rpartition("\n")[2] != "figure":
        return b""
    written = BytesIO()
    names["figure"].savefig(written, format="png", dpi=120, metadata={"Software": None})
    return written.getvalue()


def printed_by(page: str) -> Iterator[tuple[Block, str]]:
    """The blocks that show what is printed, with what the blocks before them printed."""
    printed = {block.place: text for block, text, _ in run(page)}
    before = ""
    for block in blocks_of(page):
        if block.language == "python":
            before = block.place
        elif block.label in _SHOWN:
            yield block, printed[before]


def _run(block: Block, names: dict[str, Any]) -> str:
    """The message of the error that the block has to raise; "" if it has to raise none."""
    # Messages name the line of a reader's program, not of the page.
    of_reader = block.page.startswith("docs/errors/")
    text = block.body if of_reader else "\n" * block.line + block.body
    program = compile(text, "program.py" if of_reader else str(ROOT / block.page), "exec", dont_inherit=True)
    if not block.label:
        exec(program, names)
        return ""
    expected = getattr(lx, block.label[1])
    try:
        exec(program, names)
    except expected as error:
        if type(error) is not expected:
            raise
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"{block.place}: nothing is raised")


def with_true_prints(page: str) -> str:
    """The text of a page with what its blocks print; of a notebook, also with its pictures."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if page.endswith(".ipynb"):
        return _notebook_with_outputs(page, json.loads(text))
    true = iter([printed for _, printed in printed_by(page)])

    def renewed(match: re.Match[str]) -> str:
        *_, label = match["head"].split() or [""]
        return f"```text {label}\n{_trimmed(next(true))}\n```" if (label,) in _SHOWN else match[0]

    return BLOCK.sub(renewed, text)


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip("\n").splitlines())


def _notebook_with_outputs(page: str, notebook: dict[str, Any]) -> str:
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell, (_, text, picture) in zip(cells, run(page), strict=True):
        cell["outputs"] = []
        if text:
            lines = text.splitlines(keepends=True)
            cell["outputs"].append({"name": "stdout", "output_type": "stream", "text": lines})
        if picture:
            data = {"image/png": base64.b64encode(picture).decode(), "text/plain": ["<Figure>"]}
            cell["outputs"].append({"data": data, "metadata": {}, "output_type": "display_data"})
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def stands_in_its_file(block: Block) -> bool:
    return block.body.rstrip("\n") in (ROOT / block.label[1]).read_text(encoding="utf-8")
