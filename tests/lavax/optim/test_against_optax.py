"""Every optimizer over five steps against optax, where that is installed."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax import optim
from tests.lavax.optim.optimizer_cases import CASES, CONTRIB, NAMES, gradients, start

pytestmark = pytest.mark.usefixtures("reference_backend")


@pytest.fixture
def optax() -> Iterator[Any]:
    """optax, with JAX operation by operation: compiling each case would take most of the time."""
    found = pytest.importorskip("optax", reason="optax is the oracle; test_recorded_steps.py has recorded values")
    with pytest.importorskip("jax", reason="optax needs it").disable_jit():
        yield found


@pytest.mark.parametrize(("name", "arguments"), CASES, ids=NAMES)
def test_five_steps(optax: Any, name: str, arguments: dict[str, Any]) -> None:
    ours = getattr(optim, name)(**arguments)
    theirs = getattr(optax.contrib if name in CONTRIB else optax, name)(**arguments)
    params, expected = start(), start()
    state, held = ours.init(params), theirs.init(expected)
    for step in range(5):
        updates, state = ours.update(gradients(step), state, params)
        params = optim.apply_updates(params, updates)
        moved, held = theirs.update(gradients(step), held, expected)
        expected = optax.apply_updates(expected, moved)
        for one, other in zip(lx.tree.leaves(params), lx.tree.leaves(expected), strict=True):
            # Both round in float32; a step's error is a few units of the largest parameter.
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=2e-5, atol=2e-5)
