"""Training in float16 on the device: a scale that is too large at first costs steps, and nothing else."""
from __future__ import annotations

from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from lavax import mixed_precision as mp
from lavax import optim, train

PARAMS = {"w": np.array([[0.5, -1.25], [2, 0.75]], "f"), "b": np.array([0.1, -0.3], "f")}
INPUTS = np.array([[1, 2], [-3, 0.5], [0.25, 4]], "f")


def loss(params: Any, inputs: Any) -> Any:
    return lnp.mean((inputs @ params["w"] + params["b"]) ** 2)


def test_training_in_float16_recovers_from_an_overflow_and_skips_that_step_bit_for_bit() -> None:
    policy = mp.Policy.parse("params=float32,compute=float16,output=float32")
    optimizer = optim.adamw(0.05)

    @lx.compile(donate_argnums=(0, 1, 2))
    def step(params: Any, state: Any, scale: Any, inputs: Any) -> Any:
        value, gradients = mp.value_and_grad(loss, policy, scale)(params, inputs)
        finite = mp.all_finite(gradients)
        updates, following = optimizer.update(gradients, state, params)
        moved = mp.select_tree(finite, (optim.apply_updates(params, updates), following), (params, state))
        return *moved, scale.adjust(finite), value, finite

    params, state, scale = PARAMS, optimizer.init(PARAMS), mp.DynamicLossScale.create(2.0**24, period=100)
    values, skipped = [], 0
    for _ in range(60):
        before = [np.array(leaf) for leaf in lx.tree.leaves((params, state))]
        params, state, scale, value, finite = step(params, state, scale, INPUTS)
        after = [np.array(leaf) for leaf in lx.tree.leaves((params, state))]
        same = all(one.tobytes() == other.tobytes() for one, other in zip(before, after, strict=True))
        assert same is not bool(finite)
        skipped += same
        values.append(float(value))
    assert 1 <= skipped < 15 and float(scale.loss_scale) == 2.0 ** (24 - skipped)
    assert values[-1] < 0.5 * values[0]


def test_the_usual_step_skips_overflows_and_adjusts_the_scale() -> None:
    policy = mp.Policy.parse("params=float32,compute=float16,output=float32")
    optimizer = optim.adam(0.1)
    scale = mp.DynamicLossScale.create(2.0**15, period=2)
    step = train.training_step(lambda model, x: lnp.sum(model * x), optimizer, policy=policy)
    state = train.initial_state(lnp.ones(3), optimizer, loss_scale=scale)
    seen = []
    for factor in (1e6, 1e6, 1e-3, 1e-3, 1e-3):  # float16 ends at 65504
        before = np.asarray(state.model), int(state.optimizer[0].count)
        state, metrics = step(state, np.full(3, factor, "f"))
        moved = not np.array_equal(state.model, before[0])
        assert moved == (int(state.optimizer[0].count) > before[1])
        seen.append((float(metrics["loss scale"]), moved))
    assert seen == [(2.0**15, False), (2.0**14, False), (2.0**13, True), (2.0**13, True), (2.0**14, True)]
    assert int(state.step) == 5
