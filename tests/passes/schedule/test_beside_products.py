"""What moves memory is dispatched beside products, behind them, where both run at the same time."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import optim
from lavax.ir import interpret
from lavax.passes.kernels.commands import KernelStep, steps_of
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule import schedule as module
from lavax.passes.schedule.levels import beside_products
from lavax.passes.schedule.levels.beside_products import BesideProducts, products_of
from lavax.passes.schedule.schedule import WaitingKernels, schedule
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.target import Dispatches, Products, Target
from tests.passes.program_checks import check_program

OVERLAPPING = Target(Products(stages_operands=True), dispatches=Dispatches(overlap=True))
APART = replace(OVERLAPPING, dispatches=Dispatches())
LAYERS, WIDTH = 4, 16


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small kernels count as large ones do."""
    monkeypatch.setattr(beside_products, "BESIDE_PRODUCTS", BesideProducts(nbytes=1))
    monkeypatch.setattr(module, "WAITING_KERNELS", WaitingKernels(kept_bytes=1, all_kept_bytes=0))


def step(weights: Any, state: Any, x: Any, y: Any) -> Any:
    """A training step of layers with a norm, in bfloat16."""

    def norm(x: Any, gain: Any) -> Any:
        x = x.astype("float32")
        return (gain * x / lnp.sqrt(lnp.mean(x * x, axis=-1, keepdims=True) + 1.0)).astype("bfloat16")

    def loss(weights: Any) -> Any:
        out = x
        for gain, weight in weights:
            out = out + lnp.tanh(norm(out, gain) @ weight.astype("bfloat16"))
        return lnp.mean((out.astype("float32") - y) ** 2)

    updates, state = optim.adam(0.1).update(lx.grad(loss)(weights), state, weights)
    return optim.apply_updates(weights, updates), state


def graph() -> Any:
    weights = [(lx.ShapeDtype((WIDTH,), "float32"), lx.ShapeDtype((WIDTH, WIDTH), "float32"))] * LAYERS
    state = lx.eval_shape(optim.adam(0.1).init, weights)
    data = lx.ShapeDtype((8, WIDTH), "bfloat16"), lx.ShapeDtype((8, WIDTH), "float32")
    return remove_stop_gradient(lx.trace(step)(weights, state, *data))


def levels_of(program: KernelProgram) -> list[list[KernelStep]]:
    """The steps between barriers."""
    found: list[list[KernelStep]] = [[]]
    for each in steps_of(program.steps):
        if each.barrier:
            found.append([])
        found[-1].append(each)
    return found


def updates_in(level: list[KernelStep]) -> list[KernelStep]:
    """Those that write weights."""
    is_large = lambda kernel: kernel.graph.outputs[0].shape == (WIDTH, WIDTH) and len(kernel.graph.outputs) == 3  # noqa: E731
    return [each for each in level if any(is_large(kernel) for kernel in each.kernels)]


def test_updates_are_beside_products_and_behind_them() -> None:
    prepared = prepare(graph(), OVERLAPPING)
    program = schedule(prepared, target=OVERLAPPING)
    check_program(program)
    found = [level for level in levels_of(program) if updates_in(level)]
    assert len(found) > 1
    beside = [level for level in found if any(products_of(each.kernel) for each in level)]
    assert len(beside) >= len(found) - 1  # behind the last product there is none
    for level in beside:
        first = min(level.index(each) for each in updates_in(level))
        assert not any(products_of(each.kernel) for each in level[first:])


def test_where_kernels_run_one_after_the_other_updates_wait_for_each_other() -> None:
    program = schedule(prepare(graph(), APART), target=APART)
    assert len([level for level in levels_of(program) if updates_in(level)]) == 1


def test_updates_that_move_little_stay_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside_products, "BESIDE_PRODUCTS", BesideProducts(nbytes=1 << 20))
    program = schedule(prepare(graph(), OVERLAPPING), target=OVERLAPPING)
    assert len([level for level in levels_of(program) if updates_in(level)]) == 1


def test_numbers_are_the_same() -> None:
    traced, random = graph(), np.random.default_rng(0)
    prepared = prepare(traced, OVERLAPPING)
    check_program(schedule(prepared, target=OVERLAPPING))
    arrays = [node.dtype.rounded(np.abs(random.normal(size=node.shape)).astype("f")) for node in traced.inputs]
    for found, right in zip(interpret(prepared, *arrays), interpret(traced, *arrays), strict=True):
        np.testing.assert_allclose(found, right, rtol=0.05, atol=0.05)
