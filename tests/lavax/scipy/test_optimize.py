"""BFGS against SciPy on functions with known minima."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import lavax as lx
import lavax.numpy as lnp
from lavax.scipy.optimize import minimize
from tests.closeness import close

pytestmark = pytest.mark.usefixtures("reference_backend")


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def test_minima() -> None:
    start = np.array([-1.2, 1.0, 0.5])
    with lx.enable_x64():
        found = minimize(rosenbrock, start, method="BFGS")
    wanted = scipy.optimize.minimize(rosenbrock, start, method="BFGS")
    assert bool(found.success) and int(found.status) == 0 and int(found.nit) < 2 * wanted.nit + 10
    np.testing.assert_allclose(np.asarray(found.x), np.ones(3), atol=1e-5)
    assert np.abs(np.asarray(found.jac)).max() <= 1e-5 and float(found.fun) < 1e-9

    compiled = lx.jit(lambda a, x: minimize(lambda x, a: lnp.sum((x - a) ** 4 + (x - a) ** 2), x, (a,), method="BFGS"))
    found = compiled(np.array([1.0, -2.0], "f"), np.zeros(2, "f"))
    close(found.x, [1, -2], 1e-4)
    close(found.hess_inv @ np.array([2.0, 2.0], "f"), [1, 1], 0.2)


def test_it_stops() -> None:
    short = minimize(rosenbrock, np.array([-1.2, 1.0], "f"), method="BFGS", options={"maxiter": 3})
    assert int(short.nit) == 3 and int(short.status) == 1 and not bool(short.success)
    stuck = minimize(lambda x: lnp.sum(lnp.abs(x)) + lnp.sum(x) * lnp.nan, np.ones(2, "f"), method="bfgs")
    assert not bool(stuck.success) and np.asarray(stuck.x).tolist() == [1, 1]
    for wrong, message in (
        (lambda: minimize(rosenbrock, np.ones(2), method="newton"), "method must be 'BFGS'"),
        (lambda: minimize(rosenbrock, np.ones(2), method="BFGS", options={"speed": 1}), "unknown option 'speed'"),
        (lambda: minimize(rosenbrock, np.ones((2, 2)), method="BFGS"), "x0 must be a vector"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
