"""Transformations around others: parts of the parameters, several batches, refused steps, numbers in the state."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn, optim
from tests.lavax.optim.optimizer_cases import gradients, start

pytestmark = pytest.mark.usefixtures("reference_backend")


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in lx.tree.leaves(tree)]


def steps(optimizer: Any, count: int, **extra: Any) -> tuple[Any, Any]:
    params = start()
    state = optimizer.init(params)
    for step in range(count):
        updates, state = optimizer.update(gradients(step), state, params, **extra)
        params = optim.apply_updates(params, updates)
    return params, state


def test_groups_by_labels_get_their_own_optimizers() -> None:
    labels = {"a": "fast", "b": "slow"}  # a prefix of the parameters' structure
    optimizer = optim.multi_transform({"fast": optim.adam(0.1), "slow": optim.sgd(0.01)}, labels)
    found, state = steps(optimizer, 3)
    fast, slow = steps(optim.adam(0.1), 3)[0], steps(optim.sgd(0.01), 3)[0]
    np.testing.assert_array_equal(found["a"], fast["a"])
    np.testing.assert_array_equal(found["b"]["c"], slow["b"]["c"])
    assert len(lx.tree.leaves(state.inner_states["fast"])) == 3  # a count and two moments of one array
    with pytest.raises(ValueError, match="no transformation for the labels 'other'"):
        optim.partition({"fast": optim.sgd(0.1)}, {"a": "fast", "b": "other"}).init(start())


def test_a_mask_may_be_a_function_and_what_is_frozen_stays() -> None:
    def mask(params: Any) -> Any:
        return lx.tree.map(lambda leaf: lnp.ndim(leaf) == 1, params)

    found, _ = steps(optim.chain(optim.sgd(0.1), optim.freeze(mask)), 2)
    np.testing.assert_array_equal(found["b"]["c"], start()["b"]["c"])
    assert not np.array_equal(np.asarray(found["a"]), start()["a"])
    chosen, state = steps(optim.selective_transform(optim.adam(0.1), freeze_mask=mask), 2)
    np.testing.assert_array_equal(chosen["b"]["c"], start()["b"]["c"])
    assert len(lx.tree.leaves(state)) == 1 + 2 * 2


def test_a_module_with_labels_is_a_tree_though_it_can_be_called() -> None:
    layer = nn.Linear(3, 2, key=lx.random.key(0))
    labels = lx.tree.map(lambda leaf: "w" if lnp.ndim(leaf) == 2 else "b", layer)
    optimizer = optim.partition({"w": optim.sgd(1.0), "b": optim.set_to_zero()}, labels)
    ones = lx.tree.map(lnp.ones_like, layer)
    updates, _ = optimizer.update(ones, optimizer.init(layer), layer)
    assert np.all(np.asarray(updates.weight) == -1) and np.all(np.asarray(updates.bias) == 0)


def test_gradients_of_several_batches_make_one_step_by_their_mean() -> None:
    optimizer = optim.MultiSteps(optim.adam(0.1), 3)
    params = start()
    state = optimizer.init(params)
    for batch in range(3):
        assert not bool(optimizer.has_updated(state))
        updates, state = optimizer.update(gradients(batch), state, params)
        assert (batch == 2) == any(np.any(leaf) for leaf in leaves(updates))
    mean = lx.tree.map(lambda *parts: np.mean(parts, axis=0), *(gradients(batch) for batch in range(3)))
    expected, _ = optim.adam(0.1).update(mean, optim.adam(0.1).init(params))
    for one, other in zip(leaves(updates), leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4)
    assert bool(optimizer.has_updated(state)) and int(state.gradient_step) == 1
    assert not any(np.any(leaf) for leaf in leaves(state.acc_grads))


def test_small_bfloat16_gradients_are_summed_in_float32() -> None:
    optimizer = optim.MultiSteps(optim.sgd(1.0), 300, use_grad_mean=False)
    param = lnp.zeros(2, lnp.bfloat16)
    state = optimizer.init(param)
    for _ in range(300):
        updates, state = optimizer.update(lnp.ones(2, lnp.bfloat16), state, param)
    np.testing.assert_array_equal(np.asarray(updates), [-300, -300])  # bfloat16 would stay at 256


def test_a_batch_with_nan_may_be_left_out() -> None:
    optimizer = optim.MultiSteps(optim.sgd(1.0), 2, should_skip_update_fn=optim.skip_not_finite)
    param = np.zeros(2, "f")
    state = optimizer.init(param)
    for gradient in ([1.0, 2.0], [np.nan, 0.0], [3.0, 4.0]):
        updates, state = optimizer.update(np.array(gradient, "f"), state, param)
    np.testing.assert_array_equal(np.asarray(updates), [-2, -3])


def test_steps_that_are_not_finite_are_refused_bit_for_bit_until_there_are_too_many() -> None:
    optimizer = optim.apply_if_finite(optim.adam(0.1), 2)
    param = np.array([1, 2], "f")
    _, state = optimizer.update(np.ones(2, "f"), optimizer.init(param), param)
    held = leaves(state.inner_state)
    bad = np.array([np.inf, 1], "f")
    for refused in (1, 2):
        updates, state = optimizer.update(bad, state, param)
        assert not np.any(np.asarray(updates)) and int(state.notfinite_count) == refused
        assert all(one.tobytes() == other.tobytes() for one, other in zip(leaves(state.inner_state), held, strict=True))
    updates, state = optimizer.update(bad, state, param)
    assert not np.all(np.isfinite(np.asarray(updates))) and int(state.total_notfinite) == 3


def test_hyperparameters_in_the_state_can_be_changed_between_compiled_steps() -> None:
    optimizer = optim.inject_hyperparams(optim.sgd)(learning_rate=0.5, momentum=None)

    @lx.compile
    def step(param: Any, state: Any) -> Any:
        updates, state = optimizer.update(lnp.ones(()), state, param)
        return optim.apply_updates(param, updates), state

    param, state = step(np.float32(1), optimizer.init(np.float32(1)))
    assert float(param) == 0.5
    traces = lx.profiler.counters()["traces"]
    param, state = step(param, optim.tree.set(state, learning_rate=lnp.asarray(0.25, lnp.float32)))
    assert float(param) == 0.25 and lx.profiler.counters()["traces"] == traces
    assert float(optim.tree.get(state, "learning_rate")) == 0.25
    scheduled = optim.inject_hyperparams(optim.adamw)(optim.linear_schedule(1.0, 0.0, 10), b1=0.8)
    expected = steps(optim.adamw(optim.linear_schedule(1.0, 0.0, 10), b1=0.8), 4)[0]
    found, held = steps(scheduled, 4)
    assert float(held.hyperparams["learning_rate"]) == pytest.approx(0.7)
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"no arguments \['rate'\]"):
        optim.inject_hyperparams(optim.sgd, static_args="rate")


def test_the_mean_of_parameters_is_that_of_the_steps() -> None:
    optimizer = optim.chain(optim.sgd(0.1), optim.params_ema(0.5))
    param: Any = np.float32(1)
    state, path = optimizer.init(param), []
    assert float(optim.averaged_params(state, 0.5, param)) == 1
    for _ in range(3):
        updates, state = optimizer.update(np.float32(1), state, param)
        param = optim.apply_updates(param, updates)
        path.append(float(param))
    expected = np.average(path, weights=[0.125, 0.25, 0.5])
    assert float(optim.averaged_params(state, 0.5, param)) == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ValueError, match="params_ema"):
        optim.averaged_params(optim.adam(0.1).init(param), 0.5, param)


def test_slow_weights_follow_every_second_step() -> None:
    optimizer = optim.lookahead(optim.sgd(1.0), 2, 0.5)
    params: Any = optim.LookaheadParams.init_synced(np.float32(0))
    state, path = optimizer.init(params), []
    for _ in range(4):
        updates, state = optimizer.update(np.float32(-1), state, params)
        params = optim.apply_updates(params, updates)
        path.append((float(params.fast), float(params.slow)))
    assert path == [(1, 0), (1, 1), (2, 1), (2, 2)]


def test_muon_makes_matrices_nearly_orthogonal() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 5)).astype("f")
    numbers = optim.MuonDimensionNumbers(reduction_axis=2, output_axis=3)
    found = optim.orthogonalize_via_newton_schulz(x, (3.4445, -4.775, 2.0315), dimension_numbers=numbers)
    values = np.linalg.svd(np.asarray(found), compute_uv=False)
    assert found.shape == x.shape and values.min() > 0.6 and values.max() < 1.25  # Jordan et al.: [0.7, 1.2]
    u, _, vt = np.linalg.svd(x, full_matrices=False)
    assert np.sum(np.asarray(found) * (u @ vt)) / values.sum() > 0.99


def test_muon_takes_the_axes_of_lavax_layers() -> None:
    layer = nn.Linear(3, 6, key=lx.random.key(0))

    def numbers(params: Any) -> Any:
        return lx.tree.map(lambda p: optim.MuonDimensionNumbers(1, 0) if lnp.ndim(p) == 2 else None, params)

    def update(tree: Any, **options: Any) -> Any:
        optimizer = optim.muon(0.1, **options)
        return optimizer.update(tree, optimizer.init(tree), tree)[0]

    ours = update(layer, muon_weight_dimension_numbers=numbers)
    transposed = update({"w": np.asarray(layer.weight).T, "b": layer.bias})
    np.testing.assert_allclose(np.asarray(ours.weight).T, np.asarray(transposed["w"]), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(np.asarray(ours.bias), np.asarray(transposed["b"]))


def test_sophia_divides_by_the_diagonal_of_the_hessian() -> None:
    curvature = np.array([1, 4, 100], "f")

    def loss(p: Any) -> Any:
        return 0.5 * lnp.sum(curvature * p**2)

    optimizer = optim.scale_by_sophia(b2=0.0, gamma=1.0, clip_threshold=None)
    param = np.array([1, -2, 0.5], "f")
    state = optimizer.init(param)
    for _ in range(2):
        updates, state = optimizer.update(curvature * param, state, param, obj_fn=loss)
    # The Hessian is diagonal, so that random signs give it exactly; its inverse times the gradient is the parameter.
    np.testing.assert_allclose(np.asarray(updates), param, rtol=1e-5)
    with pytest.raises(TypeError, match="obj_fn"):
        optimizer.update(param, state, param)


def test_noise_has_the_variance_asked_for_and_other_draws_at_each_step() -> None:
    optimizer = optim.add_noise(eta=0.25, gamma=0.5, key=3)
    zeros = np.zeros(20000, "f")
    first, state = optimizer.update(zeros, optimizer.init(zeros))
    second, _ = optimizer.update(zeros, state)
    # The deviation of a sample's own is 1/√(2·20000) of it: five of these.
    assert np.std(first) == pytest.approx(0.5, rel=0.025) and np.std(second) == pytest.approx(0.5 / 2**0.25, rel=0.025)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.04


def test_rprop_follows_its_paper() -> None:
    found, steps_taken = np.float32(3), []
    optimizer = optim.rprop(0.5)
    state = optimizer.init(found)
    for gradient in (1.0, 2.0, -1.0, -1.0):
        updates, state = optimizer.update(np.float32(gradient), state, found)
        steps_taken.append(float(updates))
    np.testing.assert_allclose(steps_taken, [-0.5, -0.6, 0, 0.3], rtol=1e-6)


def test_clipping_each_array_by_its_norm() -> None:
    found, _ = optim.clip_by_block_norm(1.0).update({"a": np.array([3, 4], "f"), "b": np.array([0.1], "f")}, ())
    np.testing.assert_allclose(np.asarray(found["a"]), [0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(np.asarray(found["b"]), [0.1], rtol=1e-6)


def test_nan_becomes_zero() -> None:
    optimizer = optim.zero_nans()
    found, state = optimizer.update(np.array([np.nan, 1], "f"), optimizer.init(np.zeros(2, "f")))
    assert np.asarray(found).tolist() == [0, 1] and bool(state.found_nan)


def test_polyak_s_step_reaches_the_minimum_of_a_cone() -> None:
    optimizer = optim.polyak_sgd(max_learning_rate=10.0)
    param = np.array([3, 4], "f")
    updates, _ = optimizer.update(param / 5, optimizer.init(param), param, value=5.0)
    np.testing.assert_allclose(np.asarray(optim.apply_updates(param, updates)), [0, 0], atol=1e-6)


def test_named_chains_and_conditions() -> None:
    optimizer = optim.named_chain(("clip", optim.clip(1.0)), ("sgd", optim.sgd(1.0)))
    updates, state = optimizer.update(np.float32(5), optimizer.init(np.float32(0)))
    assert float(updates) == -1 and set(state) == {"clip", "sgd"}
    every_second = optim.conditionally_mask(optim.sgd(1.0), lambda step: step % 2 == 1)
    other = optim.conditionally_transform(optim.sgd(1.0), lambda step: step % 2 == 1)
    held, passed = every_second.init(np.float32(0)), other.init(np.float32(0))
    found = []
    for _ in range(3):
        masked, held = every_second.update(np.float32(2), held)
        changed, passed = other.update(np.float32(2), passed)
        found.append((float(masked), float(changed)))
    assert found == [(0, 2), (-2, -2), (0, 2)]


def test_averages_and_periodic_copies() -> None:
    old = {"w": lnp.asarray([1.0, 2.0], lnp.bfloat16)}
    new = {"w": np.array([3, 4], "f")}
    mixed = optim.incremental_update(new, old, 0.25)["w"]
    assert mixed.dtype == lnp.bfloat16 and np.asarray(lnp.astype(mixed, lnp.float32)).tolist() == [1.5, 2.5]
    for count, expected in ((4, [3, 4]), (5, [1, 2])):
        copied = optim.periodic_update(new, {"w": np.array([1, 2], "f")}, lnp.asarray(count), 2)
        assert np.asarray(copied["w"]).tolist() == expected


@pytest.mark.parametrize(("order", "expected"), [(None, 5.0), (1, 7.0), ("inf", 4.0)])
def test_norms_of_trees(order: Any, expected: float) -> None:
    tree = [np.array([3], "f"), {"x": np.array([[-4]], "f")}]
    assert float(optim.tree.norm(tree, ord=order)) == expected
    assert float(optim.tree.norm(tree, ord=order, squared=True)) == expected**2
    with pytest.raises(ValueError, match="got 3"):
        optim.tree.norm(tree, ord=3)
