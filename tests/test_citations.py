"""What the documentation and the docstrings cite is there, and links lead to the lines that they name."""
from __future__ import annotations

import re
from fnmatch import filter as filter_names

import pytest

from benchmarks.__main__ import COMPARISONS, FIGURES, REPORTS
from benchmarks.workloads import workloads_for
from lavax.tracer.compiled.lowered import STAGES
from tests.citations import (
    ROOT,
    benchmark_commands,
    definitions,
    faults_in_page,
    missing_paths,
    missing_sections,
    stale_citations,
    with_true_lines,
)

ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MOST_WORDS = 40


def test_nothing_that_is_cited_is_missing() -> None:
    """`python -m tests.documents` corrects the lines of links, and lists what else is stale."""
    assert "\n".join(stale_citations()) == ""


def test_every_benchmark_that_is_cited_can_be_run() -> None:
    """Also by the constants that it chose."""
    known = {*FIGURES, *COMPARISONS, *REPORTS}
    workloads = [workload.name for large in (False, True) for workload in workloads_for(large)]
    commands = list(benchmark_commands())
    for source, module, names, options in commands:
        assert not module or (ROOT / "benchmarks" / f"{module.replace('.', '/')}.py").is_file(), (source, module)
        assert set(names) <= known, (source, names)
        assert all(filter_names(workloads, pattern) for pattern in options), (source, options)
    assert len(commands) > 50


def test_links_to_lines_are_there() -> None:
    assert len(re.findall(r"#L\d+\)", ARCHITECTURE)) > 30


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("[`fuse`](../passes/fuse/fuse.py#L1)", "that name is defined in line"),
        ("[`no_such_name`](../passes/fuse/fuse.py#L1)", "line none"),
        ("[`fuse`](../passes/fuse/no_such_file.py#L1)", "is not there"),
        ("[dumps](dumps.md#no-such-heading)", "no such heading"),
        ("see passes/fuse/no_such_file.py", "passes/fuse/no_such_file.py is not there"),
        ("see emit/no_such_folder/choose.py", "emit/no_such_folder/choose.py is not there"),
        ("see passes/no_such_folder, or ir/ops", "passes/no_such_folder is not there"),
    ],
)
def test_a_stale_citation_is_seen(line: str, fault: str) -> None:
    ((number, found),) = faults_in_page(ROOT / "docs" / "page.md", f"\n{line}")
    assert number == 2 and fault in found


@pytest.mark.parametrize("line", ["passes/fuse/fuse.py", "emit/reduce/choose.py", "ir/ops, README.md", "0.5/1.py2"])
def test_a_true_citation_is_let_pass(line: str) -> None:
    assert missing_paths(line) == []


def test_a_link_over_two_lines_is_seen() -> None:
    """And the line where it begins."""
    ((number, fault),) = faults_in_page(ROOT / "docs" / "page.md", "\nsee [a page\nthat is gone](gone.md)")
    assert number == 2 and "gone.md is not there" in fault


@pytest.mark.parametrize(
    ("title", "faults"),
    [("Common workloads", 0), ("Common", 0), ("No such title", 1)],
)
def test_sections_are_cited_by_their_titles(title: str, faults: int) -> None:
    """Also where a comment's line breaks within the title."""
    page, broken = "docs/performance/cpu_drivers.md", title.replace(" ", "\n# ", 1)
    assert len(list(missing_sections(f'# See {page}, "{broken}".'))) == faults


def test_links_are_led_to_the_line() -> None:
    """Also to the file that a name moved to."""
    (line,) = definitions((ROOT / "passes/fuse/fuse.py").read_text(encoding="utf-8"), "fuse")
    page = ROOT / "docs" / "page.md"
    text = "[`fuse`](../passes/fuse/fuse.py#L1), [`fuse`](../passes/fuse/gone.py#L1), [`nothing`](../passes/gone.py#L1)"
    right = f"[`fuse`](../passes/fuse/fuse.py#L{line})"
    assert with_true_lines(page, text) == f"{right}, {right}, [`nothing`](../passes/gone.py#L1)"


def test_the_picture_names_every_stage() -> None:
    picture = (ROOT / "docs" / "pipeline.svg").read_text(encoding="utf-8")
    assert set(re.findall(r'class="stage"[^>]*>"(\w+)"<', picture)) == set(STAGES)


def test_the_glossary_is_short_and_in_order() -> None:
    table = ARCHITECTURE.split("\n## Glossary\n")[1].split("\n## ")[0]
    words = [re.split(r"\s*\|\s*", line)[1] for line in table.splitlines() if line.startswith("|")][2:]
    assert words == sorted(words)
    assert sum(len(word.split(", ")) for word in words) <= MOST_WORDS

