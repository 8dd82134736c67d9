"""Functions of weights that are recorded once for weights of the same shape: the graph is that of calling them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import optim
from lavax.optim.tree import leafwise as module
from lavax.optim.tree.leafwise import leafwise
from lavax.passes.simplify import remove_stop_gradient

TREE = {"a": np.arange(3.0), "b": np.arange(3.0) + 1, "c": np.ones((2, 2)), "d": np.arange(3.0) * 2}
OTHER = lx.tree.map(lambda leaf: leaf * 0.5 - 1, TREE)


def _text(function: Callable[..., Any], *arguments: Any) -> str:
    return str(remove_stop_gradient(lx.trace(function)(*arguments)))


def test_a_function_is_called_once_per_kind_and_the_graph_is_the_same() -> None:
    calls: list[tuple[int, ...]] = []

    def step(scale: Any, tree: Any, other: Any, apply: Any) -> Any:
        factor = scale * 2

        def mixed(x: Any, y: Any) -> Any:
            calls.append(x.shape)
            return lnp.tanh(x) * factor + y

        return apply(mixed, tree, other)

    same = _text(lambda *given: step(*given, lx.tree.map), np.float32(3), TREE, OTHER)
    calls.clear()
    assert _text(lambda *given: step(*given, leafwise), np.float32(3), TREE, OTHER) == same
    assert calls == [(3,), (2, 2)]


@pytest.mark.parametrize("optimizer", [optim.adamw(lambda count: 0.1 / (1 + count)), optim.nadam(0.1), optim.sgd(0.1)])
def test_steps_of_optimizers_are_the_same(optimizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = lx.tree.map(lambda leaf: leaf.astype(np.float16 if leaf.ndim > 1 else np.float32), TREE)

    def step(params: Any, state: Any, gradients: Any) -> Any:
        updates, state = optimizer.update(gradients, state, params)
        return optim.apply_updates(params, updates), state

    arguments = tree, optimizer.init(tree), tree
    found = _text(step, *arguments)
    monkeypatch.setattr(module, "active_trace", lambda: None)
    assert _text(step, *arguments) == found


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x,
        lambda x, y: 2.0,
        lambda x, y: (x * y, x + y),
        lambda x, y: lnp.ones(3, x.dtype),
        lambda x, y: sum((lnp.sin(x * k) for k in range(40)), y),
    ],
    ids=["a leaf", "a number", "two values", "nothing of the leaves", "long"],
)
def test_results_that_cannot_be_copied(function: Any) -> None:
    wanted, found = (
        lx.trace(lambda tree, other, apply=apply: apply(function, tree, other))(TREE, OTHER)
        for apply in (lx.tree.map, leafwise)
    )
    for expected, got in zip(_values(wanted), _values(found), strict=True):
        np.testing.assert_array_equal(got, expected)


def _values(graph: Any) -> list[np.ndarray]:
    given = [*lx.tree.leaves(TREE), *lx.tree.leaves(OTHER)]
    return [np.asarray(value) for value in lx.ir.interpret(graph, *given)]


def test_leaves_that_are_one_value_and_constants() -> None:
    def step(x: Any, y: Any) -> Any:
        return leafwise(lambda a, b: a - 2 * b, [x, x, y, lnp.ones(3), 5.0], [x, y, x, y, 2.0])

    x, y = np.arange(3.0, dtype=np.float32), np.ones(3, np.float32) * 7
    found = lx.ir.interpret(lx.trace(step)(x, y), x, y)
    for value, expected in zip(found, [-x, x - 2 * y, y - 2 * x, 1 - 2 * y, 1.0], strict=True):
        np.testing.assert_array_equal(value, expected)
