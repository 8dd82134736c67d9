"""The code on the pages about optimizers and mixed precision runs, and the page names every optimizer."""
from __future__ import annotations

import re
from typing import Any

import pytest

from lavax import optim
from lavax.optim import adam_family, adaptive, descent
from tests.documents import read


@pytest.mark.parametrize("page", ["docs/optim.md", "docs/mixed_precision.md"])
def test_the_code_on_a_page_runs(page: str) -> None:
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", read(page), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)


def test_the_page_names_every_optimizer_and_schedule_and_nothing_else() -> None:
    page = read("docs/optim.md")
    table = page.split("## Optimizers and their papers")[1].split("\n##")[0]
    named = set(re.findall(r"`(\w+)`", table.split("`muon` takes")[0]))
    factories = {
        name
        for module in (adam_family, adaptive, descent)
        for name, value in vars(module).items()
        if getattr(value, "__module__", module.__name__) == module.__name__ or name in ("nadam", "nadamw")
        if callable(value) and name in optim.__all__
    }
    assert named - {"lbfgs", "lookahead", "schedule_free"} == factories
    assert set(optim.schedules.__all__) - {"Schedule"} <= set(re.findall(r"`(\w+)`", page))
    words = {word for word in re.findall(r"`(\w+)`", page) if "_" in word}
    arguments = {"mu_dtype", "accumulator_dtype"}
    assert words - arguments <= set(optim.__all__)
