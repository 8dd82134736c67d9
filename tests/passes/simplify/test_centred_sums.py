"""Deviations from a mean cancel in the sums of a norm's gradient."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir import interpret
from lavax.passes.simplify import simplify

rng = np.random.default_rng(5)


def normal(*shape: int) -> Any:
    return rng.normal(size=shape).astype("f")


def normed(x: Any, axes: tuple[int, ...]) -> Any:
    mean = lnp.mean(x, axis=axes, keepdims=True)
    variance = lnp.mean((x - mean) ** 2, axis=axes, keepdims=True)
    return (x - mean) / lnp.sqrt(variance + 1e-5)


def of_rows(x: Any, w: Any, r: Any) -> Any:
    return lnp.sum(normed(x, (-1,)) * w * r)


def of_channels(x: Any, w: Any, r: Any) -> Any:
    return lnp.sum(normed(x, (0, 2, 3)) * w[:, None, None] * r)


def of_convolved(x: Any, w: Any, r: Any) -> Any:
    return of_channels(lx.lax.conv(x, lnp.broadcast_to(w[:, None, None, None], (4, 3, 3, 3)), (1, 1), "SAME"), w, r)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "rows": (of_rows, (normal(6, 8), normal(8), normal(6, 8))),
    "channels": (of_channels, (normal(2, 4, 5, 5), normal(4), normal(2, 4, 5, 5))),
    "channels of a convolution": (of_convolved, (normal(2, 3, 5, 5), normal(4), normal(2, 4, 5, 5))),
}


@pytest.mark.parametrize("name", CASES)
def test_the_gradient_of_a_norm_sums_no_deviations(name: str) -> None:
    function, arguments = CASES[name]
    graph = lx.trace(lx.grad(function))(*arguments)
    found = simplify(graph)
    sums = [node for node in found.nodes if node.op == "sum"]
    assert not any(node.operands[0].op == "add" for node in sums)
    (got,), (want,) = (interpret(each, *arguments, dtype=np.float64) for each in (found, graph))
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_second_derivatives_stay(name: str) -> None:
    function, (x, w, r) = CASES[name]

    def along(x: Any, w: Any, r: Any) -> Any:
        return lnp.sum(lx.grad(function)(x, w, r) * lnp.cos(x))

    graph = lx.trace(lx.grad(along))(x, w, r)
    (got,) = interpret(simplify(graph), x, w, r, dtype=np.float64)
    step, direction = 1e-6, rng.normal(size=x.shape)
    values = lx.trace(along)(x, w, r)
    high, low = (interpret(values, x + sign * step * direction, w, r, dtype=np.float64)[0] for sign in (1, -1))
    np.testing.assert_allclose(np.sum(got * direction), (high - low) / (2 * step), rtol=1e-5)


def deviation(x: Any) -> Any:
    return x - lnp.mean(x, axis=1, keepdims=True)


STAY: dict[str, Callable[[Any, Any], Any]] = {
    "deviations alone, whose rounding error may be asked for": lambda x, g: deviation(x),
    "factors that differ along the sum": lambda x, g: g + g * deviation(x),
    "another mean": lambda x, g: g + lnp.sum(g, axis=1, keepdims=True) * (x - lnp.mean(g, axis=1, keepdims=True)),
    "another share": lambda x, g: g + lnp.sum(g, axis=1, keepdims=True) * (x - lnp.sum(x, axis=1, keepdims=True) / 7),
    "a mean over another axis": lambda x, g: g + lnp.sum(g, 1, keepdims=True) * (x - lnp.mean(x, 0, keepdims=True)),
}


@pytest.mark.parametrize("name", STAY)
def test_other_sums_stay(name: str) -> None:
    x, g = normal(6, 6), normal(6, 6)
    graph = lx.trace(lambda x, g: lnp.sum(STAY[name](x, g), axis=1))(x, g)
    found = simplify(graph)
    (output,) = found.outputs
    assert output.op == "sum" and output.operands[0].op in ("add", "subtract")
    (got,), (want,) = (interpret(each, x, g, dtype=np.float64) for each in (found, graph))
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
