"""Every optimizer over five steps against values recorded from optax, so that they are checked without it too."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lavax import optim
from tests.lavax.optim.optimizer_cases import CASES, NAMES, gradients, start
from tests.lavax.optim.recorded_steps import RECORDED

pytestmark = pytest.mark.usefixtures("reference_backend")


@pytest.mark.parametrize(("name", "case"), list(zip(NAMES, CASES, strict=True)), ids=NAMES)
def test_five_steps(name: str, case: tuple[str, dict[str, Any]]) -> None:
    optimizer = getattr(optim, case[0])(**case[1])
    params = start()
    state = optimizer.init(params)
    for step in range(5):
        updates, state = optimizer.update(gradients(step), state, params)
        params = optim.apply_updates(params, updates)
    a, c, d = (np.asarray(leaf) for leaf in (params["a"], params["b"]["c"], params["b"]["d"]))
    np.testing.assert_allclose([a[0, 0], a[2, 3], c[4], d[1, 1]], RECORDED[name], rtol=2e-5, atol=2e-5)
