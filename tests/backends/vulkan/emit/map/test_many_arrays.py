"""Kernels of more arrays than push constants have room for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.map import merged
from lavax.backends.vulkan.plan.plan import BASE_WORD
from lavax.ir import interpret
from tests.backends.vulkan.run.execution import backend, run
from tests.passes.lowering import f32

X = np.linspace(-1, 1, 7, dtype="f")


def most_words(function: Any, *args: Any) -> int:
    """How many slots and numbers the largest dispatch would push, were there room."""
    graph = lx.trace(function)(*args)
    plan = backend().lower(graph).plan
    rests = {len(plan.arguments) + len(plan.results) + k: len(c) // 4 for k, c in enumerate(plan.constants)}
    return max(
        len(dispatch.slots) + len(dispatch.words) - 1 + rests[dispatch.words[-1]]
        for dispatch in plan.dispatches
        if len(dispatch.slots) + len(dispatch.words) == BASE_WORD
    )


@pytest.mark.parametrize("count", [29, 30, 31, 44])
def test_results_of_one_reduction(count: int) -> None:
    def f(x: Any) -> Any:
        total = lnp.sum(x * x)
        return [lnp.sin(total * (k + 1)) for k in range(count)]

    found = run(lx.trace(f)(X), [X])
    np.testing.assert_allclose(found, np.sin((X.astype("d") ** 2).sum() * np.arange(1, count + 1)), atol=1e-5)
    assert most_words(f, f32(7)) == count + 1


def test_arrays_by_descriptor_leave_room_for_the_end_of_a_loop() -> None:
    """In a scan of a scan, large arrays take two slots each, counters more, and the loop over elements a number."""

    def f(x: Any, weights: Any, less: Any, more: Any, ks: Any) -> Any:
        def step(carry: Any, k: Any) -> Any:
            before, now, total = carry
            after = (2 * now - less * before - 4 * x * now + k * weights) / more
            return (now, after, total + after**2), None

        start = (lnp.zeros(x.shape),) * 3
        return lnp.sum(lx.scan(lambda carry, k: lx.scan(step, carry, k), start, ks)[0][2])

    weights = np.linspace(0, 1, 9600, dtype="f").reshape(80, 120)
    ks = np.arange(6, dtype="f").reshape(2, 3)
    arguments = (np.full_like(weights, 0.1), weights, 1 - weights, 1 + weights, ks)
    expected = interpret(lx.trace(lx.grad(f))(*arguments), *arguments)[0]
    found = lx.compile(lx.grad(f))(*arguments)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("count", [6, 15, 24])
def test_a_scan_over_many_sequences(count: int) -> None:
    """Each array that moves takes a slot for its counter besides its own."""

    def f(xs: Any) -> Any:
        return lx.scan(lambda c, x: (c + sum(x), [v * c for v in x]), lnp.zeros(2), xs)

    rows = [np.linspace(-k, k + 1, 6, dtype="f").reshape(3, 2) for k in range(count)]
    carry, expected = np.zeros(2), [np.zeros((3, 2)) for _ in rows]
    for step in range(3):
        for row, whole in zip(rows, expected, strict=True):
            whole[step] = row[step] * carry
        carry = carry + sum(row[step].astype("d") for row in rows)
    last, found = lx.compile(f)(rows)
    np.testing.assert_allclose(last, carry, rtol=1e-5, atol=1e-4)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-3)

    def loss(xs: Any) -> Any:
        last, found = f(xs)
        return lnp.sum(last) + sum(lnp.sum(one) for one in found)

    # d/dx of Σ c_T + Σ x_t · c_t, with c_t the sum of all x before: what the others of later steps give, and 1 + c_t.
    every = np.array([row.astype("d") for row in rows]).sum(0)
    before = np.cumsum(every, 0) - every
    after = every.sum(0) - np.cumsum(every, 0)
    for gradient in lx.compile(lx.grad(loss))(rows):
        np.testing.assert_allclose(gradient, 1 + before + after, rtol=1e-4, atol=1e-3)


def test_one_map_over_arrays_of_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One dispatch; workgroups go once, or several times, through their stretch of an array."""
    arrays = [np.linspace(-k, k, size, dtype="f") for k, size in enumerate([1, 3, 4, 31, 32, 33, 700, 2048])]
    graph = lx.trace(lambda xs: [lnp.exp(x) for x in xs])(arrays)
    for most in (16384, 12, 1):
        monkeypatch.setattr(merged, "_MOST_STRETCHES", most)
        assert len(backend().lower(graph).plan.dispatches) == 1
        for found, array in zip(run(graph, arrays), arrays, strict=True):
            np.testing.assert_allclose(found, np.exp(array.astype("d")), rtol=2e-6)
