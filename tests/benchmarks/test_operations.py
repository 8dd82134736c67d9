"""Single functions beside PyTorch: what is drawn, and the lines that are shown."""
from __future__ import annotations

import numpy as np
import pytest

from benchmarks.ordinary import operations
from benchmarks.ordinary.operations import OPERATIONS, Operation


def test_names_are_different() -> None:
    assert len({one.name for one in OPERATIONS}) == len(OPERATIONS)


def test_a_line_of_each_function_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [
        Operation("cholesky 3", np.linalg.cholesky, lambda t, a: a, (operations._definite(3),)),
        *(Operation(f"sum {n}", lambda x: x.sum(), lambda t, x: x, (operations._normal(n, 2),)) for n in (2, 3)),
    ]
    monkeypatch.setattr(operations, "OPERATIONS", few)
    monkeypatch.setattr(operations, "pytorch", lambda: None)
    shown: list[str] = []
    operations.report(["sum*"], True, shown.append)
    assert [text.splitlines()[2].split("|")[1].strip() for text in shown] == ["sum 2", "sum 3"]


def test_definite_matrices() -> None:
    x = operations._definite(4, 5)(np.random.default_rng(1))
    assert x.shape == (4, 5, 5) and x.dtype == np.float32
    assert np.linalg.eigvalsh(x.astype(np.float64)).min() > 0.999
