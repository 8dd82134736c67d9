"""Parameters and states of every optimizer can be donated from the first step on: no array is in them twice."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn, optim, train
from tests.lavax.optim.optimizer_cases import CASES, NAMES, start

pytestmark = pytest.mark.usefixtures("reference_backend")

AROUND: dict[str, Callable[[], Any]] = {
    "rprop": lambda: optim.rprop(0.1),
    "noisy_sgd": lambda: optim.noisy_sgd(0.1, key=0),
    "sophia": lambda: optim.sophia(0.1),
    "polyak_sgd": optim.polyak_sgd,
    "lbfgs": optim.lbfgs,
    "lbfgs with backtracking": lambda: optim.lbfgs(linesearch=optim.scale_by_backtracking_linesearch(5)),
    "MultiSteps": lambda: optim.MultiSteps(optim.adam(0.1), 2, should_skip_update_fn=optim.skip_not_finite),
    "apply_if_finite": lambda: optim.apply_if_finite(optim.adam(0.1), 3),
    "conditionally_mask": lambda: optim.conditionally_mask(optim.adam(0.1), lambda step: step > 2),
    "conditionally_transform": lambda: optim.conditionally_transform(optim.adam(0.1), lambda step: step > 2),
    "inject_hyperparams": lambda: optim.inject_hyperparams(optim.adamw)(optim.linear_schedule(0.1, 0.0, 5)),
    "params_ema": lambda: optim.chain(optim.adam(0.1), optim.params_ema(0.9)),
    "multi_transform": lambda: optim.multi_transform({"a": optim.muon(0.1), "b": optim.sgd(0.1)}, {"a": "a", "b": "b"}),
    "freeze": lambda: optim.chain(optim.adam(0.1), optim.freeze({"a": True, "b": False})),
    "named_chain": lambda: optim.named_chain(("clip", optim.zero_nans()), ("step", optim.adam(0.1))),
    "reduce_on_plateau": lambda: optim.chain(optim.adam(0.1), optim.reduce_on_plateau()),
    "schedule_free": lambda: optim.schedule_free(optim.adam(0.1, b1=0.0), 0.1),
}


def no_array_twice(optimizer: Any) -> None:
    params = lx.tree.map(lnp.asarray, start())
    leaves = lx.tree.leaves((params, optimizer.init(params)))
    assert all(isinstance(leaf, lx.Array) for leaf in leaves), leaves
    assert len({id(leaf) for leaf in leaves}) == len(leaves), leaves


@pytest.mark.parametrize(("name", "arguments"), CASES, ids=NAMES)
def test_no_array_is_twice_in_a_first_state(name: str, arguments: dict[str, Any]) -> None:
    no_array_twice(getattr(optim, name)(**arguments))


@pytest.mark.parametrize("name", AROUND)
def test_no_array_is_twice_in_a_first_state_around_others(name: str) -> None:
    no_array_twice(AROUND[name]())


INPUTS = np.random.default_rng(0).standard_normal((16, 3)).astype(np.float32)


def loss(model: Any, batch: Any) -> Any:
    return nn.mse_loss(model(batch)[:, 0], INPUTS @ np.float32([1, -2, 0.5]))


@pytest.mark.parametrize("name", ["lbfgs", "polyak_sgd", "reduce_on_plateau", "MultiSteps"])
def test_a_training_step_tells_optimizers_the_loss(name: str) -> None:
    optimizer = AROUND[name]()
    step = train.training_step(loss, optimizer)
    state = train.initial_state(nn.Linear(3, 1, key=lx.random.key(0)), optimizer)
    losses = []
    for _ in range(12):
        state, metrics = step(state, INPUTS)
        losses.append(float(metrics["loss"]))
    assert losses[-1] < 0.7 * losses[0], losses
