"""What docs/arrays.md shows runs, and does what the page says."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "arrays.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python( sklearn)?\n(.*?)```", PAGE, re.DOTALL)

pytestmark = pytest.mark.usefixtures("reference_backend")


def test_writing() -> None:
    names: dict[str, Any] = {}
    for label, block in BLOCKS:
        if not label:
            exec(compile(block, "arrays.md", "exec", dont_inherit=True), names)
    assert names["x"].tolist() == [9, 1, 10, 4, 5, 1]
    (kept, first), (still, second) = names["before"], names["after"]
    assert kept.tolist() == first.tolist() == still.tolist() == [1, 2] and second.tolist() == [10, 20]


def test_scikit_learn_takes_arrays() -> None:
    (block,) = (block for label, block in BLOCKS if label)
    program = f"""
import numpy as np, lavax as lx, lavax.numpy as lnp
digits = np.random.default_rng(0).normal(size=(20, 5)).astype("f")
{block}
assert isinstance(components, lx.Array) and components.shape == (20, 2)
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, cwd=Path(__file__).parents[3])


def test_the_list_of_deviations_is_short() -> None:
    listed = PAGE.split("Deviations from the standard:")[1].strip().split("\n")
    assert 1 <= len(listed) <= 5 and all(line.startswith("- ") for line in listed)


@pytest.mark.parametrize("exponent", [0.5, -0.5])
def test_the_deviation_of_roots(exponent: float) -> None:
    import lavax.numpy as lnp

    given = lnp.asarray([-np.inf, -0.0, 4.0])
    with np.errstate(all="ignore"):
        assert np.isnan(float((given**exponent)[0])) and np.signbit(np.asarray(given**exponent)[1])
        expected = np.power(np.asarray(given), np.float32(exponent))
        np.testing.assert_array_equal(np.asarray(lnp.pow(given, lnp.full(3, exponent))), expected)
