"""Libraries that are written to the array API standard compute with lavax's arrays as with NumPy's."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lavax.numpy as lnp
from tests.lavax.array_api import scikit_learn_cases, scipy_cases
from tests.lavax.array_api.comparing import difference, outcome

pytestmark = pytest.mark.usefixtures("reference_backend")

ROOT = Path(__file__).parents[3]


def differing(library: str) -> dict[str, str]:
    """The cases that differ: in a process of its own, because SciPy asks for the variable when it is imported."""
    command = [sys.executable, "-m", "tests.lavax.array_api.comparing", library]
    run = subprocess.run(command, cwd=ROOT, env={**os.environ, "SCIPY_ARRAY_API": "1"}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found: dict[str, str] = json.loads(run.stdout)
    return {name: text for name, text in found.items() if text}


def test_scikit_learn() -> None:
    assert len(scikit_learn_cases.CASES) > 80, "names that a version lacks are left out: there must not be many"
    assert differing("scikit_learn") == {}


def test_scipy() -> None:
    assert len(scipy_cases.CASES) > 90
    assert differing("scipy") == {}


def test_a_difference_is_found() -> None:
    one = np.ones(2, "f")
    assert difference(one, lnp.asarray(one)) == ""
    assert difference(one, one) == "an array became ndarray"
    assert "became" in difference(one, lnp.ones(3)) and "became" in difference(one, lnp.ones(2, "int32"))
    assert "Mismatched" in difference(one, lnp.asarray([1, 1.01]))
    assert outcome(lambda a: a(one) * 2) == "" and "ValueError" in outcome(lambda a: a(one).reshape(3))
