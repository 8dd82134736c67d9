"""Compositions of loops, decompositions and special functions, compiled for the device."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special
import scipy.stats

import lavax as lx
import lavax.numpy as lnp
from lavax.experimental.ode import odeint
from lavax.scipy import linalg, ndimage, optimize, signal, stats
from lavax.scipy.sparse.linalg import cg, gmres
from lavax.scipy.spatial.transform import Rotation
from tests.closeness import close

A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.2], [0.5, -0.2, 2.0]], "f")
B = np.array([1.0, -2.0, 0.5], "f")

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Callable[..., Any]]] = {
    "expm": (linalg.expm, (A / 3,), scipy.linalg.expm),
    "lu_solve": (lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b), (A[::-1].copy(), B), np.linalg.solve),
    "sqrtm": (linalg.sqrtm, (A,), scipy.linalg.sqrtm),
    "eigvals": (lambda a: lnp.sort(lnp.real(lx.linalg.eigvals(a))), (A,), np.linalg.eigvalsh),
    "cg": (lambda a, b: cg(a, b, tol=1e-6)[0], (A, B), np.linalg.solve),
    "gmres": (lambda a, b: gmres(a, b, tol=1e-6, restart=2)[0], (A + np.triu(A, 1), B), np.linalg.solve),
    "odeint": (
        lambda y, t: odeint(lambda y, t: -2 * y, y, t, rtol=1e-6, atol=1e-6),
        (B, np.array([0.0, 0.5, 1.0], "f")),
        lambda y, t: y * np.exp(-2 * t)[:, None],
    ),
    "stats": (
        lambda x: stats.gamma.cdf(x, 2.0) + stats.norm.ppf(x / 2),
        (np.array([0.2, 0.9, 1.5], "f"),),
        lambda x: scipy.stats.gamma.cdf(x, 2.0) + scipy.stats.norm.ppf(x / 2),
    ),
    "loggamma": (  # near 1 there is a logarithm of a number near 1
        lambda z: lx.scipy.special.loggamma(z) / (z - 1),
        (np.array([1 + 1e-4j, -2.5 + 0.3j, 4 - 9j, 0.3 - 0.1j], "complex64"),),
        lambda z: scipy.special.loggamma(z.astype("complex128")) / (z - 1),
    ),
    "segment_sum": (
        lambda x: lx.ops.segment_sum(x, np.array([1, 0, 1]), 2),
        (A,),
        lambda x: np.stack([x[1], x[0] + x[2]]),
    ),
    "map_coordinates": (
        lambda x: ndimage.map_coordinates(x, [np.array([0.5, 1.5]), np.array([1.0, 2.0])], 1),
        (A,),
        lambda x: np.array([(x[0, 1] + x[1, 1]) / 2, (x[1, 2] + x[2, 2]) / 2]),
    ),
    "convolve": (lambda x: signal.convolve(x, x, "same"), (A,), lambda x: scipy.signal.convolve(x, x, "same")),
    "rotation": (
        lambda v: Rotation.from_rotvec(v).apply(v[::-1]),
        (B,),
        lambda v: scipy.spatial.transform.Rotation.from_rotvec(v).apply(v[::-1]),
    ),
    "minimize": (
        lambda b: optimize.minimize(lambda x: lnp.sum((x - b) ** 2), 0 * b, method="BFGS").x,
        (B,),
        lambda b: b,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_compiled(name: str) -> None:
    import scipy.signal
    import scipy.spatial.transform  # noqa: F401  # the references above

    function, arguments, reference = CASES[name]
    close(lx.compile(function)(*arguments), reference(*arguments), 3e-5)


def test_gradients_of_solutions() -> None:
    def loss(a: Any, b: Any) -> Any:
        x = gmres(a, b, tol=1e-6)[0]
        end = odeint(lambda y, t, a: -a @ y / 4, x, lnp.array([0.0, 0.4]), a, rtol=1e-5)[-1]
        return 2 * lnp.sum(x**2) + lnp.sum(end)

    found = lx.compile(lx.grad(loss, (0, 1)))(A, B)
    step = 1e-2
    moved = [float(loss(A, B + sign * step * np.array([0, 1, 0], "f"))) for sign in (1, -1)]
    close(float(found[1][1]), (moved[0] - moved[1]) / (2 * step), 1e-3)
    place = np.zeros((3, 3), "f")
    place[0, 2] = step
    moved = [float(loss(A + sign * place, B)) for sign in (1, -1)]
    close(float(found[0][0, 2]), (moved[0] - moved[1]) / (2 * step), 1e-3)
