"""What a program's table holds besides arrays has names that no argument has."""
from __future__ import annotations

from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp


def merged(k0: Any, k1: Any, k2: Any, k3: Any) -> Any:
    """Maps of several shapes in one dispatch, by the numbers in a table of its step, and steps of another kind."""
    return [lnp.exp(x) for x in (k0, k1, k2, k3)], [lnp.sum(x * 2) for x in (k0, k1, k2)]


def test_arguments_may_have_the_names_of_steps() -> None:
    """Many call their random keys so."""
    given = [np.full(size, size / 64, np.float32) for size in (64, 40, 5, 3)]
    maps, sums = lx.compile(merged)(*given)
    for x, own in zip(given, maps, strict=True):
        np.testing.assert_allclose(own, np.exp(x), rtol=1e-6)
    for x, total in zip(given, sums, strict=False):
        np.testing.assert_allclose(total, 2 * x.sum(), rtol=1e-6)
