"""Maxima that values do not depend on: where no gradient flows through them, and where it has to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir import interpret
from lavax.passes.differentiate import differentiate
from lavax.passes.simplify import remove_stop_gradient, rewriting, rules, simplify
from tests.passes.lowering import f32

X = f32(4, 6)
LABELS = np.array([5, 0, 3, 3], np.int32)


def shifted(x: Any, axis: int = -1) -> Any:
    return x - lnp.max(x, axis=axis, keepdims=True)


def softmax(x: Any) -> Any:
    grown = lnp.exp(shifted(x))
    return grown / lnp.sum(grown, axis=-1, keepdims=True)


def cross_entropy(x: Any, mode: Any = None) -> Any:
    """By default labels outside a row read NaN."""
    rest = shifted(x)
    chosen = lnp.take_along_axis(rest, lnp.asarray(LABELS)[:, None], axis=-1, mode=mode)[:, 0]
    return lnp.mean(lnp.log(lnp.sum(lnp.exp(rest), axis=-1)) - chosen)


def logsumexp(x: Any) -> Any:
    peak = lnp.max(x, axis=-1)
    return lnp.log(lnp.sum(lnp.exp(x - peak[:, None]), axis=-1)) + peak


def smoothed(x: Any) -> Any:
    """The loss of labels that are smoothed: the mean of all shifted scores cancels as well."""
    rest = shifted(x)
    return lnp.mean(lnp.log(lnp.sum(lnp.exp(rest), axis=-1)) - lnp.sum(rest * 0.125, axis=-1) / (0.125 * 6))


def flattened(x: Any) -> Any:
    """Rows of three axes, reshaped to rows of two on the way."""
    rest = lnp.reshape(shifted(lnp.reshape(x, (2, 2, 6))), (4, 6))
    return rest - lnp.log(lnp.sum(lnp.exp(rest), axis=-1, keepdims=True))


def sign_and_scale(x: Any) -> Any:
    """softmin, by the least element."""
    grown = lnp.exp(-2.0 * (x - lnp.min(x, axis=-1, keepdims=True)))
    return grown / lnp.sum(grown, axis=-1, keepdims=True)


def chosen_alike(x: Any) -> Any:
    rest = shifted(x)
    return lnp.where(x > 0, rest, 2.0 * rest - rest) - rest


CANCEL: dict[str, Callable[[Any], Any]] = {
    "softmax": softmax,
    "its logarithm": lambda x: shifted(x) - lnp.log(lnp.sum(lnp.exp(shifted(x)), axis=-1, keepdims=True)),
    "cross-entropy": cross_entropy,
    "cross-entropy of labels inside": lambda x: cross_entropy(x, "promise_in_bounds"),
    "the logarithm of what is chosen": lambda x: lnp.log(
        lnp.take(lnp.exp(shifted(x[0])), lnp.asarray(LABELS)) / lnp.sum(lnp.exp(shifted(x[0])))
    ),
    "logsumexp": logsumexp,
    "smoothed labels": smoothed,
    "flattened": flattened,
    "transposed": lambda x: softmax(x.T),
    "softmin": sign_and_scale,
    "chosen alike": chosen_alike,
    "columns": lambda x: lnp.exp(shifted(x, 0)) / lnp.sum(lnp.exp(shifted(x, 0)), axis=0),
    "compared": lambda x: lnp.where(x == lnp.max(x, axis=-1, keepdims=True), 0.0, softmax(x)),
}
STAY: dict[str, Callable[[Any], Any]] = {
    "the maximum": lambda x: lnp.max(x, axis=-1),
    "shifted": shifted,
    "exp": lambda x: lnp.exp(shifted(x)),
    "the sum of other rows": lambda x: lnp.exp(shifted(x)) / lnp.sum(lnp.exp(shifted(x)), axis=0),
    "another row's": lambda x: shifted(x) - lnp.log(lnp.sum(lnp.exp(shifted(x)), axis=-1))[::-1, None],
    "any row's": lambda x: logsumexp(x) - lnp.max(x, axis=-1) + lnp.max(x, axis=-1)[lnp.asarray(LABELS) % 4],
    "another degree": lambda x: lnp.exp(2.0 * shifted(x)) / lnp.sum(lnp.exp(shifted(x)), axis=-1, keepdims=True),
    "a sum with others": lambda x: (lnp.exp(shifted(x)) + 1.0) / lnp.sum(lnp.exp(shifted(x)), axis=-1, keepdims=True),
    "a product with others": lambda x: x * shifted(x) - x * shifted(x)[::-1],
    "0 outside": lambda x: cross_entropy(x, "promise_in_bounds")
    + lnp.where(x[:, 1] > 0, 0.0, shifted(x)[:, 0]),
    "NaN made 0": lambda x: lnp.nan_to_num(lnp.where(x > 0, lnp.nan, shifted(x))) - shifted(x),
    "chosen unlike": lambda x: lnp.where(x > 0, lnp.exp(shifted(x)), x),
    "tanh": lambda x: lnp.tanh(shifted(x)),
    "returned too": lambda x: (softmax(x), lnp.max(x, axis=-1)),
}


def _stops(function: Callable[[Any], Any]) -> int:
    graph = simplify(lx.trace(function)(X))
    assert str(simplify(graph)) == str(graph)
    return sum(node.op == "stop_gradient" for node in graph.nodes)


@pytest.mark.parametrize("name", CANCEL)
def test_what_cancels_has_no_gradient(name: str) -> None:
    assert _stops(CANCEL[name]) == 1


@pytest.mark.parametrize("name", STAY)
def test_what_does_not_cancel_keeps_its_gradient(name: str) -> None:
    assert _stops(STAY[name]) == 0


@pytest.mark.parametrize("name", [*CANCEL, *STAY])
def test_gradients_are_those_of_the_plain_graph(name: str) -> None:
    """In float64, also of rows with equal greatest elements, whose gradient would be shared out."""
    function = {**CANCEL, **STAY}[name]

    def loss(x: Any, weight: Any) -> Any:
        results = function(x)
        parts = results if isinstance(results, tuple) else (results,)
        return sum(lnp.sum(lnp.sin(part * weight)) for part in parts)

    traced = lx.trace(loss)(X, np.float32(1.5))
    plain = rewriting.rewrite(traced, rules.RULES, rules.MERGING)
    x = np.random.default_rng(0).normal(size=X.shape)
    x[1] = 0.25
    x[2, :3] = 4.0
    arrays = [x, np.float64(1.5), LABELS][: len(traced.inputs)]
    found, expected = (
        interpret(remove_stop_gradient(differentiate(graph, (0,))), *arrays) for graph in (simplify(traced), plain)
    )
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)


def test_second_derivatives() -> None:
    def plain(x: Any) -> Any:
        """Without a maximum there is nothing that could cancel."""
        return lnp.sum(lnp.sin(lnp.exp(x) / lnp.sum(lnp.exp(x), axis=-1, keepdims=True)))

    def second(function: Callable[[Any], Any]) -> np.ndarray:
        gradient = lx.trace(lx.grad(lambda x: lnp.sum(lx.grad(function)(x) ** 2)))(X)
        x = np.random.default_rng(0).normal(size=X.shape)
        return interpret(remove_stop_gradient(gradient), x)[0]

    found = second(lambda x: lnp.sum(lnp.sin(softmax(x))))
    np.testing.assert_allclose(found, second(plain), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("mode", [None, "promise_in_bounds"])
def test_the_gradient_of_a_loss_reduces_each_row_twice(mode: Any) -> None:
    graph = remove_stop_gradient(lx.trace(lx.value_and_grad(lambda x: cross_entropy(x, mode)))(X))
    assert sorted(node.op for node in graph.nodes if node.op in ("sum", "max")) == ["max", "sum", "sum"]
