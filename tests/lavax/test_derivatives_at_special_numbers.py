"""Derivatives at NaN, at infinities and where they are infinite, on the device, in both modes.

A derivative at NaN is NaN, unless the function is flat on both sides of every number that NaN might be taken for.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.scipy import special

NAN, INF = math.nan, math.inf
# The function, the numbers, and its derivatives there.
CASES: dict[str, tuple[Callable[..., Any], list[float], list[float]]] = {
    "softplus": (nn.softplus, [NAN, INF, -INF, 0, 1e30], [NAN, 1, 0, 0.5, 1]),
    "log_sigmoid": (nn.log_sigmoid, [NAN, INF, -INF, 0, -1e30], [NAN, 0, 1, 0.5, 1]),
    "logaddexp": (lambda x: lnp.logaddexp(x, 1.0), [NAN, INF, -INF, 1], [NAN, 1, 0, 0.5]),
    "logaddexp of NaN": (lambda x: lnp.logaddexp(x, NAN), [1, INF, NAN], [NAN, NAN, NAN]),
    "logaddexp of infinities": (lambda x: lnp.logaddexp(x, x), [INF, -INF], [2, 2]),
    "logaddexp2": (lambda x: lnp.logaddexp2(x, 1.0), [NAN, INF, -INF, 1], [NAN, 1, 0, 0.5]),
    "hard_sigmoid": (nn.hard_sigmoid, [NAN, INF, -INF, -3, 0, 3], [0, 0, 0, 0, 1 / 6, 0]),
    "hard_silu": (nn.hard_silu, [NAN, INF, -INF, -3, 1.5, 3], [NAN, 1, 0, 0, 1, 1]),
    "sparse_plus": (nn.sparse_plus, [NAN, INF, -INF, -1, 0, 1, 3e38], [NAN, 1, 0, 0, 0.5, 1, 1]),
    "sparse_sigmoid": (nn.sparse_sigmoid, [NAN, INF, -INF, -1, 0, 1], [0, 0, 0, 0.25, 0.5, 0.25]),
    "asinh": (lnp.arcsinh, [NAN, INF, -INF, 0], [NAN, 0, 0, 1]),
    "angle": (lnp.angle, [NAN, 1, -1], [0, 0, 0]),
    "logit": (special.logit, [NAN, 0, 1, 0.5, 0.1], [NAN, INF, INF, 4, 1 / 0.09]),
    "log_ndtr": (special.log_ndtr, [NAN, INF, 0], [NAN, 0, math.sqrt(2 / math.pi)]),
    "factorial": (special.factorial, [NAN, -2, 1], [NAN, 0, 1 - np.euler_gamma]),
    "gammasgn": (special.gammasgn, [NAN, 1.5], [0, 0]),
    "spence": (special.spence, [NAN, 1, 2], [NAN, -1, -math.log(2)]),
    "gammainc": (lambda x: special.gammainc(0.5, x), [NAN, INF, 0, -1], [NAN, 0, INF, NAN]),
    "gammaincc": (lambda x: special.gammaincc(2.0, x), [NAN, INF, 0, -1], [NAN, 0, 0, NAN]),
}


@pytest.mark.parametrize("name", CASES)
def test_derivatives_at_special_numbers(name: str) -> None:
    function, numbers, right = CASES[name]
    x, weights = np.array(numbers, np.float32), np.linspace(1, 2, len(numbers), dtype=np.float32)
    backward = lx.jit(lx.grad(lambda x: 3 * lnp.sum(weights * function(x))))(x)
    forward = lx.jit(lambda x: lx.jvp(function, (x,), (3 * weights,))[1])(x)
    for found in (backward, forward):
        np.testing.assert_allclose(np.asarray(found), np.multiply(3 * weights, right), rtol=2e-6, atol=1e-30)
