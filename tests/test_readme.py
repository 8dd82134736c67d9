"""What the README and the other pages show is so."""
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.documents import PAGES, read, with_true_samples

README = read("README.md")


def test_the_two_commands_come_first() -> None:
    commands = re.findall(r"^    (make \w+)", README, re.MULTILINE)
    assert commands == ["make demo", "make test"]
    assert README.index("make demo") < README.index("```")


def test_the_example_takes_a_step_down_the_gradient() -> None:
    block = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {}
    exec(compile(block[1], "README.md", "exec"), names)

    draw = np.random.default_rng(0).standard_normal
    weights, inputs, targets = (draw(shape).astype(np.float32) for shape in [(4, 3), (32, 4), (32, 3)])
    found = np.asarray(names["step"](weights, inputs, targets))

    w, x, t = (array.astype(np.float64) for array in (weights, inputs, targets))
    y = np.tanh(x @ w)
    scale = 0.1 * 2 / t.size
    expected = w - scale * x.T @ ((y - t) * (1 - y * y))

    # Rounding in x @ w moves tanh by at most as much, as its slope is at most 1. Eight units more stand for
    # tanh itself and the products, 32 for the sum over the rows; |1 - y²| <= 1, and its slope in y is at most 2.
    unit = np.finfo(np.float32).eps
    moved = 4 * unit * np.abs(x) @ np.abs(w) + 8 * unit
    terms = moved * (1 + 2 * np.abs(y - t)) + (8 + 32) * unit * np.abs(y - t)
    bound = unit * np.abs(expected) + scale * np.abs(x).T @ terms
    assert np.all(np.abs(found - expected) <= bound)


@pytest.mark.parametrize("page", PAGES)
def test_samples_of_dumps_are_true(page: str) -> None:
    """`python -m tests.documents` brings them up to date."""
    assert "```text " in read(page)
    assert with_true_samples(page) == read(page)
