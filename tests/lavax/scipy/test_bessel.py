"""Bessel functions against SciPy."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import lavax as lx
import lavax.numpy as lnp
from lavax.scipy.special import bessel_jn
from lavax.test_util import check_grads
from tests.closeness import close

pytestmark = pytest.mark.usefixtures("reference_backend")

Z = np.array([0.0, 0.01, 0.5, 1.0, 3.0, 10.0, 20.0, 34.0, -4.0], "f")


def test_values() -> None:
    for order in (0, 3, 8):
        wanted = np.stack([scipy.special.jv(k, Z.astype(float)) for k in range(order + 1)])
        close(bessel_jn(Z, v=order), wanted, 4e-6)
        close(bessel_jn(Z, v=order, n_iter=70), wanted, 4e-6)
    assert np.isnan(np.asarray(bessel_jn(np.array([np.nan, np.inf], "f"), v=1))).all()


def test_derivatives() -> None:
    with lx.enable_x64():
        check_grads(lambda z: 2 * bessel_jn(lnp.sin(z), v=3), (np.array([0.3, 1.7]),), 2)
        slopes = lx.vmap(lx.jacfwd(lambda z: bessel_jn(z, v=2)))(np.array([0.0, 1.5]))
        close(slopes, [[scipy.special.jvp(k, z) for k in range(3)] for z in (0.0, 1.5)], 1e-9)


def test_orders_are_checked() -> None:
    for order in (-1, 50):
        with pytest.raises(ValueError, match="bessel_jn: v must be"):
            bessel_jn(1.0, v=order)
