"""What a visitor of the repository meets first: templates of issues, the changelog, how to contribute."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import lavax as lx

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
INPUTS = {"textarea", "input", "dropdown", "checkboxes", "markdown"}


def template(path: Path) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="reads templates of issues")
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_templates_are_forms_that_ask_for_the_selftest(path: Path) -> None:
    form = template(path)
    assert {"name", "description", "labels", "body"} == set(form)
    fields = {field["id"]: field for field in form["body"]}
    assert len(fields) == len(form["body"]) and {field["type"] for field in fields.values()} <= INPUTS
    assert "`lavax selftest`" in fields["selftest"]["attributes"]["description"]


def test_reports_of_faults_need_the_selftest_and_a_program() -> None:
    form = template(ROOT / ".github" / "ISSUE_TEMPLATE" / "1_wrong_result.yml")
    required = {field["id"] for field in form["body"] if field.get("validations", {}).get("required")}
    assert {"selftest", "program", "found"} <= required


def test_the_changelog_has_the_version() -> None:
    versions = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert versions[0] == "Unreleased" and versions[1] == lx.__version__
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions[1:])
    numbers = [tuple(map(int, version.split("."))) for version in versions[1:]]
    assert numbers == sorted(numbers, reverse=True)


def test_the_commands_that_contributors_are_told_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    told = re.findall(r"`make ([\w-]+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert told and [name for name in told if f"\n{name}:" not in makefile] == []
