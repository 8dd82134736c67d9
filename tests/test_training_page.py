"""The code of docs/training.md runs, in order, and does what the page says."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from tests.documents import ROOT

PAGE = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 8
    histories = []
    for block in blocks:
        exec(compile(block, "training.md", "exec"), names)
        histories.append(names["fitted"].history)
    first, _, logged, resumed, *_ = histories
    assert [row["step"] for row in first] == [50, 100, 150, 200]
    assert first[-1]["loss"] < 0.2 * first[0]["loss"]
    assert [row["step"] for row in logged] == [50, 100, 100, 150, 200, 200]
    assert resumed[-1]["eval/loss"] < logged[2]["eval/loss"]
    assert names["checkpoints"].steps()[-2:] == [300, 400]
    table = (tmp_path / "run" / "log.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in table[1:]] == [str(row["step"]) for row in logged + resumed]
    assert float(names["value"]) < 1 and names["ids"].shape == (8, 64)
    assert np.array_equal(np.asarray(names["ids"])[:, 1:], np.asarray(names["following"])[:, :-1])
    assert names["names"] == ["hidden.bias", "hidden.weight", "last.bias", "last.weight"]
    assert isinstance(names["first"][0], lx.Array)
