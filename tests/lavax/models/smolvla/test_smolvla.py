"""SmolVLA's action expert against a plain reference: velocities, gradients, the denoising, files."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax import io, models
from lavax.models import smolvla
from lavax.models.smolvla import SMOLVLA_BASE, SmolVLA, SmolVLAConfig
from lavax.models.smolvla.expert import FAMILY
from tests.lavax.models.seeded import assert_close, gradients_by_name, seeded_model
from tests.lavax.models.smolvla import reference

pytestmark = pytest.mark.usefixtures("reference_backend")

LAYERS, CONTEXT, ACTIONS = 4, 5, 3
SMALL = SmolVLAConfig(
    chunk_size=4,
    max_state_dim=3,
    max_action_dim=2,
    num_vlm_layers=LAYERS,
    vlm_hidden_size=16,
    num_attention_heads=reference.HEADS,
    num_key_value_heads=reference.KEY_HEADS,
    head_dim=reference.HEAD,
)
VISIBLE = np.array([[True] * 5, [True, True, False, True, False]])
TIMES = np.array([0.3, 0.8], np.float32)


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


NOISY, NOISE = draw(2, ACTIONS, 2, seed=1), draw(2, ACTIONS, 2, seed=2)
KEYS, VALUES = (draw(LAYERS, 2, CONTEXT, reference.KEY_HEADS, reference.HEAD, seed=n) for n in (3, 4))


def seeded() -> SmolVLA:
    model: SmolVLA = seeded_model(FAMILY, SMALL)
    return model


def loss(model: SmolVLA) -> Any:
    return smolvla.flow_matching_loss(model, NOISY, NOISE, TIMES, model.prefix(tuple(KEYS), tuple(VALUES), VISIBLE))


def expected(xp: Any, weights: dict[str, Any], actions: Any, times: Any, keys: Any, values: Any) -> Any:
    """The velocities of both examples by the reference."""
    return [
        reference.velocity(
            xp, weights, actions[n], float(times[n]), keys[:, n], values[:, n], list(np.flatnonzero(VISIBLE[n]))
        )
        for n in range(2)
    ]


def expected_loss(xp: Any, weights: dict[str, Any], given: list[Any]) -> Any:
    actions, noise, keys, values = given
    mixed = [float(t) * n + (1 - float(t)) * a for t, n, a in zip(TIMES, noise, actions, strict=True)]
    made = expected(xp, weights, mixed, TIMES, keys, values)
    errors = [velocity - (n - a) for velocity, n, a in zip(made, noise, actions, strict=True)]
    return sum((error * error).mean() for error in errors) / 2


def double(model: SmolVLA) -> dict[str, np.ndarray]:
    return {name: value.astype(np.float64) for name, value in gradients_by_name(FAMILY, model).items()}


GIVEN = [array.astype(np.float64) for array in (NOISY, NOISE, KEYS, VALUES)]


def test_velocities_are_those_of_the_reference() -> None:
    model = seeded()
    got = model(NOISY, TIMES, model.prefix(tuple(KEYS), tuple(VALUES), VISIBLE))
    wanted = expected(np, double(model), GIVEN[0], TIMES, GIVEN[2], GIVEN[3])
    assert_close(got, np.stack(wanted), 1e-5)


def test_a_prefix_without_padding_needs_no_mask() -> None:
    model = seeded()
    keys, values = tuple(KEYS), tuple(VALUES)
    with_mask = model(NOISY, 0.5, model.prefix(keys, values, np.ones((2, CONTEXT), bool)))
    assert_close(model(NOISY, 0.5, model.prefix(keys, values)), with_mask, 1e-5)


def test_the_gradient_is_that_of_differences_of_the_reference() -> None:
    model = seeded()
    weights = double(model)
    value, gradients = lx.value_and_grad(loss)(model)
    found = gradients_by_name(FAMILY, gradients)
    assert float(value) == pytest.approx(float(expected_loss(np, weights, GIVEN)), rel=1e-5)
    names = [name for name in weights if "state_proj" not in name]
    direction = {name: np.random.default_rng(5).standard_normal(weights[name].shape) for name in names}
    ends = [
        expected_loss(np, {**weights, **{name: weights[name] + step * direction[name] for name in names}}, GIVEN)
        for step in (1e-5, -1e-5)
    ]
    along = sum(np.sum(found[name] * direction[name]) for name in names)
    assert along == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-3)


def test_every_gradient_is_that_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="differentiates the reference")
    model = seeded()
    weights = {name: torch.tensor(value, requires_grad=True) for name, value in double(model).items()}
    expected_loss(torch, weights, [torch.from_numpy(array) for array in GIVEN]).backward()
    for name, got in gradients_by_name(FAMILY, lx.grad(loss)(model)).items():
        if "state_proj" in name:  # the state is a token of the prefix
            assert not got.any()
        else:
            assert_close(got, weights[name].grad.numpy(), 1e-3, name)


def test_denoising_takes_euler_steps_with_one_prefix() -> None:
    model = seeded()
    weights = double(model)
    made = smolvla.denoising()(model, NOISE, model.prefix(tuple(KEYS), tuple(VALUES), VISIBLE), steps=4)
    actions = GIVEN[1]
    for index in range(4):
        times = np.full(2, 1 - index / 4)
        actions = actions - np.stack(expected(np, weights, actions, times, GIVEN[2], GIVEN[3])) / 4
    assert_close(made, actions, 1e-5)


def test_the_prefix_is_projected_once() -> None:
    """A step of the denoising holds no product with the cross layers' matrices of keys and values."""
    model = seeded()
    prefix = model.prefix(tuple(KEYS), tuple(VALUES))
    text = lx.compile(lambda model, prefix: model(NOISY, 0.5, prefix)).lower(model, prefix).as_text("optimized")
    products = sum("dot(" in line for line in text.splitlines())
    own = 3 + 1 + LAYERS * 5 + 2 * (LAYERS // 2)  # the ends; q, o, gate, up, down; k and v of self-attention
    assert products == own


def test_weights_in_low_precision_leave_actions_in_float32() -> None:
    model = seeded()
    low = lx.tree.map(lambda leaf: leaf.astype("bfloat16"), model)
    made, wanted = (each(NOISY, TIMES, each.prefix(tuple(KEYS), tuple(VALUES), VISIBLE)) for each in (low, model))
    assert made.dtype == "float32"
    assert_close(made, wanted, 2.0**-4)  # some sixteen roundings of 2^-8 one after another


def test_actions_do_not_see_later_ones() -> None:
    model = seeded()
    prefix = model.prefix(tuple(KEYS), tuple(VALUES))
    changed = NOISY.copy()
    changed[:, -1] += 1
    first, second = (np.asarray(model(actions, 0.5, prefix)) for actions in (NOISY, changed))
    assert np.array_equal(first[:, :-1], second[:, :-1])
    assert not np.allclose(first[:, -1], second[:, -1])


def test_times_of_training_have_the_distribution_of_lerobot() -> None:
    times = np.asarray(smolvla.random_times(lx.random.key(0), 4000))
    assert times.mean() == pytest.approx(0.6, abs=0.02)
    assert np.square(times).mean() == pytest.approx(3 / 7, abs=0.02)
    assert times.min() >= 0.001
    assert times.max() <= 1


def test_the_loss_draws_noise_and_times_of_its_key() -> None:
    model = seeded()
    prefix = model.prefix(tuple(KEYS), tuple(VALUES))
    key = lx.random.key(7)
    for_noise, for_times = lx.random.split(key)
    noise, times = lx.random.normal(for_noise, NOISY.shape), smolvla.random_times(for_times, 2)
    wanted = smolvla.flow_matching_loss(model, NOISY, noise, times, prefix)
    assert float(smolvla.loss(model, NOISY, lx.random.key(7), prefix)) == float(wanted)


def test_a_folder_of_lerobot_is_read_and_written(tmp_path: Path) -> None:
    """The folder holds the vision-language model and statistics of the data too, which are left alone."""
    from safetensors.numpy import load_file, save_file

    model = seeded()
    tensors = {**gradients_by_name(FAMILY, model)}
    more = {"model.vlm_with_expert.vlm.lm_head.weight": draw(2, 2), "normalize_inputs.buffer_state.mean": draw(3)}
    save_file({**tensors, **more}, tmp_path / "model.safetensors")
    data = {**SMALL.to_json(), "vlm_model_name": "HuggingFaceTB/SmolVLM2-500M-Video-Instruct", "n_obs_steps": 1}
    (tmp_path / "config.json").write_text(json.dumps(data))
    read = models.load(tmp_path)
    assert all(map(np.array_equal, lx.tree.leaves(read), lx.tree.leaves(model)))
    io.save_pretrained(read, tmp_path / "again")
    assert load_file(tmp_path / "again" / "model.safetensors").keys() == tensors.keys()
    assert json.loads((tmp_path / "again" / "config.json").read_text()) == data


def test_the_published_policy_has_the_expected_expert() -> None:
    assert (SMOLVLA_BASE.hidden_size, SMOLVLA_BASE.intermediate_size) == (720, 2048)
    form = lx.eval_shape(lambda: SmolVLA(SMOLVLA_BASE, key=lx.random.key(0)))
    shapes = {name: leaf.shape for name, leaf in _leaves(form)}
    prefix = "model.vlm_with_expert.lm_expert.layers."
    assert shapes[f"{prefix}0.self_attn.k_proj.weight"] == (320, 720)
    assert shapes[f"{prefix}1.self_attn.k_proj.weight"] == (320, 320)
    assert shapes["model.action_time_mlp_in.weight"] == (720, 1440)
    assert shapes["model.state_proj.weight"] == (960, 32)
    assert len(shapes) == 10 + 1 + 16 * 9
    assert "vlm_hidden_size" not in SMOLVLA_BASE.to_json()


def _leaves(model: Any) -> list[tuple[str, Any]]:
    from lavax.tracer.pytrees import pytree

    leaves, structure = pytree.flatten(model)
    return list(zip(map(FAMILY.name_in_file, pytree.paths(structure)), leaves, strict=True))


def test_bad_settings_and_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="num_expert_layers=8 is another number"):
        SmolVLAConfig(num_expert_layers=8)
    with pytest.raises(ValueError, match="attention_mode is 'cross_attn'"):
        SmolVLAConfig(attention_mode="self_attn")
    model = seeded()
    with pytest.raises(ValueError, match="for each of 4 layers, got 3 and 4"):
        model.prefix(tuple(KEYS[:3]), tuple(VALUES))
    with pytest.raises(lx.ShapeError, match=r"actions are \[B, T, 2\] with T at most 4"):
        model(draw(2, 5, 2), 0.5, model.prefix(tuple(KEYS), tuple(VALUES)))
