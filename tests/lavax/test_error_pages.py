"""docs/errors.md has a section, and a line in its table, for every class of errors; and every class is in `lavax`."""
from __future__ import annotations

import re
from pathlib import Path

import lavax as lx
from lavax.base import errors

PAGE = (Path(__file__).parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
CLASSES = [
    name
    for name, found in vars(errors).items()
    if isinstance(found, type) and issubclass(found, errors.LavaxError) and found is not errors.LavaxError
]


def test_every_class_has_a_section() -> None:
    assert re.findall(r"^## (\w+)$", PAGE, re.MULTILINE) == re.findall(r"^\| \[(\w+)\]", PAGE, re.MULTILINE)
    assert sorted(re.findall(r"^## (\w+)$", PAGE, re.MULTILINE)) == sorted(CLASSES)


def test_every_class_is_in_the_package() -> None:
    for name in CLASSES:
        assert getattr(lx, name) is getattr(errors, name)
        assert name in lx.__all__


def test_sections_say_something() -> None:
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        assert len(section.split("\n", 1)[1].strip()) > 100, section.split("\n")[0]
