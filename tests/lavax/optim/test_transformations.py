"""Optimizers: against reference values and the textbook's formulas in float64, and as parts of a compiled step."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import optim
from lavax.optim import Transformation

pytestmark = pytest.mark.usefixtures("reference_backend")

EPSILON = float(np.finfo(np.float32).eps)
TREE = {"w": np.array([[1, -2], [0.5, 3]], "f"), "b": (np.array([4, -0.25], "f"), np.float32(2))}


def exact_path(optimizer: Transformation, start: Any, gradient: Any, steps: int) -> list[np.ndarray]:
    """The parameter, one array, after each step, in float64; `gradient` is a function of the parameter."""

    def advance(param: Any, state: Any) -> tuple[Any, Any]:
        updates, following = optimizer.update(gradient(param), state, param)
        return optim.apply_updates(param, updates), following

    param = np.asarray(start, np.float64)
    state = optimizer.init(param.astype(np.float32))
    graph = lx.trace(advance)(param.astype(np.float32), state)
    held = [np.asarray(leaf) for leaf in lx.tree.leaves(state)]
    path = []
    for _ in range(steps):
        param, *held = lx.ir.interpret(graph, param, *held, dtype=np.float64)
        path.append(param)
    return path


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        (optim.adam(1e-3), [0.99900000001, 0.99800000002]),
        (optim.adamw(1e-3, weight_decay=0.1), [0.99890000001, 0.997800110019999]),
        (optim.sgd(1e-3, momentum=0.9), [0.999, 0.9971]),
        (optim.sgd(1e-3), [0.999, 0.998]),
    ],
)
def test_two_steps_from_one_with_gradient_one(optimizer: Transformation, expected: Sequence[float]) -> None:
    path = exact_path(optimizer, 1.0, lambda param: lnp.ones_like(param), 2)
    np.testing.assert_allclose(path, expected, rtol=0, atol=2e-15)  # the values are given to 15 digits


def test_descent_on_rosenbrocks_function() -> None:
    def value(p: Any) -> Any:
        return 100 * (p[1] - p[0] ** 2) ** 2 + (p[0] - 1) ** 2

    path = exact_path(optim.sgd(1e-3), [0.0, 2.0], lx.grad(value), 1000)
    # Rounding at the start, where the curvature is 800 at most and the rate contracts, does not grow.
    np.testing.assert_allclose(path[-1], [0.6837118569138317, 0.4659526837427042], rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: optim.adam(1e-3, b1=1.0), ValueError, "adam: b1 .* got 1.0"),
        (lambda: optim.adamw(1e-3, b2=-0.5), ValueError, "adamw: b2 .* got -0.5"),
        (lambda: optim.adam(1e-3).update(TREE, ()), TypeError, r"adam: the state .* got \(\)"),
        (lambda: optim.adamw(1e-3).update(TREE, optim.adamw(1e-3).init(TREE)), TypeError, "adamw: .* needs them"),
        (lambda: optim.chain(optim.sgd(0.1), 3), TypeError, "chain takes transformations .* got 3"),
        (lambda: optim.chain(optim.sgd(0.1)).update(TREE, ()), TypeError, r"chain: the state .* got \(\)"),
        (lambda: optim.clip_by_global_norm(-1.0), ValueError, "max_norm .* got -1.0"),
    ],
)
def test_what_cannot_be(call: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()


def test_adam_follows_its_paper() -> None:
    rate, b1, b2, eps = 0.01, 0.8, 0.95, 1e-6
    path = exact_path(optim.adam(rate, b1, b2, eps), [1.0, -3.0], lambda p: p * p - 2 * p, 12)
    p, m, v = np.array([1.0, -3.0]), np.zeros(2), np.zeros(2)
    for t, found in enumerate(path, start=1):
        g = p * p - 2 * p
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        p = p - rate * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
        np.testing.assert_allclose(found, p, rtol=1e-12)


def test_the_first_step_of_adam_is_the_learning_rate_in_float32_too() -> None:
    # 1 - 0.999, taken in float32, would be wrong by 6e-5 of itself. Here every operation rounds by half a unit.
    gradients = np.array([1, -1e-3, 200], "f")
    optimizer = optim.adam(1e-3, eps=0.0)
    updates, _ = optimizer.update(gradients, optimizer.init(gradients))
    np.testing.assert_allclose(np.asarray(updates), -1e-3 * np.sign(gradients), rtol=8 * EPSILON)


def test_clipping_by_the_global_norm() -> None:
    clip = optim.clip_by_global_norm(1.0)
    tree = {"a": np.array([1, 2], "f"), "b": np.array([3, 4], "f")}
    clipped, _ = clip.update(tree, clip.init(tree))
    found = np.concatenate([np.asarray(leaf) for leaf in lx.tree.leaves(clipped)])
    np.testing.assert_allclose(found, np.array([1, 2, 3, 4]) / math.sqrt(30), rtol=4 * EPSILON)
    assert float(optim.global_norm(tree)) == pytest.approx(math.sqrt(30), rel=2 * EPSILON)


def test_small_gradients_are_not_clipped() -> None:
    clip = optim.clip_by_global_norm(5.0)
    found, _ = clip.update(np.array([3, 4], "f"), ())
    assert np.asarray(found).tolist() == [3, 4]
    zeros, _ = clip.update(np.zeros(2, "f"), ())
    assert np.asarray(zeros).tolist() == [0, 0]


def test_a_chain_hands_updates_on() -> None:
    optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.sgd(0.5, momentum=0.5))
    gradients = np.array([3, 4], "f")
    state = optimizer.init(gradients)
    first, state = optimizer.update(gradients, state)
    second, _ = optimizer.update(gradients, state)
    np.testing.assert_allclose(np.asarray(first), [-0.3, -0.4], rtol=4 * EPSILON)
    np.testing.assert_allclose(np.asarray(second), [-0.45, -0.6], rtol=4 * EPSILON)


@pytest.mark.parametrize("optimizer", [optim.adam(0.1), optim.sgd(0.1, momentum=0.9), optim.sgd(0.1)])
def test_states_and_updates_have_the_structure_of_the_parameters(optimizer: Transformation) -> None:
    state = optimizer.init(TREE)
    updates, following = optimizer.update(TREE, state, TREE)
    assert lx.tree.structure(updates) is lx.tree.structure(TREE)
    assert lx.tree.structure(following) is lx.tree.structure(state)
    kinds = [(leaf.shape, leaf.dtype) for leaf in lx.tree.leaves(state)]
    assert kinds == [(leaf.shape, leaf.dtype) for leaf in lx.tree.leaves(following)]
    assert all(np.asarray(leaf).any() for leaf in lx.tree.leaves(following)), "something was left at zero"


def test_a_compiled_step_gives_what_the_same_step_gives_uncompiled() -> None:
    optimizer = optim.adamw(0.1, weight_decay=0.01)

    def step(params: Any, state: Any) -> Any:
        updates, state = optimizer.update(lx.tree.map(lnp.sin, params), state, params)
        return optim.apply_updates(params, updates), state

    compiled = lx.compile(step, donate_argnums=(0, 1))
    expected, found = (TREE, optimizer.init(TREE)), (TREE, optimizer.init(TREE))
    for _ in range(3):
        expected, found = step(*expected), compiled(*found)
    for one, other in zip(lx.tree.leaves(found), lx.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=16 * EPSILON)


def test_the_learning_rate_may_change_without_a_new_trace() -> None:
    @lx.compile
    def step(param: Any, rate: Any) -> Any:
        updates, _ = optim.sgd(rate).update(param, ())
        return optim.apply_updates(param, updates)

    assert float(step(np.float32(1), np.float32(0.5))) == 0.5
    before = lx.profiler.counters()["traces"]
    assert float(step(np.float32(1), np.float32(0.25))) == 0.75
    assert lx.profiler.counters()["traces"] == before
