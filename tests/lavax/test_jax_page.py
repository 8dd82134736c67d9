"""The code on the page for JAX's users runs, and the page names what exists."""
from __future__ import annotations

import re
from itertools import groupby
from typing import Any

import pytest

from tests.documents import read

pytestmark = pytest.mark.usefixtures("reference_backend")


def test_the_code_on_the_page_runs() -> None:
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", read("docs/jax.md"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/jax.md", "exec"), names)


def test_every_row_of_a_table_has_the_cells_of_its_head() -> None:
    tables = [list(lines) for is_row, lines in groupby(read("docs/jax.md").splitlines(), _is_row) if is_row]
    assert sorted(map(len, tables))[-1] > 10
    for head, *rows in tables:
        assert all(row.count(" | ") == head.count(" | ") for row in rows), head


def _is_row(line: str) -> bool:
    return line.startswith("| ")
