"""Variances of few long columns in parts: two kernels, as exact as a walk for the mean and one for the deviations."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, interpret
from lavax.passes.build.inline import inline_calls
from lavax.passes.kernels.commands import steps_of
from lavax.passes.prepare import pipeline
from lavax.passes.prepare.moments import with_moments_in_parts
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from tests.backends.vulkan.run.execution import run_as_gpu

GPU = target_of(GENERIC_GPU, 1 << 34, 1 << 32)
RANDOM = np.random.default_rng(5)
CHANNELS_LAST = (2, 36, 40, 8)  # 2,880 elements of each channel
ROUNDING = 2.0**-24


def graph_of(function: Any, *shapes: tuple[int, ...]) -> Graph:
    return simplify(inline_calls(lx.trace(function)(*(lx.ShapeDtype(shape, "float32") for shape in shapes))))


def statistics(x: Any, *, axes: tuple[int, ...] = (0, 1)) -> Any:
    mean = lnp.mean(x, axes, keepdims=True)
    return mean, lnp.mean((x - mean) ** 2, axes)


def normalized(x: Any, scale: Any, shift: Any) -> Any:
    return nn.batch_norm(x, *nn.batch_statistics(x), scale, shift, 1e-3)


def test_a_variance_waits_for_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of(statistics, (36, 100, 8))
    steps = list(steps_of(schedule(pipeline.prepare(graph, GPU), target=GPU).steps))
    assert [step.kernel.domain.length for step in steps] == [240, 15]
    monkeypatch.setattr(pipeline, "PASSES", tuple(each for each in pipeline.PASSES if each.name != "moments"))
    assert len(schedule(pipeline.prepare(graph, GPU), target=GPU).steps) == 4


def test_the_sums_are_the_same_for_every_center() -> None:
    """What is subtracted need only follow from the sum; parts have means far from it, and from one another."""
    graph = graph_of(lambda x: lnp.sum((x - (3 + 0.2 * lnp.sum(x, (0, 1)))) ** 2, (0, 1)), (36, 100, 8))
    changed = with_moments_in_parts(graph, GPU)
    assert changed is not graph
    x = RANDOM.normal(size=(36, 100, 8)) + np.arange(36)[:, None, None]
    np.testing.assert_allclose(interpret(changed, x)[0], interpret(graph, x)[0], rtol=1e-12)


def test_others_stay() -> None:
    for function, shape in [
        (statistics, (36, 50, 8)),  # short columns
        (statistics, (3011, 1, 8)),  # no equal parts
        (partial(statistics, axes=(1, 2)), (8, 36, 100)),  # rows in memory
        (lambda x: nn.batch_statistics(x), (2, 8, 36, 40)),  # also rows
        (lambda x: lnp.sum((x - lnp.max(x, (0, 1))) ** 2, (0, 1)), (36, 100, 8)),  # does not follow from a sum
        (lambda x: lnp.sum((x - lnp.mean(x, 0)) ** 2, (0, 1)), (36, 100, 8)),  # a mean for other elements
    ]:
        graph = graph_of(function, shape)
        assert with_moments_in_parts(graph, GPU) is graph
    graph = graph_of(statistics, (36, 100, 8))
    assert with_moments_in_parts(graph, target_of(CPU_DRIVER, 1 << 34, 1 << 32)) is graph


def test_nothing_cancels() -> None:
    """Means of a thousand deviations and more: a rounded mean of a part changes the variance by their product."""
    means = np.array([0, 1, -1e3, 1e4, 1e3, 0.1, -7, 1e6])
    deviations = np.array([1, 1e-3, 1, 1, 0, 0, 2, 10])
    x = (RANDOM.normal(size=(36, 100, 8)) * deviations + means).astype(np.float32)
    exact = x.astype(np.float64)
    mean, variance = run_as_gpu(graph_of(statistics, x.shape), [x])
    assert (np.abs(mean[0, 0] - exact.mean((0, 1))) <= 8 * ROUNDING * np.abs(exact).mean((0, 1))).all()
    spread, rounded = exact.std((0, 1)), ROUNDING * np.abs(exact).max((0, 1))
    bound = 16 * ROUNDING * spread**2 + rounded * spread + 16 * rounded**2
    assert (np.abs(variance - spread**2) <= bound).all()


def test_gradients_of_a_batch_norm_in_the_middle_of_a_graph() -> None:
    def loss(weight: Any, x: Any, scale: Any, shift: Any) -> Any:
        return 3 * lnp.sum(weight * lnp.tanh(normalized(lnp.sin(x) + x, scale, shift)))

    def last(*arrays: Any) -> Any:
        return loss(*(lnp.moveaxis(each, 3, 1) for each in arrays[:2]), *arrays[2:])

    graph = graph_of(lx.value_and_grad(last, argnums=(1, 2, 3)), *[CHANNELS_LAST] * 2, (8,), (8,))
    changed = with_moments_in_parts(graph, GPU)
    assert changed is not graph
    weight, x = (RANDOM.normal(size=CHANNELS_LAST).astype("f") for _ in range(2))
    arrays = [weight, x + np.arange(-20, 20, 5, dtype="f"), *RANDOM.normal(size=(2, 8)).astype("f")]
    exact = interpret(graph, *arrays, dtype=np.float64)
    for got, want in zip(interpret(changed, *arrays, dtype=np.float64), exact, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())
    for got, want in zip(run_as_gpu(graph, arrays), exact, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=64 * ROUNDING * np.abs(want).max())
