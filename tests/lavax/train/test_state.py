"""The usual step: random keys, metrics, running statistics."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import mixed_precision, nn, optim, train

pytestmark = pytest.mark.usefixtures("reference_backend")

INPUTS = np.random.default_rng(0).standard_normal((6, 3)).astype("f")


class Normed(nn.Module):
    """A line behind running means."""

    weight: Any
    statistics: Any

    def __call__(self, x: Any) -> tuple[Any, Any]:
        mean = lnp.mean(x, axis=0)
        return (x - mean) @ self.weight, 0.5 * self.statistics + 0.5 * lx.stop_gradient(mean)


def loss(model: Normed, x: Any) -> Any:
    found, statistics = model(x)
    return lnp.mean((found - 1) ** 2), {}, model.replace(statistics=statistics)


def test_running_statistics_are_taken_over_as_they_are() -> None:
    """Without decay, and without what an optimizer makes of gradients of zero."""
    optimizer = optim.adamw(0.1, weight_decay=0.5)
    begun = Normed(np.ones(3, "f"), np.full(3, 8, "f"))
    step = train.training_step(loss, optimizer)
    after, metrics = step(train.initial_state(begun, optimizer), INPUTS)
    np.testing.assert_allclose(after.model.statistics, 4 + 0.5 * INPUTS.mean(0), rtol=1e-6)
    assert list(metrics) == ["loss"]
    gradients = lx.grad(lambda m: loss(m, INPUTS)[0])(begun)
    updates, _ = optimizer.update(gradients, optimizer.init(begun), begun)
    np.testing.assert_allclose(after.model.weight, begun.weight + np.asarray(updates.weight), rtol=1e-6)


def test_batch_norm_trains() -> None:
    layer = nn.BatchNorm(3)
    model = {"layer": layer, "statistics": layer.initial_state()}

    def centred(model: Any, x: Any) -> Any:
        y, statistics = model["layer"](x, model["statistics"], training=True)
        return lnp.mean((y - 1) ** 2), {"largest": lnp.max(y)}, {**model, "statistics": statistics}

    optimizer = optim.sgd(0.5)
    step, state = train.training_step(centred, optimizer), train.initial_state(model, optimizer)
    wanted = layer(INPUTS, layer.initial_state(), training=True)[1]
    state, _ = step(state, INPUTS)
    for found, right in zip(lx.tree.leaves(state.model["statistics"]), lx.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-6)
    for _ in range(60):
        state, metrics = step(state, INPUTS)
    assert float(metrics["loss"]) < 0.05


def test_every_step_has_a_key_of_its_own() -> None:
    def noise(model: Any, batch: Any, key: Any) -> Any:
        drawn = lx.random.normal(key)
        return lnp.sum(model * drawn), {"drawn": drawn}

    optimizer = optim.sgd(0.1)
    step = train.training_step(noise, optimizer)
    drawn = []
    for _ in range(2):
        state = train.initial_state(lnp.ones(()), optimizer, key=lx.random.key(3))
        for _ in range(3):
            state, metrics = step(state, 0.0)
            drawn.append(float(metrics["drawn"]))
    assert drawn[:3] == drawn[3:] and len(set(drawn)) == 3


@pytest.mark.parametrize("result", [(0.0, 1.0), (0.0, {}, None, None), ()])
def test_what_a_loss_may_not_return(result: Any) -> None:
    optimizer = optim.sgd(0.1)
    step = train.training_step(lambda model, batch: result, optimizer)
    with pytest.raises(ValueError, match=r"loss must return a scalar, \(scalar, metrics\)"):
        step(train.initial_state(lnp.ones(()), optimizer), 0.0)


HALF = mixed_precision.Policy.parse("params=float32,compute=float16,output=float32")


def squares(model: nn.Linear, x: Any) -> Any:
    assert model.weight.dtype == x.dtype == "float16"
    return lnp.mean(model(x) ** 2), {"largest": lnp.max(model(x))}


def test_a_policy_computes_in_its_dtype_and_keeps_the_model_s() -> None:
    optimizer = optim.sgd(0.1)
    model = nn.Linear(3, 2, key=lx.random.key(0))
    step = train.training_step(squares, optimizer, policy=HALF)
    state, metrics = step(train.initial_state(nn.Linear(3, 2, key=lx.random.key(0)), optimizer), INPUTS)
    value, gradients = mixed_precision.value_and_grad(lambda m: squares(m, INPUTS.astype("float16"))[0], HALF)(model)
    assert metrics["loss"].dtype == metrics["largest"].dtype == state.model.weight.dtype == "float32"
    assert float(metrics["loss"]) == pytest.approx(float(value), rel=2e-3)
    np.testing.assert_allclose(state.model.weight, np.asarray(model.weight - 0.1 * gradients.weight), atol=2e-4)


def test_running_statistics_keep_their_dtype_under_a_policy() -> None:
    optimizer = optim.sgd(0.1)
    step = train.training_step(loss, optimizer, policy=HALF)
    state, _ = step(train.initial_state(Normed(np.ones(3, "f"), np.full(3, 8, "f")), optimizer), INPUTS)
    assert state.model.statistics.dtype == state.model.weight.dtype == "float32"
    np.testing.assert_allclose(state.model.statistics, 4 + 0.5 * INPUTS.mean(0), rtol=2e-3)


def test_a_loss_scale_without_a_policy_is_refused() -> None:
    optimizer = optim.sgd(0.1)
    step = train.training_step(squares, optimizer)
    state = train.initial_state(lnp.ones(3), optimizer, loss_scale=mixed_precision.DynamicLossScale.create())
    with pytest.raises(ValueError, match="has a loss_scale, so the step needs a policy"):
        step(state, INPUTS)
