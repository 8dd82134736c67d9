"""The accuracy table: every function keeps its bound on fewer samples, and the document has them all."""
from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import numpy as np
import pytest

import lavax.numpy as lnp
from benchmarks.accuracy import measure, units
from benchmarks.accuracy_functions import FUNCTIONS, Function
from benchmarks.double_accuracy import CASES, INNER
from benchmarks.double_accuracy import units as units_of_doubles

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


def _bounds_written(heading: str) -> dict[str, float]:
    """The functions and bounds of the table below a line of that first column."""
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows = [line.split("|") for line in takewhile(lambda line: line.startswith("|"), lines[start + 2 :])]
    return {row[1].strip(): float(row[4]) for row in rows}


def test_the_document_has_every_function_and_its_bound() -> None:
    assert _bounds_written("function") == {function.name: function.bound for function in FUNCTIONS}
    doubles = {name: case.bound for name, case in CASES.items() if name not in INNER}
    assert _bounds_written("function of float64") == doubles


def test_units_of_float64_see_wrong_results() -> None:
    exact = np.array([1.0, 1.0, np.inf, np.nan, 0.0, -0.0, 1e-309, 1e308], np.longdouble)
    wrong = np.array([1 + 5 * 2.0**-52, np.nan, 1.7976931348623157e308, 1.0, -0.0, 0.0, 1e-308, np.inf])
    size = np.zeros_like(exact)
    assert (units_of_doubles(wrong, exact, size) > 4).all()
    assert (units_of_doubles(exact.astype(np.float64), exact, size) <= 0.5).all()
