"""The code on the page for JAX's users runs, and the page names what exists."""
from __future__ import annotations

import re
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


def test_every_row_of_the_table_has_three_cells() -> None:
    rows = [line for line in read("docs/jax.md").splitlines() if line.startswith("| ")]
    assert len(rows) > 10 and all(row.count(" | ") == 2 for row in rows)
