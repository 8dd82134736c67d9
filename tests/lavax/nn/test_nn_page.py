"""What docs/nn.md shows runs, and does what the page says."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx

PAGE = Path(__file__).resolve().parents[3] / "docs" / "nn.md"


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the page's code defines, block after block."""
    made: dict[str, Any] = {"__name__": __name__}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, "nn.md", "exec", dont_inherit=True), made)
    return made


def test_training_lowers_the_loss(names: dict[str, Any]) -> None:
    losses = names["losses"]
    assert np.mean(losses[-5:]) < 0.7 * np.mean(losses[:5])
    assert names["predicted"].shape == (32,)


def test_statistics_moved(names: dict[str, Any]) -> None:
    assert (np.asarray(names["model"].statistics.variance) != 1).all()


def test_only_the_head_was_tuned(names: dict[str, Any]) -> None:
    model, tuned = names["model"], names["tuned"]
    np.testing.assert_array_equal(tuned.conv.weight, model.conv.weight)
    assert (np.asarray(tuned.head.weight) != np.asarray(model.head.weight)).any()


def test_layers_were_exchanged(names: dict[str, Any]) -> None:
    assert names["other"](names["images"]).shape == (32, 10)
    assert names["heavy"].conv.weight.shape == (8, 1, 3, 3)


def test_leaves_have_the_names_that_the_page_gives(names: dict[str, Any]) -> None:
    assert "head.weight" in [str(path) for path, _ in lx.tree.leaves_with_path(names["model"])]


def test_the_table_names_what_there_is() -> None:
    table = PAGE.read_text(encoding="utf-8").split("## What there is")[1]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| ") and "---" not in line][1:]
    for _, _, layers, functions, _ in rows:
        for name in re.findall(r"`([\w.]+)(?:\(\))?`", layers + functions):
            path = name.removeprefix("lx.").replace("lnp.", "numpy.")
            found: Any = lx if path.split(".")[0] in ("image", "numpy", "optim", "scan") else lx.nn
            for part in path.split("."):
                assert hasattr(found, part) or part == "Cell", name
                found = getattr(found, part, None)
