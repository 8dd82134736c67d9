"""Mixtral and Qwen 3 with experts against transformers: logits, gradients, files, the balance of experts."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax import models, nn
from lavax.models.family import family_of
from lavax.models.mixtral import MixtralConfig
from tests.lavax.models.language import (
    check_cached,
    check_recorded,
    check_saved_again,
    next_token_loss,
    token_ids,
    torch_checkpoint,
)
from tests.lavax.models.seeded import assert_close, assert_gradients_close, gradients_by_name, seeded_model

pytestmark = pytest.mark.usefixtures("reference_backend")

MIXTRAL: dict[str, Any] = dict(
    model_type="mixtral", vocab_size=96, hidden_size=32, intermediate_size=40, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, sliding_window=6,
    rms_norm_eps=1e-6, rope_parameters={"rope_type": "default", "rope_theta": 1e4},
)  # fmt: skip
QWEN: dict[str, Any] = dict(
    model_type="qwen3_moe", vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
    num_attention_heads=4, num_key_value_heads=2, head_dim=8, num_experts=4, num_experts_per_tok=3,
    moe_intermediate_size=24, mlp_only_layers=[1], norm_topk_prob=False,
    rope_parameters={"rope_type": "default", "rope_theta": 1e4},
)  # fmt: skip
ALL = [MIXTRAL, QWEN]
CLASSES = {"mixtral": "Mixtral", "qwen3_moe": "Qwen3Moe"}
IDS = token_ids(96, 2, 9)


def checkpoint(settings: dict[str, Any], folder: Path) -> Any:
    name = CLASSES[settings["model_type"]]
    given = {key: value for key, value in settings.items() if key != "model_type"}
    return torch_checkpoint(f"{name}ForCausalLM", dict(given, config=f"{name}Config"), folder)


def own_model(settings: dict[str, Any]) -> Any:
    family = family_of(settings["model_type"])
    return seeded_model(family, MixtralConfig.from_json(settings))


def fused(gradients: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """As transformers holds them in memory: the experts of a layer together, gates above ups."""
    made = {name.replace("block_sparse_moe", "mlp"): array for name, array in gradients.items()}
    for name in [name for name in made if re.search(r"experts\.\*\.(w1|gate_proj)\.", name)]:
        stem, kind = name.split("*")
        up, down = {".w1.weight": ("w3", "w2")}.get(kind, ("up_proj", "down_proj"))
        both = made.pop(name), made.pop(f"{stem}*.{up}.weight")
        made[f"{stem}gate_up_proj"] = np.concatenate(both, axis=1)
        made[f"{stem}down_proj"] = made.pop(f"{stem}*.{down}.weight")
    return made


def loss(model: Any, ids: np.ndarray) -> Any:
    _, routers = model.routed(ids)
    return next_token_loss(model, ids) + 0.5 * nn.load_balancing_loss(routers, model.config.num_experts_per_tok)


@pytest.mark.parametrize("settings", ALL, ids=CLASSES)
def test_logits_and_gradients_are_those_of_transformers(settings: dict[str, Any], tmp_path: Path) -> None:
    oracle, model = checkpoint(settings | {"router_aux_loss_coef": 0.5}, tmp_path), models.load(tmp_path)
    import torch

    ids = torch.from_numpy(IDS)
    wanted = oracle(ids, labels=ids, output_router_logits=True)
    assert_close(model(IDS), wanted.logits.detach().numpy(), 1e-5)
    assert_close(model.routed(IDS)[0], wanted.logits.detach().numpy(), 1e-5)
    wanted.loss.backward()
    value, gradients = lx.value_and_grad(loss)(model, IDS)
    assert float(value) == pytest.approx(float(wanted.loss.detach()), rel=1e-5)
    family = family_of(settings["model_type"])
    assert_gradients_close(fused(gradients_by_name(family, gradients)), oracle)


@pytest.mark.parametrize("settings", ALL, ids=CLASSES)
def test_a_saved_model_is_read_by_transformers(settings: dict[str, Any], tmp_path: Path) -> None:
    check_saved_again(checkpoint(settings, tmp_path / "theirs"), tmp_path / "theirs", tmp_path / "ours", IDS)


@pytest.mark.parametrize("settings", ALL, ids=CLASSES)
def test_a_cached_decode_is_the_forward_pass(settings: dict[str, Any]) -> None:
    check_cached(own_model(settings), IDS)


# Of transformers 5.23.0 and torch 2.13.0, which read the seeded weights from a folder that lavax saved.
RECORDED: dict[str, dict[str, Any]] = {
    "mixtral": {
        "logits": [-0.488701, 0.274371, 0.766782, 0.712691, -0.023277, -0.004373],
        "loss": 5.209931,
        "squares": {
            "model.layers.0.block_sparse_moe.gate.weight": 0.2935572,
            "model.layers.0.block_sparse_moe.experts.*.w2.weight": 0.9060205,
            "model.embed_tokens.weight": 4.37536,
        },
    },
    "qwen3_moe": {
        "logits": [0.545186, -0.681609, 2.667374, -1.272663, -1.336191, 1.708988],
        "loss": 5.126316,
        "squares": {
            "model.layers.0.mlp.gate.weight": 0.2810014,
            "model.layers.0.mlp.experts.*.down_proj.weight": 0.5173488,
            "model.embed_tokens.weight": 3.129456,
        },
    },
}


@pytest.mark.parametrize("settings", ALL, ids=CLASSES)
def test_recorded_values(settings: dict[str, Any]) -> None:
    kind = settings["model_type"]
    check_recorded(own_model(settings), family_of(kind), IDS, RECORDED[kind])


def test_a_configuration_without_experts_is_refused() -> None:
    with pytest.raises(ValueError, match="num_local_experts or num_experts must say"):
        MixtralConfig.from_json(MIXTRAL | {"num_local_experts": None}).experts_of(0)
