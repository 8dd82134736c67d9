"""The accuracy table: every function keeps its bound on fewer samples, and the document has them all."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lavax.numpy as lnp
from benchmarks.accuracy import FUNCTIONS, Function, measure, units

DOCUMENT = Path(__file__).parents[2] / "docs" / "accuracy.md"


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_every_function_keeps_its_bound(function: Function) -> None:
    worst = measure(function, 10_000)
    assert worst.units <= function.bound, worst


def test_a_wrong_function_is_found() -> None:
    wrong = Function("sin", lambda x: lnp.sin(x) * (1 + 2.0**-19), np.sin, ((-1, 1),))
    assert measure(wrong, 1000).units > 4


def test_units_see_wrong_results() -> None:
    exact = np.array([1.0, 1.0, np.inf, np.nan, 0.0, -0.0, 1e-39, 3e38])
    wrong = np.array([1 + 5 * 2.0**-23, np.nan, 3.4028235e38, 1.0, -0.0, 0.0, 1e-38, np.inf], np.float32)
    assert (units(wrong, exact) > 4).all()
    with np.errstate(over="ignore"):
        assert (units(exact.astype(np.float32), exact) <= 0.5).all()


def test_the_document_has_every_function_and_its_bound() -> None:
    rows = [line.split("|") for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    written = {row[1].strip(): float(row[4]) for row in rows[1:]}
    assert written == {function.name: function.bound for function in FUNCTIONS}
