"""Every block of code in the documentation is checked: it runs, stands in the file that it names, or is no Python."""
from __future__ import annotations

import pytest

from tests.citations import HISTORY
from tests.documents import PAGES, ROOT
from tests.names_in_prose import unknown_names
from tests.pages import blocks_of, outdented_code, pages, printed_by, stands_in_its_file, with_true_prints
from tools.site.rejected import INDEX, with_all_sections

# Pages whose Python other tests run, because they need a model's folder or look closer at what comes out.
ELSEWHERE = {
    "README.md": "tests/test_readme.py",
    "docs/arrays.md": "tests/lavax/array_api/test_arrays_page.py",
    "docs/jax.md": "tests/lavax/test_jax_page.py",
    "docs/mixed_precision.md": "tests/lavax/optim/test_pages.py",
    "docs/nn.md": "tests/lavax/nn/test_nn_page.py",
    "docs/optim.md": "tests/lavax/optim/test_pages.py",
    "docs/profiling.md": "tests/test_profiling_page.py",
    "docs/seeing.md": "tests/test_seeing_page.py",
    "docs/training.md": "tests/test_training_page.py",
}
RUN_HERE = [
    page
    for page in pages()
    if page not in (*PAGES, *ELSEWHERE) and any(block.language == "python" for block in blocks_of(page))
]


@pytest.mark.parametrize("page", pages())
def test_every_block_says_how_it_is_checked(page: str) -> None:
    assert [block.fault for block in blocks_of(page) if block.fault] == []


@pytest.mark.parametrize("page", [page for page in pages() if page.endswith(".md")])
def test_all_code_is_fenced(page: str) -> None:
    assert list(outdented_code(page)) == []


@pytest.mark.parametrize(("page", "test"), ELSEWHERE.items())
def test_other_tests_read_their_page(page: str, test: str) -> None:
    assert page.rpartition("/")[2] in (ROOT / test).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", RUN_HERE)
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(page: str) -> None:
    """`python -m tests.documents` renews what is printed."""
    for block, printed in printed_by(page):
        found, shown = ([line.rstrip() for line in text.rstrip().splitlines()] for text in (printed, block.body))
        assert found == shown, block.place


@pytest.mark.parametrize("page", pages())
def test_code_that_is_shown_from_a_file_stands_there(page: str) -> None:
    for block in blocks_of(page):
        if block.label[:1] == ("in",):
            assert stands_in_its_file(block), f"{block.place}: {block.label[1]} does not hold it"


@pytest.mark.parametrize("page", [page for page in pages() if page.endswith(".md") and page not in HISTORY])
def test_names_in_prose_are_there(page: str) -> None:
    assert list(unknown_names((ROOT / page).read_text(encoding="utf-8"))) == []


def test_a_name_that_is_gone_is_seen() -> None:
    text = "`lx.grad(f)`, `lx.tree.map`, `lnp.sine(x)`, `nn.Linear`, `lx.optim.atom`\n```python\nlx.gone\n```\n"
    assert list(unknown_names(text)) == ["lnp.sine", "lx.optim.atom"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("```\nx\n```", "the language ''"),
        ("```ruby\nx\n```", "the language 'ruby'"),
        ("```python rises ShapeError\nx\n```", "nobody knows"),
        ("```python raises NoError\nx\n```", "nobody knows"),
        ("```text glls k1\nx\n```", "nobody knows"),
    ],
)
def test_a_block_that_nobody_checks_is_seen(text: str, fault: str) -> None:
    (block,) = blocks_of("docs/page.md", text)
    assert block.fault is not None and fault in block.fault


def test_prints_are_renewed_in_their_place() -> None:
    page = "docs/start/quickstart.md"
    assert with_true_prints(page) == (ROOT / page).read_text(encoding="utf-8")


def test_all_that_was_tried_is_listed() -> None:
    """`python -m tests.documents` renews the list."""
    text = INDEX.read_text(encoding="utf-8")
    assert with_all_sections(text) == text
    assert text.count("\n- [") > 90
