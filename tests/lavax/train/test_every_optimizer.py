"""Every optimizer trains in the usual step, whose state is donated."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn, optim, train

pytestmark = pytest.mark.usefixtures("reference_backend")

INPUTS = np.random.default_rng(0).standard_normal((16, 3)).astype("f")
NAMES = [
    "adabelief", "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "adan", "amsgrad", "fromage", "lamb",
    "lars", "lion", "muon", "nadam", "novograd", "optimistic_gradient_descent", "polyak_sgd", "radam", "rmsprop",
    "rprop", "sgd", "signum", "sm3", "sophia", "yogi",
]  # fmt: skip
# What is built of others: a name -> how.
BUILT: dict[str, Callable[[], Any]] = {
    "lbfgs": lambda: optim.lbfgs(memory_size=2),
    "backtracking": lambda: optim.chain(optim.sgd(1.0), optim.scale_by_backtracking_linesearch(4)),
    "accumulated": lambda: optim.MultiSteps(optim.adam(1e-2), 2),
    "apply_if_finite": lambda: optim.apply_if_finite(optim.adam(1e-2), 3),
    "with means": lambda: optim.chain(optim.clip_by_global_norm(1.0), optim.adam(1e-2), optim.params_ema(0.9)),
    "injected": lambda: optim.inject_hyperparams(optim.adam)(learning_rate=1e-2),
}
MAKERS = {name: lambda name=name: getattr(optim, name)(1e-2) for name in NAMES} | BUILT


def loss(model: nn.Linear, inputs: Any) -> Any:
    return lnp.mean((model(inputs) - 2 * inputs[:, :2]) ** 2)


@pytest.mark.parametrize("name", MAKERS)
def test_the_loss_falls(name: str) -> None:
    optimizer = MAKERS[name]()
    step = train.training_step(loss, optimizer)
    state = train.initial_state(nn.Linear(3, 2, key=lx.random.key(0)), optimizer)
    values = []
    for _ in range(4):
        state, metrics = step(state, INPUTS)
        values.append(float(metrics["loss"]))
    assert values[-1] < values[0]


def test_slow_and_fast_weights_are_arrays_of_their_own() -> None:
    both = optim.LookaheadParams.init_synced({"weight": lnp.ones(3)})
    moved = lx.compile(lambda params: lx.tree.map(lambda leaf: leaf + 1, params), donate_argnums=0)(both)
    assert np.array_equal(moved.fast["weight"], moved.slow["weight"])
