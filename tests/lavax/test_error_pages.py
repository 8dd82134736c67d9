"""Every class of errors has a page, a line in the table of docs/errors.md, and is in `lavax`."""
from __future__ import annotations

import re
from pathlib import Path

import lavax as lx
from lavax.base import errors
from tests.pages import blocks_of

DOCS = Path(__file__).parents[2] / "docs"
TABLE = (DOCS / "errors.md").read_text(encoding="utf-8")
CLASSES = sorted(
    name
    for name, found in vars(errors).items()
    if isinstance(found, type) and issubclass(found, errors.LavaxError) and found is not errors.LavaxError
)
PAGES = sorted((DOCS / "errors").rglob("*.md"))
# What no program can bring about at will: a machine without a driver, or without a compiler.
NOT_RAISED = {"DeviceError", "ShaderCompilerError"}


def test_every_class_has_a_page_and_a_line() -> None:
    assert sorted(path.stem for path in PAGES) == CLASSES
    lines = re.findall(r"^\| \[(\w+)\]\((\S+)\) \|", TABLE, re.MULTILINE)
    assert sorted(name for name, _ in lines) == CLASSES
    assert all((DOCS / link).stem == name and (DOCS / link).is_file() for name, link in lines)


def test_every_class_is_in_the_package() -> None:
    for name in CLASSES:
        assert getattr(lx, name) is getattr(errors, name)
        assert name in lx.__all__


def test_pages_raise_their_error_and_say_what_to_do() -> None:
    """tests/test_pages.py runs their code."""
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        assert text.startswith(f"# {path.stem}\n")
        blocks = blocks_of(f"docs/{path.relative_to(DOCS)}")
        raised = {block.label[1] for block in blocks if block.label[:1] == ("raises",)}
        assert raised == ({path.stem} if path.stem not in NOT_RAISED else set())
        assert "## What to do" in text or path.stem in NOT_RAISED
