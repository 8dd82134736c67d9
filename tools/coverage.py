"""Writes docs/coverage.md: the names of other namespaces that lavax has, and why it lacks the others.

Run in the project's environment: python tools/coverage.py. With --check it writes nothing, and fails if the page is out
of date.
"""
from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lavax.onnx.operators.operator import Operator
from lavax.onnx.table import TABLE

ROOT = Path(__file__).resolve().parent.parent
NAMES = Path(__file__).with_name("coverage_names.txt")
PAGE = ROOT / "docs" / "coverage.md"
NOT_YET = "not written yet"
OPERATORS = "lavax.onnx.load"  # the group whose names are operators of ONNX
HEAD = """# Names of other namespaces

`python tools/coverage.py` generates this page from the code and `tools/coverage_names.txt`. A name counts as present if
lavax's namespace has it.
"""


@dataclass(frozen=True)
class Group:
    """The names of another namespace, our namespace for them, and the reasons why some are absent on purpose."""

    title: str
    ours: str
    names: tuple[str, ...]
    reasons: dict[str, str]


def groups(text: str) -> Iterator[Group]:
    """The groups of the data file."""
    title, ours, names, reasons = "", "", [], {}
    for line in [*text.splitlines(), "[] end"]:
        if line.startswith("["):
            if title:
                yield Group(title, ours, tuple(dict.fromkeys(names)), reasons)
            title, _, ours = line[1:].partition("] ")
            names, reasons = [], {}
        elif " -- " in line:
            name, _, reason = line.partition(" -- ")
            names.append(name)
            reasons[name] = reason
        elif not line.startswith("#"):
            names += line.split()


def namespace(name: str) -> Any:
    """A module, or an attribute of a module; None if there is none."""
    try:
        return importlib.import_module(name)
    except ImportError:
        module, _, attribute = name.rpartition(".")
        return getattr(importlib.import_module(module), attribute, None) if module else None


def has(owner: Any, name: str) -> bool:
    """Whether there is an attribute, or an attribute of an attribute, as `norm.cdf`."""
    for part in name.split("."):
        if not hasattr(owner, part):
            return False
        owner = getattr(owner, part)
    return True


def section(group: Group) -> str:
    """A group's part of the page."""
    if group.ours == OPERATORS:
        present = [name for name in group.names if name in operators()]
    else:
        ours = namespace(group.ours)
        present = [name for name in group.names if has(ours, name)]
    absent = [name for name in group.names if name not in present]
    lines = [f"\n## {group.title}\n", f"{len(present)} of {len(group.names)} in `{group.ours}`.\n"]
    if present:
        lines.append(f"Present: {', '.join(f'`{name}`' for name in present)}.\n")
    by_reason: dict[str, list[str]] = {}
    for name in absent:
        by_reason.setdefault(group.reasons.get(name, NOT_YET), []).append(f"`{name}`")
    if absent:
        lines += ["| absent | why |", "| --- | --- |"]
        lines += [f"| {', '.join(names)} | {reason} |" for reason, names in sorted(by_reason.items())]
    if group.ours == OPERATORS:
        lines += ["", *limits(group)]
    return "\n".join(lines).rstrip() + "\n"


def operators() -> dict[str, list[Operator]]:
    """The entries of ONNX operators by name; with the domain in front, if there is one."""
    found: dict[str, list[Operator]] = {}
    for (domain, name), entries in TABLE.items():
        found[f"{domain}.{name}" if domain else name] = entries
    return found


def limits(group: Group) -> Iterator[str]:
    """A table of what operators do not do."""
    yield from ("| operator | what it does not do |", "| --- | --- |")
    for name, entries in sorted(operators().items()):
        for entry in entries:
            if entry.lacking and name in group.names:
                yield f"| `{name}` | {entry.lacking} |"


def page() -> str:
    """The whole page."""
    return HEAD + "".join(map(section, groups(NAMES.read_text(encoding="utf-8"))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the page is out of date")
    if parser.parse_args().check:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else f"{PAGE.name} is out of date: run {__file__}")
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
